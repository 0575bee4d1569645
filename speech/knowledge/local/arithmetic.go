package local

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// poly is a value with an unknown: c[0] + c[1]·x + c[2]·x².
type poly [3]float64

func (p poly) constant() bool { return p[1] == 0 && p[2] == 0 }

func (p poly) times(k float64) poly { return poly{p[0] * k, p[1] * k, p[2] * k} }

func (p poly) plus(q poly) poly { return poly{p[0] + q[0], p[1] + q[1], p[2] + q[2]} }

var (
	errNoMath = errors.New("not arithmetic")
	errZero   = errors.New("division by zero")
	errLarge  = errors.New("arithmetic too complex")
)

// smallWords and scales are the numbers in words.
var (
	smallWords = map[string]float64{
		"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
		"fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
	}
	scales = map[string]float64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12}
	// signs are operators in words, of one to four words.
	signs = map[string]string{
		"plus": "+", "and": "+", "added to": "+", "minus": "-", "negative": "-", "less": "-", "times": "*", "multiplied by": "*", "x": "x", "divided by": "/", "over": "/", "squared": "²", "cubed": "³", "modulo": "%", "mod": "%",
		"to the power of": "^", "to the power": "^", "square root of": "√", "the square root of": "√", "square root": "√", "cube root of": "∛", "the cube root of": "∛", "percent of": "%of", "per cent of": "%of", "half of": "½", "equals": "=", "is equal to": "=", "equal to": "=", "is": "=",
		"factorial": "!", "·": "*", "×": "*", "÷": "/",
	}
)

// token is a number or a sign.
type token struct {
	sign string // "" for a number
	n    float64
}

// tokens reads a sentence that is nothing but arithmetic.
func tokens(text string) ([]token, error) {
	words, err := split(text)
	if err != nil {
		return nil, err
	}
	var out []token
	for i := 0; i < len(words); {
		if n, used := number(words[i:]); used > 0 {
			out, i = append(out, token{n: n}), i+used
			continue
		}
		used := 0
		for n := min(4, len(words)-i); n > 0 && used == 0; n-- {
			if s, ok := signs[strings.Join(words[i:i+n], " ")]; ok {
				out, used = append(out, token{sign: s}), n
			}
		}
		if w := words[i]; used == 0 && (len(w) == 1 && strings.ContainsAny(w, "+-*/^()=%!xyz²³√") || w == "%of") {
			out, used = append(out, token{sign: w}), 1
		}
		if used == 0 {
			return nil, errNoMath
		}
		i += used
	}
	return out, nil
}

const maxWords = 60

// split cuts text into words, numbers and single signs.
func split(text string) (out []string, err error) {
	rs := []rune(text)
	for i := 0; i < len(rs); {
		j := i + 1
		switch r := rs[i]; {
		case unicode.IsSpace(r):
			i++
			continue
		case unicode.IsDigit(r) || r == '.':
			for j < len(rs) && (unicode.IsDigit(rs[j]) || rs[j] == '.' || rs[j] == ',' && j+1 < len(rs) && unicode.IsDigit(rs[j+1])) {
				j++
			}
		case unicode.IsLetter(r):
			for j < len(rs) && unicode.IsLetter(rs[j]) {
				j++
			}
		}
		out, i = append(out, string(rs[i:j])), j
		if len(out) > maxWords {
			return nil, errLarge
		}
	}
	return out, nil
}

// number reads the number at the beginning of words, in digits or in words, and how many words it takes: 0 if there is none. A hundred "and" five is
// one number, five "and" five is a sum.
func number(words []string) (n float64, used int) {
	if v, err := strconv.ParseFloat(strings.ReplaceAll(words[0], ",", ""), 64); err == nil && unicode.IsDigit(rune(words[0][len(words[0])-1])) {
		for used = 1; used < len(words) && scales[words[used]] > 0; used++ {
			v *= scales[words[used]]
		}
		return v, used
	}
	total, part, last, seen := 0.0, 0.0, math.Inf(1), false
	for i := 0; i < len(words); i++ {
		w := words[i]
		small, isSmall := smallWords[w]
		scale := scales[w]
		switch {
		case isSmall && small < last && (small > 0 || !seen):
			part, last, seen, used = part+small, small, true, i+1
			if small >= 20 {
				last = 10
			} else {
				last = 0
			}
		case (w == "a" || w == "an") && !seen && i+1 < len(words) && scales[words[i+1]] > 0:
			part, last, seen = 1, 0, true
		case scale == 100 && seen && part > 0 && part < 100:
			part, last, used = part*100, math.Inf(1), i+1
		case scale > 100 && seen && part > 0, scale == 12 && seen:
			total, part, last, used = total+part*scale, 0, math.Inf(1), i+1
		case w == "and" && seen && math.IsInf(last, 1) && i+1 < len(words) && smallWords[words[i+1]] > 0:
		case w == "point" && seen && i+1 < len(words):
			frac, digits := 0.0, 0.1
			for i++; i < len(words); i++ {
				d, ok := smallWords[words[i]]
				if !ok || d > 9 {
					break
				}
				frac, digits, used = frac+d*digits, digits/10, i+1
			}
			return total + part + frac, used
		default:
			return total + part, used
		}
	}
	return total + part, used
}

// reader reads tokens by precedence: sums, products, signs, powers.
type reader struct {
	t     []token
	depth int
}

func (r *reader) sign() string {
	if len(r.t) == 0 {
		return ""
	}
	return r.t[0].sign
}

// take drops the next token if it is one of the signs, and returns it.
func (r *reader) take(signs ...string) string {
	for _, s := range signs {
		if s != "" && r.sign() == s && len(r.t) > 0 {
			r.t = r.t[1:]
			return s
		}
	}
	return ""
}

const maxDepth = 30

func (r *reader) sum() (poly, error) {
	if r.depth++; r.depth > maxDepth {
		return poly{}, errLarge
	}
	defer func() { r.depth-- }()
	out, err := r.product()
	for err == nil {
		s := r.take("+", "-")
		if s == "" {
			return out, nil
		}
		var next poly
		next, err = r.product()
		if s == "-" {
			next = next.times(-1)
		}
		out = out.plus(next)
	}
	return out, err
}

func (r *reader) product() (poly, error) {
	out, err := r.power()
	for err == nil && len(r.t) > 0 {
		s := r.take("*", "/", "%of", "%")
		switch {
		case s != "":
		case r.sign() == "x" && len(r.t) > 1 && (r.t[1].sign == "" || r.t[1].sign == "("): // 3 x 4
			s, r.t = "*", r.t[1:]
		case r.sign() == "(" || r.sign() == "x" || r.sign() == "y" || r.sign() == "z": // 2x, 2(3+4)
			s = "*"
		default:
			return out, nil
		}
		var next poly
		if next, err = r.power(); err == nil {
			out, err = combine(s, out, next)
		}
	}
	return out, err
}

func combine(sign string, a, b poly) (poly, error) {
	switch sign {
	case "%of":
		a, sign = a.times(0.01), "*"
	case "/":
		if !b.constant() {
			return a, errLarge
		}
		if b[0] == 0 {
			return a, errZero
		}
		return a.times(1 / b[0]), nil
	case "%":
		if !a.constant() || !b.constant() {
			return a, errLarge
		}
		if b[0] == 0 {
			return a, errZero
		}
		return poly{math.Mod(a[0], b[0])}, nil
	}
	if a[2]*b[1] != 0 || a[1]*b[2] != 0 || a[2]*b[2] != 0 {
		return a, errLarge
	}
	return poly{a[0] * b[0], a[0]*b[1] + a[1]*b[0], a[0]*b[2] + a[1]*b[1] + a[2]*b[0]}, nil
}

func (r *reader) power() (poly, error) {
	if r.depth++; r.depth > maxDepth {
		return poly{}, errLarge
	}
	defer func() { r.depth-- }()
	if r.take("-") != "" {
		out, err := r.power()
		return out.times(-1), err
	}
	for sign, exponent := range map[string]float64{"√": 0.5, "∛": 1. / 3} {
		if r.take(sign) != "" {
			out, err := r.power()
			if err != nil || !out.constant() || out[0] < 0 && sign == "√" {
				return out, errors.Join(err, errLarge)
			}
			if sign == "∛" {
				return poly{math.Cbrt(out[0])}, nil
			}
			return poly{math.Pow(out[0], exponent)}, nil
		}
	}
	if r.take("½") != "" {
		out, err := r.power()
		return out.times(0.5), err
	}
	out, err := r.atom()
	for err == nil {
		var by float64
		switch r.take("^", "²", "³", "!") {
		case "²":
			by = 2
		case "³":
			by = 3
		case "!":
			if !out.constant() || out[0] < 0 || out[0] > 170 || out[0] != math.Trunc(out[0]) {
				return out, errLarge
			}
			out = poly{math.Round(math.Gamma(out[0] + 1))}
			continue
		case "^":
			var p poly
			if p, err = r.power(); err != nil || !p.constant() {
				return out, errors.Join(err, errLarge)
			}
			by = p[0]
		default:
			return out, nil
		}
		switch {
		case out.constant():
			out = poly{math.Pow(out[0], by)}
		case by == 2:
			out, err = combine("*", out, out)
		default:
			return out, errLarge
		}
	}
	return out, err
}

func (r *reader) atom() (poly, error) {
	switch s := r.sign(); {
	case len(r.t) == 0:
		return poly{}, errNoMath
	case s == "":
		n := r.t[0].n
		r.t = r.t[1:]
		return poly{n}, nil
	case r.take("x", "y", "z") != "":
		return poly{0, 1}, nil
	case r.take("(") != "":
		out, err := r.sum()
		if err == nil && r.take(")") == "" {
			err = errNoMath
		}
		return out, err
	}
	return poly{}, errNoMath
}

// calculate returns the value of an expression, or the solutions of an equation with one unknown, as it is spoken.
func calculate(text string) (string, error) {
	t, err := tokens(text)
	if err != nil {
		return "", err
	}
	unknown := ""
	for _, x := range t {
		if strings.Contains("xyz", x.sign) && x.sign != "" {
			if unknown != "" && unknown != x.sign {
				return "", errLarge
			}
			unknown = x.sign
		}
	}
	r := &reader{t: t}
	left, err := r.sum()
	if err != nil {
		return "", err
	}
	if r.take("=") == "" {
		if len(r.t) > 0 || !left.constant() || len(t) < 2 {
			return "", errNoMath
		}
		return spoken(left[0])
	}
	right, err := r.sum()
	if err != nil || len(r.t) > 0 || unknown == "" {
		return "", errors.Join(err, errNoMath)
	}
	return solve(unknown, left.plus(right.times(-1)))
}

// solve says which values make p zero.
func solve(unknown string, p poly) (string, error) {
	a, b, c := p[2], p[1], p[0]
	var roots []float64
	switch d := b*b - 4*a*c; {
	case a == 0 && b == 0 && c == 0:
		return "every " + unknown, nil
	case a == 0 && b == 0, a != 0 && d < 0:
		return "no " + unknown, nil
	case a == 0:
		roots = []float64{-c / b}
	case d == 0:
		roots = []float64{-b / (2 * a)}
	default:
		roots = []float64{(-b + math.Sqrt(d)) / (2 * a), (-b - math.Sqrt(d)) / (2 * a)}
	}
	var out []string
	for _, x := range roots {
		s, err := spoken(x)
		if err != nil {
			return "", err
		}
		out = append(out, unknown+" = "+s)
	}
	return strings.Join(out, " or "), nil
}

// spoken writes a number as a robot says it: at most six digits, "about" if there are more.
func spoken(v float64) (string, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", errLarge
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v+0, 'f', -1, 64), nil // -0 is 0
	}
	if a := math.Abs(v); a >= 1e15 || a < 1e-4 {
		exponent := math.Floor(math.Log10(a))
		return fmt.Sprintf("about %s times 10 to the %.0f", strconv.FormatFloat(v/math.Pow(10, exponent), 'g', 4, 64), exponent), nil
	}
	short := strconv.FormatFloat(v, 'g', 6, 64)
	if f, err := strconv.ParseFloat(short, 64); err == nil {
		short = strconv.FormatFloat(f, 'f', -1, 64)
		if math.Abs(f-v) > 1e-9*math.Abs(v) {
			short = "about " + short
		}
	}
	return short, nil
}

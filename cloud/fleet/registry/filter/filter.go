package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Key is the subject of a term; Word has none.
type Key string

// The keys.
const (
	Word     Key = ""
	Presence Key = "presence"
	Species  Key = "species"
	ID       Key = "id"
	Version  Key = "version"
	Agent    Key = "agent"
	Body     Key = "body"
	Model    Key = "model"
	Tag      Key = "tag"
	Cohort   Key = "cohort"
	Battery  Key = "battery"
	Problem  Key = "problem"
	Cert     Key = "cert"
	Seen     Key = "seen"
	Since    Key = "since"
	Created  Key = "created"
	Loop     Key = "loop"
	Name     Key = "name"
	Owner    Key = "owner"
)

// Keys are all keys but Word, in the order in which help shows them.
var Keys = []Key{Presence, Species, ID, Version, Agent, Body, Model, Tag, Cohort, Battery, Problem, Cert, Seen, Since, Created, Loop, Name, Owner}

// Values of presence, and values that several keys know.
const (
	Present = "present"
	Absent  = "absent"
	Calls   = "calls"
	Never   = "never"
	None    = "none"
	Any     = "any"
	Expired = "expired"
	OK      = "ok"
	Late    = "late"
)

// choices are the words that a key knows; a key that is not here takes any text.
var choices = map[Key][]string{
	Presence: {"online", "offline", Calls, Never},
	Species:  strings.Split(thing.SpeciesWords(" "), " "),
	Battery:  {"low", "nominal", "full", "unknown"},
	Cert:     {Expired, None},
	Seen:     {Never},
	Since:    {Never},
	Created:  {},
	Loop:     {OK, Late, None},
}

// Choices returns the words that a key knows, for completion; nil for one that takes any text.
func Choices(k Key) []string { return slices.Clone(choices[k]) }

// Op is a comparison; Is has none.
type Op string

// The comparisons.
const (
	Is        Op = ""
	Less      Op = "<"
	LessEqual Op = "<="
	More      Op = ">"
	MoreEqual Op = ">="
)

// Value is one alternative of a term, parsed as its key wants it.
type Value struct {
	Op   Op
	Text string        // as it is written, in its one form
	Num  float64       // battery in volts; loop in microseconds
	Age  time.Duration // seen, since, created, cert with a duration
	At   time.Time     // seen, since, created, cert with a date
	Ver  string        // VersionKey of a compared version
}

// Term is one condition.
type Term struct {
	Key    Key
	Not    bool
	Values []Value // at least one; a word has one

	// Resolve fills in the rest.
	Subs   []Filter   // cohort: the filter of each value
	Things []thing.ID // word, name, owner: robots found by what other domains know; sorted
}

// Filter is terms that must all hold; without any it selects every robot.
type Filter struct{ Terms []Term }

// Limits of a filter.
const (
	MaxLength = 1000 // bytes
	MaxTerms  = 32
	MaxValues = 32 // of a term
	MaxText   = 100
)

// Parse reads a filter. Errors are of kind Invalid and say where and what is wanted.
func Parse(s string) (Filter, error) {
	var f Filter
	switch {
	case len(s) > MaxLength:
		return f, errs.New(errs.Invalid, "filter of %d bytes: at most %d", len(s), MaxLength)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return f, errs.New(errs.Invalid, "filter: want UTF-8 without NUL")
	}
	for p := (parser{s: s}); ; {
		p.space()
		if p.at == len(s) {
			return f, nil
		}
		start := p.at
		t, err := p.term()
		if err == nil && len(f.Terms) == MaxTerms {
			err = fmt.Errorf("more than %d terms", MaxTerms)
		}
		if err != nil {
			return Filter{}, errs.New(errs.Invalid, "filter, position %d, %.60q: %w", start+1, s[start:max(p.at, start)], err)
		}
		f.Terms = append(f.Terms, t)
	}
}

// MustParse is Parse for constants; it panics on what is no filter.
func MustParse(s string) Filter {
	f, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return f
}

// String returns the filter in its one form: Parse of it is the same filter.
func (f Filter) String() string {
	out := make([]string, len(f.Terms))
	for i, t := range f.Terms {
		out[i] = t.String()
	}
	return strings.Join(out, " ")
}

// Nameless returns the filter as String does, without words that may be a person's name or address: for records that outlive accounts.
func (f Filter) Nameless() string {
	out := make([]string, len(f.Terms))
	for i, t := range f.Terms {
		if t.Key == Owner || t.Key == Name || t.Key == Word {
			t.Values = []Value{{Text: "..."}}
		}
		out[i] = t.String()
	}
	return strings.Join(out, " ")
}

// MarshalText writes a filter as String does.
func (f Filter) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a filter as Parse does.
func (f *Filter) UnmarshalText(b []byte) (err error) { *f, err = Parse(string(b)); return err }

// String returns the term as it is written.
func (t Term) String() string {
	var b strings.Builder
	if t.Not {
		b.WriteByte('-')
	}
	if t.Key != Word {
		b.WriteString(string(t.Key) + ":")
	}
	for i, v := range t.Values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(v.Op) + quote(v.Text, t.Key == Word))
	}
	return b.String()
}

// Of returns the term key:text, as if it had been parsed.
func Of(k Key, text string) (Term, error) {
	v, err := value(k, Is, text)
	if err != nil {
		return Term{}, errs.New(errs.Invalid, "filter %s:%.60q: %w", k, text, err)
	}
	return Term{Key: k, Values: []Value{v}}, nil
}

// With returns the filter with one term more.
func (f Filter) With(t Term) Filter { return Filter{append(slices.Clip(slices.Clone(f.Terms)), t)} }

// Uses reports whether a term of that key is in the filter or, once resolved, in a cohort of it.
func (f Filter) Uses(k Key) bool {
	return slices.ContainsFunc(f.Terms, func(t Term) bool {
		return t.Key == k || slices.ContainsFunc(t.Subs, func(s Filter) bool { return s.Uses(k) })
	})
}

// quote writes text so that it reads back as one value. A word must not look like key:value.
func quote(s string, word bool) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r == '"' || r == ',' || r == '\\' || unicode.IsSpace(r) }) &&
		!strings.HasPrefix(s, "<") && !strings.HasPrefix(s, ">") && !strings.HasPrefix(s, "-")
	if plain && (!word || !strings.Contains(s, ":") || isID(s)) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// isID reports whether a word begins as thing ids do; their colon belongs to them.
func isID(s string) bool {
	head, _, colon := strings.Cut(s, ":")
	return colon && slices.Contains(choices[Species], strings.ToLower(head))
}

type parser struct {
	s  string
	at int
}

func (p *parser) space() {
	for p.at < len(p.s) {
		r, n := utf8.DecodeRuneInString(p.s[p.at:])
		if !unicode.IsSpace(r) {
			return
		}
		p.at += n
	}
}

func (p *parser) take(prefix string) bool {
	if !strings.HasPrefix(p.s[p.at:], prefix) {
		return false
	}
	p.at += len(prefix)
	return true
}

func (p *parser) term() (t Term, err error) {
	t.Not = p.take("-")
	if p.at < len(p.s) && p.s[p.at] != '"' {
		// A key ends at the first colon of the bare text that follows.
		rest := p.s[p.at:]
		if end := strings.IndexFunc(rest, func(r rune) bool { return r == ':' || r == '"' || r == ',' || unicode.IsSpace(r) }); end >= 0 && rest[end] == ':' && !isID(rest) {
			key := Key(strings.ToLower(rest[:end]))
			p.at += end + 1
			if !slices.Contains(Keys, key) {
				p.bare()
				return t, fmt.Errorf("unknown key %.20q: want one of %s; quote text that has a colon", rest[:end], join(Keys))
			}
			t.Key = key
		}
	}
	for {
		op := Is
		if t.Key != Word {
			for _, o := range []Op{LessEqual, MoreEqual, Less, More} {
				if p.take(string(o)) {
					op = o
					break
				}
			}
			if op == Is {
				p.take("=")
			}
		}
		text, err := p.text()
		if err != nil {
			return t, err
		}
		v, err := value(t.Key, op, text)
		if err != nil {
			return t, err
		}
		if len(t.Values) == MaxValues {
			return t, fmt.Errorf("more than %d alternatives", MaxValues)
		}
		t.Values = append(t.Values, v)
		if t.Key == Word && p.at < len(p.s) && p.s[p.at] == ',' {
			p.bare()
			return t, fmt.Errorf("a word cannot have alternatives: want key:value,value, or quotes around a comma")
		}
		if !p.take(",") {
			break
		}
	}
	if r, _ := utf8.DecodeRuneInString(p.s[p.at:]); p.at < len(p.s) && !unicode.IsSpace(r) {
		p.bare()
		return t, fmt.Errorf("text after the closing quote: want a space or a comma")
	}
	return t, nil
}

// bare returns text up to a space, comma or quote.
func (p *parser) bare() string {
	start := p.at
	for p.at < len(p.s) {
		r, n := utf8.DecodeRuneInString(p.s[p.at:])
		if unicode.IsSpace(r) || r == ',' || r == '"' {
			break
		}
		p.at += n
	}
	return p.s[start:p.at]
}

func (p *parser) text() (string, error) {
	if !p.take(`"`) {
		start := p.at
		s := p.bare()
		if p.at < len(p.s) && p.s[p.at] == '"' && p.at > start {
			return "", fmt.Errorf("quote within text: want quotes around all of it")
		}
		return s, nil
	}
	var b strings.Builder
	for p.at < len(p.s) {
		switch c := p.s[p.at]; {
		case c == '"':
			p.at++
			return b.String(), nil
		case c == '\\' && p.at+1 < len(p.s):
			p.at++
		}
		b.WriteByte(p.s[p.at])
		p.at++
	}
	return "", fmt.Errorf("no closing quote")
}

func join[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
}

// value checks one alternative and brings it into its one form.
func value(k Key, op Op, text string) (v Value, err error) {
	text = strings.TrimSpace(text)
	v = Value{Op: op, Text: text}
	switch {
	case text == "":
		return v, fmt.Errorf("no value given")
	case len(text) > MaxText:
		return v, fmt.Errorf("a value of %d bytes: at most %d", len(text), MaxText)
	}
	lower := strings.ToLower(text)
	comparable := slices.Contains([]Key{Version, Agent, Body, Battery, Cert, Seen, Since, Created, Loop}, k)
	if op != Is && !comparable {
		return v, fmt.Errorf("%s cannot be compared: want %s:value without %s", k, k, op)
	}
	if op == Is && (slices.Contains(choices[k], lower) || k == Presence && (lower == Present || lower == Absent)) {
		v.Text = lower
		if k == Presence {
			v.Text = cmp.Or(map[string]string{"online": Present, "offline": Absent}[lower], lower) // stored filters have these words
		}
		return v, nil
	}
	switch k {
	case Presence, Species:
		return v, fmt.Errorf("%.20q: want one of %s", text, join(choices[k]))
	case Word, Name, Owner:
		v.Text = lower
		return v, nil
	case ID, Tag, Problem, Cohort, Model:
		v.Text = lower
		if k == Model {
			v.Text = text // a name as the body has it
		}
		if k == ID {
			if id, _ := strings.CutSuffix(lower, "*"); strings.Contains(id, "*") {
				return v, fmt.Errorf("%.60q: want a * only at the end", text)
			}
		}
		return v, nil
	case Version, Agent, Body:
		if op == Is && lower == None {
			v.Text = None
			return v, nil
		}
		head, star := strings.CutSuffix(text, "*")
		if strings.Contains(head, "*") || star && op != Is {
			return v, fmt.Errorf("%.60q: want a * only at the end, and not in a comparison", text)
		}
		if op != Is {
			v.Ver = VersionKey(text)
		}
		return v, nil
	case Battery:
		if op == Is {
			return v, fmt.Errorf("%.20q: want one of %s, or volts in a comparison such as <3.6", text, join(choices[k]))
		}
		if strings.HasSuffix(text, "%") {
			return v, fmt.Errorf("%.20q: robots report volts and a level, not per cent: want <3.6 or low", text)
		}
		n, err := strconv.ParseFloat(strings.TrimSuffix(lower, "v"), 64)
		if err != nil || !(n >= 0 && n <= 100) {
			return v, fmt.Errorf("%.20q: want volts from 0 to 100", text)
		}
		v.Num, v.Text = n, strconv.FormatFloat(n, 'f', -1, 64)
		return v, nil
	case Loop:
		d, err := time.ParseDuration(lower)
		if op == Is || err != nil || d < 0 || d > time.Hour {
			return v, fmt.Errorf("%.20q: want one of %s, or a comparison such as >500us", text, join(choices[k]))
		}
		v.Num, v.Text = float64(d)/float64(time.Microsecond), lower
		return v, nil
	}
	// Cert, Seen, Since, Created: a duration or a date.
	if op == Is {
		return v, fmt.Errorf("%.20q: want %sa comparison such as >3d or <2026-11-01", text, strings.Join(append(slices.Clone(choices[k]), ""), ", "))
	}
	if d, ok := parseAge(lower); ok {
		v.Age, v.Text = d, lower
		return v, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04Z07:00", time.RFC3339} {
		if at, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			v.At, v.Text = at.UTC(), strings.ToUpper(text)
			return v, nil
		}
	}
	return v, fmt.Errorf("%.30q: want a time such as 90m, 36h, 3d or 2w, or a date such as 2026-11-01 or 2026-11-01T18:00Z", text)
}

var units = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// maxAge keeps sums of times in range.
const maxAge = 100 * 365 * 24 * time.Hour

// parseAge reads a number with one unit.
func parseAge(s string) (time.Duration, bool) {
	unit := units[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if err != nil || unit == 0 || time.Duration(n) > maxAge/unit {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

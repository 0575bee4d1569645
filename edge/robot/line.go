package robot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Verb is what a Line does. The zero value reads.
type Verb uint8

// The verbs of a Line.
const (
	Get  Verb = iota // path.slot
	Put              // path.slot = value
	Call             // path.method(arguments)
)

// Line is one line of the textual syntax in which programs and people use a tree (GOSTAI-OPEN-01):
//
//	head.pitch
//	head.pitch = 0.3 speed:1
//	led = [1, 0.5, 0, 0]
//	robot.go(0.2)
//
// A value is a number, true, false, "text", or a list of such. speed: says how fast a motor moves to a position, in the motor's unit a second
// (GOSTAI-OPEN-03); 0: as fast as the body thinks right.
type Line struct {
	Name  string // any name of the tree (Tree.Lookup)
	Verb  Verb
	Value Value   // of Put
	Args  []Value // of Call
	Speed float64 // of Put
}

// maxLine bounds a line; own default.
const maxLine = 1000

// ParseLine reads a line. ErrName, ErrType or ErrRange say what is wrong with it; whether there is such a slot is the tree's to say.
func ParseLine(s string) (Line, error) {
	var l Line
	if len(s) > maxLine {
		return l, fmt.Errorf("%w: a line of %d characters, want at most %d", ErrName, len(s), maxLine)
	}
	name, rest := s, ""
	if i := strings.IndexAny(s, "=("); i >= 0 {
		name, rest = s[:i], s[i:]
	}
	l.Name = strings.TrimSpace(name)
	if _, err := ParsePath(l.Name); err != nil {
		return l, fmt.Errorf("%w; want path.slot, path.slot = value or path.method(arguments)", err)
	}
	var err error
	switch {
	case rest == "":
	case rest[0] == '=':
		l.Verb = Put
		if l.Value, rest, err = parseValue(rest[1:], true); err != nil {
			return l, fmt.Errorf("%s: %w", l.Name, err)
		}
		if rest = strings.TrimSpace(rest); rest != "" {
			l.Speed, err = parseSpeed(rest)
		}
	default:
		l.Verb = Call
		var list Value
		if list, rest, err = parseItems(rest[1:], ')', true); err == nil && strings.TrimSpace(rest) != "" {
			err = fmt.Errorf("%w: %.40q after the closing bracket, want nothing", ErrName, rest)
		}
		l.Args = list.Items
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w", l.Name, err)
	}
	return l, nil
}

func parseSpeed(s string) (float64, error) {
	text, ok := strings.CutPrefix(s, "speed:")
	if !ok {
		return 0, fmt.Errorf("%w: %.40q after the value, want nothing or speed: and a number", ErrName, s)
	}
	v, rest, err := parseValue(text, false)
	switch {
	case err != nil:
		return 0, err
	case v.Type != Float || rest != "":
		return 0, fmt.Errorf("%w: speed:%.40s, want a number and nothing after", ErrType, text)
	case v.Number <= 0:
		return 0, fmt.Errorf("%w: speed:%v, want more than 0", ErrRange, v.Number)
	}
	return v.Number, nil
}

// parseValue reads the value at the start of s and returns what follows it. Lists hold no lists.
func parseValue(s string, lists bool) (Value, string, error) {
	s = strings.TrimLeft(s, " \t")
	switch {
	case strings.HasPrefix(s, "["):
		if !lists {
			return Value{}, s, fmt.Errorf("%w: a list within %.40q, want numbers, true, false or \"text\"", ErrType, s)
		}
		return parseItems(s[1:], ']', false)
	case strings.HasPrefix(s, `"`):
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return Value{}, s, fmt.Errorf("%w: %.40s lacks its closing quotation mark", ErrType, s)
		}
		text, err := strconv.Unquote(quoted)
		return S(text), s[len(quoted):], err
	}
	end := strings.IndexAny(s, " \t,])")
	if end < 0 {
		end = len(s)
	}
	switch word := s[:end]; word {
	case "true", "false":
		return B(word == "true"), s[end:], nil
	default:
		v, err := strconv.ParseFloat(word, 64)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return Value{}, s, fmt.Errorf("%w: %.40s, want a finite number", ErrRange, word)
		}
		if err != nil {
			return Value{}, s, fmt.Errorf("%w: %.40q, want a number, true, false, \"text\" or [a list]", ErrType, word)
		}
		return F(v), s[end:], nil
	}
}

// parseItems reads values up to the closing bracket, and returns what follows that.
func parseItems(s string, closing byte, lists bool) (Value, string, error) {
	list := Value{Type: List}
	for {
		s = strings.TrimLeft(s, " \t")
		switch {
		case s == "":
			return list, s, fmt.Errorf("%w: a closing %c is missing", ErrName, closing)
		case s[0] == closing:
			return list, s[1:], nil
		case len(list.Items) == 0:
		case s[0] != ',':
			return list, s, fmt.Errorf("%w: %.40q, want a comma or %c", ErrName, s, closing)
		default:
			s = s[1:]
		}
		v, rest, err := parseValue(s, lists)
		if err != nil {
			return list, s, err
		}
		list.Items, s = append(list.Items, v), rest
	}
}

// String returns l as it is written.
func (l Line) String() string {
	switch l.Verb {
	case Put:
		s := l.Name + " = " + l.Value.String()
		if l.Speed != 0 {
			s += " speed:" + F(l.Speed).String()
		}
		return s
	case Call:
		args := L(l.Args...).String()
		return l.Name + "(" + args[1:len(args)-1] + ")"
	}
	return l.Name
}

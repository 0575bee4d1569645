package robot

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Verb is the kind of action of a Line. The zero value reads.
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
//	head.pitch = 0.3 time:2s
//	robot.go(0.2) speed:0.1
//
// A value is a number, true, false, "text", or a list of such. Behind it, or behind a call, one word may say how a motor moves (GOSTAI-OPEN-03):
//
//	speed:0.5     at this speed, in the slot's unit a second
//	time:2s       to be there after this time: seconds, or a number with a unit such as 500ms
//	adaptive:1    in about this time from where the motor is and as it moves; the next line may give another value before it is there, as the
//	              standard's example does (GOSTAI-SUP-11)
//
// Without any it moves as fast as the body thinks right. A body's limits win over all three, and it tells what it does instead. Of two lines of one
// program for one motor the last wins; among programs it is who has the claim (package claim).
//
// Programs send each other lines as they are (edge/core.Order); only people read and write the text.
type Line struct {
	Name     string        `json:"name"` // any name of the tree (Tree.Lookup)
	Verb     Verb          `json:"verb"`
	Value    Value         `json:"value"`          // of Put
	Args     []Value       `json:"args,omitempty"` // of Call
	Speed    float64       `json:"speed"`          // above 0; 0: none is given
	Time     time.Duration `json:"time_ns"`        // minTime to maxTime; 0: none is given
	Adaptive time.Duration `json:"adaptive_ns"`    // the same
}

// Within returns the time that l gives a motor, and whether it is one to be kept (time:) rather than about so long (adaptive:); 0: none.
func (l *Line) Within() (within time.Duration, exactly bool) {
	if l.Time != 0 {
		return l.Time, true
	}
	return l.Adaptive, false
}

// Check says what is wrong with a line that another program made, with the errors of ParseLine; whatever ParseLine returns passes.
func (l *Line) Check() error {
	if _, err := ParsePath(l.Name); err != nil {
		return err
	}
	values, manners := append([]Value{l.Value}, l.Args...), 0
	for _, given := range []bool{l.Speed != 0, l.Time != 0, l.Adaptive != 0} {
		if given {
			manners++
		}
	}
	switch {
	case l.Verb > Call, l.Verb != Put && l.Value.Type != None, l.Verb != Call && len(l.Args) > 0, l.Verb == Put && l.Value.Type == None:
		return fmt.Errorf("%s: %w: want one value to write, or arguments of a method", l.Name, ErrType)
	case manners > 1, manners > 0 && l.Verb == Get:
		return fmt.Errorf("%s: %w: want only one of speed, time and adaptive, and none to read", l.Name, ErrType)
	case l.Speed < 0, math.IsInf(l.Speed, 0), math.IsNaN(l.Speed):
		return fmt.Errorf("%s: %w: speed %v, want more than 0", l.Name, ErrRange, l.Speed)
	}
	for _, d := range []time.Duration{l.Time, l.Adaptive} {
		if d != 0 && (d < minTime || d > maxTime) {
			return fmt.Errorf("%s: %w: time %v, want %v to %v", l.Name, ErrRange, d, minTime, maxTime)
		}
	}
	for len(values) > 0 {
		v := values[0]
		if values = values[1:]; v.Type > List || math.IsInf(v.Number, 0) || math.IsNaN(v.Number) {
			return fmt.Errorf("%s: %w: %s, want a finite number, true, false, text, a handle or a list", l.Name, ErrRange, v)
		}
		for _, x := range v.Items {
			if x.Type == List || x.Type == None || v.Type != List {
				return fmt.Errorf("%s: %w: list within %s", l.Name, ErrType, v.Type)
			}
			values = append(values, x)
		}
	}
	return nil
}

// Bounds of a line; own defaults. A time above maxTime is a mistake: a robot drives for a minute at most.
const (
	maxLine = 1000
	minTime = time.Millisecond
	maxTime = time.Hour
)

// ParseLines reads one or several lines, separated by ';' outside quoted text. Its errors are those of ParseLine.
func ParseLines(s string) ([]Line, error) {
	if len(s) > maxLine {
		return nil, fmt.Errorf("%w: %d characters, want at most %d", ErrName, len(s), maxLine)
	}
	var out []Line
	for end := 0; ; end++ {
		switch {
		case end == len(s) || s[end] == ';':
			l, err := ParseLine(s[:end])
			if err != nil {
				return nil, err
			}
			if out = append(out, l); end == len(s) {
				return out, nil
			}
			s, end = s[end+1:], -1
		case s[end] == '"':
			if quoted, err := strconv.QuotedPrefix(s[end:]); err == nil { // otherwise ParseLine says what is wrong
				end += len(quoted) - 1
			}
		}
	}
}

// ParseLine reads a line. ErrName, ErrType or ErrRange say what is wrong with it; whether there is such a slot is the tree's to say.
func ParseLine(s string) (Line, error) {
	var l Line
	if len(s) > maxLine {
		return l, fmt.Errorf("%w: line of %d characters, want at most %d", ErrName, len(s), maxLine)
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
	default:
		l.Verb = Call
		var list Value
		list, rest, err = parseItems(rest[1:], ')', true)
		l.Args = list.Items
	}
	if rest = strings.TrimSpace(rest); err == nil && rest != "" {
		err = l.parseModifier(rest)
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w", l.Name, err)
	}
	return l, nil
}

// parseModifier reads what follows the value of a Put or the closing bracket of a Call.
func (l *Line) parseModifier(s string) error {
	word, more, _ := strings.Cut(s, " ")
	name, text, ok := strings.Cut(word, ":")
	if !ok || name != "speed" && name != "time" && name != "adaptive" {
		return fmt.Errorf("%w: %.40q at the end, want nothing, or speed:, time: or adaptive: and a number", ErrName, s)
	}
	if more = strings.TrimSpace(more); more != "" {
		return fmt.Errorf("%w: %.40q after %.40s, want only one of speed:, time: and adaptive:", ErrType, more, word)
	}
	if name == "speed" {
		v, rest, err := parseValue(text, false)
		switch {
		case err != nil:
			return err
		case v.Type != Float || rest != "":
			return fmt.Errorf("%w: speed:%.40s, want a number", ErrType, text)
		case v.Number <= 0:
			return fmt.Errorf("%w: speed:%v, want more than 0", ErrRange, v.Number)
		}
		l.Speed = v.Number
		return nil
	}
	d, err := parseTime(text)
	if err != nil {
		return fmt.Errorf("%w: %s:%.40s, want seconds, or a number with a unit such as 2s or 500ms", ErrType, name, text)
	}
	if d < minTime || d > maxTime {
		return fmt.Errorf("%w: %s:%.40s, want %v to %v", ErrRange, name, text, minTime, maxTime)
	}
	if name == "time" {
		l.Time = d
	} else {
		l.Adaptive = d
	}
	return nil
}

// parseTime reads seconds, or a number with its unit. What no Duration holds becomes one out of range.
func parseTime(s string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return time.ParseDuration(s)
	case math.IsNaN(seconds):
		return 0, nil
	case seconds > 2*maxTime.Seconds():
		return 2 * maxTime, nil
	case seconds < 0:
		return 0, nil
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), nil
}

// parseValue reads the value at the start of s and returns what follows it. Lists hold no lists.
func parseValue(s string, lists bool) (Value, string, error) {
	s = strings.TrimLeft(s, " \t")
	switch {
	case strings.HasPrefix(s, "["):
		if !lists {
			return Value{}, s, fmt.Errorf("%w: list within %.40q, want numbers, true, false or \"text\"", ErrType, s)
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
			return list, s, fmt.Errorf("%w: missing closing %c", ErrName, closing)
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
	s := l.Name
	switch l.Verb {
	case Put:
		s += " = " + l.Value.String()
	case Call:
		args := L(l.Args...).String()
		s += "(" + args[1:len(args)-1] + ")"
	}
	switch {
	case l.Speed != 0:
		s += " speed:" + F(l.Speed).String()
	case l.Time != 0:
		s += " time:" + l.Time.String()
	case l.Adaptive != 0:
		s += " adaptive:" + l.Adaptive.String()
	}
	return s
}

package compiler

import (
	"fmt"
	"strings"

	"kennel/infra/suggest"
)

// Severity says what a Message means for the compilation.
type Severity uint8

// A compilation with errors has no program. A fatal error ends it at once.
const (
	SeverityUnknown Severity = iota
	Error
	Fatal
	Warning
)

func (s Severity) String() string {
	return [...]string{"unknown", "error", "fatal error", "warning"}[min(int(s), 3)]
}

// Message is one numbered error or warning. The numbers are the language reference's: 1 to 99 errors, 100 to 199 fatal errors,
// 200 and above warnings.
type Message struct {
	Number   int      `json:"number"`
	Severity Severity `json:"-"`
	Kind     string   `json:"kind"`
	File     string   `json:"file"`
	Line     int      `json:"line"`   // from 1
	Column   int      `json:"column"` // from 1, in bytes
	Text     string   `json:"text"`
	Found    string   `json:"found,omitempty"`
	Expected string   `json:"expected,omitempty"`
	Fix      string   `json:"fix,omitempty"`
	See      string   `json:"see,omitempty"` // another place that the message is about
}

func (m Message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%d,%d) : %s %03d: %s", m.File, m.Line, m.Column, m.Severity, m.Number, m.Text)
	if m.Expected != "" {
		b.WriteString("; expected " + m.Expected)
	}
	if m.Found != "" {
		b.WriteString("; found " + m.Found)
	}
	if m.Fix != "" {
		b.WriteString("; fix: " + m.Fix)
	}
	if m.See != "" {
		b.WriteString("; " + m.See)
	}
	return b.String()
}

// texts are the sentences of the messages; %s and %d take the arguments of report. As in the reference, nothing reports 210 and 214: its manual lists them, its code
// for them is not there or switched off.
var texts = map[int]string{
	1: "unexpected token", 2: "a case holds one statement; use braces for more",
	3: "a local variable can only be declared inside braces", 4: `function "%s" has no implementation`,
	5: `function "%s" takes no arguments`, 6: "a string or array can only be assigned to an array",
	7: "this operator cannot be redefined", 8: "the expression is not constant; zero is assumed",
	9: "array size is zero, negative or too large", 10: "neither a function nor a declaration",
	11: "not valid outside a function", 12: "call of something that is not a function",
	13: "no entry point: the script has neither main nor a public function", 14: "case or default outside a switch",
	15: `"default" must be the last clause of a switch`, 16: `a switch has only one "default"`,
	17: `symbol "%s" is not defined`, 18: "more initial values than the array has room for",
	19: `"%s" is not a label`, 20: `%s is not a valid name here`,
	21: `symbol "%s" is already defined`, 22: "only a variable that is not constant can be changed",
	23: `an array can only be assigned with "="`, 24: `"break" or "continue" outside a loop`,
	25: `heading of "%s" differs from its earlier declaration`, 26: `no "#if" belongs to this directive`,
	27: "invalid character constant", 28: `"%s" is not an array, or has fewer dimensions`,
	29: "invalid expression; zero is assumed", 30: "a block is not closed at the end of the file (opened on line %d)",
	31: "unknown directive", 32: `index is outside array "%s"`,
	33: `array "%s" needs an index here`, 34: "argument %d has no default value",
	35: "argument %d has another type than the function declares", 36: "empty statement",
	37: "string is not closed", 38: "extra characters at the end of the line",
	39: "a constant or literal has no size", 40: "value %d has two case labels",
	41: "ellipsis needs a known array size", 42: "these class specifiers do not go together",
	43: "character does not fit into a packed string", 44: "positional arguments must come before named ones",
	45: "too many function arguments", 46: `size of array "%s" is not known`,
	47: "array sizes differ, or the destination is too small", 48: "arrays have a different number of dimensions",
	49: "invalid line continuation", 50: "range ends before it begins",
	51: "only the last dimension can be indexed with braces", 52: "an array of several dimensions must be initialised completely",
	53: "too many array dimensions", 54: "closing brace without an opening brace",
	55: "function body without a heading", 56: `"%s" cannot be public: only functions and single global variables can`,
	57: "expression is not finished before a directive", 58: "this argument is passed twice",
	59: `argument "%s" cannot have a default value`, 60: `second "#else" in one "#if"`,
	61: `"#elseif" after "#else"`, 62: "number of operands does not fit the operator",
	63: `result of operator "%s" must have tag "%s"`, 64: "predefined operators cannot be changed: an operand needs a tag",
	65: "argument %d can only have one tag", 66: `argument "%s" can be neither a reference nor an array`,
	67: `"%s" cannot be a reference and an array`, 68: "precision of rational numbers must be 1 to 9 digits",
	69: "rational numbers are already defined in another way", 70: "rational number without #pragma rational",
	71: `operator "%s" must be declared before its use`, 72: `"sizeof" does not work on functions`,
	73: `argument "%s" must be an array`, 74: "a macro's pattern must begin with a letter",
	75: "line is too long after the replacement of macros", 76: "syntax error, or invalid function call",
	77: "file is not valid UTF-8", 78: `function has both "return" and "return value"`,
	79: "function returns an array in one place and a cell in another", 80: `"%s" is not a constant`,
	81: `"tagof" cannot be the default value for indexed array "%s"`, 82: "operators, natives and main have no states",
	83: `"%s" belongs to more than one automaton`, 84: `"%s" has two implementations for one state`,
	85: `"%s" has a fall-back but no states`, 86: `automaton "%s" is not known`,
	87: `state "%s" is not known in automaton "%s"`, 88: `public or local variable "%s" cannot have states`,
	89: `state variable "%s" cannot have an initial value`, 90: `public function "%s" cannot return an array`,
	91: `constant "%s" is ambiguous: put the tag in front`, 92: "invalid number",

	100: `cannot read "%s"`, 101: `cannot write "%s"`, 102: "%s exceeds the limit of %d", 103: "memory exhausted",
	104: `invalid instruction "%s"`, 105: "numeric overflow", 106: "program has %d bytes, more than its limit of %d",
	107: "too many errors on one line", 108: "no mapping for this code page", 109: `invalid path "%s"`,
	110: "assertion failed: %s", 111: "error directive: %s", 112: `function "%s" exceeds the overlay limit by %d bytes`,

	200: `name "%s" is cut to %d characters`, 201: `macro "%s" is defined again in another way`,
	202: "wrong number of arguments", 203: `symbol "%s" is never used`,
	204: `value assigned to "%s" is never used`, 205: "condition is always false; the code is never run",
	206: "condition is always true", 207: "unknown #pragma",
	208: `function "%s" with a tagged result is used before its declaration`, 209: `function "%s" should return a value`,
	210: `"%s" may be used before it has a value`, 211: "assignment in a condition; a comparison may be meant",
	212: "bitwise operation in a condition; a logical one may be meant", 213: "tags differ",
	214: `array argument "%s" could be const`, 215: "expression has no effect",
	216: "comment inside a comment", 217: "indentation differs from the statement before",
	218: "old style prototype with optional semicolons", 219: `"%s" hides another symbol of this name`,
	220: "an expression with a tag must be in parentheses here", 221: `label "%s" has the name of a tag`,
	222: "more digits than the precision of rational numbers", 223: `size of "%s" is always 1`,
	224: `size of array "%s" is not known in "sizeof"`, 225: "code is never reached",
	226: `"%s" is assigned to itself`, 227: "more initial values than fields in the enumeration",
	228: "initial value is longer than its field in the enumeration", 229: `index tags differ (array "%s")`,
	230: `state "%s" has no implementation of "%s" and there is no fall-back`, 231: "states of a forward declaration are ignored",
	232: "compact encoding is switched off: it would be longer", 233: `state variable "%s" hides a global variable`,
	234: `function "%s" is deprecated: %s`, 235: `public function "%s" has no forward declaration`,
	236: "macro parameter is not in the pattern", 237: `"%s" calls itself`, 238: "strings of different kinds are joined",
}

const (
	maxErrors   = 25   // the compilation ends after this many errors, as in the reference
	maxMessages = 1000 // warnings beyond this number are counted, not kept
)

// stopped ends a compilation from any depth; Compile recovers it.
type stopped struct{}

// report records message number at p. It returns nil when the message is suppressed: a second error of one statement, a warning
// that is switched off, or a repetition.
func (c *compiler) report(p pos, number int, args ...any) *Message {
	if number < 100 && c.quiet > 0 || c.errFlag && (number < 100 || number >= 200) || number >= 200 && (c.quiet > 0 || c.opt.disabled(number)) {
		return nil
	}
	key := uint64(p.file)<<48 | uint64(uint32(p.line))<<16 | uint64(number)
	if number >= 200 && c.reported[key] == p.col+1 {
		return nil // the same body compiled for two states
	}
	c.reported[key] = p.col + 1
	m := Message{Number: number, File: c.fileName(p.file), Line: int(p.line), Column: int(p.col), Text: fmt.Sprintf(texts[number], args...)}
	switch {
	case number >= 200:
		m.Severity = Warning
		c.warnings++
	case number >= 100:
		m.Severity = Fatal
		c.errors++
	default:
		m.Severity = Error
		c.errors++
		c.errFlag = true
	}
	m.Kind = m.Severity.String()
	if len(c.messages) >= maxMessages && m.Severity == Warning {
		return nil
	}
	c.messages = append(c.messages, &m)
	if m.Severity == Fatal || c.errors > maxErrors {
		panic(stopped{})
	}
	if m.Severity == Error {
		c.countOnLine(p)
	}
	return &m
}

// countOnLine ends the compilation at the third error on one line.
func (c *compiler) countOnLine(p pos) {
	if p.line != c.lastLine || p.file != c.lastFile {
		c.lastLine, c.lastFile, c.lineErrors = p.line, p.file, 0
	}
	if c.lineErrors++; c.lineErrors >= 3 {
		c.report(p, 107)
	}
}

// closest adds the nearest of names as the fix of an unknown name.
func (m *Message) closest(name string, names func() []string) {
	if m == nil {
		return
	}
	m.Found = fmt.Sprintf("%q", name)
	if near := suggest.Names(name, names()); len(near) > 0 {
		m.Fix = fmt.Sprintf("write %q", near[0])
	}
}

// undefined reports a name that is not defined, with the reason of Options.Absent or the nearest name that is.
func (c *compiler) undefined(at pos, name string) *Message {
	m := c.report(at, 17, name)
	m.closest(name, c.allNames)
	if m != nil && c.opt.Absent != nil {
		if why := c.opt.Absent(name); why != "" {
			m.Fix = why
		}
	}
	return m
}

// want adds what was found, what was expected and, if known, how to mend it.
func (m *Message) want(found, expected, fix string) {
	if m != nil {
		m.Found, m.Expected, m.Fix = found, expected, fix
	}
}

// see adds another place that the message is about.
func (m *Message) see(what string) {
	if m != nil {
		m.See = what
	}
}

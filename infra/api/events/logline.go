package events

import (
	"fmt"
	"strconv"
	"strings"
)

// A text log has an event as one line (VEC-LOG-09, peer-facts section 5): an @ with the name, then s1 to s4, i1 to i4 and the uptime in
// milliseconds, each after a unit separator (1F). A field that is not set is empty. A log may begin the line with its own words:
//
//	11-23 07:30:29.123 info vic-engine[812]: @robot.delocalized<1F><1F><1F><1F><1F>1<1F><1F><1F><1F>5120
const unit = "\x1f"

// AppendLog appends e as the text log has it, without a newline. Line breaks and unit separators in its texts become blanks.
func AppendLog(dst []byte, e *Event) []byte {
	dst = append(append(dst, '@'), e.Name...)
	for _, s := range [...]string{e.S1, e.S2, e.S3, e.S4} {
		dst = append(append(dst, unit...), oneField.Replace(s)...)
	}
	for _, n := range [...]Int{e.I1, e.I2, e.I3, e.I4} {
		if dst = append(dst, unit...); n.Set {
			dst = strconv.AppendInt(dst, n.N, 10)
		}
	}
	return strconv.AppendInt(append(dst, unit...), e.UptimeMS, 10)
}

var oneField = strings.NewReplacer("\n", " ", "\r", " ", unit, " ")

// IsLog reports whether a line of a text log holds an event.
func IsLog(line string) bool { return markOf(line) >= 0 }

// markOf returns where the @ of the event is; negative if there is none.
func markOf(line string) int {
	head, _, _ := strings.Cut(line, unit)
	at := strings.LastIndexByte(head, '@')
	if at > 0 && line[at-1] != ' ' && line[at-1] != '\t' {
		return -1 // of an address
	}
	if len(head) == len(line) && CheckName(strings.TrimSpace(head[at+1:])) != nil {
		return -1 // an event may be a name alone
	}
	return at
}

// ParseLog reads an event out of a line of a text log. Fields at the end may be missing. Source is the program before the @, if there is one, and Level
// the level before it; both may be empty.
func ParseLog(line string) (Event, error) {
	line = strings.TrimRight(line, "\r\n")
	if len(line) > MaxLine {
		return Event{}, fmt.Errorf("log line of %d bytes: want at most %d", len(line), MaxLine)
	}
	at := markOf(line)
	if at < 0 {
		return Event{}, fmt.Errorf("log line %.60q: want @, an event's name and its values", line)
	}
	fields := strings.Split(line[at+1:], unit)
	e := Event{Name: strings.TrimSpace(fields[0])}
	if err := CheckName(e.Name); err != nil {
		return Event{}, err
	}
	texts, numbers := [...]*string{&e.S1, &e.S2, &e.S3, &e.S4}, [...]*Int{&e.I1, &e.I2, &e.I3, &e.I4}
	if fields = fields[1:]; len(fields) > len(texts)+len(numbers)+1 {
		return Event{}, fmt.Errorf("event %s with %d values: want at most s1 to s4, i1 to i4 and the uptime", e.Name, len(fields))
	}
	for i, f := range fields {
		if i < len(texts) {
			*texts[i] = f
			continue
		}
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		n, err := strconv.ParseInt(f, 10, 64)
		switch i -= len(texts); {
		case err != nil && i < len(numbers):
			return Event{}, fmt.Errorf("event %s: i%d is %.30q: want a 64-bit integer", e.Name, i+1, f)
		case err != nil || i == len(numbers) && n < 0:
			return Event{}, fmt.Errorf("event %s: uptime is %.30q: want milliseconds", e.Name, f)
		case i == len(numbers):
			e.UptimeMS = n
		default:
			*numbers[i] = Num(n)
		}
	}
	e.Source, e.Level = whoSaid(line[:at])
	return e, nil
}

// whoSaid finds program and level in the words before an event: the program is the last word, with its process number and a colon as syslog writes them.
func whoSaid(head string) (source string, level Level) {
	for word := range strings.FieldsSeq(head) {
		switch word = strings.TrimSuffix(word, ":"); strings.ToLower(word) {
		case "debug", "info", "warning", "error":
			level = Level(strings.ToLower(word))
		case "warn":
			level = Warning
		default:
			source, _, _ = strings.Cut(word, "[")
		}
	}
	if !isWord(source, MaxWord, lower|upper|digit|dash) {
		source = ""
	}
	return source, level
}

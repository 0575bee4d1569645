// Package record reads the record that a crashed program of ours leaves (VEC-CRS-01), which is text:
//
//	kennel-crash 1
//	program: agentd
//	version: 2.0.0.6074
//	time: 2026-11-23T10:00:00Z
//	                                       an empty line, then what Go's runtime said
//	panic: runtime error: index out of range [5] with length 3
//
//	goroutine 7 [running]:
//	kennel/edge/x.(*T).f(0xc000012120, 0x5)
//		/src/edge/x/x.go:12 +0x1d
//	created by kennel/edge/x.New in goroutine 1
//		/src/edge/x/x.go:5 +0x20
//
// What the runtime said may end anywhere: the machine may have stopped while it was written. Lines that are not understood are left out.
package record

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kennel/infra/errs"
)

// Magic is the beginning of the first line; the number of the format follows.
const Magic = "kennel-crash "

// Bounds of what is kept of a record; the rest is counted.
const (
	MaxGoroutines = 64
	MaxFrames     = 64 // of one goroutine
	maxHeaders    = 32
	maxText       = 500 // bytes of a name, a path or a reason
)

// Record holds the facts of a record.
type Record struct {
	Headers    map[string]string
	Reason     string // the message of the panic, fatal error or signal; "": none was written
	Goroutines []Goroutine
	More       int // goroutines that were not kept
}

// Goroutine is one stack; the first of a record is the one that crashed.
type Goroutine struct {
	ID     uint64
	State  string // running, chan receive, ...
	Frames []Frame
	More   int // frames that were not kept
}

// Frame is a function call, the innermost first. File and Line are empty if they were cut off.
type Frame struct {
	Func string
	File string
	Line int
}

var goroutine = regexp.MustCompile(`^goroutine ([0-9]{1,19}) (?:[a-z]+=\S+ )*\[([^\]]{1,200})\]:$`)

// reasons begin the line that says why.
var reasons = []string{"panic: ", "fatal error: ", "SIGQUIT: ", "SIGABRT: ", "SIGSEGV: ", "SIGBUS: ", "SIGFPE: ", "SIGILL: ", "SIGSYS: ", "SIGTRAP: ", "runtime: out of memory", "goroutine stack exceeds"}

// Parse reads a record. Errors are of kind Invalid and name the line.
func Parse(b []byte) (Record, error) {
	r := Record{Headers: map[string]string{}}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(make([]byte, 0, 64<<10), len(b)+1)
	if !lines.Scan() || lines.Text() != Magic+"1" {
		return r, errs.New(errs.Invalid, "crash record, line 1: %.40q: want %q", lines.Text(), Magic+"1")
	}
	n := 1
	for lines.Scan() && lines.Text() != "" {
		n++
		key, value, ok := strings.Cut(lines.Text(), ":")
		if !ok || key == "" || strings.ContainsAny(key, " \t") {
			return r, errs.New(errs.Invalid, "crash record, line %d: %.60q: want \"key: value\", or an empty line after the last key", n, lines.Text())
		}
		if len(r.Headers) == maxHeaders {
			return r, errs.New(errs.Invalid, "crash record, line %d: want at most %d keys", n, maxHeaders)
		}
		r.Headers[Clean(key)] = Clean(strings.TrimSpace(value))
	}
	r.trace(lines)
	return r, nil
}

// trace reads what the runtime said.
func (r *Record) trace(lines *bufio.Scanner) {
	var g *Goroutine
	var f *Frame // whose file the next line says
	for lines.Scan() {
		line := lines.Text()
		if m := goroutine.FindStringSubmatch(line); m != nil {
			g, f = nil, nil
			if len(r.Goroutines) == MaxGoroutines {
				r.More++
				continue
			}
			id, _ := strconv.ParseUint(m[1], 10, 64) // 19 digits fit
			r.Goroutines = append(r.Goroutines, Goroutine{ID: id, State: Clean(m[2])})
			g = &r.Goroutines[len(r.Goroutines)-1]
			continue
		}
		at, indented := strings.CutPrefix(line, "\t")
		switch {
		case g == nil:
			r.why(line)
		case indented && f != nil:
			f.File, f.Line = place(at)
			f = nil
		case indented || line == "":
			f = nil
		default:
			name := function(line)
			if f = nil; name == "" {
				continue
			}
			if len(g.Frames) == MaxFrames {
				g.More++
				continue
			}
			g.Frames = append(g.Frames, Frame{Func: Clean(name)})
			f = &g.Frames[len(g.Frames)-1]
		}
	}
}

// why takes the first line that says why, and the signal behind it.
func (r *Record) why(line string) {
	if len(r.Goroutines) > 0 {
		return
	}
	if r.Reason == "" {
		for _, begin := range reasons {
			if strings.HasPrefix(line, begin) {
				r.Reason = Clean(line)
				return
			}
		}
	}
	if signal, ok := strings.CutPrefix(line, "[signal "); ok && r.Reason != "" {
		signal, _, _ = strings.Cut(signal, " pc=")
		r.Reason = Clean(fmt.Sprintf("%s (%s)", r.Reason, strings.TrimSuffix(signal, "]")))
	}
}

// function returns the function of a line of a stack; "": it is none. The function that began a goroutine is no call.
func function(line string) string {
	if strings.HasPrefix(line, "created by ") || !strings.HasSuffix(line, ")") {
		return ""
	}
	depth := 0
	for i := len(line) - 1; i > 0; i-- {
		switch line[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if name := line[:i]; !strings.ContainsAny(name, " \t") {
					return name
				}
				return ""
			}
		}
	}
	return ""
}

// place reads "/src/x.go:12 +0x1d fp=..."; the line is 0 if there is none.
func place(s string) (file string, line int) {
	s, _, _ = strings.Cut(s, " ")
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return Clean(s), 0
	}
	line, err := strconv.Atoi(s[i+1:])
	if err != nil || line < 0 {
		return Clean(s), 0
	}
	return Clean(s[:i]), line
}

// Clean makes text of what a file says: of bounded length, valid UTF-8, without control characters.
func Clean(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

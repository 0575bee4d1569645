// Package crash makes the record that a program of the robot leaves when it dies (VEC-CRS-01): text in the place of the original's minidump.
//
//	kennel-crash 1
//	program: robotd
//	version: v1.2.0
//	...
//	reason: panic: assignment to entry in nil map
//
//	panic: assignment to entry in nil map
//	goroutine 1 [running]: ...
//
// A program begins with the header alone, in a file that it keeps locked (Begin). The Go runtime writes the rest when the program panics, throws or
// gets SIGQUIT or SIGABRT. A program that was killed, or lost its power, wrote no more than the header: that is the record of it. An orderly end
// removes the file. The collector (edge/agent/health/crashes) knows by the lock whether the program lives, and completes the header.
package crash

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The names of records end so: complete ones, and those of programs that run (VEC-CRS-03).
const (
	Done    = ".dmp"
	Running = ".dmp-"
)

const (
	magic     = "kennel-crash 1\n"
	maxHeader = 4 << 10 // bytes
	maxValue  = 256     // bytes
)

// Record is one record. A header that lacks a line leaves its field empty.
type Record struct {
	Program, Version, Build, OSVersion, Thing, BootID string
	PID                                               int
	Started                                           time.Time
	At                                                time.Time // of the crash; zero while the program runs
	Reason                                            string    // "" while the program runs
	Text                                              []byte    // what the Go runtime wrote
}

// Append appends the record to dst. Values are cut to one line of 256 bytes.
func (r Record) Append(dst []byte) []byte {
	dst = append(dst, magic...)
	for _, l := range []struct{ key, value string }{
		{"program", r.Program}, {"version", r.Version}, {"build", r.Build}, {"os_version", r.OSVersion}, {"thing", r.Thing}, {"boot_id", r.BootID},
		{"pid", positive(r.PID)}, {"started", stamp(r.Started)}, {"time", stamp(r.At)}, {"reason", r.Reason},
	} {
		if v := oneLine(l.value); v != "" {
			dst = append(dst, l.key+": "+v+"\n"...)
		}
	}
	return append(append(dst, '\n'), r.Text...)
}

// Parse reads a record. Keys that it does not know are dropped. The record's text is part of b.
func Parse(b []byte) (Record, error) {
	var r Record
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return r, fmt.Errorf("crash record starts with %.20q: want %q", b, magic)
	}
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if at := len(b) - len(rest); !ok || at > maxHeader {
			return r, fmt.Errorf("crash record: no empty line after the header within %d bytes", maxHeader)
		}
		rest = after
		if len(line) == 0 {
			r.Text = rest
			return r, nil
		}
		key, value, ok := strings.Cut(string(line), ": ")
		if !ok || value == "" || oneLine(value) != value {
			return r, fmt.Errorf("crash record: header line %.80q: want a key, a colon and a value", line)
		}
		var err error
		switch key {
		case "program":
			r.Program = value
		case "version":
			r.Version = value
		case "build":
			r.Build = value
		case "os_version":
			r.OSVersion = value
		case "thing":
			r.Thing = value
		case "boot_id":
			r.BootID = value
		case "reason":
			r.Reason = value
		case "pid":
			if r.PID, err = strconv.Atoi(value); err == nil && r.PID < 1 {
				err = fmt.Errorf("%d: want at least 1", r.PID)
			}
		case "started":
			r.Started, err = time.Parse(time.RFC3339Nano, value)
		case "time":
			r.At, err = time.Parse(time.RFC3339Nano, value)
		}
		if err != nil {
			return r, fmt.Errorf("crash record: header line %.80q: %w", line, err)
		}
	}
}

// FatalError is the runtime's word for an end that no program can prevent.
const FatalError = "fatal error"

// Cause returns why the program died, in the words of its text; "" if the runtime wrote none. Of a fatal error the runtime writes the stacks alone into
// the record, and its words to standard error: then Cause is FatalError alone.
func (r Record) Cause() string {
	for line := range strings.Lines(string(r.Text[:min(len(r.Text), 64<<10)])) {
		line = oneLine(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, FatalError+": ") || strings.HasPrefix(line, "SIG") {
			return line
		}
	}
	if len(bytes.TrimSpace(r.Text)) > 0 {
		return FatalError
	}
	return ""
}

// oneLine replaces what is not printable by blanks and cuts to maxValue bytes.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\uFFFD' {
			return ' '
		}
		return c
	}, s[:min(len(s), 4*maxValue)])
	s = strings.TrimSpace(s)
	if len(s) > maxValue {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:maxValue], ""))
	}
	return s
}

func positive(n int) string {
	if n < 1 {
		return ""
	}
	return strconv.Itoa(n)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Package symfile reads symbol files of Breakpad (dump_syms), which put names to the addresses of a module:
//
//	MODULE <os> <cpu> <debug id> <name>
//	INFO ...
//	FILE <number> <path>
//	FUNC [m] <address> <size> <size of parameters> <name>
//	<address> <size> <line> <file number>
//	PUBLIC [m] <address> <size of parameters> <name>
//	STACK CFI INIT <address> <size> <register>: <expression> ...
//	STACK CFI <address> <register>: <expression> ...
//	INLINE..., INLINE_ORIGIN..., STACK WIN...      not used
//
// Addresses are hex and relative to the module. Files may have hundreds of megabytes and are read once from front to back, so memory is bounded by
// the addresses that are looked up, not by the file.
package symfile

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kennel/cloud/telemetry/crash/record"
	"kennel/infra/errs"
)

// Bounds: ours.
const (
	maxLine  = 256 << 10 // bytes; names of C++ templates are long
	maxPaths = 16 << 20  // bytes of the paths of source files that are kept
	maxRules = 64        // registers of one address
)

// Header is the first line, and what Read counted.
type Header struct {
	OS, CPU, DebugID, Name string
	Functions              int64 // FUNC and PUBLIC
}

// Symbol holds the facts of one address. The zero value says nothing.
type Symbol struct {
	Func  string
	File  string
	Line  int
	Rules map[string]string // how to find the caller's registers: expressions by register, .cfa and .ra; nil: not said
}

// reader reads one file.
type reader struct {
	Header
	offsets []uint64 // sorted
	out     []Symbol
	lines   *bufio.Scanner
	n       int // number of the line

	paths     map[int]string
	pathBytes int
	files     []int // by offset: the number of the file

	publics  []public  // by offset: the last public symbol between the offset before and this one
	function [2]uint64 // the extent of the FUNC whose lines follow
	frame    [2]uint64 // the extent of the STACK CFI INIT whose changes follow
}

type public struct {
	at   uint64
	name string
	ok   bool
}

// Read reads a file, all of it, and returns what it says of offsets, which are sorted. Errors are of kind Invalid and name the line, unless r failed.
func Read(r io.Reader, offsets []uint64) (Header, []Symbol, error) {
	f := reader{offsets: offsets, out: make([]Symbol, len(offsets)), lines: bufio.NewScanner(r), paths: map[int]string{}, files: make([]int, len(offsets)), publics: make([]public, len(offsets))}
	f.lines.Buffer(make([]byte, 64<<10), maxLine)
	for f.lines.Scan() {
		f.n++
		line := strings.TrimRight(f.lines.Text(), "\r")
		if f.n == 1 {
			if err := f.module(line); err != nil {
				return Header{}, nil, err
			}
			continue
		}
		if why := f.line(line); why != "" {
			return Header{}, nil, errs.New(errs.Invalid, "symbol file, line %d: %.60q: %s", f.n, line, why)
		}
	}
	switch err := f.lines.Err(); {
	case err == bufio.ErrTooLong:
		return Header{}, nil, errs.New(errs.Invalid, "symbol file, line %d: longer than %d bytes", f.n+1, maxLine)
	case err != nil:
		return Header{}, nil, err
	case f.n == 0:
		return Header{}, nil, errs.New(errs.Invalid, "the symbol file is empty: want a first line MODULE")
	}
	f.finish()
	return f.Header, f.out, nil
}

func (f *reader) module(line string) error {
	w := strings.SplitN(line, " ", 5)
	if len(w) != 5 || w[0] != "MODULE" {
		return errs.New(errs.Invalid, "symbol file, line 1: %.60q: want MODULE, system, processor, debug id and name", line)
	}
	f.OS, f.CPU, f.DebugID, f.Name = record.Clean(w[1]), record.Clean(w[2]), strings.ToUpper(w[3]), record.Clean(w[4])
	if len(f.DebugID) < 33 || len(f.DebugID) > 40 || strings.Trim(f.DebugID, "0123456789ABCDEF") != "" {
		return errs.New(errs.Invalid, "symbol file, line 1: debug id %.60q: want 33 to 40 hex digits", w[3])
	}
	return nil
}

// line reads one line, and returns what is wrong with it; "": nothing.
func (f *reader) line(line string) string {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "", "INFO", "INLINE", "INLINE_ORIGIN":
		return ""
	case "MODULE":
		return "there is a second MODULE"
	case "FILE":
		number, path, ok := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 0 {
			return "want FILE, a number and a path"
		}
		if path = record.Clean(path); len(f.offsets) > 0 && f.pathBytes+len(path) < maxPaths {
			f.pathBytes += len(path) + 64 // with what a map takes
			f.paths[n] = path
		}
	case "FUNC":
		f.Functions++
		at, size, name, ok := parts(strings.TrimPrefix(rest, "m "), 2)
		if !ok {
			return "want FUNC, address, size and size of parameters in hex, and a name"
		}
		f.function = extent(at, size)
		f.each(f.function, func(s *Symbol, _ int) { s.Func, s.File, s.Line = record.Clean(name), "", 0 })
	case "PUBLIC":
		f.Functions++
		at, _, name, ok := parts(strings.TrimPrefix(rest, "m "), 1)
		if !ok {
			return "want PUBLIC, address and size of parameters in hex, and a name"
		}
		if i := sort.Search(len(f.offsets), func(i int) bool { return f.offsets[i] >= at }); i < len(f.offsets) && (!f.publics[i].ok || f.publics[i].at <= at) {
			f.publics[i] = public{at, record.Clean(name), true}
		}
	case "STACK":
		return f.stack(rest)
	default:
		return f.source(line)
	}
	return ""
}

func extent(at, size uint64) [2]uint64 {
	if at+size < at {
		size = -at - 1
	}
	return [2]uint64{at, at + size}
}

// each calls fn for what is said of each offset in an extent.
func (f *reader) each(e [2]uint64, fn func(s *Symbol, i int)) {
	for i := sort.Search(len(f.offsets), func(i int) bool { return f.offsets[i] >= e[0] }); i < len(f.offsets) && f.offsets[i] < e[1]; i++ {
		fn(&f.out[i], i)
	}
}

// parts reads an address, n more hex numbers of which the first is a size, and a name.
func parts(s string, n int) (at, size uint64, name string, ok bool) {
	w := strings.SplitN(s, " ", n+2)
	if len(w) < n+1 {
		return 0, 0, "", false
	}
	for i := range n + 1 {
		v, err := strconv.ParseUint(w[i], 16, 64)
		if err != nil {
			return 0, 0, "", false
		}
		if i == 0 {
			at = v
		} else if i == 1 {
			size = v
		}
	}
	if len(w) == n+2 {
		name = w[n+1]
	}
	return at, size, name, true
}

// source reads a line of a function: address, size, line, file.
func (f *reader) source(line string) string {
	w := strings.Fields(line)
	if len(w) != 4 {
		return "want a record of a symbol file"
	}
	at, err1 := strconv.ParseUint(w[0], 16, 64)
	size, err2 := strconv.ParseUint(w[1], 16, 64)
	number, err3 := strconv.Atoi(w[2])
	file, err4 := strconv.Atoi(w[3])
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return "want address and size in hex, line and number of the file"
	}
	f.each(extent(at, size), func(s *Symbol, i int) {
		if f.offsets[i] >= f.function[0] && f.offsets[i] < f.function[1] {
			s.Line, f.files[i] = max(number, 0), file+1
		}
	})
	return ""
}

// stack reads call frame information.
func (f *reader) stack(rest string) string {
	if strings.HasPrefix(rest, "WIN ") {
		return ""
	}
	rest, ok := strings.CutPrefix(rest, "CFI ")
	if !ok {
		return "want STACK CFI or STACK WIN"
	}
	var said string
	from := f.frame
	if init, ok := strings.CutPrefix(rest, "INIT "); ok {
		at, size, rules, ok := parts(init, 1)
		if !ok {
			return "want STACK CFI INIT, address and size in hex, and rules"
		}
		f.frame = extent(at, size)
		from, said = f.frame, rules
		f.each(from, func(s *Symbol, _ int) { s.Rules = nil })
	} else {
		at, rules, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseUint(at, 16, 64)
		if err != nil {
			return "want STACK CFI, address in hex, and rules"
		}
		from[0], said = max(from[0], n), rules
	}
	if i := sort.Search(len(f.offsets), func(i int) bool { return f.offsets[i] >= from[0] }); len(f.offsets) > 0 && (i == len(f.offsets) || f.offsets[i] >= from[1]) {
		return "" // about nothing that is looked up; the file was checked when it was uploaded
	}
	rules := parseRules(said)
	if rules == nil {
		return "want rules such as .cfa: $rsp 8 +"
	}
	f.each(from, func(s *Symbol, _ int) {
		if s.Rules == nil {
			s.Rules = map[string]string{}
		}
		if len(s.Rules) < maxRules {
			maps.Copy(s.Rules, rules)
		}
	})
	return ""
}

// parseRules reads "register: expression register: expression"; nil if that is something else.
func parseRules(s string) map[string]string {
	out, name := map[string]string{}, ""
	var words []string
	keep := func() { out[name] = strings.Join(words, " ") }
	for _, w := range strings.Fields(s) {
		if next, ok := strings.CutSuffix(w, ":"); ok {
			if name != "" {
				keep()
			}
			name, words = next, words[:0]
			continue
		}
		if name == "" || len(out) > maxRules || len(w) > 32 || len(words) > 32 {
			return nil
		}
		words = append(words, w)
	}
	if name == "" {
		return nil
	}
	keep()
	return out
}

// finish gives public symbols to the addresses that are in no function, and files their paths.
func (f *reader) finish() {
	var last public
	for i := range f.out {
		if p := f.publics[i]; p.ok {
			last = p
		}
		if s := &f.out[i]; s.Func == "" && last.ok {
			s.Func, s.Line = last.name, 0
		} else if f.files[i] > 0 {
			s.File = f.paths[f.files[i]-1]
		}
	}
}

// Sorted returns offsets without doubles, as Read wants them.
func Sorted(offsets []uint64) []uint64 {
	slices.Sort(offsets)
	return slices.Compact(offsets)
}

package amx

import (
	"bytes"
	"fmt"
	"sort"
)

const (
	debugMagic  = 0xF1EF
	debugHeader = 22
	debugLine   = 8
	debugSymbol = 18 // before the name
	debugDim    = 6  // of an array

	identFunction = 9
	classLocal    = 1
)

// Debug is the part of a program's debug symbols that finds the source of an instruction and the places of variables.
type Debug struct {
	Files     []DebugFile     // by Address
	Lines     []DebugLine     // by Address
	Functions []DebugFunction // in the order of the file
	Variables []DebugVariable // likewise
}

// The kinds of variables, as the file has them.
const (
	KindValue          = 1 // of one cell
	KindReference      = 2 // its cell has the address of the value
	KindArray          = 3
	KindArrayReference = 4
)

// DebugVariable is a variable that exists in the code from From to before To.
type DebugVariable struct {
	Name     string
	Address  int32 // in the data, or from the frame of its function on
	Local    bool
	Kind     uint8
	From, To uint32
	Sizes    []uint32 // of an array's dimensions; 0: not known
}

// DebugFile is a source file whose code begins at a byte of the program's code.
type DebugFile struct {
	Address uint32
	Name    string
}

// DebugLine is a line whose code begins at a byte of the program's code. Lines count from 1.
type DebugLine struct {
	Address uint32
	Line    int
}

// DebugFunction is a function with its code from From to before To.
type DebugFunction struct {
	Name     string
	From, To uint32
}

// Symbols reads the debug symbols of p, which has FlagDebug. An *Error has the place in p.Debug. The size in their header is not looked at: compiler 3.2 counts
// more than it writes.
func (p *Program) Symbols() (*Debug, error) {
	b := p.Debug
	if len(b) < debugHeader {
		return nil, refuse(len(b), "debug", fmt.Sprintf("%d bytes long", len(b)), "a header of %d bytes", debugHeader)
	}
	if m := order.Uint16(b[4:]); m != debugMagic {
		return nil, refuse(4, "debug.magic", fmt.Sprintf("%#04x", m), "%#04x", debugMagic)
	}
	files, lines, symbols := int(order.Uint16(b[10:])), int(order.Uint16(b[12:])), int(order.Uint16(b[14:]))
	d, at := &Debug{}, debugHeader
	text := func(field string, i, before int) (string, error) {
		if at+before > len(b) {
			return "", refuse(at, fmt.Sprintf("debug.%s[%d]", field, i), "cut off", "%d bytes and a name", before)
		}
		end := bytes.IndexByte(b[at+before:], 0)
		if end < 0 {
			return "", refuse(at+before, fmt.Sprintf("debug.%s[%d].name", field, i), "without an end", "a zero")
		}
		return string(b[at+before : at+before+end]), nil
	}
	for i := range files {
		name, err := text("files", i, 4)
		if err != nil {
			return nil, err
		}
		d.Files = append(d.Files, DebugFile{order.Uint32(b[at:]), name})
		at += 4 + len(name) + 1
	}
	if at+lines*debugLine > len(b) {
		return nil, refuse(12, "debug.lines", lines, "at most %d up to the end", (len(b)-at)/debugLine)
	}
	for range lines {
		d.Lines = append(d.Lines, DebugLine{order.Uint32(b[at:]), int(int32(order.Uint32(b[at+4:]))) + 1})
		at += debugLine
	}
	for i := range symbols {
		name, err := text("symbols", i, debugSymbol)
		if err != nil {
			return nil, err
		}
		dims, from, to := int(order.Uint16(b[at+16:])), order.Uint32(b[at+6:]), order.Uint32(b[at+10:])
		next := at + debugSymbol + len(name) + 1 + debugDim*dims
		if next > len(b) {
			return nil, refuse(at+16, fmt.Sprintf("debug.symbols[%d].dimensions", i), dims, "at most %d up to the end", (len(b)-at-debugSymbol-len(name)-1)/debugDim)
		}
		switch kind := b[at+14]; kind {
		case identFunction:
			d.Functions = append(d.Functions, DebugFunction{name, from, to})
		case KindValue, KindReference, KindArray, KindArrayReference:
			v := DebugVariable{Name: name, Address: int32(order.Uint32(b[at:])), Local: b[at+15] == classLocal, Kind: kind, From: from, To: to}
			for k := range dims {
				v.Sizes = append(v.Sizes, order.Uint32(b[next-debugDim*(dims-k)+2:]))
			}
			d.Variables = append(d.Variables, v)
		}
		at = next
	}
	sort.SliceStable(d.Files, func(i, j int) bool { return d.Files[i].Address < d.Files[j].Address })
	sort.SliceStable(d.Lines, func(i, j int) bool { return d.Lines[i].Address < d.Lines[j].Address })
	return d, nil
}

// Source returns the file, the line (from 1; 0 if it is not known) and the function of the instruction at a byte of the code. What is not known is empty.
func (d *Debug) Source(offset int32) (file string, line int, function string) {
	at := uint32(offset)
	if i := sort.Search(len(d.Files), func(i int) bool { return d.Files[i].Address > at }); i > 0 {
		file = d.Files[i-1].Name
	}
	if i := sort.Search(len(d.Lines), func(i int) bool { return d.Lines[i].Address > at }); i > 0 {
		line = d.Lines[i-1].Line
	}
	from := uint32(0)
	for _, f := range d.Functions { // a function with states may span others
		if f.From <= at && at < f.To && f.From >= from {
			function, from = f.Name, f.From
		}
	}
	return file, line, function
}

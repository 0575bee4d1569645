package pawn

import (
	"encoding/binary"
	"fmt"
	"testing"

	"kennel/edge/pawn/amx"
)

// assembler makes the code of a program, instruction by instruction. Labels may be used before they are set.
type assembler struct {
	version uint8
	code    []byte
	labels  map[string]int
	uses    map[int]string // cells that hold a place in the code: at which byte, and which
	bases   map[int]int    // where distances of such a cell begin
	base    int            // of the overlay
}

func assemble(version uint8) *assembler {
	return &assembler{version: version, labels: map[string]int{}, uses: map[int]string{}, bases: map[int]int{}}
}

func (a *assembler) cell(v int32) { a.code = binary.LittleEndian.AppendUint32(a.code, uint32(v)) }

func (a *assembler) label(name string) { a.labels[name] = len(a.code) }

// op appends an instruction. Operands are numbers (int) or labels (string).
func (a *assembler) op(name string, operands ...any) {
	o := amx.Named(a.version, name)
	if o == nil {
		panic(fmt.Sprintf("version %d has no %s", a.version, name))
	}
	if o.Packed {
		c, ok := o.Pack(int32(operands[0].(int)))
		if !ok {
			panic(fmt.Sprintf("%s %v does not fit", name, operands[0]))
		}
		a.cell(int32(c))
		return
	}
	at := len(a.code)
	a.cell(int32(o.Number))
	for _, v := range operands {
		a.operand(at, v)
		at += amx.CellSize // the next operand's distances, in a table of cases, begin a cell later
	}
}

func (a *assembler) operand(base int, v any) {
	switch v := v.(type) {
	case string:
		a.uses[len(a.code)], a.bases[len(a.code)] = v, base
		a.cell(0)
	case int:
		a.cell(int32(v))
	}
}

// bytes returns the code with its labels resolved.
func (a *assembler) bytes() []byte {
	for at, name := range a.uses {
		to, ok := a.labels[name]
		if !ok {
			panic("no label " + name)
		}
		if a.version >= 10 {
			to -= a.bases[at]
		}
		binary.LittleEndian.PutUint32(a.code[at:], uint32(int32(to)))
	}
	return a.code
}

func data(cells ...int32) (out []byte) {
	for _, c := range cells {
		out = binary.LittleEndian.AppendUint32(out, uint32(c))
	}
	return out
}

// hostFuncs are the native functions of tests: sum adds its arguments, fail fails, nap sleeps.
func hostFuncs(name string) Native {
	switch name {
	case "sum":
		return func(c Call) (s int32, _ Code) {
			for i := range c.Args() {
				s += c.Arg(i)
			}
			return s, OK
		}
	case "fail":
		return func(Call) (int32, Code) { return 7, ErrNative }
	case "nap":
		return func(Call) (int32, Code) { return 5, ErrSleep }
	}
	return Basics(name)
}

func load(t testing.TB, p *amx.Program) *Machine {
	t.Helper()
	m, err := New(p, Options{Natives: hostFuncs})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

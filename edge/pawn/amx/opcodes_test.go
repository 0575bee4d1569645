package amx_test

import (
	"errors"
	"reflect"
	"testing"

	"kennel/edge/pawn/amx"
)

// TestOps: the numbers that the versions begin and end with, what each took out, and that no number and no name is there twice.
func TestOps(t *testing.T) {
	for _, c := range []struct {
		version uint8
		count   int
		highest uint16
	}{{8, 131, 137}, {9, 152, 157}, {10, 205, 212}} {
		numbers, names := map[uint16]string{}, map[string]bool{}
		last := uint16(0)
		for o := range amx.Ops(c.version) {
			if numbers[o.Number] != "" || names[o.Name] || o.Number <= last {
				t.Errorf("version %d: %d %s after %d", c.version, o.Number, o.Name, last)
			}
			numbers[o.Number], names[o.Name], last = o.Name, true, o.Number
			if amx.Named(c.version, o.Name) != o || amx.Numbered(c.version, o.Number) != o {
				t.Errorf("version %d: %s is not found by name or number", c.version, o.Name)
			}
			if o.Packed != (o.Number >= 162) || o.Packed && len(o.Operands) != 1 {
				t.Errorf("%s: packed %v with %d operands", o.Name, o.Packed, len(o.Operands))
			}
		}
		if len(numbers) != c.count || last != c.highest {
			t.Errorf("version %d has %d instructions up to %d, want %d up to %d", c.version, len(numbers), last, c.count, c.highest)
		}
	}
	for _, c := range []struct {
		version uint8
		number  uint16
		name    string
	}{
		{10, 1, "load.pri"}, {10, 36, "push.pri"}, {10, 38, "pick"}, {9, 38, "push.r"}, {10, 46, "proc"}, {10, 65, "shl"}, {10, 72, "smul"}, {10, 95, "eq"}, {10, 107, "inc.pri"},
		{10, 117, "movs"}, {10, 130, "casetbl"}, {10, 137, "break"}, {10, 154, "load.both"}, {10, 158, "icall"}, {10, 162, "load.p.pri"}, {10, 212, "push.p.adr"},
		{10, 50, ""}, {9, 50, "call.pri"}, {10, 128, ""}, {8, 128, "jump.pri"}, {9, 158, ""}, {8, 157, "const.s"}, {10, 213, ""}, {10, 0, ""}, {10, 124, ""}, {10, 136, ""}, {7, 1, ""}, {11, 1, ""},
	} {
		got := ""
		if o := amx.Numbered(c.version, c.number); o != nil {
			got = o.Name
		}
		if got != c.name {
			t.Errorf("version %d: %d is %q, want %q", c.version, c.number, got, c.name)
		}
	}
}

func TestPack(t *testing.T) {
	o := amx.Named(10, "push.p.c")
	for _, c := range []struct {
		operand int32
		want    uint32
		ok      bool
	}{{5, 0x000500BC, true}, {-1, 0xFFFF00BC, true}, {32767, 0x7FFF00BC, true}, {-32768, 0x800000BC, true}, {32768, 0x800000BC, false}} {
		if got, ok := o.Pack(c.operand); got != c.want || ok != c.ok {
			t.Errorf("%d packed is %#x, %v, want %#x, %v", c.operand, got, ok, c.want, c.ok)
		}
	}
}

// list returns the instructions of code as "name operand", with the error that ended them.
func list(version uint8, code []byte) (out []amx.Instr, err error) {
	p := &amx.Program{Version: version, Code: code}
	for in, err := range p.Instructions(0, len(code)) {
		if err != nil {
			return out, err
		}
		out = append(out, in)
	}
	return out, nil
}

// TestInstructions: jumps are absolute before version 10 and distances since; tables of cases are read whole; packed operands keep their sign.
func TestInstructions(t *testing.T) {
	same := func(version uint8, want []amx.Instr, code ...int32) {
		t.Helper()
		got, err := list(version, cells(code...))
		for i := range want {
			want[i].Op = amx.Named(version, map[int]string{0: "nop", 1: "jump", 2: "switch", 3: "casetbl", 4: "jrel", 5: "add.p.c", 6: "icasetbl"}[want[i].Size])
			want[i].Size = got[i].Size
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("version %d: %+v, %v, want %+v", version, got, err, want)
		}
	}
	same(9, []amx.Instr{{Offset: 0, Size: 0}, {Offset: 4, Size: 1, Operands: [5]int32{20}}, {Offset: 12, Size: 4, Operands: [5]int32{28}}}, 134, 51, 20, 52, 8)
	same(10, []amx.Instr{{Offset: 0, Size: 0}, {Offset: 4, Size: 1, Operands: [5]int32{24}}, {Offset: 12, Size: 4, Operands: [5]int32{20}}, {Offset: 20, Size: 5, Operands: [5]int32{-3}}},
		134, 51, 20, 52, 8, -3<<16|197)
	same(10, []amx.Instr{{Offset: 0, Size: 2, Operands: [5]int32{8}},
		{Offset: 8, Size: 3, Operands: [5]int32{2}, Default: 0, Cases: []amx.Case{{Value: 7, Target: 36}, {Value: -1, Target: 0}}}, {Offset: 36, Size: 0}},
		129, 8, 130, 2, -12, 7, 16, -1, -28, 134)
	same(9, []amx.Instr{{Offset: 0, Size: 3, Operands: [5]int32{1}, Default: 16, Cases: []amx.Case{{Value: 7, Target: 0}}}}, 130, 1, 16, 7, 0)
	same(10, []amx.Instr{{Offset: 0, Size: 6, Operands: [5]int32{1}, Default: 1, Cases: []amx.Case{{Value: 7, Target: 5}}}}, 161, 1, 1, 7, 5)
}

func TestInvalidInstructions(t *testing.T) {
	for _, c := range []struct {
		version uint8
		at      int
		code    []int32
	}{
		{10, 0, []int32{0}}, {10, 4, []int32{134, 213}}, {9, 0, []int32{158, 0}}, {9, 0, []int32{1<<16 | 134}}, {10, 0, []int32{1<<16 | 134}}, {10, 0, []int32{-1}},
		{10, 0, []int32{51}}, {10, 0, []int32{150, 1, 2, 3, 4}}, {10, 0, []int32{130, 1, 0, 0}}, {10, 0, []int32{130, -1, 0, 0}}, {10, 0, []int32{130, 1 << 30, 0, 0}}, {10, 0, []int32{130}},
	} {
		_, err := list(c.version, cells(c.code...))
		var e *amx.Error
		if !errors.Is(err, amx.ErrInstruction) || !errors.As(err, &e) || e.Offset != c.at {
			t.Errorf("version %d, %v: %v, want an invalid instruction at %d", c.version, c.code, err, c.at)
		}
	}
}

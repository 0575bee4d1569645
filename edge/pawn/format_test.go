package pawn

import (
	"testing"

	"kennel/edge/pawn/amx"
)

// TestFormat: placeholders with sign, fill, width and longest length, as the reference's console module has them.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		format string
		values []int32
		want   string
		code   Code
	}{
		{"%d %x %c %%", []int32{-5, 0xBEEF, 'A'}, "-5 BEEF A %", OK},
		{"%5d|%-5d|%05d|%+d|%+d", []int32{42, 42, 42, 42, -42}, "   42|42   |00042|+42|-42", OK},
		{"%x %8x", []int32{-1, 0x1A}, "FFFFFFFF       1A", OK},
		{"%d", []int32{-1 << 31}, "-2147483648", OK},
		{"%3c|%-3c|%c", []int32{'x', 'y', 0x20AC}, "  x|y  |€", OK},
		{"%d %d", []int32{1}, "1 ", ErrNative},
		{"%k%d", []int32{7}, "k7", OK},
		{"100%", nil, "100", OK},
		{"", nil, "", OK},
	} {
		a := assemble(10)
		a.op("halt", 0)
		m := load(t, &amx.Program{Version: 10, Code: a.bytes(), Data: make([]byte, 400), StackHeapCells: 200, Main: amx.NoMain})
		m.SetText(0, []byte(c.format), false, 60)
		for i, v := range c.values {
			m.SetCell(int32(300+4*i), v)
			m.SetCell(m.stp-100+4*int32(i+2), int32(300+4*i))
		}
		call := Call{m, m.stp - 100} // the arguments: the format is at 0, then references to the values
		m.SetCell(call.at, amx.CellSize*int32(1+len(c.values)))
		if got, code := Format(nil, call, 0); string(got) != c.want || code != c.code {
			t.Errorf("%q of %d: %q, code %d, want %q, code %d", c.format, c.values, got, code, c.want, c.code)
		}
	}
	// Strings, and addresses outside the memory.
	a := assemble(10)
	a.op("halt", 0)
	m := load(t, &amx.Program{Version: 10, Code: a.bytes(), Data: make([]byte, 400), StackHeapCells: 200, Main: amx.NoMain})
	m.SetText(0, []byte("%s, %.3s"), true, 60)
	m.SetText(100, []byte("packed"), true, 10)
	m.SetText(200, []byte("unpacked"), false, 20)
	call := Call{m, m.stp - 100}
	for i, v := range []int32{12, 0, 100, 200} {
		m.SetCell(call.at+4*int32(i), v)
	}
	if got, code := Format(nil, call, 0); string(got) != "packed, unp" || code != OK {
		t.Errorf("strings: %q, code %d", got, code)
	}
	for i := range int32(2) {
		m.SetCell(call.at+4+4*i, -8)
		if _, code := Format(nil, call, 0); code != ErrMemAccess {
			t.Errorf("address %d outside the memory: code %d", i, code)
		}
		m.SetCell(call.at+4+4*i, 0)
	}
}

package compiler_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/compiler"
)

// TestDebugInfo reads the debug information of a script: its size, magic, the number of entries, and a line and a local variable.
func TestDebugInfo(t *testing.T) {
	src := "new count\nmain()\n{\n\tnew Meter: far[2]\n\tfar[1] = Meter: 5\n\tcount = _: far[1]\n\tprintf \"%d\", count\n}\n"
	o := options()
	o.Debug = 2
	p := compiler.Compile("walk.p", []byte(src), o).Program
	if p == nil || p.Flags&amx.FlagDebug == 0 {
		t.Fatalf("program %v", p)
	}
	b := p.Debug
	le := binary.LittleEndian
	if int(le.Uint32(b)) != len(b) || le.Uint16(b[4:]) != 0xf1ef || b[6] != 10 || b[7] != 10 {
		t.Fatalf("head % x, %d bytes", b[:8], len(b))
	}
	for i, want := range []uint16{1, 5, 3, 4, 1, 0} { // files, lines, symbols, tags, automata, states
		if got := le.Uint16(b[10+2*i:]); got != want {
			t.Errorf("table %d has %d entries, want %d", i, got, want)
		}
	}
	at := 22
	if got := string(b[at+4 : at+11]); got != "walk.p\x00" {
		t.Errorf("file %q", got)
	}
	at += 11
	first, second := le.Uint32(b[at:]), le.Uint32(b[at+8:])
	if le.Uint32(b[at+4:]) != 1 || le.Uint32(b[at+12:]) != 3 || first >= second || int(second) >= len(p.Code) {
		t.Errorf("lines % x", b[at:at+16])
	}
	frame := int32(-8)
	local := binary.LittleEndian.AppendUint32(nil, uint32(frame))
	i := bytes.Index(b, append([]byte{3, 1, 1, 0}, "far\x00"...)) // an array, local, one dimension
	if i < 14 || !bytes.Equal(b[i-14:i-10], local) || le.Uint32(b[i+10:]) != 2 {
		t.Errorf("local variable at %d in % x", i, b)
	}
}

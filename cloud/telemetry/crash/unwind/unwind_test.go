package unwind

import (
	"fmt"
	"strings"
	"testing"

	"kennel/cloud/telemetry/crash/minidump"
	"kennel/cloud/telemetry/crash/minidump/minidumptest"
	"kennel/cloud/telemetry/crash/symfile"
)

const base, stackAt = 0x10000, 0x7f000000

// walk reads a dump of one thread of a module at base and walks its stack.
func walk(t *testing.T, cpu minidump.CPU, context, stack []byte, symbols string) (out []string) {
	t.Helper()
	w := &minidumptest.Writer{}
	w.SystemInfo(uint16(cpu))
	w.ModuleList(minidumptest.Module{Base: base, Size: 0x8000, Name: "engine"})
	w.ThreadList(minidumptest.Thread{ID: 1, Start: stackAt, Stack: stack, Context: context})
	d, err := minidump.Parse(w.Dump())
	if err != nil {
		t.Fatal(err)
	}
	known := Symbols{}
	if symbols != "" {
		want := map[*minidump.Module][]uint64{}
		Wanted(d, d.Threads[0], d.Threads[0].Context, want)
		m := &d.Modules[0]
		offsets := symfile.Sorted(want[m])
		_, said, err := symfile.Read(strings.NewReader("MODULE Linux arm 4FBDA58B5A1DF5A579E3CF19A235EA090 x\n"+symbols), offsets)
		if err != nil {
			t.Fatal(err)
		}
		known[m] = map[uint64]symfile.Symbol{}
		for i, at := range offsets {
			known[m][at] = said[i]
		}
	}
	frames, _ := Walk(d, d.Threads[0], d.Threads[0].Context, known)
	for _, f := range frames {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%x %s %s", f.At, f.Trust, f.Symbol.Func)))
	}
	return out
}

func TestWalk(t *testing.T) {
	arm := func(pc, lr uint32) []byte {
		return minidumptest.ARM([16]uint32{4: 44, 11: stackAt, 13: stackAt, 14: lr, 15: pc})
	}
	amd := minidumptest.AMD64(base+0x104, stackAt, stackAt+16)
	const funcs = "FUNC 100 40 0 inner\nFUNC 200 40 0 middle\nFUNC 300 40 0 outer\n"
	for _, c := range []struct {
		name    string
		cpu     minidump.CPU
		context []byte
		stack   []byte
		symbols string
		want    string
	}{
		{"nothing on the stack", minidump.ARM, arm(base+0x104, 0), nil, "", "10104 context"},
		{"the link register of a leaf", minidump.ARM, arm(base+0x104, base+0x1001), nil, "", "10104 context, 11001 fp"},
		{"a link register into the same function", minidump.ARM, arm(base+0x104, base+0x111), nil, funcs, "10104 context inner"},
		{"the same without symbols", minidump.ARM, arm(base+0x104, base+0x111), nil, "", "10104 context"},
		{"scan", minidump.ARM, arm(base+0x104, 0), minidumptest.Pack([]uint32{1, base + 0x210, 3, base + 0x310}), "", "10104 context, 10210 scan, 10310 scan"},
		{"scan takes only functions", minidump.ARM, arm(base+0x104, 0), minidumptest.Pack([]uint32{base + 0x90, base + 0x210, base + 0x90, base + 0x310}), funcs,
			"10104 context inner, 10210 scan middle, 10310 scan outer"},
		{"frame pointers", minidump.AMD64, amd, minidumptest.Pack([]uint64{base + 0x310, 7, stackAt + 40, base + 0x210, 9, 0, base + 0x310}), "", "10104 context, 10210 fp, 10310 fp"},
		{"frame pointers in a circle", minidump.AMD64, amd, minidumptest.Pack([]uint64{0, 7, stackAt + 16, base + 0x210, 9}), "", "10104 context, 10210 scan"},
		{"frame pointers of ARM64", minidump.ARM64, minidumptest.ARM64([31]uint64{29: stackAt, 30: base + 0x108}, stackAt, base+0x104), minidumptest.Pack([]uint64{stackAt + 32, base + 0x1210, 0, 0, 0, base + 0x2310}), "",
			"10104 context, 11210 fp, 12310 fp"},
		{"call frame information", minidump.ARM, arm(base+0x104, base+0x210), minidumptest.Pack([]uint32{base + 0x118, 55, base + 0x211, base + 0x118, base + 0x311}),
			funcs + "STACK CFI INIT 100 40 .cfa: sp 0 + .ra: lr\nSTACK CFI 104 .cfa: sp 12 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^\nSTACK CFI INIT 200 40 .cfa: r4 47 - sp + .ra: .cfa -4 + ^\n",
			"10104 context inner, 10211 cfi middle, 10311 cfi outer"},
		{"rules that lead nowhere", minidump.ARM, arm(base+0x104, 0), minidumptest.Pack([]uint32{base + 0x210}),
			funcs + "STACK CFI INIT 100 40 .cfa: sp 0 / .ra: nothing ^\n", "10104 context inner, 10210 scan middle"},
		{"a processor that is not known", 99, amd, nil, "", ""},
	} {
		if got := strings.Join(walk(t, c.cpu, c.context, c.stack, c.symbols), ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	deep := make([]uint32, 5000)
	for i := range deep {
		deep[i] = base + 0x210
	}
	if got := walk(t, minidump.ARM, arm(base+0x104, 0), minidumptest.Pack(deep), ""); len(got) != MaxFrames {
		t.Errorf("%d frames of a stack without end", len(got))
	}
}

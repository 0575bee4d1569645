package pawn

import (
	"errors"
	"math"
	"testing"

	"kennel/edge/pawn/amx"
)

// program returns a program of version 10 with that code, whose publics are the labels that begin with @.
func program(a *assembler, cells ...int32) *amx.Program {
	p := &amx.Program{Version: a.version, Code: a.bytes(), Data: data(cells...), StackHeapCells: referenceStack, Main: amx.NoMain,
		Natives: []amx.Entry{{Name: "sum"}, {Name: "fail"}, {Name: "nap"}}}
	for _, name := range []string{"@a", "@b", "@c", "@d"} {
		if at, ok := a.labels[name]; ok {
			p.Publics = append(p.Publics, amx.Entry{Name: name, Value: uint32(at)})
		}
	}
	if at, ok := a.labels["main"]; ok {
		p.Main = int32(at)
	}
	return p
}

// call runs a public function to its end, or to its first sleep.
func call(t *testing.T, m *Machine, name string, args ...int32) Result {
	t.Helper()
	i, ok := m.Public(name)
	if !ok {
		t.Fatalf("no public %s", name)
	}
	var r Running
	if c := m.Begin(&r, i, args...); c != OK {
		return Result{Code: c, Public: name}
	}
	for {
		if out := m.Run(&r, 1000); out.State != Preempted {
			m.End(&r)
			return out
		}
	}
}

// TestErrors: each error stops the public function that made it, with the reference's number, at the place of the instruction; the machine is ready again.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		code func(a *assembler) // its last instruction fails
		want Code
	}{
		{"exit", func(a *assembler) { a.op("const.pri", 9); a.op("halt", 1) }, ErrExit},
		{"assert", func(a *assembler) { a.op("halt", 2) }, ErrAssert},
		{"stack without end", func(a *assembler) { a.label("f"); a.op("proc"); a.op("push.c", 0); a.op("call", "f") }, ErrStack},
		{"large local array", func(a *assembler) { a.op("stack", -4*referenceStack) }, ErrStack},
		{"heap into stack", func(a *assembler) { a.op("heap", 4*referenceStack) }, ErrStack},
		{"index", func(a *assembler) { a.op("const.pri", 10); a.op("bounds.p", 9) }, ErrBounds},
		{"negative index", func(a *assembler) { a.op("const.pri", -1); a.op("bounds", 9) }, ErrBounds},
		{"read the gap", func(a *assembler) { a.op("const.pri", 60); a.op("load.i") }, ErrMemAccess},
		{"read behind the stack", func(a *assembler) { a.op("const.pri", 400); a.op("lodb.i", 1) }, ErrMemAccess},
		{"write below the data", func(a *assembler) { a.op("const.alt", -4); a.op("stor.i") }, ErrMemAccess},
		{"write the code by frame", func(a *assembler) { a.op("zero.s", 400) }, ErrMemAccess},
		{"unaligned cell", func(a *assembler) { a.op("const.pri", 2); a.op("load.i") }, ErrMemAccess},
		{"copy too much", func(a *assembler) { a.op("const.pri", 0); a.op("const.alt", 8); a.op("movs", 40) }, ErrMemAccess},
		{"copy a negative size", func(a *assembler) { a.op("zero.pri"); a.op("zero.alt"); a.op("movs", -4) }, ErrMemAccess},
		{"return to nowhere", func(a *assembler) { a.op("stack", 4); a.op("push.c", 2); a.op("push.c", 0); a.op("retn") }, ErrMemAccess},
		{"jump into an operand", func(a *assembler) { a.op("const.pri", 4); a.op("sctrl", 6) }, ErrMemAccess},
		{"run over a table", func(a *assembler) { a.op("casetbl", 0, "f") }, ErrInvInstr},
		{"pop too much", func(a *assembler) { a.op("stack", 400) }, ErrStackLow},
		{"pop above the stack", func(a *assembler) { a.op("const.pri", 400); a.op("sctrl", 4); a.op("pop.pri") }, ErrStackLow},
		{"heap below its begin", func(a *assembler) { a.op("heap", -4) }, ErrHeapLow},
		{"native index", func(a *assembler) { a.op("const.pri", 3); a.op("sysreq.pri") }, ErrCallback},
		{"native fails", func(a *assembler) { a.op("push.c", 0); a.op("sysreq.c", 1) }, ErrNative},
		{"native fails, short form", func(a *assembler) { a.op("sysreq.n", 1, 0) }, ErrNative},
		{"division", func(a *assembler) { a.op("zero.alt"); a.op("sdiv") }, ErrDivide},
		{"division, other way", func(a *assembler) { a.op("zero.pri"); a.op("sdiv.alt") }, ErrDivide},
		{"division without sign", func(a *assembler) { a.op("zero.alt"); a.op("udiv") }, ErrDivide},
		{"no state", func(a *assembler) { a.op("halt.p", 13) }, ErrInvState},
		{"own number", func(a *assembler) { a.op("halt", 77) }, 77},
	} {
		a := assemble(10)
		a.op("halt", 0)
		a.label("@a")
		a.op("proc")
		a.op("const.pri", 42)
		a.op("retn")
		a.label("@b")
		a.op("proc")
		start := len(a.code)
		c.code(a)
		last := 0
		if _, ok := a.labels["f"]; !ok {
			a.label("f")
		}
		p := program(a, 1, 2, 3)
		for in, err := range p.Instructions(start, len(p.Code)) {
			if err != nil {
				t.Fatal(err)
			}
			last = in.Offset
		}
		if c.name == "stack without end" {
			last = start // the proc has no room for another frame
		}
		m := load(t, p)
		out := call(t, m, "@b", 5)
		if out.State != Ended || out.Code != c.want || out.Public != "@b" || int(out.Offset) != last {
			t.Errorf("%s: %+v, want code %d of @b at %d", c.name, out, c.want, last)
		}
		if want := map[string]int32{"exit": 9}[c.name]; out.Value != want {
			t.Errorf("%s: value %d, want %d", c.name, out.Value, want)
		}
		if m.stk != m.stp || m.hea != m.hlw {
			t.Errorf("%s: the stack is left at %d of %d, the heap at %d", c.name, m.stk, m.stp, m.hea)
		}
		if out := call(t, m, "@a", 5); out.Code != OK || out.Value != 42 {
			t.Errorf("%s: afterwards @a gives %+v", c.name, out)
		}
	}
}

// TestRefused: programs that the reference refuses to load, with its code, and those that it would run into the unknown.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(a *assembler, p *amx.Program)
		want Code
	}{
		{"no instruction", func(a *assembler, p *amx.Program) { a.cell(213) }, ErrInvInstr},
		{"cut off", func(a *assembler, p *amx.Program) { a.cell(11) }, ErrInvInstr},
		{"load outside the data", func(a *assembler, p *amx.Program) { a.op("load.pri", 12) }, ErrBounds},
		{"store below the data", func(a *assembler, p *amx.Program) { a.op("stor.alt", -4) }, ErrBounds},
		{"second address outside", func(a *assembler, p *amx.Program) { a.op("load.both", 0, 12) }, ErrBounds},
		{"frame address too high", func(a *assembler, p *amx.Program) { a.op("load.s.pri", 4*referenceStack+4) }, ErrBounds},
		{"jump behind the code", func(a *assembler, p *amx.Program) { a.op("jump", 1000) }, ErrBounds},
		{"jump before the code", func(a *assembler, p *amx.Program) { a.op("call", -100) }, ErrBounds},
		{"jump into an operand", func(a *assembler, p *amx.Program) { a.op("jump", 4) }, ErrBounds},
		{"case behind the code", func(a *assembler, p *amx.Program) { a.op("casetbl", 1, 0, 5, 1000) }, ErrBounds},
		{"switch without table", func(a *assembler, p *amx.Program) { a.op("switch", 0) }, ErrInvInstr},
		{"native that is not there", func(a *assembler, p *amx.Program) { a.op("sysreq.c", 3) }, ErrCallback},
		{"native that is not known", func(a *assembler, p *amx.Program) { p.Natives = append(p.Natives, amx.Entry{Name: "beep"}) }, ErrNotFound},
		{"overlay call without overlays", func(a *assembler, p *amx.Program) { a.op("icall", 0) }, ErrOverlay},
		{"overlays that overlap", func(a *assembler, p *amx.Program) {
			p.Overlays = []amx.Overlay{{Offset: 0, Size: 8}, {Offset: 4, Size: 4}}
		}, ErrOverlay},
		{"main inside an instruction", func(a *assembler, p *amx.Program) { p.Main = 4 }, ErrBounds},
		{"public behind the code", func(a *assembler, p *amx.Program) { p.Publics = []amx.Entry{{Name: "@a", Value: 8}} }, ErrBounds},
		{"too large", func(a *assembler, p *amx.Program) { p.StackHeapCells = 5 << 20 }, ErrMemory},
	} {
		a := assemble(10)
		a.op("halt", 0)
		p := program(a, 1, 2, 3)
		c.make(a, p)
		p.Code = a.bytes()
		_, err := New(p, Options{Natives: hostFuncs})
		var refused *LoadError
		if !errors.As(err, &refused) || refused.Code != c.want {
			t.Errorf("%s: %v, want code %d", c.name, err, c.want)
		}
	}
}

// TestBudget: an endless loop costs its slices and nothing else: each stops just behind its budget, another function can run between two of them, and the loop
// continues where it was.
func TestBudget(t *testing.T) {
	a := assemble(10)
	a.op("halt", 0)
	a.label("@a") // for ( ;; ) data[0]++
	a.op("proc")
	a.label("loop")
	a.op("inc", 0)
	a.op("jump", "loop")
	a.label("@b") // return data[0]
	a.op("proc")
	a.op("load.pri", 0)
	a.op("retn")
	a.label("@c") // calls itself without end, and returns
	a.op("proc")
	a.label("again")
	a.op("push.c", 0)
	a.op("call", "f")
	a.op("jump", "again")
	a.label("f")
	a.op("proc")
	a.op("retn")
	m := load(t, program(a, 0))
	var r Running
	first, _ := m.Public("@a")
	if c := m.Begin(&r, first); c != OK {
		t.Fatal(c)
	}
	for n := int32(1); n <= 10; n++ {
		if out := m.Run(&r, 1000); out.State != Preempted || out.Code != OK || out.Public != "@a" {
			t.Fatalf("slice %d: %+v", n, out)
		}
		// A slice is 500 rounds of two instructions; the first has proc too.
		if got := call(t, m, "@b"); got.Value < 499*n || got.Value > 500*n {
			t.Fatalf("after slice %d the loop has counted to %d", n, got.Value)
		}
	}
	if out := m.Run(&Running{}, 1000); out.Code != ErrInit {
		t.Errorf("a call that has not begun: %+v", out)
	}
	m.End(&r)
	if out := m.Run(&r, 1000); out.Code != ErrInit {
		t.Errorf("a call that was given up: %+v", out)
	}
	third, _ := m.Public("@c")
	if c := m.Begin(&r, third); c != OK {
		t.Fatal(c)
	}
	if n := testing.AllocsPerRun(100, func() { m.Run(&r, 1000) }); n != 0 {
		t.Errorf("a slice allocates %v times", n)
	}
	if out := m.Run(&r, 0); out.State != Preempted {
		t.Errorf("a slice without budget: %+v", out)
	}
}

// TestSleep: sleep gives 12 and the value, and the call continues at the same point, from the statement and from a native function.
func TestSleep(t *testing.T) {
	a := assemble(10)
	a.op("halt", 0)
	a.label("@a") // new x = 7; sleep 5; x += nap(1, 2); return x
	a.op("proc")
	a.op("push.c", 7)
	a.op("const.pri", 5)
	a.op("halt", 12)
	a.op("push2.c", 2, 1)
	a.op("sysreq.n", 2, 8)
	a.op("load.s.alt", -4)
	a.op("add")
	a.op("stack", 4)
	a.op("retn")
	a.label("@b")
	a.op("proc")
	a.op("load.s.pri", 12)
	a.op("add.c", 1)
	a.op("retn")
	m := load(t, program(a))
	var r Running
	if c := m.Begin(&r, 0, 1, 2, 3); c != OK {
		t.Fatal(c)
	}
	for step, want := range []Result{
		{State: Sleeping, Code: ErrSleep, Value: 5, Pri: 5},
		{State: Sleeping, Code: ErrSleep, Value: 5, Pri: 5}, // nap's value is 5 too; the value of the call is the latest halt's
		{State: Ended, Code: OK, Value: 12, Pri: 12},
	} {
		out := m.Run(&r, 1000)
		out.Public, out.Offset = "", 0
		if out != want {
			t.Fatalf("step %d: %+v, want %+v", step, out, want)
		}
		if out := call(t, m, "@b", int32(step)); out.Value != int32(step)+1 {
			t.Fatalf("between: %+v", out)
		}
	}
	if m.stk != m.stp {
		t.Errorf("the stack is left at %d of %d", m.stk, m.stp)
	}
	if out := m.Run(&r, 1); out.Code != ErrInit {
		t.Errorf("a call that has ended: %+v", out)
	}
}

// TestOverlays: calls, returns and switches between overlays, and a sleep inside one. The reference machine gave the same values.
func TestOverlays(t *testing.T) {
	a := assemble(10)
	var overlays []amx.Overlay
	begin := 0
	end := func() {
		overlays = append(overlays, amx.Overlay{Offset: int32(begin), Size: int32(len(a.code) - begin)})
		begin = len(a.code)
	}
	a.op("halt", 0)
	end()        // 0
	a.op("proc") // 1: f(n) = n < 1 ? 100 : f(n-1) + 1
	a.op("load.s.pri", 12)
	a.op("jnz", "more")
	a.op("const.pri", 100)
	a.op("iretn")
	a.label("more")
	a.op("add.p.c", -1)
	a.op("push.pri")
	a.op("push.c", 4)
	a.op("icall", 1)
	a.op("add.p.c", 1)
	a.op("iretn")
	end()
	a.op("load.pri", 0) // 2: state functions, chosen by data[0]
	a.op("iswitch", "table")
	a.label("table")
	a.op("icasetbl", 2, 4, 7, 1, 9, 3)
	end()
	a.op("proc") // 3
	a.op("const.pri", 33)
	a.op("halt", 12)
	a.op("add.p.c", 1)
	a.op("iretn")
	end()
	a.op("halt", 13) // 4
	end()
	p := &amx.Program{Version: 10, Flags: amx.FlagOverlay, Code: a.bytes(), Data: data(9), StackHeapCells: referenceStack, Main: 1, Overlays: overlays,
		Publics: []amx.Entry{{Name: "@f", Value: 1}, {Name: "@s", Value: 2}}}
	if _, err := p.Append(nil); err != nil {
		t.Fatal(err)
	}
	m := load(t, p)
	if out := call(t, m, "@f", 5); out.Code != OK || out.Value != 105 {
		t.Errorf("f(5) = %+v, want 105", out)
	}
	if out := call(t, m, "@f", 50); out.Code != ErrStack {
		t.Errorf("f(50) = %+v, want no stack", out)
	}
	var r Running
	m.Begin(&r, 1)
	if out := m.Run(&r, 100); out.State != Sleeping || out.Value != 33 {
		t.Errorf("s in state 9 = %+v, want to sleep with 33", out)
	}
	if out := m.Run(&r, 100); out.State != Ended || out.Code != OK || out.Value != 34 {
		t.Errorf("s in state 9 ends with %+v, want 34", out)
	}
	m.SetCell(0, 7)
	if out := call(t, m, "@s", 0); out.Value != 100 {
		t.Errorf("s in state 7 = %+v, want f(0)", out)
	}
	m.SetCell(0, 8)
	if out := call(t, m, "@s"); out.Code != ErrInvState {
		t.Errorf("s in state 8 = %+v, want none", out)
	}
	m.Reset()
	if v, ok := m.Cell(0); v != 9 || !ok {
		t.Errorf("after Reset data is %d, %v", v, ok)
	}
}

func TestBegin(t *testing.T) {
	a := assemble(10)
	a.op("halt", 0)
	a.label("@a") // numbers of arguments in cells, and the last of them
	a.op("proc")
	a.op("load.s.pri", 8)
	a.op("load.s.alt", 20)
	a.op("add")
	a.op("retn")
	m := load(t, program(a))
	if out := call(t, m, "@a", 1, 2, 1000); out.Value != 1012 {
		t.Errorf("@a(1, 2, 1000) = %+v", out)
	}
	var r Running
	for _, c := range []struct {
		public int
		args   []int32
		want   Code
	}{{Main, nil, ErrIndex}, {1, nil, ErrIndex}, {-2, nil, ErrIndex}, {math.MaxInt, nil, ErrIndex}, {0, make([]int32, referenceStack), ErrStack}, {0, make([]int32, referenceStack-17), ErrStack}} {
		if got := m.Begin(&r, c.public, c.args...); got != c.want || m.stk != m.stp {
			t.Errorf("begin %d with %d arguments: %d, stack at %d of %d, want %d", c.public, len(c.args), got, m.stk, m.stp, c.want)
		}
	}
	if _, ok := m.Public("@b"); ok {
		t.Error("there is no @b")
	}
}

func TestDivide(t *testing.T) {
	for _, c := range [][4]int32{{7, 2, 3, 1}, {-7, 2, -4, 1}, {7, -2, -4, -1}, {-7, -2, 3, -1}, {6, -3, -2, 0}, {10, 3, 3, 1}, {math.MinInt32, -1, math.MinInt32, 0}, {math.MinInt32, 3, -715827883, 1}} {
		if q, r := divide(c[0], c[1]); q != c[2] || r != c[3] {
			t.Errorf("%d / %d = %d rest %d, want %d rest %d", c[0], c[1], q, r, c[2], c[3])
		}
	}
}

// TestText: packed and unpacked strings are told apart by their first cell (part of PLEO-VM-21).
func TestText(t *testing.T) {
	a := assemble(10)
	a.op("halt", 0)
	m := load(t, program(a, 0x41424300, 'h', 'i', 0, 0x61626364, 0x65000000, 0, 0x20AC, 0))
	for _, c := range []struct {
		addr  int32
		limit int
		want  string
	}{{0, 10, "ABC"}, {4, 10, "hi"}, {4, 1, "h"}, {16, 10, "abcde"}, {16, 4, "abcd"}, {24, 9, ""}, {28, 9, "€"}} {
		if got, ok := m.Text(c.addr, c.limit); string(got) != c.want || !ok {
			t.Errorf("text at %d: %q, %v, want %q", c.addr, got, ok, c.want)
		}
	}
	for _, addr := range []int32{-4, 2, m.stp} {
		if _, ok := m.Text(addr, 10); ok {
			t.Errorf("there is text at %d", addr)
		}
	}
	for _, c := range []struct {
		text   string
		packed bool
		cells  int
		want   string
	}{{"hello", true, 2, "hello"}, {"hello world", true, 2, "hello w"}, {"hello", false, 6, "hello"}, {"hello", false, 3, "he"}, {"", true, 1, ""}, {"abc", true, 1, "abc"}, {"abcd", true, 1, "abc"}} {
		m.Reset()
		if !m.SetText(0, []byte(c.text), c.packed, c.cells) {
			t.Errorf("%q is not written", c.text)
		}
		if got, _ := m.Text(0, 100); string(got) != c.want {
			t.Errorf("%q in %d cells, packed %v: %q, want %q", c.text, c.cells, c.packed, got, c.want)
		}
		if v, _ := m.Cell(int32(4 * c.cells)); v != m.data[c.cells] {
			t.Errorf("%q in %d cells: the cell behind is %#x", c.text, c.cells, v)
		}
	}
	if m.SetText(m.stp-4, []byte("x"), true, 2) || m.SetText(-4, nil, true, 1) || m.SetText(0, nil, true, 0) {
		t.Error("text is written where there is no room")
	}
}

// FuzzMachine: no program makes the machine panic, or leave its budget or its memory.
func FuzzMachine(f *testing.F) {
	a := assemble(10)
	a.op("halt", 0)
	a.op("proc")
	a.op("push2.c", 3, 4)
	a.op("sysreq.n", 0, 8)
	a.op("switch", "table")
	a.label("table")
	a.op("casetbl", 1, "table", 5, "table")
	f.Add(uint8(10), a.bytes(), uint8(0))
	f.Add(uint8(9), data(120, 0, 46, 45, 8, 38, 3, 117, 4, 48), uint8(0))
	f.Add(uint8(10), data(120, 0, 158, 0, 159), uint8(8))
	f.Fuzz(func(t *testing.T, version uint8, code []byte, cut uint8) {
		p := &amx.Program{Version: version, Code: code[:len(code)&^3], Data: data(referenceData...), StackHeapCells: referenceStack, Main: 8,
			Natives: []amx.Entry{{Name: "sum"}, {Name: "fail"}, {Name: "getarg"}, {Name: "setarg"}, {Name: "funcidx"}, {Name: "numargs"}}}
		if n := int(cut) &^ 3; n > 0 && n < len(p.Code) {
			p.Flags, p.Main = amx.FlagOverlay, 1
			p.Overlays = []amx.Overlay{{Size: int32(n)}, {Offset: int32(n), Size: int32(len(p.Code) - n)}}
		}
		if _, err := p.Append(nil); err != nil {
			return
		}
		m, err := New(p, Options{Natives: hostFuncs})
		if err != nil {
			return
		}
		var r Running
		if m.Begin(&r, Main, 1, 2) != OK {
			return
		}
		for range 20 {
			if out := m.Run(&r, 500); out.State == Ended {
				break
			}
		}
		m.End(&r)
	})
}

// TestNested: a native function calls the script back, and both calls end as if they were alone.
func TestNested(t *testing.T) {
	a := assemble(10)
	a.op("halt", 0)
	a.label("@a") // new x = 5; return back(x + 1) + x
	a.op("proc")
	a.op("push.c", 5)
	a.op("heap", 16)
	a.op("push.c", 6)
	a.op("sysreq.n", 0, 4)
	a.op("load.s.alt", -4)
	a.op("add")
	a.op("heap", -16)
	a.op("stack", 4)
	a.op("retn")
	a.label("@b") // return 10 * n
	a.op("proc")
	a.op("heap", 64)
	a.op("load.s.pri", 12)
	a.op("smul.p.c", 10)
	a.op("retn")
	p := program(a, 0)
	p.Natives = []amx.Entry{{Name: "back"}}
	m, err := New(p, Options{Natives: func(string) Native {
		return func(c Call) (int32, Code) {
			i, _ := c.M.Public("@b")
			var r Running
			if code := c.M.Begin(&r, i, c.Arg(0)); code != OK {
				return 0, code
			}
			out := c.M.Run(&r, 1000)
			return out.Value, out.Code
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if out := call(t, m, "@a"); out.Code != OK || out.Value != 65 {
		t.Errorf("%+v, want 65", out)
	}
	if m.stk != m.stp || m.hea != m.hlw {
		t.Errorf("the stack is left at %d of %d, the heap at %d of %d", m.stk, m.stp, m.hea, m.hlw)
	}
}

// TestBlocksCost: copying and filling count by their size, so that a few instructions cannot take a slice's time many times over.
func TestBlocksCost(t *testing.T) {
	for _, name := range []string{"movs", "fill", "cmps"} {
		a := assemble(10)
		a.op("halt", 0)
		a.label("@a")
		a.op("proc")
		a.label("loop")
		a.op("inc", 0)
		a.op("const.pri", 4)
		a.op("const.alt", 40_000)
		a.op(name, 36_000)
		a.op("jump", "loop")
		m := load(t, program(a, make([]int32, 20_000)...))
		var r Running
		m.Begin(&r, 0)
		if out := m.Run(&r, 20_000); out.State != Preempted {
			t.Fatalf("%s: %+v", name, out)
		}
		if rounds, _ := m.Cell(0); rounds != 3 {
			t.Errorf("%s: 20,000 instructions are %d rounds of 9,000 cells, want 3", name, rounds)
		}
	}
}

package crash

import (
	"testing"

	"kennel/cloud/telemetry/crash/unwind"
)

// A signature leaves out what every crash passes, and what differs between versions or crashes of the same cause.
func TestSignature(t *testing.T) {
	named := func(names ...string) (out []Frame) {
		for _, n := range names {
			out = append(out, Frame{Module: "engine", Offset: "0x1", Function: n, Trust: unwind.CFI})
		}
		return out
	}
	scan := func(module, offset string) Frame { return Frame{Module: module, Offset: offset, Trust: unwind.Scan} }
	for name, c := range map[string]struct {
		frames []Frame
		want   string
	}{
		"go":             {named("panic", "runtime.panicmem", "runtime.sigpanic", "kennel/x.(*T).f", "kennel/x.Map[...].func1", "main.main", "runtime.main"), "kennel/x.(*T).f | kennel/x.Map.func1 | main.main"},
		"go, killed":     {[]Frame{{Function: "runtime.futex", Trust: Said}, {Function: "runtime.mcall", Trust: Said}}, "SIGSEGV at N"},
		"abort":          {named("raise", "abort", "__assert_fail", "engine::Lift::Move(float, int) const", "engine::Tick()"), "engine::Lift::Move | engine::Tick"},
		"c++":            {named("void std::vector<int, A<B> >::push<(C)0>(int&&)", "(anonymous namespace)::f(int)", "X::operator()(int)"), "void std::vector::push | (anonymous namespace)::f | X::operator()"},
		"machinery only": {named("raise", "abort"), "raise | abort"},
		"no symbols":     {[]Frame{{Module: "engine", Offset: "0x100", Trust: unwind.Context}, {Module: "engine", Offset: "0x200", Trust: unwind.Pointer}, scan("engine", "0x300")}, "engine+0x100 | engine+0x200"},
		"in libc":        {[]Frame{{Module: "libc.so.6", Offset: "0x7", Trust: unwind.Context}, scan("libpthread-2.22.so", "0x8"), scan("engine", "0x300"), scan("engine", "0x400")}, "engine+0x300"},
		"nowhere":        {[]Frame{{Offset: "0xdead", Trust: unwind.Context}}, "SIGSEGV at N"},
		"no stack":       {nil, "SIGSEGV at N"},
	} {
		a := Analysis{Reason: "SIGSEGV at 0x12ab", Threads: []Thread{{Frames: c.frames}}}
		if got := a.signature(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

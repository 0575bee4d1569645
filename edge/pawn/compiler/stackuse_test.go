package compiler_test

import (
	"strings"
	"testing"

	"kennel/edge/pawn/compiler"
)

// TestStackUse: every program of the corpus whose need of stack and heap is known runs with as many cells, at every level, and most do not run with eight less; a script
// that sleeps or calls itself has no such number, and says why (PLEO-BLD-11).
func TestStackUse(t *testing.T) {
	known, tight := 0, 0
	for _, s := range sections(t, "programs.txt") {
		for level := range 3 {
			o := options()
			o.Optimise, o.Debug = level, 1
			r := compiler.Compile("main.p", []byte(s.source), o)
			if r.Program == nil {
				t.Fatalf("%s: %v", s.name, r.Messages)
			}
			if (r.StackCells == 0) == (r.StackWhy == "") {
				t.Errorf("%s: %d cells, %q", s.name, r.StackCells, r.StackWhy)
			}
			if r.StackCells == 0 {
				continue
			}
			known++
			r.Program.StackHeapCells = int32(r.StackCells)
			got, err := run(r.Program)
			if err != nil || strings.TrimRight(got, "\n ") != strings.TrimRight(s.want, "\n ") {
				t.Errorf("%s: -O%d: with %d cells: %v, prints\n%s", s.name, level, r.StackCells, err, got)
			}
			r.Program.StackHeapCells = int32(r.StackCells - 8)
			if got, err := run(r.Program); err != nil || strings.TrimRight(got, "\n ") != strings.TrimRight(s.want, "\n ") {
				tight++
			}
		}
	}
	t.Logf("%d known, %d of them tight", known, tight)
	if known < 500 || tight < known/2 {
		t.Errorf("%d known, %d of them tight", known, tight)
	}
	for text, why := range map[string]string{"main() sleep 5": "sleep instruction", "f(n) return n ? f(n - 1) : 0\nmain() return f(3)\n": "recursion"} {
		if r := compiler.Compile("main.p", []byte(text), options()); r.StackWhy != why || r.StackCells != 0 {
			t.Errorf("%s: %d, %q, want %q", text, r.StackCells, r.StackWhy, why)
		}
	}
}

package pawn

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"kennel/edge/pawn/amx"
)

// TestJoin: sequences that are joined do the same as their instructions one by one, with operands and registers that mostly work, sometimes not: registers,
// memory, the place of an error, and what of the budget is used.
func TestJoin(t *testing.T) {
	names := map[opcode]string{}
	for name, op := range byName {
		if old, ok := names[op]; name != "jrel" && (!ok || name < old) {
			names[op] = name
		}
	}
	rounds := 200
	if os.Getenv("KENNEL_SOAK") == "1" {
		rounds = 20_000
	}
	r := rand.New(rand.NewPCG(36, 2))
	for _, j := range joints {
		joined, failed := 0, 0
		for range rounds {
			p := sequence(r, j, names)
			m := load(t, p)
			one := load(t, p)
			one.code = one.plain
			if slices.ContainsFunc(m.code, func(in instr) bool {
				return in.op == j.to || in.op == opLocalDivPower && j.to == opLocalDivConst
			}) {
				joined++
			}
			var a, b Running
			m.Begin(&a, Main, 1, 2)
			one.Begin(&b, Main, 1, 2)
			for budget := int64(3); ; {
				got, want := m.Run(&a, budget), one.Run(&b, budget)
				if got != want || a.alt != b.alt || a.frm != b.frm || a.stk != b.stk || a.hea != b.hea || !slices.Equal(m.mem, one.mem) {
					for in := range p.Instructions(0, len(p.Code)) {
						t.Logf("%d %s %v", in.Offset, in.Op.Name, in.Operands)
					}
					t.Fatalf("joined to %d: %+v %+v, one by one: %+v %+v", j.to, got, a, want, b)
				}
				if got.State != Preempted {
					if got.State == Ended && got.Code != OK {
						failed++
					}
					break
				}
				if budget++; budget > 50 {
					break
				}
			}
		}
		if joined < rounds*9/10 || failed == rounds {
			t.Errorf("sequence to %d: joined in %d programs of %d, failed in %d", j.to, joined, rounds, failed)
		}
	}
}

// sequence returns a program that sets the registers, runs the sequence, and sleeps.
func sequence(r *rand.Rand, j joint, names map[opcode]string) *amx.Program {
	a := assemble(10)
	a.op("halt", 0)
	a.label("main")
	a.op("proc")
	address := func() int {
		switch r.IntN(8) {
		case 0:
			return r.IntN(800) - 200
		case 1:
			return 4 * r.IntN(100)
		}
		return 8 * r.IntN(len(referenceData)/2)
	}
	for range 4 {
		a.op("push.c", address())
	}
	a.op("const.pri", address())
	a.op("const.alt", address())
	if r.IntN(10) == 0 {
		a.op("heap", 164+4*r.IntN(20)) // little room is left
		a.op("const.alt", address())
	}
	frame := -16 + 4*r.IntN(8)
	for _, op := range j.from {
		name := names[op]
		switch o := amx.Named(10, name); {
		case name == "push.s" || name == "inc.s" || name == "load.s.pri" || name == "load.s.alt" || name == "stor.s.pri" || name == "load.s.both":
			v := frame
			if j.to != opStepLocalConstJsgeq && r.IntN(2) == 0 {
				v = -16 + 4*r.IntN(8)
			}
			if r.IntN(20) == 0 && j.to != opStepLocalConstJsgeq {
				v = r.IntN(500) - 250
			}
			if name == "load.s.both" {
				a.op(name, v, frame)
			} else {
				a.op(name, v)
			}
		case len(o.Operands) == 0:
			a.op(name)
		case o.Operands[0] == amx.Jump:
			a.op(name, "there")
		case name == "stack":
			a.op(name, []int{4, -4, 16, -200, 400}[r.IntN(5)])
		default:
			a.op(name, []int{4, 1, 2, 8, 40, -1, 1 << 30}[r.IntN(7)])
		}
	}
	a.op("halt", 12)
	a.label("there")
	a.op("const.alt", 77)
	a.op("halt", 12)
	return &amx.Program{Version: 10, Code: a.bytes(), Data: data(referenceData...), StackHeapCells: referenceStack, Main: int32(a.labels["main"])}
}

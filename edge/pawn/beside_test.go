package pawn

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kennel/infra/bench"
)

// referenceVar names a program around the reference's machine: given an AMX file, a function and its argument, it prints "ret=VALUE TIME ms", the shortest time of a dozen calls.
const referenceVar = "KENNEL_PAWN_BENCH"

var referenceLine = regexp.MustCompile(`ret=(-?[0-9]+) ([0-9.]+) ms`)

// BenchmarkPawnBesideLua runs loops in the machine, beside the same in gopher-lua, in compiled Go and, where KENNEL_PAWN_BENCH names it, in the machine of
// Pawn's authors (issue 36, must hold 5).
func BenchmarkPawnBesideLua(b *testing.B) { pawnBesideLua(b) }

func TestPawnBesideLua(t *testing.T) { pawnBesideLua(t) }

func pawnBesideLua(tb testing.TB) {
	calls, part := bench.Part(tb, 8), int32(1) // the shortest of the calls counts
	if bench.Quick(tb) {
		part = 4
	}
	m, inLua := load(tb, benchProgram(tb)), inLua(tb)
	type beside struct {
		name, note string
		bound      float64
		run        func(name string, arg int32) (int32, float64)
	}
	timed := func(f func(name string, arg int32) int32) func(string, int32) (int32, float64) {
		return func(name string, arg int32) (v int32, ms float64) {
			for range calls {
				began := threadTime(tb)
				v = f(name, arg)
				if took := threadTime(tb) - began; ms == 0 || took < ms {
					ms = took
				}
			}
			return v, ms
		}
	}
	native := func(name string, arg int32) int32 {
		for _, c := range benchmarks {
			if c.name == "@"+name {
				return c.native(arg)
			}
		}
		panic(name)
	}
	others := []beside{
		{"lua", "gopher-lua", 1, timed(inLua)},
		{"go", "compiled Go", 0, timed(native)},
	}
	if program := os.Getenv(referenceVar); program != "" {
		others = append(others, beside{"reference", "the machine of Pawn's authors", 1 / 1.5, func(name string, arg int32) (int32, float64) {
			return inReference(tb, program, "@"+name, arg)
		}})
	}
	here := timed(func(name string, arg int32) int32 {
		i, _ := m.Public("@" + name)
		var r Running
		m.Begin(&r, i, arg)
		for {
			switch out := m.Run(&r, 1_000_000); {
			case out.State != Ended:
			case out.Code != OK:
				tb.Fatalf("%s(%d): %+v", name, arg, out)
			default:
				return out.Value
			}
		}
	})
	pairs := map[bench.Line][]bench.Pair{}
	var order []bench.Line
	bench.Turns(tb, func() error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for _, c := range benchmarks {
			name, arg := c.name[1:], max(c.arg/part, 2)
			value, took := here(name, arg)
			for _, o := range others {
				theirs, reference := o.run(name, arg)
				if theirs != value {
					return fmt.Errorf("%s(%d) is %d here, and %d in %s", name, arg, value, theirs, o.note)
				}
				l := bench.Line{Name: "pawn/" + name + "-" + o.name, Unit: "ms", Less: true, Bound: o.bound, Note: fmt.Sprintf("%s(%d) of bench.p in the machine; reference: %s", name, arg, o.note)}
				if pairs[l] == nil {
					order = append(order, l)
				}
				pairs[l] = append(pairs[l], bench.Pair{Value: took, Reference: reference})
			}
		}
		return nil
	})
	var said strings.Builder
	for _, l := range order {
		r := bench.Report(tb, l, pairs[l])
		fmt.Fprintf(&said, "%s: %.2f ms, %.2f times the time there; ", l.Name, r.Value, 1/r.Ratio)
	}
	tb.Log(said.String())
}

// threadTime returns the processor time of this thread in milliseconds: what else runs on the computer does not count.
func threadTime(tb testing.TB) float64 {
	tb.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		tb.Fatal(err)
	}
	return float64(now.Nano()) / 1e6
}

// inReference calls a function of the benchmarks' program in the reference's machine.
func inReference(tb testing.TB, program, name string, arg int32) (int32, float64) {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), program, "testdata/bench/bench.amx", name, strconv.Itoa(int(arg))).CombinedOutput()
	found := referenceLine.FindSubmatch(out)
	if err != nil || found == nil {
		tb.Fatalf("%s: %v: %s", program, err, out)
	}
	v, err := strconv.ParseInt(string(found[1]), 10, 32)
	ms, err2 := strconv.ParseFloat(string(found[2]), 64)
	if err != nil || err2 != nil {
		tb.Fatalf("%s prints %s", program, out)
	}
	return int32(v), ms
}

package pawn

import (
	"os"
	"testing"

	"kennel/edge/pawn/amx"
)

// benchmarks are functions of testdata/bench/bench.p, with the values that the reference machine computes.
var benchmarks = []struct {
	name      string
	arg, want int32
	native    func(int32) int32 // the same loops in Go
}{
	{"@fib", 27, 196418, fib},
	{"@sieve", 50, 1899, sieve},
	{"@matmul", 30, 0, matmul},
	{"@collatz", 20000, 278, collatz},
}

func benchProgram(t testing.TB) *amx.Program {
	t.Helper()
	name := "testdata/bench/bench.amx"
	if other := os.Getenv("PAWN_BENCH"); other != "" {
		name = other
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := amx.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBenchmarks(t *testing.T) {
	m := load(t, benchProgram(t))
	for _, b := range benchmarks {
		arg := b.arg
		if arg > 100 {
			arg /= 10
		}
		if out, want := call(t, m, b.name, arg), b.native(arg); out.Code != OK || out.Value != want {
			t.Errorf("%s(%d) = %+v, want %d", b.name, arg, out, want)
		}
	}
}

func BenchmarkMachine(b *testing.B) {
	p := benchProgram(b)
	for _, c := range benchmarks {
		b.Run(c.name[1:], func(b *testing.B) {
			m, err := New(p, Options{Natives: hostFuncs})
			if err != nil {
				b.Fatal(err)
			}
			i, _ := m.Public(c.name)
			b.ReportAllocs()
			for b.Loop() {
				var r Running
				m.Begin(&r, i, c.arg)
				for m.Run(&r, 1_000_000).State != Ended {
				}
			}
		})
	}
}

func BenchmarkGo(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(c.name[1:], func(b *testing.B) {
			for b.Loop() {
				sink = c.native(c.arg)
			}
		})
	}
}

var sink int32

func fib(n int32) int32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func sieve(rounds int32) (count int32) {
	var flags [8191]int32
	for ; rounds > 0; rounds-- {
		count = 0
		for i := range flags {
			flags[i] = 1
		}
		for i := range flags {
			if flags[i] != 0 {
				prime := i + i + 3
				for k := i + prime; k < len(flags); k += prime {
					flags[k] = 0
				}
				count++
			}
		}
	}
	return count
}

func matmul(rounds int32) (trace int32) {
	const n = 32
	var left, right, product [n][n]int32
	for i := range int32(n) {
		for j := range int32(n) {
			left[i][j], right[i][j] = i+j, i-j
		}
	}
	for ; rounds > 0; rounds-- {
		for i := range n {
			for j := range n {
				s := int32(0)
				for k := range n {
					s += left[i][k] * right[k][j]
				}
				product[i][j] = s
			}
		}
		for i := range n {
			trace += product[i][0]
		}
	}
	return trace
}

func collatz(limit int32) (best int32) {
	for start := int32(1); start < limit; start++ {
		n, steps := start, int32(0)
		for n != 1 {
			if n&1 != 0 {
				n = 3*n + 1
			} else {
				n, _ = divide(n, 2)
			}
			steps++
		}
		best = max(best, steps)
	}
	return best
}

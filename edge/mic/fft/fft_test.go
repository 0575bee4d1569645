package fft

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// TestForward: the bins are those of the definition, and Inverse gives the samples back.
func TestForward(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{4, 8, 64, 512} {
		x, back, out := make([]float32, n), make([]float32, n), make([]complex64, n/2+1)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		p := New(n)
		p.Forward(out, x)
		for k, got := range out {
			var want complex128
			for i, v := range x {
				want += complex(float64(v), 0) * cmplx.Exp(complex(0, -2*math.Pi*float64(k*i)/float64(n)))
			}
			if cmplx.Abs(complex128(got)-want) > 1e-4*float64(n) {
				t.Errorf("%d samples, bin %d: %v, want %v", n, k, got, want)
			}
		}
		p.Inverse(back, out)
		for i := range x {
			if math.Abs(float64(back[i]-x[i])) > 1e-5 {
				t.Fatalf("%d samples: sample %d is %v, want %v", n, i, back[i], x[i])
			}
		}
		if a := testing.AllocsPerRun(10, func() { p.Forward(out, x); p.Inverse(back, out) }); a != 0 {
			t.Errorf("%v allocations", a)
		}
	}
}

func BenchmarkForward(b *testing.B) {
	p, x, out := New(512), make([]float32, 512), make([]complex64, 257)
	for b.Loop() {
		p.Forward(out, x)
	}
}

// Package fft computes Fourier transforms of real samples, in single precision and without allocation: a robot does 200 a second.
package fft

import (
	"fmt"
	"math"
	"math/bits"
)

// Plan transforms a fixed number of samples. It is not safe for concurrent use.
type Plan struct {
	n    int // real samples
	rev  []int
	turn []complex64 // e^(-2 pi i k/n), k < n/2
	work []complex64 // n/2
}

// New returns a plan for n samples, a power of two from 4 on.
func New(n int) *Plan {
	if n < 4 || n&(n-1) != 0 {
		panic(fmt.Sprintf("fft: %d samples, want a power of two from 4 on", n))
	}
	half := n / 2
	p := &Plan{n: n, rev: make([]int, half), turn: make([]complex64, half), work: make([]complex64, half)}
	shift := 64 - bits.Len(uint(half-1))
	for i := range half {
		p.rev[i] = int(bits.Reverse64(uint64(i)) >> shift)
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		p.turn[i] = complex(float32(cos), float32(-sin))
	}
	return p
}

// Forward writes the n/2+1 bins of the n samples of x to out.
func (p *Plan) Forward(out []complex64, x []float32) {
	half, w := p.n/2, p.work
	x, out = x[:p.n], out[:half+1]
	for i, r := range p.rev {
		w[i] = complex(x[2*r], x[2*r+1])
	}
	p.run()
	out[0] = complex(real(w[0])+imag(w[0]), 0)
	out[half] = complex(real(w[0])-imag(w[0]), 0)
	for k := 1; k <= half/2; k++ {
		a, b := w[k], conj(w[half-k])
		even, odd := (a+b)*0.5, (a-b)*p.turn[k]
		odd = complex(imag(odd)*0.5, -real(odd)*0.5) // times -i/2
		out[k], out[half-k] = even+odd, conj(even-odd)
	}
}

// Inverse writes the n samples whose bins are in, n/2+1 of them, to x.
func (p *Plan) Inverse(x []float32, in []complex64) {
	half, w := p.n/2, p.work
	x, in = x[:p.n], in[:half+1]
	scale := 1 / float32(half)
	for i, k := range p.rev { // the inverse is the transform of the conjugate
		a, b := in[k], conj(in[half-k])
		even, odd := (a+b)*0.5, (a-b)*conj(p.turn[k])
		w[i] = conj(even + complex(-imag(odd)*0.5, real(odd)*0.5))
	}
	p.run()
	for i, v := range w {
		x[2*i], x[2*i+1] = real(v)*scale, -imag(v)*scale
	}
}

// run transforms the bit-reversed work in place.
func (p *Plan) run() {
	w := p.work
	n := len(w)
	for i := 0; i+1 < n; i += 2 { // the first stage has no turns
		w[i], w[i+1] = w[i]+w[i+1], w[i]-w[i+1]
	}
	for size := 4; size <= n; size *= 2 {
		half, step := size/2, 2*n/size
		for from := 0; from < n; from += size {
			lo, hi := w[from:from+half], w[from+half:from+size]
			for k, t := 0, 0; k < len(lo) && k < len(hi); k, t = k+1, t+step {
				v := hi[k] * p.turn[t]
				lo[k], hi[k] = lo[k]+v, lo[k]-v
			}
		}
	}
}

func conj(v complex64) complex64 { return complex(real(v), -imag(v)) }

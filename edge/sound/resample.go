package sound

import (
	"fmt"
	"math"
)

// The filter of a Resampler: zeros of the sinc on each side, at the lower of the two rates, and phases between two samples, of which two are blended.
const (
	zeros  = 16
	phases = 256
	// passed is the edge of the filter, as a part of half the lower rate: the rest is its slope.
	passed = 0.93
	beta   = 8.6 // of the Kaiser window: what is not passed is 80 dB lower
)

// Resampler changes the rate of a sound that comes in pieces, with the pitch kept (VEC-BNK-06). The first sample that it returns is heard when the first of the
// input is: the delay of its filter is taken out. Not safe for concurrent use.
type Resampler struct {
	from, to int
	half     int         // input samples on each side of an output sample
	table    [][]float32 // a filter for each phase, and one more
	in       []float32   // input from base on
	base     int         // index of in[0]; begins below 0, before the first sample
	next     int         // whole part of the next output's place in the input
	rest     int         // and its rest, of to
}

// NewResampler returns a resampler between two rates, MinRate to MaxRate each.
func NewResampler(from, to int) (*Resampler, error) {
	if from < MinRate || from > MaxRate || to < MinRate || to > MaxRate {
		return nil, fmt.Errorf("%w: expected %d to %d Hz, found %d and %d Hz", ErrRate, MinRate, MaxRate, from, to)
	}
	r := &Resampler{from: from, to: to}
	scale := passed * min(1, float64(to)/float64(from))
	r.half = int(math.Ceil(zeros / scale))
	r.base, r.in = -r.half, make([]float32, r.half)
	if from == to {
		return r, nil
	}
	for p := range phases + 1 {
		taps, sum := make([]float32, 2*r.half), 0.0
		values := make([]float64, len(taps))
		for i := range values {
			x := float64(i-r.half+1) - float64(p)/phases // from the output's place
			values[i] = sinc(x*scale) * kaiser(x/float64(r.half))
			sum += values[i]
		}
		for i := range taps {
			taps[i] = float32(values[i] / sum) // a constant keeps its value
		}
		r.table = append(r.table, taps)
	}
	return r, nil
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser is the window at -1 to 1.
func kaiser(x float64) float64 {
	if x <= -1 || x >= 1 {
		return 0
	}
	return bessel(beta*math.Sqrt(1-x*x)) / bessel(beta)
}

// bessel is the modified Bessel function of order 0.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= (x / (2 * k)) * (x / (2 * k))
		sum += term
	}
	return sum
}

// Append appends the samples that those of in complete. It keeps as many as its filter needs.
func (r *Resampler) Append(dst, in []float32) []float32 {
	if r.from == r.to {
		return append(dst, in...)
	}
	r.in = append(r.in, in...)
	for {
		first := r.next - r.half + 1 - r.base
		if first+2*r.half > len(r.in) {
			break
		}
		at := float32(r.rest) * phases / float32(r.to)
		p := int(at)
		blend := at - float32(p)
		a, b, x := r.table[p], r.table[p+1], r.in[first:first+2*r.half]
		var sumA, sumB float32
		for i, v := range x {
			sumA += v * a[i]
			sumB += v * b[i]
		}
		dst = append(dst, sumA+blend*(sumB-sumA))
		r.rest += r.from
		r.next += r.rest / r.to
		r.rest %= r.to
	}
	if drop := min(r.next-r.half+1-r.base, len(r.in)); drop > 0 {
		r.in = r.in[:copy(r.in, r.in[drop:])]
		r.base += drop
	}
	return dst
}

// At returns the sound at another rate: its span is the same to a sample. It returns s itself if the rate is.
func (s *Sound) At(rate int) (*Sound, error) {
	if rate == s.Rate {
		return s, nil
	}
	r, err := NewResampler(s.Rate, rate)
	if err != nil {
		return nil, err
	}
	n := (len(s.Samples)*rate + s.Rate - 1) / s.Rate
	out := r.Append(make([]float32, 0, n+2), s.Samples)
	out = r.Append(out, make([]float32, 2*r.half+s.Rate/rate+1))
	return &Sound{Rate: rate, Samples: out[:n]}, nil
}

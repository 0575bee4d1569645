package sound

import "math"

// Band is one band of an equaliser: a bell around Hz that adds DB decibels, Q as narrow.
type Band struct {
	Hz, DB, Q float64
}

// biquad is a filter of second order.
type biquad struct {
	b0, b1, b2, a1, a2 float32
	z1, z2             float32
}

// bell returns the filter of a band.
func bell(b Band, rate int) biquad {
	a := math.Pow(10, b.DB/40)
	w := 2 * math.Pi * b.Hz / float64(rate)
	alpha := math.Sin(w) / (2 * b.Q)
	a0 := 1 + alpha/a
	return biquad{b0: float32((1 + alpha*a) / a0), b1: float32(-2 * math.Cos(w) / a0), b2: float32((1 - alpha*a) / a0),
		a1: float32(-2 * math.Cos(w) / a0), a2: float32((1 - alpha/a) / a0)}
}

// lowPass returns a Butterworth filter.
func lowPass(hz float64, rate int) biquad {
	w := 2 * math.Pi * hz / float64(rate)
	alpha := math.Sin(w) / math.Sqrt2
	cos, a0 := math.Cos(w), 1+alpha
	return biquad{b0: float32((1 - cos) / 2 / a0), b1: float32((1 - cos) / a0), b2: float32((1 - cos) / 2 / a0),
		a1: float32(-2 * cos / a0), a2: float32((1 - alpha) / a0)}
}

func (f *biquad) next(x float32) float32 {
	y := f.b0*x + f.z1
	f.z1 = f.b1*x - f.a1*y + f.z2
	f.z2 = f.b2*x - f.a2*y
	return y
}

// Equaliser is a row of bands. Not safe for concurrent use.
type Equaliser struct{ bands []biquad }

// NewEqualiser returns an equaliser for samples of a rate. Bands at or above half the rate are left out.
func NewEqualiser(rate int, bands []Band) *Equaliser {
	e := &Equaliser{}
	for _, b := range bands {
		if b.Hz > 0 && b.Q > 0 && 2*b.Hz < float64(rate) {
			e.bands = append(e.bands, bell(b, rate))
		}
	}
	return e
}

// Apply filters samples in place.
func (e *Equaliser) Apply(x []float32) {
	for i := range e.bands {
		f := e.bands[i]
		for j, v := range x {
			x[j] = f.next(v)
		}
		e.bands[i] = f
	}
}

// highLimiter keeps high pitches from getting loud (VEC-SND-09): beyond a ceiling it turns down what is above its edge, and nothing else.
type highLimiter struct {
	low     biquad
	ceiling float32
	release float32
	env     float32
}

func (h *highLimiter) apply(x []float32) {
	low, env := h.low, h.env
	for i, v := range x {
		l := low.next(v)
		high := v - l
		env = max(high, -high, env*h.release)
		if env > h.ceiling {
			x[i] = l + high*h.ceiling/env
		}
	}
	h.low, h.env = low, env
}

// limiter keeps samples below a ceiling without cutting them off: it looks ahead, and has turned down when a peak arrives. Its output is look samples late.
type limiter struct {
	ceiling float32
	release float32 // part of the way back to 1 that the gain goes with each sample
	look    int

	delay []float32 // ring of look samples
	at    int
	n     int // samples so far
	// mins are the samples of the last look+1 that need the lowest gain, in rising order of gain: a monotonic queue in a ring.
	mins       []need
	head, size int
	env        float32
	past       []float32 // ring of the last look values of env
	sum        float64   // of past
	calm       int       // samples since env was below 1
}

// need is the gain that a sample needs.
type need struct {
	n    int
	gain float32
}

func newLimiter(ceiling float32, look int, release float64) *limiter {
	l := &limiter{ceiling: ceiling, release: float32(release), look: look, delay: make([]float32, look), mins: make([]need, look+1), env: 1, past: make([]float32, look),
		sum: float64(look)}
	for i := range l.past {
		l.past[i] = 1
	}
	l.calm = 2*look + 2
	return l
}

// apply replaces samples by those that came look samples before, limited.
func (l *limiter) apply(x []float32) {
	for i, v := range x {
		gain := float32(1)
		if peak := max(v, -v); peak > l.ceiling {
			gain = l.ceiling / peak
		}
		out := l.delay[l.at]
		l.delay[l.at] = v
		if gain == 1 && l.calm > 2*l.look+1 { // nothing to do, as nearly always
			x[i] = out
		} else {
			x[i] = out * l.gain(gain)
		}
		if l.at++; l.at == l.look {
			l.at = 0
		}
		l.n++
	}
}

// gain returns the gain of the sample that leaves now, when one enters that needs a gain. The mean of the lowest gains around is smooth, and low enough for each.
func (l *limiter) gain(wanted float32) float32 {
	ring := len(l.mins)
	for l.size > 0 && l.mins[(l.head+l.size-1)%ring].gain >= wanted {
		l.size--
	}
	for l.size > 0 && l.mins[l.head].n < l.n-l.look {
		l.head, l.size = (l.head+1)%ring, l.size-1
	}
	l.mins[(l.head+l.size)%ring] = need{l.n, wanted}
	l.size++
	l.env = min(l.mins[l.head].gain, l.env+(1-l.env)*l.release)
	if l.calm++; l.env < 0.9999 {
		l.calm = 0
	} else {
		l.env = min(l.mins[l.head].gain, 1)
	}
	l.sum += float64(l.env - l.past[l.at])
	l.past[l.at] = l.env
	if l.calm == 2*l.look+1 { // all of past is 1: what rounding added to the sum goes
		l.sum = float64(l.look)
	}
	return float32(l.sum / float64(l.look))
}

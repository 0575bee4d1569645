package mic

import "math"

// Own defaults of the loudness (VEC-MIC-06): the source suggests a weighting filter, the logarithm of the power each tens to hundreds of milliseconds, and
// percentiles.
const (
	levelChunks = 10  // chunks in a level, 0.1 s
	levels      = 60  // in the floor, 6 s
	recent      = 10  // of them in the loudness, 1 s
	activeOver  = 6.0 // dB over the floor
)

// weight is the A-weighting of the power of each bin, as a factor.
var weight = func() (w [bins]float32) {
	for k := range w {
		f2 := math.Pow(float64(k)*hertz, 2)
		a := 1.2589 * 12194 * 12194 * f2 * f2 / ((f2 + 20.6*20.6) * math.Sqrt((f2+107.7*107.7)*(f2+737.9*737.9)) * (f2 + 12194*12194))
		w[k] = float32(a * a)
	}
	return w
}()

// fullScale is the power of the loudest sine in dB, as the bins count it.
var fullScale = 10 * math.Log10(float64(window)/2*points/2*32768*32768/2)

// activity follows the loudness and the noise of the room.
type activity struct {
	sum    float32
	chunks int
	ring   [levels]float32 // dB
	count  int             // of levels so far

	level, floor float32 // dB of full scale
	active       bool
}

// feed takes the bins of a chunk in.
func (a *activity) feed(g *gate) {
	for k, v := range g.bins {
		a.sum += weight[k] * (real(v)*real(v) + imag(v)*imag(v))
	}
	if a.chunks++; a.chunks < levelChunks {
		return
	}
	now := float32(10*log10(a.sum/levelChunks+1) - fullScale)
	a.sum, a.chunks = 0, 0
	a.ring[a.count%levels] = now
	a.count++
	var sorted [levels]float32
	n := min(a.count, levels)
	for i := range n { // by insertion: ten times a second
		v := a.ring[(a.count-1-i)%levels]
		at := i
		for ; at > 0 && sorted[at-1] > v; at-- {
			sorted[at] = sorted[at-1]
		}
		sorted[at] = v
		if i == min(n, recent)-1 {
			a.level = sorted[i*95/100]
		}
	}
	a.floor = sorted[n*5/100]
	a.active = a.count > recent && now > a.floor+activeOver
}

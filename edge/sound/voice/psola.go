package voice

import (
	"math"

	"kennel/edge/sound"
)

// breath is the length of a grain's half where a voice has no pitch, in seconds.
const breath = 0.01

// repitch returns speech with another pitch and the same length. It takes periods of the voice, two at a time, and puts them down again closer together or further
// apart (PSOLA), so that vowels keep their colour: recognisers and people understand it far better than speech whose every frequency moves. formant is the factor by which
// the colour moves after all, 1 for none: above 1 the speaker is smaller. target returns the pitch that a pitch gets; track has the pitches of s as Track returns them.
func repitch(s *sound.Sound, track []float64, target func(hz float64) float64, formant float64) *sound.Sound {
	n, rate := len(s.Samples), float64(s.Rate)
	sum, weight := make([]float32, n), make([]float32, n)
	last := -1.0 // place of the newest period in s
	for at := 0.0; at < float64(n); {
		hz := pitchAt(track, at/rate)
		half, next, from := breath*rate, breath*rate, at
		if hz > 0 {
			half = rate / hz
			next = rate / target(hz)
			from = period(s.Samples, at, last, half)
			last = from
		} else {
			last = -1
		}
		put(sum, weight, s.Samples, from, at, half, formant)
		at += next
	}
	out := &sound.Sound{Rate: s.Rate, Samples: sum}
	for i, w := range weight {
		if w > 0.05 {
			sum[i] /= w
		}
	}
	return out
}

// put adds a grain of 2*half samples of the input around from to the output around at.
func put(sum, weight, x []float32, from, at, half, formant float64) {
	reach := half / formant // in the output
	first, end := max(0, int(math.Ceil(at-reach))), min(len(sum), int(at+reach)+1)
	for i := first; i < end; i++ {
		d := float64(i) - at
		place := from + d*formant
		k := int(math.Floor(place))
		if k < 0 || k+1 >= len(x) {
			continue
		}
		t := float32(place - float64(k))
		w := float32(0.5 + 0.5*math.Cos(math.Pi*d/reach))
		sum[i] += w * (x[k] + t*(x[k+1]-x[k]))
		weight[i] += w
	}
}

// period returns the place of the period of the voice near at: a whole number of periods after the one at last, if there is one, on the peak nearby.
func period(x []float32, at, last, length float64) float64 {
	middle, reach := at, 0.5*length
	if last >= 0 {
		middle, reach = last+length*math.Round((at-last)/length), 0.15*length
	}
	best, peak := middle, float32(math.Inf(-1))
	for i := max(0, int(middle-reach)); i <= min(len(x)-1, int(middle+reach)); i++ {
		if x[i] > peak {
			best, peak = float64(i), x[i]
		}
	}
	return best
}

// pitchAt returns the pitch at a time in seconds, along a line between two estimates that have one; 0 for none.
func pitchAt(track []float64, seconds float64) float64 {
	at := seconds/PitchStep.Seconds() - 0.4 // an estimate looks at the 25 ms after its time
	i := int(math.Floor(at))
	if i < 0 || i >= len(track) {
		return 0
	}
	a := track[i]
	if i+1 == len(track) || track[i+1] == 0 {
		return a
	}
	b := track[i+1]
	if a == 0 {
		if at-float64(i) > 0.5 {
			return b
		}
		return 0
	}
	if r := b / a; r > 1.3 || r < 0.77 { // an estimate of another octave
		return a
	}
	return a + (at-float64(i))*(b-a)
}

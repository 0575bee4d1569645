package sphinx

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"kennel/speech/recognizer"
)

// below is how far the added noise is below the utterance, as a ratio of their root mean squares: 30 dB. Measured with the phrases of annex D
// without other noise: 40 and 50 dB leave more of espeak-ng's unmatched, 20 dB loses more of flite's.
const below = 0.0316

// quiet and noisy are how far noise is below speech, in decibels, where there is only ours, and where the decoder does better to remove it.
const (
	quiet = 30.0
	noisy = 26.0
)

// level returns how many decibels the quietest tenth of pcm is below the whole, at most quiet. It takes frames of 30 ms, each 10 ms after the one before.
func level(pcm []byte) float64 {
	const step = recognizer.Rate / 100
	var energy []float64
	var all float64
	for len(pcm) >= 2*step {
		var sum float64
		for i := range step {
			v := float64(int16(binary.LittleEndian.Uint16(pcm[2*i:]))) //nolint:gosec // the bits of a sample
			sum += v * v
		}
		energy, all, pcm = append(energy, sum), all+sum, pcm[2*step:]
	}
	if len(energy) < 3 || all == 0 {
		return quiet
	}
	frames := make([]float64, len(energy)-2)
	for i := range frames {
		frames[i] = (energy[i] + energy[i+1] + energy[i+2]) / 3
	}
	slices.Sort(frames)
	all /= float64(len(energy))
	return max(0, min(quiet, -10*math.Log10(frames[len(frames)/10]/all+below*below)))
}

// room returns two seconds of pink noise whose root mean square is 1, the same for every recogniser.
func room() []float32 {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // noise
	out := make([]float32, 2*recognizer.Rate)
	var a, b, c, sum float64
	for i := range out {
		white := 2*r.Float64() - 1
		a = 0.99765*a + 0.0990460*white // Paul Kellet's filter: 3 dB per octave within 0.5 dB
		b = 0.96300*b + 0.2965164*white
		c = 0.57000*c + 1.0526913*white
		v := a + b + c + 0.1848*white
		out[i] = float32(v)
		sum += v * v
	}
	scale := float32(1 / math.Sqrt(sum/float64(len(out))))
	for i := range out {
		out[i] *= scale
	}
	return out
}

// withRoom returns the samples of pcm with quiet noise mixed in. Without it, far fewer phrases of a voice with digital silence between its sounds
// are understood (espeak-ng). Probably the mean that is subtracted from the cepstra of an utterance is spoiled by frames without any energy.
func withRoom(pcm []byte, noise []float32) []byte {
	n := len(pcm) / 2
	var sum float64
	for i := range n {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[2*i:]))) //nolint:gosec // the bits of a sample
		sum += v * v
	}
	gain := float32(below * math.Sqrt(sum/float64(max(1, n))))
	out := make([]byte, 2*n)
	for i := range n {
		v := float32(int16(binary.LittleEndian.Uint16(pcm[2*i:]))) + gain*noise[i%len(noise)] //nolint:gosec // the bits of a sample
		v = max(math.MinInt16, min(math.MaxInt16, v))
		binary.LittleEndian.PutUint16(out[2*i:], uint16(int16(v))) //nolint:gosec // the bits of a sample
	}
	return out
}

package mic

import (
	"math"

	"kennel/edge/mic/fft"
	"kennel/edge/mic/geometry"
)

// Sizes of the spectra: a window is two chunks, so that each sample is in two, and is padded for the transform.
const (
	window = 2 * ChunkSamples
	points = 512
	bins   = points/2 + 1
)

// hertz is the width of a bin. The spectra know the true rate.
const hertz = float64(geometry.Rate) / points

// Voices are between these bins, 200 to 4000 Hz, in bands.
const (
	voiceLow  = 7
	bandWidth = 8
	bands     = 16
	voiceHigh = voiceLow + bands*bandWidth
)

// Settings of noise estimate, gate and voice detector.
const (
	learn      = 30     // chunks whose sound is taken for noise, at first
	noiseUp    = 0.02   // how fast the estimate follows a louder sound, in a chunk
	noiseVoice = 0.001  // the same while a person speaks: a noise that does not end is learned in 10 s
	noiseDown  = 0.1    // and a quieter one
	smooth     = 0.6    // of the power, from chunk to chunk
	leastGain  = 0.2    // -14 dB: recognisers like a little noise better than holes
	oversub    = 1.5    // of the noise
	voiceScore = 4.0    // dB over the noise, the mean of all bands
	bandMost   = 15.0   // dB that a band counts at most
	flatMost   = 0.45   // spectral flatness of a voice at most: white noise has 0.56, a vowel 0.1
	onset      = 4      // voiced chunks in a row, or nearly
	hangover   = 30     // chunks, 0.3 s
	quietPower = 1 << 8 // of a bin, added to the noise: digital silence has none
)

// gate estimates the noise of the room, hears whether a person speaks, and takes the noise away.
type gate struct {
	plan *fft.Plan
	hann [window]float32 // square root of a Hann window, before and after
	time []float32       // points
	bins []complex64     // of this chunk; the beam replaces it

	heard int // chunks, up to learn
	now   [bins]float32
	power [bins]float32 // smoothed
	noise [bins]float32
	gain  [bins]float32
	run   int // voiced chunks
	voice int // chunks for which a person still speaks
	tail  [ChunkSamples]float32
}

func newGate() *gate {
	g := &gate{plan: fft.New(points), time: make([]float32, points), bins: make([]complex64, bins)}
	for i := range g.hann {
		g.hann[i] = float32(math.Sin(math.Pi * (float64(i) + 0.5) / window))
	}
	for i := range g.gain {
		g.gain[i] = 1
	}
	return g
}

// load windows samples for a transform.
func (g *gate) load(samples *[window]float32) {
	for i, w := range g.hann {
		g.time[i] = samples[i] * w
	}
	clear(g.time[window:])
}

// silence forgets the voice and the sound of before.
func (g *gate) silence() { g.run, g.voice, g.tail = 0, 0, [ChunkSamples]float32{} }

// listen takes the bins in: noise, voice, and the gains of the gate.
func (g *gate) listen() {
	for k, v := range g.bins {
		p := real(v)*real(v) + imag(v)*imag(v)
		g.now[k] = p
		g.power[k] += (1 - smooth) * (p - g.power[k])
	}
	if g.heard < learn {
		g.heard++
		share := 1 / float32(g.heard)
		for k, p := range g.power {
			g.noise[k] += share * (p - g.noise[k])
		}
		return
	}
	g.detect()
	up := float32(noiseUp)
	if g.voice > 0 {
		up = noiseVoice
	}
	for k, p := range g.power {
		n := &g.noise[k]
		if p > *n {
			*n += up * (min(p, 100**n+quietPower) - *n)
		} else {
			*n += noiseDown * (p - *n)
		}
		want := max(leastGain, 1-oversub*(*n)/(p+1))
		if want > g.gain[k] {
			g.gain[k] = want // at once: the beginning of a word
		} else {
			g.gain[k] += 0.4 * (want - g.gain[k])
		}
	}
}

// detect decides whether a person speaks: most bands of a voice are over the noise, and its power is in lines and hills.
func (g *gate) detect() {
	score := 0.0
	for b := voiceLow; b < voiceHigh; b += bandWidth {
		p, n := float32(0), float32(quietPower)
		for k := b; k < b+bandWidth; k++ {
			p, n = p+g.now[k], n+g.noise[k]
		}
		if p > n {
			score += min(bandMost, 10*log10(p/n))
		}
	}
	score /= bands
	voiced := score > voiceScore && g.flatness() < flatMost
	switch {
	case voiced:
		g.run = min(g.run+1, onset+2)
	case g.run > 0:
		g.run--
	}
	if g.voice > 0 {
		g.voice--
	}
	if voiced && (g.run >= onset || g.voice > 0) {
		g.voice = hangover
	}
}

// flatness is the geometric over the arithmetic mean of the power of voices.
func (g *gate) flatness() float64 {
	logs, sum, product := 0.0, float32(0), float32(1)
	for i, p := range g.now[voiceLow:voiceHigh] {
		sum += p
		if product *= p + 1; i%2 == 1 { // two at once: a logarithm is dear
			logs += log10(product)
			product = 1
		}
	}
	const n = voiceHigh - voiceLow
	return math.Pow(10, logs/n) / (float64(sum)/n + 1)
}

func log10(v float32) float64 { return math.Log10(float64(v)) }

// clean takes the noise out of the bins and writes the samples of the chunk before.
func (g *gate) clean(out *[ChunkSamples]int16) {
	for k, v := range g.gain {
		g.bins[k] *= complex(v, 0)
	}
	g.plan.Inverse(g.time, g.bins)
	for i := range out {
		v := g.tail[i] + g.time[i]*g.hann[i]
		out[i] = int16(min(max(v, math.MinInt16), math.MaxInt16))
		g.tail[i] = g.time[ChunkSamples+i] * g.hann[ChunkSamples+i]
	}
}

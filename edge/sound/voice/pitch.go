package voice

import (
	"time"

	"kennel/edge/sound"
)

// PitchStep is how often Track estimates the pitch (VEC-TTS-03).
const PitchStep = 30 * time.Millisecond

// The pitches that a voice has, in Hz.
const (
	minVoice = 60.0
	maxVoice = 500.0
	// dip is the value below which a minimum of the normalised difference is a pitch: the method's authors say 0.1 to 0.15; speech of synthesisers has noisier vowels.
	dip = 0.2
)

// Track returns the pitch of a voice in Hz every PitchStep, 0 where there is none: a pause, or a sound without a tone. It uses YIN (de Cheveigné and Kawahara, 2002), one of the
// methods that VEC-TTS-03 names, on every second or third sample.
func Track(s *sound.Sound) []float64 {
	skip := max(1, s.Rate/8000)
	rate := float64(s.Rate) / float64(skip)
	x := make([]float32, len(s.Samples)/skip)
	for i := range x {
		sum := float32(0)
		for _, v := range s.Samples[i*skip : (i+1)*skip] {
			sum += v
		}
		x[i] = sum / float32(skip)
	}
	window, longest := int(0.025*rate), int(rate/minVoice)
	quiet := 0.02 * s.Peak()
	diff := make([]float64, longest+1)
	step := rate * PitchStep.Seconds()
	var track []float64
	for i := 0; ; i++ {
		at := int(float64(i) * step)
		if at+window+longest > len(x) {
			return track
		}
		hz := 0.0
		if part := x[at : at+window+longest]; loudest(part[:window]) > quiet {
			hz = yin(part, diff, window, int(rate/maxVoice), rate)
		}
		track = append(track, hz)
	}
}

// MiddlePitch returns the middle of the pitches of a voice in Hz, 0 for a sound without one.
func MiddlePitch(s *sound.Sound) float64 { return median(Track(s)) }

func loudest(x []float32) (peak float32) {
	for _, v := range x {
		peak = max(peak, v, -v)
	}
	return peak
}

// yin returns the pitch of a window of samples, 0 for none. diff is scratch, for each lag.
func yin(x []float32, diff []float64, window, shortest int, rate float64) float64 {
	diff[0] = 1
	sum := 0.0
	for lag := 1; lag < len(diff); lag++ {
		d := float32(0)
		for i, v := range x[:window] {
			e := v - x[i+lag]
			d += e * e
		}
		sum += float64(d)
		if diff[lag] = 1; sum > 0 {
			diff[lag] = float64(d) * float64(lag) / sum // the mean of all shorter lags is 1
		}
	}
	for lag := max(2, shortest); lag < len(diff)-1; lag++ {
		if diff[lag] >= dip {
			continue
		}
		for lag < len(diff)-2 && diff[lag+1] < diff[lag] { // down to the bottom
			lag++
		}
		a, b, c := diff[lag-1], diff[lag], diff[lag+1] // the bottom of a parabola through three lags
		shift := 0.0
		if bend := a - 2*b + c; bend > 0 {
			shift = 0.5 * (a - c) / bend
		}
		return rate / (float64(lag) + shift)
	}
	return 0
}

// Package sound mixes everything that a robot says and plays into the samples of its one speaker.
//
//	files ─────┐
//	procedural ┤  gain, pitch, speed      duck, volume       equaliser, limiters
//	client ────┼─► Playing, Stream ──────► five channels ──► Mixer.Mix ─────────► 16-bit samples ─► a sink (package sink)
//	speech ────┤                                                 │
//	assistant ─┘                                             Position: the clock of clips
//
// The mixer reads no clock: Position counts the samples that Mix has handed out, so what is timed by it stays in step with what is heard (clip.SampleTime).
// Sounds are in memory, one channel, at the rate of the mixer. Package synth makes them from text, package bank chooses them by events, package voice speaks.
package sound

import (
	"errors"
	"math"
	"time"

	"kennel/infra/wav"
)

// The rates of samples that sounds and mixers may have.
const (
	MinRate = 4000
	MaxRate = 192_000
)

// Errors of this package.
var (
	ErrRate   = errors.New("sound: rate out of range") // of samples
	ErrFull   = errors.New("sound: too many sounds at once")
	ErrRange  = errors.New("sound: value out of range")
	ErrClosed = errors.New("sound: stream is closed")
)

// Sound is a sound of one channel. Full scale is 1. A Sound that is being played is not changed.
type Sound struct {
	Rate    int // samples per second, MinRate to MaxRate
	Samples []float32
}

// FromPCM returns the sound of 16-bit samples.
func FromPCM(rate int, pcm []int16) *Sound {
	s := &Sound{Rate: rate, Samples: make([]float32, len(pcm))}
	for i, v := range pcm {
		s.Samples[i] = float32(v) / 32768
	}
	return s
}

// ParseWAV returns the sound of a whole WAV file, the mean of its channels (VEC-SND-11). A file whose sizes lie is refused (wav.ParseWhole).
func ParseWAV(b []byte) (*Sound, error) {
	w, err := wav.ParseWhole(b)
	if err != nil {
		return nil, err
	}
	w = w.Mono()
	return FromPCM(w.Rate, w.Samples), nil
}

// PCM returns the samples as 16 bits. Samples beyond full scale are cut off.
func (s *Sound) PCM() []int16 {
	out := make([]int16, len(s.Samples))
	for i, v := range s.Samples {
		out[i] = quantise(v)
	}
	return out
}

// quantise rounds a sample to 16 bits.
func quantise(v float32) int16 {
	v *= 32768
	switch {
	case v >= 32767:
		return 32767
	case v <= -32768:
		return -32768
	case v < 0:
		return int16(v - 0.5)
	}
	return int16(v + 0.5)
}

// Scaled returns the sound with another strength.
func (s *Sound) Scaled(gain float64) *Sound {
	if gain == 1 {
		return s
	}
	out := &Sound{Rate: s.Rate, Samples: make([]float32, len(s.Samples))}
	for i, v := range s.Samples {
		out.Samples[i] = v * float32(gain)
	}
	return out
}

// AppendWAV appends the sound as a WAV file of 16 bits.
func (s *Sound) AppendWAV(b []byte) []byte {
	return wav.Append(b, &wav.Sound{Rate: s.Rate, Channels: 1, Samples: s.PCM()})
}

// Span returns how long the sound is.
func (s *Sound) Span() time.Duration {
	return time.Duration(float64(len(s.Samples)) / float64(s.Rate) * float64(time.Second))
}

// Peak returns the largest sample, regardless of its sign.
func (s *Sound) Peak() float32 {
	peak := float32(0)
	for _, v := range s.Samples {
		peak = max(peak, v, -v)
	}
	return peak
}

// RMS returns the root of the mean square of the samples, 0 for no samples.
func (s *Sound) RMS() float64 {
	sum := 0.0
	for _, v := range s.Samples {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(1, len(s.Samples))))
}

// Piece is a piece of what a mixer plays, one channel of 16 bits.
type Piece struct {
	Place   int64         // of its first sample, as Mixer.Position counts
	At      time.Duration // when its first sample is heard, by the clock of its pump
	Missed  int64         // samples before it that this listener did not take in time
	Samples []int16       // shared: not to be changed
}

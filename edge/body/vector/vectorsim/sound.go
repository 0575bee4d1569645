package vectorsim

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body/bodysim"
	"kennel/edge/body/vector/spine"
	"kennel/edge/mic/geometry"
	"kennel/infra/wav"
)

// Sound is the sound that the four microphones hear, at their rate.
type Sound struct {
	frames [][spine.MicChannels]int16
}

// ParseWAV makes sound of a WAV file, at the microphones' rate. A file of one channel comes from a direction, in radians counter-clockwise from
// straight ahead: each microphone hears it at its own time (VEC-MIC-01). With two channels every other microphone hears the same one, with
// four each its own.
func ParseWAV(b []byte, direction float64) (*Sound, error) {
	file, err := wav.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("vectorsim: %w", err)
	}
	file = file.Resample(geometry.Rate)
	s := &Sound{frames: make([][spine.MicChannels]int16, len(file.Samples)/file.Channels)}
	if file.Channels == 1 {
		for ch, d := range geometry.Delays(direction) {
			s.delay(ch, file.Samples, d)
		}
		return s, nil
	}
	for i := range s.frames {
		for ch := range s.frames[i] {
			s.frames[i][ch] = file.Samples[i*file.Channels+ch%file.Channels]
		}
	}
	return s, nil
}

// delay makes one channel hear the samples later, by a number of samples that need not be whole.
func (s *Sound) delay(ch int, samples []int16, later float64) {
	const half = 8 // samples of a windowed sinc on each side
	whole := math.Floor(later)
	var taps [2 * half]float64
	for k := range taps {
		x := float64(k-half+1) - (later - whole)
		taps[k] = 1
		if x != 0 {
			taps[k] = math.Sin(math.Pi*x) / (math.Pi * x) * (1 + math.Cos(math.Pi*x/half)) / 2
		}
	}
	for i := range s.frames {
		sum := 0.0
		for k, t := range taps {
			if at := i - int(whole) - (k - half + 1); at >= 0 && at < len(samples) {
				sum += t * float64(samples[at])
			}
		}
		s.frames[i][ch] = int16(min(max(math.Round(sum), math.MinInt16), math.MaxInt16))
	}
}

// play adds the next samples to the frame's microphones, sample-major, and moves on from at.
func (s *Sound) play(m *spine.BodyData, at int) int {
	for i := range min(spine.MicSamples, len(s.frames)-at) {
		for ch, v := range s.frames[at+i] {
			mic := &m.Mics[i*spine.MicChannels+ch]
			*mic = int16(min(max(int(*mic)+int(v), -1<<15), 1<<15-1))
		}
	}
	return at + spine.MicSamples
}

// SetSound plays s to the microphones from its beginning, again and again, over the noise of a quiet room; nil: no sound.
func (b *Board) SetSound(s *Sound) { b.play(s, false) }

// PlayOnce is SetSound for a sound that does not repeat.
func (b *Board) PlayOnce(s *Sound) { b.play(s, true) }

func (b *Board) play(s *Sound, once bool) {
	b.set(func(w *world) {
		w.sound, w.soundAt, w.soundOnce, w.heard = s, 0, once, bodysim.Heard{Playing: s != nil}
	})
}

// Heard returns when the newest sound was played.
func (b *Board) Heard() bodysim.Heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.world.heard
}

// listen adds the sound to the microphones in a quiet room, in a frame of a time.
func (w *world) listen(m *spine.BodyData, now time.Duration) {
	for i := 0; i < len(m.Mics); i += 4 { // a quiet room
		bits := w.rng.Uint64()
		for j := range 4 {
			m.Mics[i+j] = geometry.Idle + int16(bits>>(16*j))>>10
		}
	}
	if w.sound == nil {
		return
	}
	if w.heard.Began == 0 {
		w.heard.Began = now
	}
	if w.soundAt = w.sound.play(m, w.soundAt); w.soundAt >= len(w.sound.frames) {
		w.soundAt = 0
		if w.soundOnce {
			w.sound, w.heard.Playing, w.heard.Ended = nil, false, now
		}
	}
}

package vectorsim

import (
	"fmt"

	"kennel/edge/body/vector/spine"
	"kennel/edge/wav"
)

// micRate is how often each microphone is sampled, 1/s (VEC-BODY-25).
const micRate = 15625

// Sound is the sound that the four microphones hear, at their rate; it repeats after its end.
type Sound struct {
	frames [][spine.MicChannels]int16
}

// ParseWAV makes sound of a WAV file, at the microphones' rate. With one channel all microphones hear it; with two, every other microphone
// hears the same one.
func ParseWAV(b []byte) (*Sound, error) {
	file, err := wav.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("vectorsim: %w", err)
	}
	file = file.Resample(micRate)
	s := &Sound{frames: make([][spine.MicChannels]int16, len(file.Samples)/file.Channels)}
	for i := range s.frames {
		for ch := range s.frames[i] {
			s.frames[i][ch] = file.Samples[i*file.Channels+ch%file.Channels]
		}
	}
	return s, nil
}

// play adds the next samples to the frame's microphones, sample-major, and moves on from at.
func (s *Sound) play(m *spine.BodyData, at int) int {
	for i := range spine.MicSamples {
		f := &s.frames[at]
		if at++; at == len(s.frames) {
			at = 0
		}
		for ch, v := range f {
			mic := &m.Mics[i*spine.MicChannels+ch]
			*mic = int16(min(max(int(*mic)+int(v), -1<<15), 1<<15-1))
		}
	}
	return at
}

// SetSound plays s to the microphones from its beginning, over the noise of a quiet room; nil: nothing more.
func (b *Board) SetSound(s *Sound) {
	b.set(func(w *world) { w.sound, w.soundAt = s, 0 })
}

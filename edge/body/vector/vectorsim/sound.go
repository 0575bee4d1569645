package vectorsim

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kennel/edge/body/vector/spine"
)

// micRate is how often each microphone is sampled, 1/s (VEC-BODY-25).
const micRate = 15625

// Sound is what the four microphones hear, at their rate; one after its end it begins again.
type Sound struct {
	frames [][spine.MicChannels]int16
}

// maxSound is the longest WAV file: 20 minutes of one channel at 48 kHz.
const maxSound = 128 << 20

// ParseWAV makes sound of a WAV file: PCM of 16 bits, one to four channels, 4 to 192 kHz, brought to the microphones' rate by linear
// interpolation. One channel is heard by all microphones, two by every other one.
func ParseWAV(b []byte) (*Sound, error) {
	if len(b) > maxSound {
		return nil, fmt.Errorf("vectorsim: WAV file of %d bytes, want at most %d", len(b), maxSound)
	}
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return nil, errors.New("vectorsim: not a WAV file: want RIFF and WAVE at its beginning")
	}
	le := binary.LittleEndian
	channels, rate := 0, 0
	for at := 12; at+8 <= len(b); {
		id, size := string(b[at:at+4]), int64(le.Uint32(b[at+4:]))
		at += 8
		data := b[at:min(int64(at)+size, int64(len(b)))]
		switch id {
		case "fmt ":
			if len(data) < 16 {
				return nil, fmt.Errorf("vectorsim: WAV format of %d bytes, want 16", len(data))
			}
			format, bits := le.Uint16(data), le.Uint16(data[14:])
			channels, rate = int(le.Uint16(data[2:])), int(le.Uint32(data[4:]))
			if format != 1 && format != 0xfffe || bits != 16 || channels < 1 || channels > spine.MicChannels || rate < 4000 || rate > 192_000 {
				return nil, fmt.Errorf("vectorsim: WAV of format %d, %d bits, %d channels, %d Hz; want PCM (1) of 16 bits, 1 to 4 channels, 4000 to 192000 Hz", format, bits, channels, rate)
			}
		case "data":
			if channels == 0 {
				return nil, errors.New("vectorsim: WAV data comes before its format")
			}
			return resample(data, channels, rate)
		}
		next := int64(at) + size + size&1 // chunks are padded to 16 bits
		if next > int64(len(b)) {
			break
		}
		at = int(next)
	}
	return nil, errors.New("vectorsim: WAV file without data")
}

func resample(data []byte, channels, rate int) (*Sound, error) {
	n := len(data) / (2 * channels)
	if n == 0 {
		return nil, errors.New("vectorsim: WAV file with no whole sample")
	}
	sample := func(i, ch int) int64 {
		return int64(int16(binary.LittleEndian.Uint16(data[2*(min(i, n-1)*channels+ch):])))
	}
	s := &Sound{frames: make([][spine.MicChannels]int16, max(1, n*micRate/rate))}
	for i := range s.frames {
		at := int64(i) * int64(rate)
		from, part := int(at/micRate), at%micRate
		for ch := range s.frames[i] {
			a, b := sample(from, ch%channels), sample(from+1, ch%channels)
			s.frames[i][ch] = int16(a + (b-a)*part/micRate)
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

// Package wav reads and writes sounds as WAV files: PCM of 8 or 16 bits, one to four channels.
package wav

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// MaxFile is the most bytes of a file that Parse takes: 20 minutes of one channel at 48 kHz.
const MaxFile = 128 << 20

// Sound is a sound of Channels samples per frame, in the order of the file.
type Sound struct {
	Rate     int // frames per second
	Channels int
	Bits     int // of a sample of the file that Parse read: 8 or 16
	Samples  []int16
}

// Parse returns the sound in a WAV file: at least one frame, 1 to 4 channels, 4 to 192 kHz. It reads 8-bit samples as their upper half.
// A file that breaks off in its data is read as far as it goes.
func Parse(b []byte) (*Sound, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("WAV file of %d bytes, want at most %d", len(b), MaxFile)
	}
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return nil, errors.New("not a WAV file: want RIFF and WAVE at its beginning")
	}
	le := binary.LittleEndian
	var s Sound
	bits := 0
	for at := 12; at+8 <= len(b); {
		id, size := string(b[at:at+4]), int64(le.Uint32(b[at+4:]))
		at += 8
		data := b[at:min(int64(at)+size, int64(len(b)))]
		switch id {
		case "fmt ":
			if len(data) < 16 {
				return nil, fmt.Errorf("WAV format of %d bytes, want 16", len(data))
			}
			format := le.Uint16(data)
			s.Channels, s.Rate, bits = int(le.Uint16(data[2:])), int(le.Uint32(data[4:])), int(le.Uint16(data[14:]))
			if format != 1 && format != 0xfffe || bits != 8 && bits != 16 || s.Channels < 1 || s.Channels > 4 || s.Rate < 4000 || s.Rate > 192_000 {
				return nil, fmt.Errorf("WAV of format %d, %d bits, %d channels, %d Hz; want PCM (1) of 8 or 16 bits, 1 to 4 channels, 4000 to 192000 Hz",
					format, bits, s.Channels, s.Rate)
			}
		case "data":
			if s.Channels == 0 {
				return nil, errors.New("WAV data comes before its format")
			}
			s.Bits = bits
			n := len(data) * 8 / bits
			if n -= n % s.Channels; n == 0 {
				return nil, errors.New("WAV file with no whole sample")
			}
			s.Samples = make([]int16, n)
			for i := range s.Samples {
				if bits == 8 {
					s.Samples[i] = int16(data[i]-128) << 8
				} else {
					s.Samples[i] = int16(le.Uint16(data[2*i:]))
				}
			}
			return &s, nil
		}
		next := int64(at) + size + size&1 // chunks are padded to 16 bits
		if next > int64(len(b)) {
			break
		}
		at = int(next)
	}
	return nil, errors.New("WAV file without data")
}

// Append appends s as a WAV file of 16 bits.
func Append(dst []byte, s *Sound) []byte {
	dst = AppendHeader(dst, s.Rate, s.Channels, 2*len(s.Samples))
	for _, v := range s.Samples {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	return dst
}

// Mono returns s with one channel, the mean of its channels.
func (s *Sound) Mono() *Sound {
	if s.Channels == 1 {
		return s
	}
	out := &Sound{Rate: s.Rate, Channels: 1, Samples: make([]int16, len(s.Samples)/s.Channels)}
	for i := range out.Samples {
		sum := 0
		for _, v := range s.Samples[i*s.Channels : (i+1)*s.Channels] {
			sum += int(v)
		}
		out.Samples[i] = int16(sum / s.Channels)
	}
	return out
}

// Resample returns s at another rate, at least one frame of it. Each new sample is a mean of its neighbours, weighted by a triangle as wide as
// the longer of the two periods on each side: linear interpolation upwards, and a low-pass against aliases downwards.
func (s *Sound) Resample(rate int) *Sound {
	if rate == s.Rate {
		return s
	}
	n := len(s.Samples) / s.Channels
	frames := max(1, int(int64(n)*int64(rate)/int64(s.Rate)))
	out := &Sound{Rate: rate, Channels: s.Channels, Samples: make([]int16, frames*s.Channels)}
	step := float64(s.Rate) / float64(rate)
	half := max(1, step)
	for i := range frames {
		at := float64(i) * step
		first, last := max(0, int(at-half)+1), min(n-1, int(at+half))
		for ch := range s.Channels {
			sum, weights := 0.0, 0.0
			for j := first; j <= last; j++ {
				w := half - max(at-float64(j), float64(j)-at)
				sum, weights = sum+w*float64(s.Samples[j*s.Channels+ch]), weights+w
			}
			if weights > 0 {
				out.Samples[i*s.Channels+ch] = int16(math.Round(sum / weights))
			}
		}
	}
	return out
}

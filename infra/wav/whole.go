package wav

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrFile is wrapped by every error of ParseWhole, which also says at which byte of the file, what was expected and what was found.
var ErrFile = errors.New("WAV file")

// extensible is the end of the 16-byte name of a format whose number is in its first two bytes.
var extensible = []byte{0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71}

// ParseWhole is Parse for files whose every number has to be true: sizes end where the file or the next chunk says, the data are whole frames, and the format's
// numbers agree with each other. It also reads samples of 24 and 32 bits and floating-point numbers of 32, as the upper 16 bits, and IMA ADPCM. ErrFile.
func ParseWhole(b []byte) (*Sound, error) {
	le := binary.LittleEndian
	switch {
	case len(b) > MaxFile:
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrFile, MaxFile, len(b))
	case len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE":
		return nil, fmt.Errorf("%w: byte 0: expected RIFF, a size and WAVE, found %q", ErrFile, b[:min(len(b), 12)])
	case uint64(le.Uint32(b[4:]))+8 != uint64(len(b)):
		return nil, fmt.Errorf("%w: byte 4: expected a size of %d, found %d", ErrFile, len(b)-8, le.Uint32(b[4:]))
	}
	var f *format
	var data []byte
	for at := 12; at < len(b); {
		if len(b)-at < 8 {
			return nil, fmt.Errorf("%w: byte %d: expected a chunk of at least 8 bytes, found %d", ErrFile, at, len(b)-at)
		}
		id, size := string(b[at:at+4]), uint64(le.Uint32(b[at+4:]))
		if size > uint64(len(b)-at-8) {
			return nil, fmt.Errorf("%w: byte %d: expected a chunk %q of at most %d bytes, found %d", ErrFile, at+4, id, len(b)-at-8, size)
		}
		body := b[at+8 : at+8+int(size)]
		var err error
		switch {
		case id == "fmt " && f != nil || id == "data" && data != nil:
			err = fmt.Errorf("expected one chunk %q, found another", id)
		case id == "fmt ":
			f, err = parseFormat(body)
		case id == "data" && f == nil:
			err = errors.New("expected the format before the data")
		case id == "data" && (size == 0 || !f.ima && size%uint64(f.align) != 0):
			err = fmt.Errorf("expected data of whole frames of %d bytes, found %d bytes", f.align, size)
		case id == "data":
			data = body
		}
		if err != nil {
			return nil, fmt.Errorf("%w: byte %d: %w", ErrFile, at, err)
		}
		at = min(at+8+int(size+size&1), len(b)) // chunks are padded to 16 bits; the last need not be
	}
	if data == nil {
		return nil, fmt.Errorf("%w: byte %d: expected a chunk data, found the end", ErrFile, len(b))
	}
	if f.ima {
		samples, err := DecodeIMA(data, f.channels, f.align)
		if err != nil {
			return nil, err
		}
		return &Sound{Rate: f.rate, Channels: f.channels, Bits: f.bits, Samples: samples}, nil
	}
	return f.sound(data), nil
}

// format is the chunk of that name.
type format struct {
	float, ima                  bool
	channels, rate, bits, align int
}

func parseFormat(b []byte) (*format, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("expected a format of at least 16 bytes, found %d", len(b))
	}
	le := binary.LittleEndian
	kind := le.Uint16(b)
	f := &format{channels: int(le.Uint16(b[2:])), rate: int(le.Uint32(b[4:])), align: int(le.Uint16(b[12:])), bits: int(le.Uint16(b[14:]))}
	if kind == 0xfffe {
		if len(b) < 40 || !bytes.Equal(b[26:40], extensible) {
			return nil, fmt.Errorf("expected an extended format of 40 bytes with a format's number, found %d bytes", len(b))
		}
		kind = le.Uint16(b[24:])
	}
	f.float, f.ima = kind == 3, kind == 17
	switch {
	case kind != 1 && kind != 3 && kind != 17:
		return nil, fmt.Errorf("expected format 1 (PCM), 3 (floating point) or 17 (IMA ADPCM), found %d", kind)
	case f.ima && f.bits != 4:
		return nil, fmt.Errorf("expected IMA ADPCM of 4 bits, found %d", f.bits)
	case !f.ima && (f.float && f.bits != 32 || f.bits != 8 && f.bits != 16 && f.bits != 24 && f.bits != 32):
		return nil, fmt.Errorf("expected samples of 8, 16, 24 or 32 bits, or 32 of floating point, found %d", f.bits)
	case f.channels < 1 || f.channels > 4:
		return nil, fmt.Errorf("expected 1 to 4 channels, found %d", f.channels)
	case f.rate < 4000 || f.rate > 192_000:
		return nil, fmt.Errorf("expected 4000 to 192000 Hz, found %d", f.rate)
	case f.ima: // DecodeIMA looks at the size of blocks; writers differ in the bytes a second
	case f.align != f.channels*f.bits/8:
		return nil, fmt.Errorf("expected frames of %d bytes, found %d", f.channels*f.bits/8, f.align)
	case int64(le.Uint32(b[8:])) != int64(f.rate)*int64(f.align):
		return nil, fmt.Errorf("expected %d bytes a second, found %d", f.rate*f.align, le.Uint32(b[8:]))
	}
	return f, nil
}

// sound reads data, which are whole frames.
func (f *format) sound(data []byte) *Sound {
	wide := f.bits / 8
	s := &Sound{Rate: f.rate, Channels: f.channels, Bits: f.bits, Samples: make([]int16, len(data)/wide)}
	for i := range s.Samples {
		v := data[i*wide : (i+1)*wide]
		switch {
		case f.float:
			x := float64(math.Float32frombits(binary.LittleEndian.Uint32(v))) * 32768
			if x != x {
				x = 0
			}
			s.Samples[i] = int16(math.Round(min(max(x, -32768), 32767)))
		case wide == 1:
			s.Samples[i] = int16(v[0]-128) << 8
		default:
			s.Samples[i] = int16(binary.LittleEndian.Uint16(v[wide-2:]))
		}
	}
	return s
}

// Endless is the number of data bytes in the header of a stream whose end is not known: the most that readers of 32-bit sizes take.
const Endless = 0x7fffffff - 36

// AppendHeader appends the 44 bytes before so many bytes of 16-bit samples.
func AppendHeader(dst []byte, rate, channels, dataBytes int) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(append(dst, "RIFF"...), uint32(36+dataBytes))
	dst = le.AppendUint32(append(dst, "WAVEfmt "...), 16)
	dst = le.AppendUint16(dst, 1)
	dst = le.AppendUint16(dst, uint16(channels))
	dst = le.AppendUint32(dst, uint32(rate))
	dst = le.AppendUint32(dst, uint32(2*rate*channels))
	dst = le.AppendUint16(dst, uint16(2*channels))
	dst = le.AppendUint16(dst, 16)
	return le.AppendUint32(append(dst, "data"...), uint32(dataBytes))
}

// Package soundset reads and writes the image of the AmigoBot's sounds in its memory (AMIGO-SND-01 to 06).
//
//	255 x 24   playlist: name (16 bytes, NUL-padded), offset (4), length (4), little endian
//	...        samples: unsigned, 8 bits, mono, 9000 Hz
//
// An offset counts from the start of the image, so that no sound has offset 0, which means that there is none. A group has a name that
// begins with ~ and no samples (AMIGO-XP-15). The entries of erased memory, all bits set, are empty.
//
// The manual gives the playlist and the rate; the layout and the format of the samples are this project's choice (AMIGO-OPEN-05), and so
// are the numbers of the system's sounds (AMIGO-OPEN-06).
package soundset

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"kennel/infra/wav"
)

// Sizes of an image and its parts.
const (
	Count     = 255 // sounds, numbered from 1
	Rate      = 9000
	MaxName   = 16
	MaxImage  = 1 << 20
	TableSize = Count * entrySize

	entrySize = MaxName + 4 + 4
	silence   = 0x80
)

// Numbers of the system's sounds (AMIGO-SND-03).
const (
	Reset = 1 + iota
	Connect
	Disconnect
	Stall
	LowBattery
	Version
	TestWarning
	MotorsOn
	MotorsOff
	SystemMode

	FirstUser   = 50  // of the sounds that the owner chooses (AMIGO-SND-02)
	FirstKennel = 200 // among them, where an owner's own seldom reach: of the sounds of Kennel's animations
)

// Sound is one sound, or a group if Name begins with ~; the zero value is none.
type Sound struct {
	Name    string
	Samples []byte // 8 bits, unsigned, at Rate
}

// Group reports whether s is the title of the sounds behind it.
func (s Sound) Group() bool { return strings.HasPrefix(s.Name, "~") }

// Set is all sounds by their number; 0 stays empty.
type Set [1 + Count]Sound

// Default returns the system's sounds as short rows of tones (AMIGO-SND-03), and from FirstKennel on those that Kennel's animations play, which have the numbers of
// palette.Stored.
func Default() *Set {
	var s Set
	for n, cue := range []struct {
		name  string
		tones []int // Hz
	}{
		Reset: {"reset", []int{440, 660, 880}}, Connect: {"connect", []int{660, 880}}, Disconnect: {"disconnect", []int{880, 660}},
		Stall: {"stall", []int{220}}, LowBattery: {"low battery", []int{440, 220, 440, 220}}, Version: {"AmigOS 1.3", []int{523, 659, 784}},
		TestWarning: {"test warning", []int{880, 880, 880}}, MotorsOn: {"motors on", []int{660}}, MotorsOff: {"motors off", []int{330}},
		SystemMode:  {"system mode", []int{330, 440}},
		FirstKennel: {"happy", []int{784, 988, 1175}}, {"sad", []int{440, 392, 330}}, {"angry", []int{220, 208, 220, 208}}, {"surprised", []int{523, 1047}},
		{"yawn", []int{392, 440, 330, 262}}, {"curious", []int{523, 587, 698}}, {"hello", []int{659, 784, 659}}, {"goodbye", []int{659, 523, 392}},
		{"timer set", []int{880, 1175}}, {"timer ring", []int{1319, 1047, 1319, 1047, 1319, 1047}}, {"on charger", []int{523, 659, 784}}, {"charge me", []int{392, 392, 262}},
	} {
		s[n].Name = cue.name
		for _, hertz := range cue.tones {
			for i := range Rate / 8 {
				fade := 1 - float64(i)*8/Rate
				s[n].Samples = append(s[n].Samples, byte(silence+math.Round(100*fade*math.Sin(2*math.Pi*float64(hertz*i)/Rate))))
			}
		}
	}
	return &s
}

// Put makes s the sound of this number. It refuses a number or name that the playlist cannot hold.
func (set *Set) Put(number int, s Sound) error {
	bad := strings.IndexFunc(s.Name, func(r rune) bool { return r < ' ' || r > '~' })
	switch {
	case number < 1 || number > Count:
		return fmt.Errorf("sound %d: want 1 to %d", number, Count)
	case s.Name == "" && len(s.Samples) > 0 || len(s.Name) > MaxName || bad >= 0:
		return fmt.Errorf("name %.40q of sound %d: want 1 to %d printable ASCII characters", s.Name, number, MaxName)
	case s.Group() && len(s.Samples) > 0:
		return fmt.Errorf("sound %d: a name that starts with ~ is the title of a group: want no samples", number)
	}
	set[number] = s
	return nil
}

// Image returns the image of set. It refuses sounds that together are too long.
func (set *Set) Image() ([]byte, error) {
	b := make([]byte, TableSize)
	for i, s := range set[1:] {
		entry := b[i*entrySize:][:entrySize]
		copy(entry[:MaxName], s.Name)
		if len(s.Samples) == 0 {
			continue
		}
		if len(b)+len(s.Samples) > MaxImage {
			return nil, fmt.Errorf("sounds up to %d take %d bytes: want at most %d, which is %d s", i+1, len(b)+len(s.Samples), MaxImage,
				(MaxImage-TableSize)/Rate)
		}
		binary.LittleEndian.PutUint32(entry[MaxName:], uint32(len(b)))
		binary.LittleEndian.PutUint32(entry[MaxName+4:], uint32(len(s.Samples)))
		b = append(b, s.Samples...)
	}
	return b, nil
}

// Parse returns the sounds in an image, or in the memory that begins with one. The samples alias b.
func Parse(b []byte) (*Set, error) {
	if len(b) < TableSize || len(b) > MaxImage {
		return nil, fmt.Errorf("sound image of %d bytes, want %d to %d", len(b), TableSize, MaxImage)
	}
	var set Set
	total := int64(TableSize)
	for n := 1; n <= Count; n++ {
		entry := b[(n-1)*entrySize:][:entrySize]
		offset, length := binary.LittleEndian.Uint32(entry[MaxName:]), binary.LittleEndian.Uint32(entry[MaxName+4:])
		if offset == math.MaxUint32 {
			continue
		}
		s := Sound{Name: strings.TrimRight(string(entry[:MaxName]), "\x00")}
		if length > 0 {
			total += int64(length)
			if offset < TableSize || int64(offset)+int64(length) > int64(len(b)) || total > MaxImage {
				return nil, fmt.Errorf("sound %d: %d bytes at %d are outside the image", n, length, offset)
			}
			s.Samples = b[offset:][:length:length]
		}
		if err := set.Put(n, s); err != nil {
			return nil, err
		}
	}
	return &set, nil
}

// FromWAV returns a WAV file as samples: its channels mixed, at Rate.
func FromWAV(file []byte) ([]byte, error) {
	s, err := wav.Parse(file)
	if err != nil {
		return nil, err
	}
	s = s.Resample(Rate)
	out := make([]byte, len(s.Samples)/s.Channels)
	for i := range out {
		sum := 0
		for _, v := range s.Samples[i*s.Channels:][:s.Channels] {
			sum += int(v)
		}
		out[i] = byte(min(silence+int(math.Round(float64(sum)/float64(s.Channels)/256)), 255))
	}
	return out, nil
}

// WAV returns s as a WAV file, from which FromWAV returns the same samples.
func (s Sound) WAV() []byte {
	out := &wav.Sound{Rate: Rate, Channels: 1, Samples: make([]int16, len(s.Samples))}
	for i, v := range s.Samples {
		out.Samples[i] = (int16(v) - silence) << 8
	}
	return wav.Append(nil, out)
}

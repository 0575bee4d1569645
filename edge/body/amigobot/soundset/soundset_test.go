package soundset

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kennel/infra/wav"
)

// TestDefault: the sounds of Kennel's animations are behind those of the system, at the numbers that owners choose (AMIGO-SND-02).
func TestDefault(t *testing.T) {
	set := Default()
	names := map[string]int{}
	for n := FirstKennel; n < FirstKennel+12; n++ {
		if len(set[n].Samples) < Rate/8 || names[set[n].Name] != 0 {
			t.Errorf("sound %d: %q, %d samples", n, set[n].Name, len(set[n].Samples))
		}
		names[set[n].Name] = n
	}
	if names["happy"] != 200 || names["hello"] != 206 || names["timer ring"] != 209 || set[FirstKennel+12].Name != "" || set[FirstUser].Name != "" || set[SystemMode+1].Name != "" {
		t.Errorf("%v", names)
	}
}

// TestImage: the playlist of AMIGO-SND-05 before the samples (AMIGO-OPEN-05), with the system's sounds (AMIGO-SND-03) and a group.
func TestImage(t *testing.T) {
	set := Default()
	for n, s := range map[int]Sound{50: {Name: "~animals"}, 51: {"sixteen letters!", []byte{1, 2, 3}}, 255: {"last", []byte{9}}} {
		if err := set.Put(n, s); err != nil {
			t.Fatal(err)
		}
	}
	b, err := set.Image()
	if err != nil {
		t.Fatal(err)
	}
	entry := b[50*24:][:24] // of sound 51
	offset := binary.LittleEndian.Uint32(entry[16:])
	if string(entry[:16]) != "sixteen letters!" || binary.LittleEndian.Uint32(entry[20:]) != 3 || !bytes.Equal(b[offset:][:3], []byte{1, 2, 3}) {
		t.Errorf("entry % x", entry)
	}
	if group := b[49*24:][:24]; string(group[:8]) != "~animals" || strings.Trim(string(group[8:]), "\x00") != "" {
		t.Errorf("group % x", group)
	}
	memory := append(slices.Clone(b), bytes.Repeat([]byte{0xFF}, MaxImage-len(b))...)
	for _, image := range [][]byte{b, memory} {
		if got, err := Parse(image); err != nil || !reflect.DeepEqual(got, set) {
			t.Errorf("image of %d bytes: %v", len(image), err)
		}
	}
	for n := Reset; n <= SystemMode; n++ {
		if set[n].Name == "" || len(set[n].Samples) < Rate/8 {
			t.Errorf("system sound %d: %q, %d samples", n, set[n].Name, len(set[n].Samples))
		}
	}
	if got, err := Parse(bytes.Repeat([]byte{0xFF}, MaxImage)); err != nil || !reflect.DeepEqual(got, new(Set)) {
		t.Errorf("erased memory: %v", err)
	}
}

func TestRefused(t *testing.T) {
	var set Set
	for _, tt := range []struct {
		name   string
		number int
		sound  Sound
		want   string
	}{
		{"number 0", 0, Sound{Name: "x"}, "sound 0: want 1 to 255"},
		{"number 256", 256, Sound{Name: "x"}, "want 1 to 255"},
		{"no name", 1, Sound{Samples: []byte{1}}, "want 1 to 16 printable"},
		{"long name", 1, Sound{Name: "seventeen letters"}, "want 1 to 16 printable"},
		{"control character", 1, Sound{Name: "a\x1b"}, "printable"},
		{"group with samples", 1, Sound{"~g", []byte{1}}, "title of a group"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := set.Put(tt.number, tt.sound); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	full := Set{1: {"a", make([]byte, MaxImage-TableSize)}}
	if _, err := full.Image(); err != nil {
		t.Errorf("full: %v", err)
	}
	full[2] = Sound{"b", []byte{1}}
	if _, err := full.Image(); err == nil || !strings.Contains(err.Error(), "which is 115 s") {
		t.Errorf("too full: %v", err)
	}
	image, _ := (&Set{1: {"a", []byte{1}}}).Image() // fits
	for name, b := range map[string][]byte{
		"short":        image[:TableSize-1],
		"long":         make([]byte, MaxImage+1),
		"in the table": slices.Replace(slices.Clone(image), 16, 18, 0, 0),
		"behind":       slices.Replace(slices.Clone(image), 20, 21, 2),
		"no name":      slices.Replace(slices.Clone(image), 0, 1, 0),
	} {
		if _, err := Parse(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestWAV: files of other rates and channels become 9000 Hz mono; what is exported is imported again unchanged (AMIGO-OPEN-05).
func TestWAV(t *testing.T) {
	every := Sound{Name: "all"}
	for v := range 256 {
		every.Samples = append(every.Samples, byte(v))
	}
	if got, err := FromWAV(every.WAV()); err != nil || !bytes.Equal(got, every.Samples) {
		t.Errorf("round trip: %v % x", err, got)
	}
	stereo := &wav.Sound{Rate: 18_000, Channels: 2}
	for range 18_000 {
		stereo.Samples = append(stereo.Samples, 32767, 0)
	}
	if got, err := FromWAV(wav.Append(nil, stereo)); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{192}, Rate)) {
		t.Errorf("stereo: %v, %d samples", err, len(got))
	}
	loud := &wav.Sound{Rate: Rate, Channels: 1, Samples: []int16{32767, -32768}}
	if got, err := FromWAV(wav.Append(nil, loud)); err != nil || !bytes.Equal(got, []byte{255, 0}) {
		t.Errorf("loud: %v %v", err, got)
	}
	if _, err := FromWAV(nil); err == nil {
		t.Error("no file accepted")
	}
}

// FuzzParse: what is accepted is the same after it is stored and read again.
func FuzzParse(f *testing.F) {
	image, _ := Default().Image() // fits
	f.Add(image[:TableSize+10])
	small, _ := (&Set{1: {"a", []byte{1}}, 3: {Name: "~g"}}).Image() // fits
	f.Add(small)
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := Parse(b)
		if err != nil {
			return
		}
		image, err := set.Image()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(image); err != nil || !reflect.DeepEqual(again, set) {
			t.Error(err)
		}
	})
}

package wav

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// chunked returns a WAV file of chunks, each a name and its bytes.
func chunked(chunks ...string) []byte {
	body := "WAVE"
	for i := 0; i < len(chunks); i += 2 {
		body += chunks[i] + string(binary.LittleEndian.AppendUint32(nil, uint32(len(chunks[i+1])))) + chunks[i+1]
		if len(chunks[i+1])%2 == 1 {
			body += "\x00"
		}
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// layout returns a chunk fmt.
func layout(kind, channels, rate, bits int) string {
	le := binary.LittleEndian
	align := channels * bits / 8
	b := le.AppendUint16(le.AppendUint16(nil, uint16(kind)), uint16(channels))
	b = le.AppendUint32(le.AppendUint32(b, uint32(rate)), uint32(rate*align))
	return string(le.AppendUint16(le.AppendUint16(b, uint16(align)), uint16(bits)))
}

func TestParseWhole(t *testing.T) {
	s := tone(8000, 2, 440)
	if got, err := ParseWhole(Append(nil, s)); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("own: %v", err)
	}
	half := binary.LittleEndian.AppendUint32(nil, math.Float32bits(-0.5))
	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	extended := layout(0xfffe, 1, 9000, 24) + "\x16\x00\x18\x00\x04\x00\x00\x00\x01\x00" + string(extensible)
	for name, tt := range map[string]struct {
		file []byte
		want []int16
	}{
		"8 bits":      {chunked("LIST", "abc", "fmt ", layout(1, 1, 9000, 8), "data", "\x00\x80\xff"), []int16{-32768, 0, 32512}},
		"extended 24": {chunked("fmt ", extended, "data", "\x99\x02\x01\x00\x00\x80"), []int16{0x102, -32768}},
		"32":          {chunked("fmt ", layout(1, 2, 9000, 32), "data", "\x00\x00\x01\x02\x00\x00\xff\xff"), []int16{0x201, -1}},
		"float":       {chunked("fmt ", layout(3, 1, 9000, 32), "data", string(half)+string(nan)+"\x00\x00\x80\x7f"), []int16{-16384, 0, 32767}},
	} {
		got, err := ParseWhole(tt.file)
		if err != nil || !reflect.DeepEqual(got.Samples, tt.want) {
			t.Errorf("%s: got %v %v, want %v", name, got, err, tt.want)
		}
	}
}

// TestParseWholeRefuses: each lie is told with its place.
func TestParseWholeRefuses(t *testing.T) {
	good := chunked("fmt ", layout(1, 2, 16_000, 16), "data", "12345678")
	with := func(at int, v ...byte) []byte {
		out := append([]byte(nil), good...)
		copy(out[at:], v)
		return out
	}
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"empty":              {nil, "byte 0:"},
		"another file":       {[]byte("OggS00000000000000000000"), "byte 0:"},
		"broken off":         {good[:50], "byte 4:"},
		"longer than it is":  {with(40, 200), "byte 40:"},
		"shorter than it is": {append(good, 1, 2), "byte 4:"},
		"a piece of a chunk": {chunked("fmt ", layout(1, 2, 16_000, 16), "data", "12345678")[:0:0], "byte 0:"},
		"data first":         {chunked("data", "1234"), "byte 12:"},
		"two formats":        {chunked("fmt ", layout(1, 2, 16_000, 16), "fmt ", layout(1, 2, 16_000, 16)), "byte 36:"},
		"two data":           {chunked("fmt ", layout(1, 1, 16_000, 16), "data", "12", "data", "34"), "byte 46:"},
		"no data":            {chunked("fmt ", layout(1, 1, 16_000, 16)), "byte 36:"},
		"half a frame":       {chunked("fmt ", layout(1, 2, 16_000, 16), "data", "12"), "byte 36:"},
		"no frame":           {chunked("fmt ", layout(1, 2, 16_000, 16), "data", ""), "byte 36:"},
		"another format":     {with(20, 7), "byte 12:"},
		"no channel":         {with(22, 0), "byte 12:"},
		"slow":               {with(24, 1, 0), "byte 12:"},
		"bytes a second":     {with(28, 1), "byte 12:"},
		"frames":             {with(32, 3), "byte 12:"},
		"12 bits":            {with(34, 12), "byte 12:"},
		"short format":       {chunked("fmt ", "abcd"), "byte 12:"},
		"unknown extension":  {chunked("fmt ", layout(0xfffe, 1, 9000, 16)), "byte 12:"},
	} {
		if _, err := ParseWhole(tt.file); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// TestIMA: vectors made by hand from the tables: a step's code adds step/8, and step, step/2 and step/4 for its bits (VEC-BNK-04).
func TestIMA(t *testing.T) {
	// Index 0, step 7: code 7 adds 0+7+3+1 = 11, and moves the index by 8, to step 16; code 15 takes away 2+16+8+4 = 30, to index 16, step 34; code 0 adds 4.
	mono := "\x64\x00\x00\x00" + "\xf7\x00\x00\x00"
	want := []int16{100, 111, 81, 85, 88, 91, 94, 96, 98} // steps 34, 31, 28, 25, 23 and 21 by 8
	got, err := DecodeIMA([]byte(mono), 1, 8)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("mono: %v %v, want %v", got, err, want)
	}
	// The other channel at the largest step: 32767 less 2*32767-ish is cut off at the lowest sample.
	stereo := "\x64\x00\x00\x00" + "\xff\x7f\x58\x00" + "\xf7\x00\x00\x00" + "\x0f\x00\x00\x00"
	got, err = DecodeIMA([]byte(stereo), 2, 16)
	if err != nil || len(got) != 18 || got[0] != 100 || got[1] != 32767 || got[2] != 111 || got[3] != -28669 || got[5] != -28669+4095 {
		t.Errorf("stereo: %v %v", got, err)
	}
	file := chunked("fmt ", layout(17, 1, 30_000, 4)[:12]+"\x08\x00\x04\x00", "data", mono)
	if s, err := ParseWhole(file); err != nil || s.Rate != 30_000 || !reflect.DeepEqual(s.Samples, want) {
		t.Errorf("file: %v %v", s, err)
	}
	for name, tt := range map[string]struct {
		data            string
		channels, block int
	}{"three channels": {mono, 3, 12}, "no channel": {mono, 0, 8}, "block": {mono, 1, 6}, "no samples": {mono, 1, 4}, "index": {"\x00\x00\x59\x00\x00\x00\x00\x00", 1, 8}, "broken off": {mono[:7], 1, 8}} {
		if _, err := DecodeIMA([]byte(tt.data), tt.channels, tt.block); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParseWhole: a file that is taken gives whole frames, and as 16 bits the same sound again.
func FuzzParseWhole(f *testing.F) {
	f.Add(Append(nil, &Sound{Rate: 16_000, Channels: 2, Samples: []int16{1, -2, 3, -4}}))
	f.Add(chunked("LIST", "abc", "fmt ", layout(3, 1, 9000, 32), "data", "abcdefgh"))
	f.Add(chunked("fmt ", layout(17, 1, 30_000, 4)[:12]+"\x08\x00\x04\x00", "data", "\x64\x00\x00\x00\xf7\x00\x00\x00"))
	f.Add(chunked("fmt ", layout(1, 3, 44_100, 24), "data", "abcdefghi", "x", ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseWhole(b)
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Fatal(err)
			}
			return
		}
		if len(s.Samples) == 0 || len(s.Samples)%s.Channels != 0 || len(s.Samples) > 2*len(b) {
			t.Fatalf("%d samples of %d channels in %d bytes", len(s.Samples), s.Channels, len(b))
		}
		again, err := ParseWhole(Append(nil, s))
		if err != nil || !reflect.DeepEqual(again.Samples, s.Samples) || again.Rate != s.Rate {
			t.Fatalf("again: %v", err)
		}
	})
}

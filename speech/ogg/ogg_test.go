package ogg_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"kennel/speech/ogg"
)

// decode feeds b in pieces of n bytes.
func decode(b []byte, n int) (out []int16, err error) {
	d := ogg.NewDecoder()
	for ; len(b) > 0; b = b[min(n, len(b)):] {
		d.Feed(b[:min(n, len(b))])
		for {
			pcm, err := d.Next()
			if err != nil {
				return out, err
			}
			if pcm == nil {
				break
			}
			out = append(out, pcm...)
		}
	}
	return out, nil
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLikeTheReference compares with libopus. robot: the mode of original robots (peer facts, section 1: 16 kHz, frames of 60 ms, 66 kbit/s, 120 ms
// on a page), which is CELT. slow: the same at 16 kbit/s, which is SILK.
func TestLikeTheReference(t *testing.T) {
	for name, least := range map[string]float64{"robot": 80, "slow": 50} {
		t.Run(name, func(t *testing.T) {
			b, raw := read(t, name+".opus"), read(t, name+".pcm")
			got, err := decode(b, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 7, len(b)} {
				if again, err := decode(b, n); err != nil || len(again) != len(got) {
					t.Errorf("in pieces of %d bytes: %d samples, %v; want %d", n, len(again), err, len(got))
				}
			}
			var signal, noise float64
			for i := range min(len(got), len(raw)/2) {
				want := float64(int16(binary.LittleEndian.Uint16(raw[2*i:])))
				diff := float64(got[i]) - want
				signal, noise = signal+want*want, noise+diff*diff
			}
			snr := 10 * math.Log10(signal/max(noise, 1))
			t.Logf("%d samples, %d in the reference; %.1f dB", len(got), len(raw)/2, snr)
			if len(got) != len(raw)/2 || snr < least {
				t.Errorf("%d samples (want %d), %.1f dB (want %v)", len(got), len(raw)/2, snr, least)
			}
		})
	}
}

// TestOpusenc reads what the Debian tool writes: pages of a second, samples at the start that are to be left out.
func TestOpusenc(t *testing.T) {
	got, err := decode(read(t, "opusenc.opus"), 500)
	if spoken := 28320; err != nil || len(got) < spoken || len(got) > spoken+ogg.Rate*60/1000 {
		t.Errorf("%d samples, %v; want %d, and at most 60 ms more", len(got), err, spoken)
	}
}

// TestRefusals: every refusal says what was wrong, where, and what was expected.
func TestRefusals(t *testing.T) {
	good := read(t, "robot.opus")
	change := func(at int, b ...byte) []byte {
		out := bytes.Clone(good)
		copy(out[at:], b)
		return out
	}
	tags, audio := bytes.Index(good, []byte("OpusTags")), bytes.Index(good, []byte("OpusTags"))+22
	for name, tc := range map[string]struct {
		in   []byte
		want string
	}{
		"PCM":                 {make([]byte, 3840), "byte 0 of the audio"},
		"a page of version 1": {change(4, 1), "version 1, want 0"},
		"not Opus":            {change(28, []byte("vorbis")...), "want 19 or more, and OpusHead"},
		"eight channels":      {change(28+9, 8), "8 channels"},
		"no tags":             {change(tags, 'o'), "want OpusTags"},
		"another stream":      {change(audio+14, 9), "want 305419896"},
		"lost its place":      {change(audio, 0), "want the start of an Ogg page"},
		"a huge packet":       {bytes.Repeat(page(bytes.Repeat([]byte{255}, 255), make([]byte, 255*255)), 2), "packet of more than 65536 bytes"},
		"garbage in a packet": {append(bytes.Clone(good[:audio]), page([]byte{3}, []byte{0xff, 0, 0})...), "Opus packet of 3 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(tc.in, 1000)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// page returns a page of the test's stream that continues a packet.
func page(table, body []byte) []byte {
	out := append([]byte("OggS"), 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(table)))
	return append(append(out, table...), body...)
}

// TestPieces: a stream may end at every byte.
func TestPieces(t *testing.T) {
	b := read(t, "robot.opus")
	for n := range 600 {
		if _, err := decode(b[:n], n+1); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// FuzzDecoder: anything ends in samples or in an error, and the same at every cut.
func FuzzDecoder(f *testing.F) {
	for _, name := range []string{"robot.opus", "slow.opus", "opusenc.opus"} {
		f.Add(read(f, name)[:700], 500)
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if len(b) > 1500 { // a page of 255 packets of one byte is 30 s of audio
			return
		}
		whole, err := decode(b, len(b)+1)
		cut, err2 := decode(b, min(max(n, 1), 1000))
		if len(whole) != len(cut) || (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %d samples, %v; in pieces: %d samples, %v", len(whole), err, len(cut), err2)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	in := read(b, "robot.opus")
	for b.Loop() {
		if _, err := decode(in, 1000); err != nil {
			b.Fatal(err)
		}
	}
}

package synth

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/sound"
)

func render(t *testing.T, rate int, lines ...string) *sound.Sound {
	t.Helper()
	all, err := Parse([]byte("sound a\n" + strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := all[0].Render(rate)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// strength returns how strong a pitch is in samples.
func strength(x []float32, rate int, hertz float64) float64 {
	var sin, cos float64
	for i, v := range x {
		s, c := math.Sincos(2 * math.Pi * hertz * float64(i) / float64(rate))
		sin, cos = sin+s*float64(v), cos+c*float64(v)
	}
	return 2 * math.Hypot(sin, cos) / float64(len(x))
}

// TestTone: a note has its pitch and strength at every rate, and the envelope its corners.
func TestTone(t *testing.T) {
	for _, rate := range []int{8000, 16_000, 44_100} {
		s := render(t, rate, "0 tone a5 for=1000 gain=0.4 attack=100 release=200")
		if len(s.Samples) != rate {
			t.Fatalf("%d samples at %d Hz", len(s.Samples), rate)
		}
		if got := strength(s.Samples[rate/5:rate*3/5], rate, 880); math.Abs(got-0.4) > 0.005 {
			t.Errorf("%d Hz: strength %.4f", rate, got)
		}
		for _, tt := range []struct{ from, to, low, high float64 }{{0, 0.005, 0, 0.03}, {0.045, 0.055, 0.17, 0.23}, {0.895, 0.905, 0.17, 0.23}, {0.995, 1, 0, 0.02}} {
			part := sound.Sound{Samples: s.Samples[int(tt.from*float64(rate)):int(tt.to*float64(rate))]}
			if peak := float64(part.Peak()); peak < tt.low || peak > tt.high {
				t.Errorf("%d Hz, %.3f s: peak %.3f, want %.2f to %.2f", rate, tt.from, peak, tt.low, tt.high)
			}
		}
	}
	s := render(t, 16_000, "0 tone 500 for=400 attack=0 decay=100 sustain=0.25 release=0 gain=0.8")
	if got := strength(s.Samples[3200:6400], 16_000, 500); math.Abs(got-0.2) > 0.005 {
		t.Errorf("sustain: %.3f", got)
	}
}

// TestKinds: what each kind and value does to the pitches that are heard.
func TestKinds(t *testing.T) {
	at := func(s *sound.Sound, from, to int, hz float64) float64 {
		return strength(s.Samples[from:to], 16_000, hz)
	}
	chirp := render(t, 16_000, "0 chirp 400..1600 for=1000 attack=0 release=0")
	if a, b, c := at(chirp, 0, 800, 413), at(chirp, 7600, 8400, 800), at(chirp, 15_200, 16_000, 1550); a < 0.3 || b < 0.3 || c < 0.15 {
		t.Errorf("chirp: %.3f %.3f %.3f", a, b, c)
	}
	square := render(t, 16_000, "0 tone 500 wave=square for=500 attack=0 release=0 gain=0.5")
	if a, b, c := at(square, 0, 8000, 500), at(square, 0, 8000, 1500), at(square, 0, 8000, 1000); math.Abs(a-0.637) > 0.05 || math.Abs(b-0.212) > 0.05 || c > 0.02 {
		t.Errorf("square: %.3f %.3f %.3f", a, b, c)
	}
	saw := render(t, 16_000, "0 tone 500 wave=saw for=500 attack=0 release=0 gain=0.5")
	if a, b := at(saw, 0, 8000, 500), at(saw, 0, 8000, 1000); math.Abs(a-0.318) > 0.05 || math.Abs(b-0.159) > 0.05 {
		t.Errorf("saw: %.3f %.3f", a, b)
	}
	triangle := render(t, 16_000, "0 tone 500 wave=triangle for=500 attack=0 release=0 gain=0.5")
	if a, b := at(triangle, 0, 8000, 500), at(triangle, 0, 8000, 1500); math.Abs(a-0.405) > 0.02 || math.Abs(b-0.045) > 0.01 {
		t.Errorf("triangle: %.3f %.3f", a, b)
	}
	bell := render(t, 16_000, "0 tone 1000 for=500 fm=0.5x1 attack=0 release=0 gain=0.5")
	if a, b := at(bell, 0, 8000, 1500), at(bell, 0, 8000, 500); a < 0.15 || b < 0.15 {
		t.Errorf("bell: %.3f %.3f", a, b)
	}
	noise := render(t, 16_000, "0 noise 1000..2000 for=1000 attack=0 release=0 gain=0.8")
	band := func(from, to float64) (sum float64) {
		for hz := from; hz < to; hz += 10 {
			sum += math.Pow(strength(noise.Samples, 16_000, hz), 2)
		}
		return sum
	}
	if in, out := band(1000, 2000), band(3500, 7000)+band(20, 400); in < 8*out || noise.RMS() < 0.15 {
		t.Errorf("noise: %.6f in its band, %.6f far from it, strength %.3f", in, out, noise.RMS())
	}
	if a, b := noise.Samples, render(t, 16_000, "0 noise 1000..2000 for=1000 attack=0 release=0 gain=0.8").Samples; !reflect.DeepEqual(a, b) {
		t.Error("the same text gave other noise")
	}
	vibrato := render(t, 16_000, "0 tone 1000 for=1000 vibrato=5x200 attack=0 release=0")
	if a := at(vibrato, 0, 16_000, 1000); a > 0.25 {
		t.Errorf("vibrato: %.3f stays at the pitch", a)
	}
	tremolo := render(t, 16_000, "0 tone 1000 for=1000 tremolo=1x0.5 gain=0.8 attack=0 release=0")
	if a, b := at(tremolo, 0, 800, 1000), at(tremolo, 7600, 8400, 1000); math.Abs(a-0.8) > 0.02 || math.Abs(b-0.4) > 0.02 {
		t.Errorf("tremolo: %.3f %.3f", a, b)
	}
	twice := render(t, 16_000, "100 tone 1000 for=50 repeat=2 every=300")
	if n := len(twice.Samples); n != 7200 || at(twice, 0, 1600, 1000) != 0 || at(twice, 1700, 2300, 1000) < 0.4 || at(twice, 3000, 6400, 1000) > 0.001 || at(twice, 6500, 7100, 1000) < 0.4 {
		t.Errorf("twice: %d samples", n)
	}
	loud := render(t, 16_000, "0 tone 500 gain=1", "0 tone 500 gain=1")
	if p := loud.Peak(); math.Abs(float64(p)-0.95) > 0.001 {
		t.Errorf("too loud: peak %.3f", p)
	}
}

// TestErrors: what is wrong, where, expected and found.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"tone 400":                                        "line 1, column 1:",
		"sound":                                           "line 1, column 1:",
		"sound 1st":                                       "line 1, column 7:",
		"sound a":                                         "line 1, column 7:",
		"sound a\n\n# x\nsound b":                         "line 1, column 7:",
		"sound a\n0 tone":                                 "line 2, column 3:",
		"sound a\n99999 tone 400":                         "line 2, column 1:",
		"sound a\n0 bell 400":                             "line 2, column 3:",
		"sound a\n0 tone 400..500":                        "line 2, column 8:",
		"sound a\n0 chirp 400":                            "line 2, column 9:",
		"sound a\n0 noise 500..400":                       "line 2, column 9:",
		"sound a\n0 tone 19":                              "line 2, column 8:",
		"sound a\n0 tone c9":                              "line 2, column 8:",
		"sound a\n0 tone NaN":                             "line 2, column 8:",
		"sound a\n0 tone c4 for":                          "line 2, column 11:",
		"sound a\n0 tone c4 for=10 for=20":                "line 2, column 18:",
		"sound a\n0 tone c4 loud=1":                       "line 2, column 11:",
		"sound a\n0 tone c4 gain=1.1":                     "line 2, column 11:",
		"sound a\n0 tone c4 wave=round":                   "line 2, column 11:",
		"sound a\n0 tone c4 vibrato=5":                    "line 2, column 11:",
		"sound a\n0 tone c4 fm=1xNaN":                     "line 2, column 11:",
		"sound a\n0 tone c4 repeat=1.5":                   "line 2, column 11:",
		"sound a\n0 tone c4 attack=80 for=100 release=30": "line 2, column 1:",
		"sound a\n0 tone c4 for=10 repeat=400\n0 tone c4 for=10 repeat=101": "line 3, column 1:",
		"sound a\n19950 tone c4": "line 2, column 1:",
		"sound a\n0 tone c4\xff": "line 2:",
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrText) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Parse(make([]byte, MaxText+1)); !errors.Is(err, ErrText) {
		t.Errorf("large: %v", err)
	}
	s := Sound{Name: "a"}
	if _, err := s.Render(100); !errors.Is(err, sound.ErrRate) {
		t.Errorf("100 Hz: %v", err)
	}
}

// FuzzParse: what can be read can be written, and is the same when it is read again; no sound is longer or louder than allowed.
func FuzzParse(f *testing.F) {
	f.Add([]byte("sound a\n0 tone c4 for=20 vibrato=5x100 # x\n30 chirp 400..900..d5 wave=saw repeat=2\nsound b\n0 noise 20..7500 tremolo=3x1 fm=2x3 decay=1 sustain=0 every=3\n"))
	f.Add([]byte("sound a\n0.5 tone 440 attack=0 release=0 gain=1 for=1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrText) {
				t.Fatal(err)
			}
			return
		}
		var text []byte
		for i := range all {
			text = all[i].AppendText(text)
		}
		again, err := Parse(text)
		if len(text) <= MaxText && (err != nil || !reflect.DeepEqual(again, all)) {
			t.Fatalf("again: %v\n%s", err, text)
		}
		if len(all) > 0 && all[0].Span() < time.Second {
			s, err := all[0].Render(8000)
			if err != nil || !(s.Peak() <= 0.951) || s.Span() > MaxSpan+time.Millisecond {
				t.Fatalf("%v, peak %v, %v\n%s", err, s.Peak(), s.Span(), text)
			}
		}
	})
}

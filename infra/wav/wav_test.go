package wav

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// tone is a sine of hertz for a second on each channel, the second one inverted.
func tone(rate, channels int, hertz float64) *Sound {
	s := &Sound{Rate: rate, Channels: channels, Bits: 16}
	for i := range rate {
		for ch := range channels {
			s.Samples = append(s.Samples, int16(float64(1-2*ch)*10_000*math.Sin(2*math.Pi*hertz*float64(i)/float64(rate))))
		}
	}
	return s
}

func TestParse(t *testing.T) {
	s := tone(8000, 2, 440)
	got, err := Parse(Append(nil, s))
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("16 bits: %v", err)
	}
	other := []byte("RIFF\x00\x00\x00\x00WAVELIST\x03\x00\x00\x00abc\x00" +
		"fmt \x12\x00\x00\x00\xfe\xff\x01\x00\x28\x23\x00\x00\x28\x23\x00\x00\x01\x00\x08\x00\x00\x00" +
		"data\x09\x00\x00\x00\x00\x80\xff")
	got, err = Parse(other) // an odd chunk before the format, an extended format, data that breaks off
	if want := (&Sound{Rate: 9000, Channels: 1, Bits: 8, Samples: []int16{-32768, 0, 32512}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("8 bits: got %v %v, want %v", got, err, want)
	}
}

func TestParseRefuses(t *testing.T) {
	good := Append(nil, &Sound{Rate: 16_000, Channels: 2, Samples: make([]int16, 4)})
	with := func(offset int, v ...byte) []byte {
		return slices.Replace(slices.Clone(good), 20+offset, 20+offset+len(v), v...)
	}
	for _, tt := range []struct {
		name, want string
		file       []byte
	}{
		{"empty", "not a WAV file", nil},
		{"another file", "not a WAV file", []byte("OggS00000000000000000000")},
		{"no data", "without data", good[:36]},
		{"data first", "before its format", slices.Delete(slices.Clone(good), 12, 36)},
		{"short format", "format of 4 bytes", good[:24]},
		{"float", "format 3", with(0, 3)},
		{"24 bits", "24 bits", with(14, 24)},
		{"no channel", "0 channels", with(2, 0)},
		{"five channels", "5 channels", with(2, 5)},
		{"slow", "1 Hz", with(4, 1, 0, 0, 0)},
		{"no whole sample", "no whole sample", good[:47]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse(tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestResample: a tone keeps its pitch and strength, upwards and downwards; one above half the new rate is weakened.
func TestResample(t *testing.T) {
	for _, tt := range []struct {
		name     string
		from, to int
		hertz    float64
		min, max float64 // of the root mean square, 7071 at full strength
	}{
		{"same", 9000, 9000, 440, 7060, 7080},
		{"up", 8000, 44_100, 440, 6800, 7080},
		{"down", 44_100, 9000, 440, 6800, 7080},
		{"too high", 44_100, 9000, 9100, 0, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tone(tt.from, 2, tt.hertz).Resample(tt.to)
			if got.Rate != tt.to || len(got.Samples) != 2*tt.to {
				t.Fatalf("%d samples at %d Hz", len(got.Samples), got.Rate)
			}
			sum, crossings := 0.0, 0
			for i := 0; i < len(got.Samples); i += 2 {
				v := float64(got.Samples[i])
				sum += v * v
				if i > 0 && (v > 0) != (got.Samples[i-2] > 0) {
					crossings++
				}
				if got.Samples[i] != -got.Samples[i+1] {
					t.Fatalf("channels differ at %d", i)
				}
			}
			if rms := math.Sqrt(sum / float64(tt.to)); rms < tt.min || rms > tt.max {
				t.Errorf("strength %.0f, want %.0f to %.0f", rms, tt.min, tt.max)
			}
			if tt.min > 0 && math.Abs(float64(crossings)-2*tt.hertz) > 2 {
				t.Errorf("%d crossings of zero, want %.0f", crossings, 2*tt.hertz)
			}
		})
	}
	if got := (&Sound{Rate: 192_000, Channels: 1, Samples: []int16{7}}).Resample(9000); !slices.Equal(got.Samples, []int16{7}) {
		t.Errorf("one sample: %v", got.Samples)
	}
}

// FuzzParse: any bytes are refused or are a sound that can be written, read and resampled.
func FuzzParse(f *testing.F) {
	f.Add(Append(nil, tone(4000, 1, 100)))
	f.Add(Append(nil, &Sound{Rate: 192_000, Channels: 4, Samples: []int16{1, 2, 3, 4}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		if again, err := Parse(Append(nil, s)); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%v: %+v, then %+v", err, s, again)
		}
		if len(s.Resample(9000).Samples) == 0 {
			t.Error("nothing left")
		}
	})
}

func TestMono(t *testing.T) {
	s := &Sound{Rate: 8000, Channels: 2, Samples: []int16{32767, 32767, -32768, -32768, 100, 200}}
	if got := s.Mono(); got.Rate != 8000 || got.Channels != 1 || !slices.Equal(got.Samples, []int16{32767, -32768, 150}) {
		t.Errorf("%+v", got)
	}
}

package endpoint_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"kennel/speech/endpoint"
)

// spoken returns "set a timer for ten minutes", 1.65 s of it speech, at the level of a voice beside the robot.
func spoken(t testing.TB) []int16 {
	t.Helper()
	b, err := os.ReadFile("../ogg/testdata/robot.pcm") // see there
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int16, len(b)/2)
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return out
}

// scene is a room with sound in it.
type scene struct {
	samples []int16
	rng     *rand.Rand
}

func room(length time.Duration, level float64) scene {
	s := scene{make([]int16, int(length.Seconds()*endpoint.Rate)), rand.New(rand.NewPCG(1, 2))}
	return s.noise(0, length, level)
}

// noise adds white noise whose root mean square is level.
func (s scene) noise(at, length time.Duration, level float64) scene {
	from := int(at.Seconds() * endpoint.Rate)
	for i := from; i < min(from+int(length.Seconds()*endpoint.Rate), len(s.samples)); i++ {
		s.add(i, s.rng.NormFloat64()*level)
	}
	return s
}

func (s scene) sound(at time.Duration, sound []int16, gain float64) scene {
	from := int(at.Seconds() * endpoint.Rate)
	for i, v := range sound[:min(len(sound), len(s.samples)-from)] {
		s.add(from+i, float64(v)*gain)
	}
	return s
}

func (s scene) add(i int, v float64) {
	s.samples[i] = int16(min(max(float64(s.samples[i])+v, math.MinInt16), math.MaxInt16))
}

// run writes the scene in pieces of 120 ms and returns when speech began, when the detector made up its mind, and how.
func run(s scene, c endpoint.Config) (began, ended time.Duration, state endpoint.State) {
	d, began := endpoint.New(c), -1
	const piece = endpoint.Rate / 100
	for at := 0; at < len(s.samples); at += piece {
		now := time.Duration(at+piece) * time.Second / endpoint.Rate
		state = d.Write(s.samples[at:min(at+piece, len(s.samples))])
		if state == endpoint.Speaking && began < 0 {
			began = now
		}
		if state >= endpoint.Ended {
			return began, now, state
		}
	}
	return began, time.Duration(len(s.samples)) * time.Second / endpoint.Rate, state
}

// TestSpeech: speech is found in silence and in noise, and its end 450 ms after it.
func TestSpeech(t *testing.T) {
	say := spoken(t)
	const ms = time.Millisecond
	for _, tc := range []struct {
		name string
		s    scene
		at   time.Duration // when the first word begins
	}{
		{"a quiet room", room(6*time.Second, 20).sound(time.Second, say, 1), time.Second},
		{"no room at all", room(6*time.Second, 0).sound(time.Second, say, 1), time.Second},
		{"from the first sample", room(6*time.Second, 20).sound(0, say[2000:], 1), 0},
		{"from the first sample, without a room", room(6*time.Second, 0).sound(0, say[2000:], 1), 0},
		{"a fan", room(6*time.Second, 200).sound(time.Second, say, 1), time.Second},
		{"a vacuum cleaner next door", room(8*time.Second, 600).sound(3*time.Second, say, 1.5), 3 * time.Second},
		{"from far away", room(6*time.Second, 20).sound(2*time.Second, say, 0.1), 2 * time.Second},
		{"after a click", room(7*time.Second, 20).noise(1500*ms, 30*ms, 8000).sound(3*time.Second, say, 1), 3 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began, ended, state := run(tc.s, endpoint.Config{})
			last := tc.at + 1650*ms
			if tc.at == 0 {
				last -= 125 * ms
			}
			t.Logf("began %v, ended %v, %v", began, ended, state)
			if state != endpoint.Ended || began < tc.at || began > tc.at+400*ms || ended < last+250*ms || ended > last+700*ms {
				t.Errorf("began %v, %v at %v; want to begin at %v to %v, and to end at %v to %v", began, state, ended, tc.at, tc.at+400*ms, last+250*ms, last+700*ms)
			}
		})
	}
}

// TestNoSpeech: what is not speech is not taken for it.
func TestNoSpeech(t *testing.T) {
	for name, s := range map[string]scene{
		"nothing":       room(6*time.Second, 0),
		"a quiet room":  room(6*time.Second, 20),
		"a loud room":   room(6*time.Second, 3000),
		"clicks":        room(6*time.Second, 20).noise(time.Second, 20*time.Millisecond, 9000).noise(2*time.Second, 30*time.Millisecond, 9000),
		"a fan goes up": room(6*time.Second, 100).noise(2*time.Second, time.Second/2, 60).noise(2500*time.Millisecond, 4*time.Second, 150),
	} {
		t.Run(name, func(t *testing.T) {
			if began, ended, state := run(s, endpoint.Config{}); state != endpoint.Silent || ended != 4*time.Second {
				t.Errorf("began %v, %v at %v; want silent at 4 s", began, state, ended)
			}
		})
	}
}

// TestTooLong: what never pauses is cut off.
func TestTooLong(t *testing.T) {
	say, s := spoken(t), room(12*time.Second, 20)
	for at := time.Duration(0); at < 11*time.Second; at += 1600 * time.Millisecond {
		s = s.sound(at, say[2000:], 1)
	}
	if _, ended, state := run(s, endpoint.Config{}); state != endpoint.TooLong || ended != 10*time.Second {
		t.Errorf("%v at %v, want too long at 10 s", state, ended)
	}
}

// FuzzDetector: any samples, in any pieces, give the same.
func FuzzDetector(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x7f, 0, 0x80}, 3)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		samples := make([]int16, 300*(len(b)/2))
		for i := range samples {
			samples[i] = int16(binary.LittleEndian.Uint16(b[i/300*2:]))
		}
		whole, cut := endpoint.New(endpoint.Config{}), endpoint.New(endpoint.Config{})
		whole.Write(samples)
		for n = min(max(n, 1), 2000); len(samples) > 0; samples = samples[min(n, len(samples)):] {
			cut.Write(samples[:min(n, len(samples))])
		}
		if one, many := whole.Write(nil), cut.Write(nil); one != many {
			t.Fatalf("%v, in pieces of %d %v", one, n, many)
		}
	})
}

func BenchmarkDetector(b *testing.B) {
	s := room(6*time.Second, 100).samples
	for b.Loop() {
		d := endpoint.New(endpoint.Config{NoSpeech: time.Hour})
		for at := 0; at < len(s); at += 1920 {
			d.Write(s[at : at+1920])
		}
	}
	b.ReportMetric(6*float64(b.N)/b.Elapsed().Seconds(), "s/s") // of audio
}

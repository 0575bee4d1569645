package sound

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// tone is a sine of so many samples.
func tone(rate, n int, hertz, strength float64) *Sound {
	s := &Sound{Rate: rate, Samples: make([]float32, n)}
	for i := range s.Samples {
		s.Samples[i] = float32(strength * math.Sin(2*math.Pi*hertz*float64(i)/float64(rate)))
	}
	return s
}

// part returns the strength of one pitch in samples, and of all the rest, as root mean squares.
func part(x []float32, rate int, hertz float64) (of, rest float64) {
	var sin, cos, all float64
	for i, v := range x {
		s, c := math.Sincos(2 * math.Pi * hertz * float64(i) / float64(rate))
		sin, cos, all = sin+s*float64(v), cos+c*float64(v), all+float64(v)*float64(v)
	}
	n := float64(len(x))
	power := 2 * (sin*sin + cos*cos) / (n * n)
	return math.Sqrt(power), math.Sqrt(math.Max(0, all/n-power))
}

func newMixer(t testing.TB, cfg Config) *Mixer {
	t.Helper()
	if cfg.Rate == 0 {
		cfg.Rate = 16_000
	}
	m, err := NewMixer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func play(t testing.TB, m *Mixer, s *Sound, o Options) *Playing {
	t.Helper()
	p, err := m.Play(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mix mixes in pieces of odd sizes.
func mix(m *Mixer, n int) []int16 {
	out := make([]int16, n)
	for at, size := 0, 1; at < n; size = size*7%311 + 1 {
		end := min(n, at+size)
		m.Mix(out[at:end])
		at = end
	}
	return out
}

func ended(p *Playing) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// TestExactStart: a sound begins at its sample and ends after its last, whatever pieces are mixed, and the place counts what was handed out.
func TestExactStart(t *testing.T) {
	for _, at := range []int64{33, 1000, 4097} {
		m := newMixer(t, Config{})
		ramp := &Sound{Rate: 16_000}
		for i := range 300 {
			ramp.Samples = append(ramp.Samples, 0.1+0.0005*float32(i))
		}
		p := play(t, m, ramp, Options{At: at})
		out := mix(m, 5000)
		if m.Position() != 5000 || !ended(p) || p.At() != at {
			t.Errorf("at %d, position %d, ended %v", p.At(), m.Position(), ended(p))
		}
		for i, v := range out {
			want := 0.0
			if k := i - int(at); k >= 0 && k < 300 {
				want = 32768 * float64(ramp.Samples[k])
			}
			if math.Abs(float64(v)-want) > 1 {
				t.Fatalf("at %d: sample %d: got %d, want %.1f", at, i, v, want)
			}
		}
	}
	m := newMixer(t, Config{})
	mix(m, 500)
	if p := play(t, m, tone(16_000, 10, 100, 1), Options{At: 20}); p.At() != 500+m.look {
		t.Errorf("late: at %d, want %d", p.At(), 500+m.look)
	}
}

// TestResample: tones keep pitch, strength and place at every usual rate, and what the lower rate cannot have is 60 dB lower (VEC-BNK-06).
func TestResample(t *testing.T) {
	for _, from := range []int{8000, 9000, 11_025, 22_050, 30_000, 44_100, 48_000} {
		for _, to := range []int{16_000, 16_025, 22_050} {
			s, err := tone(from, from, 1000, 0.5).At(to)
			if err != nil || s.Rate != to || len(s.Samples) != to {
				t.Fatalf("%d to %d: %d samples, %v", from, to, len(s.Samples), err)
			}
			middle := s.Samples[to/4 : to*3/4]
			of, rest := part(middle, to, 1000)
			if of < 0.352 || of > 0.355 || rest > of/1000 {
				t.Errorf("%d to %d: strength %.4f, rest %.6f", from, to, of, rest)
			}
			for i := to / 4; i < to*3/4; i++ {
				if want := 0.5 * math.Sin(2*math.Pi*1000*float64(i)/float64(to)); math.Abs(float64(s.Samples[i])-want) > 0.001 {
					t.Fatalf("%d to %d: sample %d is %.4f, want %.4f: it has moved", from, to, i, s.Samples[i], want)
				}
			}
		}
	}
	s, _ := tone(44_100, 44_100, 9500, 0.5).At(16_000)
	if of, rest := part(s.Samples[1000:15_000], 16_000, 6500); of > 0.0004 || rest > 0.0004 {
		t.Errorf("alias of %.5f, rest %.5f", of, rest)
	}
	if _, err := tone(44_100, 10, 1, 1).At(100); !errors.Is(err, ErrRate) {
		t.Errorf("100 Hz: %v", err)
	}
}

// TestResamplePieces: pieces give the samples of the whole.
func TestResamplePieces(t *testing.T) {
	in := tone(11_025, 5000, 700, 0.5)
	whole, err := in.At(16_000)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := NewResampler(11_025, 16_000)
	var got []float32
	for at := 0; at < len(in.Samples); at += 37 {
		got = r.Append(got, in.Samples[at:min(len(in.Samples), at+37)])
	}
	if len(got) < 7000 || !slices.Equal(got, whole.Samples[:len(got)]) {
		t.Errorf("%d samples differ from the whole", len(got))
	}
}

// TestStretch: speed changes the length alone, pitch the pitch alone.
func TestStretch(t *testing.T) {
	in := tone(16_000, 16_000, 400, 0.5)
	for _, tt := range []struct{ speed, pitch float64 }{{1, 1.5}, {1, 0.6}, {2, 1}, {0.5, 1}, {0.7, 1.3}, {1.4, 1.4}, {3, 0.5}} {
		out, err := in.Stretch(tt.speed, tt.pitch)
		if err != nil {
			t.Fatal(err)
		}
		if want := int(math.Round(16_000 / tt.speed)); len(out.Samples) != want {
			t.Errorf("%+v: %d samples, want %d", tt, len(out.Samples), want)
		}
		// A tone that is cut into grains has its strength within a hertz or two of its pitch.
		middle := out.Samples[len(out.Samples)/4 : len(out.Samples)*3/4]
		best, at := 0.0, 0.0
		for hz := 400*tt.pitch - 40; hz <= 400*tt.pitch+40; hz++ {
			if of, _ := part(middle, 16_000, hz); of > best {
				best, at = of, hz
			}
		}
		if math.Abs(at-400*tt.pitch) > 5 || best < 0.28 {
			t.Errorf("%+v: %.0f Hz of strength %.3f, want %.0f Hz of 0.354", tt, at, best, 400*tt.pitch)
		}
	}
	if _, err := in.Stretch(0.04, 1); !errors.Is(err, ErrRange) {
		t.Errorf("speed 0.04: %v", err)
	}
	m := newMixer(t, Config{})
	p := play(t, m, in, Options{Pitch: 2, Speed: 2, Loops: 3})
	if out := FromPCM(16_000, mix(m, 24_000+100)); !ended(p) || math.Abs(out.RMS()-0.353) > 0.01 {
		t.Errorf("three loops twice as fast: ended %v, strength %.3f", ended(p), out.RMS())
	}
}

// TestLimiter: the sum of loud sounds stays under the ceiling without being cut off; a quiet sound is not touched.
func TestLimiter(t *testing.T) {
	m := newMixer(t, Config{High: 100})
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		play(t, m, tone(16_000, 30_000, 200+600*r.Float64(), 0.2+0.7*r.Float64()), Options{At: r.Int64N(9000)})
	}
	out := mix(m, 50_000)
	peak, longest, same := int16(0), 0, 0
	for i, v := range out {
		peak = max(peak, v, -v)
		if same++; i == 0 || v != out[i-1] {
			same = 1
		}
		if v > 20_000 {
			longest = max(longest, same)
		}
	}
	if peak > 29_500 || peak < 25_000 || longest > 3 {
		t.Errorf("peak %d, %d samples in a row of one value", peak, longest)
	}
	quiet := tone(16_000, 8000, 500, 0.3)
	at := m.Position() + 40
	play(t, m, quiet, Options{At: at})
	for i, v := range mix(m, 8000)[40:] {
		if math.Abs(float64(v)-32768*float64(quiet.Samples[i])) > 1.5 {
			t.Fatalf("sample %d of a quiet sound: %d, want %.1f", i, v, 32768*quiet.Samples[i])
		}
	}
}

// TestHighPitches: a loud high tone is turned down, a low one of the same strength is not, and a low one beside it neither (VEC-SND-09).
func TestHighPitches(t *testing.T) {
	strength := func(hertz ...float64) (of []float64) {
		m := newMixer(t, Config{High: 0.1})
		for _, hz := range hertz {
			play(t, m, tone(16_000, 16_000, hz, 0.4), Options{})
		}
		x := FromPCM(16_000, mix(m, 16_000)).Samples[4000:12_000]
		for _, hz := range hertz {
			s, _ := part(x, 16_000, hz)
			of = append(of, s*math.Sqrt2)
		}
		return of
	}
	if s := strength(6000)[0]; s > 0.16 || s < 0.05 {
		t.Errorf("6000 Hz: %.3f", s)
	}
	if s := strength(300)[0]; math.Abs(s-0.4) > 0.01 {
		t.Errorf("300 Hz: %.3f", s)
	}
	if s := strength(300, 6000); s[0] < 0.38 || s[1] > 0.16 {
		t.Errorf("300 and 6000 Hz: %.3f", s)
	}
}

// TestEqualiser: a band changes what is near it.
func TestEqualiser(t *testing.T) {
	for hz, want := range map[float64]float64{1000: 2, 100: 1, 7000: 1} {
		s := tone(16_000, 16_000, hz, 0.25)
		NewEqualiser(16_000, []Band{{1000, 6.02, 2}, {9000, 20, 1}}).Apply(s.Samples)
		if of, _ := part(s.Samples[8000:], 16_000, hz); math.Abs(of*math.Sqrt2/0.25-want) > 0.06 {
			t.Errorf("%.0f Hz: factor %.3f, want %g", hz, of*math.Sqrt2/0.25, want)
		}
	}
}

// TestLevels: each scale rises, and its mute is silence (VEC-SND-12, part of VEC-AUD-07).
func TestLevels(t *testing.T) {
	last := -1.0
	for l := Mute; l <= High; l++ {
		m := newMixer(t, Config{})
		if err := m.SetLevel(l); err != nil {
			t.Fatal(err)
		}
		play(t, m, tone(16_000, 8000, 440, 0.5), Options{})
		mix(m, 1000) // the volume moves within a block
		got := FromPCM(16_000, mix(m, 4000)).RMS()
		if got <= last || l == Mute && got != 0 {
			t.Errorf("%v: %.4f after %.4f", l, got, last)
		}
		last = got
	}
	if err := newMixer(t, Config{}).SetLevel(6); !errors.Is(err, ErrRange) {
		t.Errorf("level 6: %v", err)
	}
	for n, want := range []Level{Low, MediumLow, Medium, MediumHigh, High} {
		if l, err := ClientLevel(n); err != nil || l != want {
			t.Errorf("master volume %d: %v %v", n, l, err)
		}
	}
	if _, err := ClientLevel(5); !errors.Is(err, ErrRange) {
		t.Errorf("master volume 5: %v", err)
	}
	last = -1
	for percent := range 101 {
		g, err := PercentGain(percent)
		if err != nil || g <= last || percent == 0 && g != 0 || percent == 100 && g != 1 {
			t.Errorf("%d %%: %v %v", percent, g, err)
		}
		last = g
	}
	if _, err := PercentGain(101); !errors.Is(err, ErrRange) {
		t.Errorf("101 %%: %v", err)
	}
}

// TestDuck: under speech the other channels are 12 dB lower, and come back after it; speech itself is not.
func TestDuck(t *testing.T) {
	m := newMixer(t, Config{})
	play(t, m, tone(16_000, 64_000, 500, 0.2), Options{})
	play(t, m, tone(16_000, 16_000, 800, 0.2), Options{Channel: Speech, At: 16_000})
	x := FromPCM(16_000, mix(m, 64_000)).Samples
	for _, tt := range []struct {
		from, to int
		hz, want float64
	}{{2000, 10_000, 500, 0.2}, {20_000, 30_000, 500, 0.05}, {20_000, 30_000, 800, 0.2}, {44_000, 60_000, 500, 0.2}} {
		if of, _ := part(x[tt.from:tt.to], 16_000, tt.hz); math.Abs(of*math.Sqrt2-tt.want) > 0.005 {
			t.Errorf("%+v: %.3f", tt, of*math.Sqrt2)
		}
	}
}

// TestFiveSources: each channel has its own volume, and all are in the sum (VEC-SND-01).
func TestFiveSources(t *testing.T) {
	m := newMixer(t, Config{Duck: 1})
	for c := range Channels {
		m.SetChannel(c, 0.2*float64(c+1))
		play(t, m, tone(16_000, 16_000, 300+200*float64(c), 0.1), Options{Channel: c})
	}
	x := FromPCM(16_000, mix(m, 16_000)).Samples[4000:12_000]
	for c := range Channels {
		if of, _ := part(x, 16_000, 300+200*float64(c)); math.Abs(of*math.Sqrt2-0.02*float64(c+1)) > 0.001 {
			t.Errorf("%v: %.4f", c, of*math.Sqrt2)
		}
	}
}

// TestStop: a loop plays until it is stopped (VEC-BNK-05), a stop does not click, and one that has not begun is not heard.
func TestStop(t *testing.T) {
	m := newMixer(t, Config{})
	p := play(t, m, tone(16_000, 160, 100, 0.5), Options{Loops: Forever})
	if left := m.Remain(); left != time.Hour {
		t.Errorf("remain %v", left)
	}
	if FromPCM(16_000, mix(m, 16_000)).RMS() < 0.35 || ended(p) {
		t.Error("the loop ended")
	}
	p.Stop(10 * time.Millisecond)
	x := FromPCM(16_000, mix(m, 1600)).Samples
	for i := 1; i < len(x); i++ {
		if math.Abs(float64(x[i]-x[i-1])) > 0.04 {
			t.Fatalf("click at %d: %.3f, %.3f", i, x[i-1], x[i])
		}
	}
	if !ended(p) || m.Remain() != 0 || x[len(x)-1] != 0 {
		t.Errorf("ended %v, remain %v", ended(p), m.Remain())
	}
	p = play(t, m, tone(16_000, 160, 100, 0.5), Options{At: 1 << 40})
	m.StopChannel(Files, 0)
	if FromPCM(16_000, mix(m, 160)).Peak() != 0 || !ended(p) {
		t.Error("a sound that had not begun was not stopped")
	}
}

// TestRefuses: too many, and numbers that cannot be.
func TestRefuses(t *testing.T) {
	m := newMixer(t, Config{Most: 2})
	s := tone(16_000, 10, 100, 1)
	for range 2 {
		play(t, m, s, Options{})
	}
	if _, err := m.Play(s, Options{}); !errors.Is(err, ErrFull) {
		t.Errorf("third: %v", err)
	}
	mix(m, 200)
	play(t, m, s, Options{})
	nan := math.NaN()
	for _, o := range []Options{{Gain: nan}, {Gain: -1}, {Pitch: 5}, {Speed: 0.01}, {Speed: nan}, {Loops: -2}, {Channel: 5}} {
		if _, err := m.Play(s, o); !errors.Is(err, ErrRange) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := NewMixer(Config{Rate: 16}); !errors.Is(err, ErrRate) {
		t.Errorf("16 Hz: %v", err)
	}
	play(t, m, &Sound{Rate: 16_000}, Options{Loops: Forever, Pitch: 2})
	play(t, newMixer(t, Config{}), &Sound{Rate: 16_000}, Options{Loops: Forever})
	mix(m, 200)
}

// TestStream: a client's samples are heard at their pitch whatever its rate, the end is told, what comes too fast is an overrun (part of VEC-SND-10, part of VEC-AUD-05).
func TestStream(t *testing.T) {
	for _, rate := range []int{8000, 11_025, 16_000, 16_025} {
		m := newMixer(t, Config{})
		s, err := m.Open(Client, rate, 1)
		if err != nil {
			t.Fatal(err)
		}
		pcm := tone(rate, rate*3/2, 600, 0.3).PCM()
		var heard []int16
		for at := 0; at < len(pcm); at += MaxChunk / 2 {
			if err := s.Write(pcm[at:min(len(pcm), at+MaxChunk/2)]); err != nil {
				t.Fatalf("%d Hz, sample %d: %v", rate, at, err)
			}
			heard = append(heard, mix(m, MaxChunk/2*16_000/rate)...)
		}
		s.Complete()
		heard = append(heard, mix(m, 3000)...)
		of, rest := part(FromPCM(16_000, heard).Samples[4000:20_000], 16_000, 600)
		sent, played, _ := s.Counts()
		if math.Abs(of*math.Sqrt2-0.3) > 0.005 || rest > 0.02 || sent != int64(len(pcm)) || sent-played > 8 || !ended(s.Playing) {
			t.Errorf("%d Hz: strength %.3f, rest %.3f, sent %d, played %d, ended %v", rate, of*math.Sqrt2, rest, sent, played, ended(s.Playing))
		}
		if err := s.Write(pcm[:1]); !errors.Is(err, ErrClosed) {
			t.Errorf("after its end: %v", err)
		}
	}
	m := newMixer(t, Config{})
	for _, rate := range []int{7999, 16_026, 0} {
		if _, err := m.Open(Client, rate, 1); !errors.Is(err, ErrRate) {
			t.Errorf("%d Hz: %v", rate, err)
		}
	}
	s, err := m.Open(Client, 16_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(make([]int16, 32_000)); err != nil {
		t.Errorf("two seconds: %v", err)
	}
	mix(m, 100)
	var over *Overrun
	if err := s.Write(make([]int16, 400)); !errors.As(err, &over) || over.Sent != 32_400 || over.Played < 100 || over.Played > 150 {
		t.Errorf("more: %v", err)
	}
	s.Cancel()
	if mix(m, 200); !ended(s.Playing) {
		t.Error("canceled, and not ended")
	}
}

// TestCushion: a client that sends as fast as it is heard may be late by less than the cushion without a gap (part of VEC-AUD-05).
func TestCushion(t *testing.T) {
	for _, late := range []time.Duration{60 * time.Millisecond, 120 * time.Millisecond} {
		m := newMixer(t, Config{Rate: 16_000})
		s, err := m.Open(Client, 16_000, 1)
		if err != nil {
			t.Fatal(err)
		}
		write := func(d time.Duration) {
			t.Helper()
			if err := s.Write(make([]int16, d*16/time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			write(20 * time.Millisecond)
			mix(m, 320)
		}
		mix(m, int(late*16/time.Millisecond)) // and nothing is sent
		write(late)
		for range 20 {
			write(20 * time.Millisecond)
			mix(m, 320)
		}
		if _, _, gaps := s.Counts(); (gaps > 0) != (late > 80*time.Millisecond) {
			t.Errorf("late by %v: %v without sound", late, gaps)
		}
	}
}

// TestNoAllocations: mixing with everything at once allocates nothing.
func TestNoAllocations(t *testing.T) {
	m, out := busy(t), make([]int16, 160)
	m.Mix(out)
	if n := testing.AllocsPerRun(200, func() { m.Mix(out) }); n != 0 {
		t.Errorf("%v allocations for a block", n)
	}
}

// busy returns a mixer with the sounds of a lively robot: a clip's, its motors, one of another pitch and speed, and speech over them.
func busy(t testing.TB) *Mixer {
	m := newMixer(t, Config{Bands: []Band{{400, -3, 1}, {2500, 3, 1}}})
	play(t, m, tone(16_000, 16_000, 440, 0.3), Options{Loops: Forever})
	play(t, m, tone(16_000, 16_000, 120, 0.2), Options{Channel: Procedural, Loops: Forever})
	play(t, m, tone(16_000, 16_000, 300, 0.2), Options{Channel: Procedural, Loops: Forever, Pitch: 1.2, Speed: 0.8})
	play(t, m, tone(16_000, 16_000, 250, 0.5), Options{Channel: Speech, Loops: Forever})
	return m
}

func ExampleMixer() {
	m, err := NewMixer(Config{Rate: 16_000})
	if err != nil {
		panic(err)
	}
	chirp := &Sound{Rate: 8000, Samples: make([]float32, 800)}
	p, err := m.Play(chirp, Options{At: 1600})
	if err != nil {
		panic(err)
	}
	m.Mix(make([]int16, 4000))
	<-p.Done()
	fmt.Println(m.Position(), m.Remain())
	// Output: 4000 0s
}

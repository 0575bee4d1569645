package voice

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/sound"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

// TestClean: what is spoken of a text, and what cannot be.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"  Hello,\n\tthere!  ":          "Hello, there!",
		"[[h@l'oU]] <speak>a</speak>":   "((h@l'oU)) (speak)a(/speak)",
		"a\x00b\x1b[31m\u202ec\u200bd":  "ab(31mcd",
		"Grüße, 42!":                    "Grüße, 42!",
		strings.Repeat("é", MaxText):    strings.Repeat("é", MaxText),
		"":                              "",
		" ... !? ":                      "",
		"\xff":                          "",
		strings.Repeat("é", MaxText+1):  "",
		strings.Repeat("a ", MaxText*9): "",
	} {
		got, err := Clean(text)
		if got != want || (err != nil) != (want == "") || err != nil && !errors.Is(err, ErrText) {
			t.Errorf("%.40q: got %.40q, %v", text, got, err)
		}
	}
}

// TestSentences: a text is cut after its sentences, not in numbers, and nothing of it is lost.
func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello.": {"Hello."},
		"It is 3.5 degrees outside, not more. Take a coat with you! Will you? Yes.": {"It is 3.5 degrees outside, not more.", "Take a coat with you! Will you?", "Yes."},
		"今日はとても良い天気ですね。散歩に行きましょう。":                                                  {"今日はとても良い天気ですね。", "散歩に行きましょう。"},
		"What a very long question is that??? ... !":                                {"What a very long question is that??? ... !"},
	} {
		if got := Sentences(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestScaled: the ranges of what clients ask (part of VEC-AUD-08, VEC-TTS-05).
func TestScaled(t *testing.T) {
	for _, tt := range []struct{ duration, pitch, speed, factor float64 }{{0, 0, 1, 1}, {0.05, 1, 20, math.Sqrt2}, {20, -1, 0.05, math.Sqrt2 / 2}} {
		r, err := Request{}.Scaled(tt.duration, tt.pitch)
		if err != nil || math.Abs(r.Speed-tt.speed) > 1e-9 || math.Abs(r.Pitch-tt.factor) > 1e-9 {
			t.Errorf("%+v: %+v %v", tt, r, err)
		}
	}
	for _, tt := range [][2]float64{{0.049, 0}, {20.1, 0}, {1, 1.01}, {1, -1.01}, {math.NaN(), 0}, {1, math.NaN()}} {
		if _, err := (Request{}).Scaled(tt[0], tt[1]); !errors.Is(err, sound.ErrRange) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

// vowel is a sound with overtones, as a voice makes them.
func vowel(hertz, seconds float64) *sound.Sound {
	s := &sound.Sound{Rate: 16_000, Samples: make([]float32, int(16_000*seconds))}
	for i := range s.Samples {
		for k := 1.0; k*hertz < 3000; k++ {
			s.Samples[i] += float32(0.3 / k * math.Sin(2*math.Pi*hertz*k*float64(i)/16_000))
		}
	}
	return s
}

// TestTrack: the pitch of voices every 30 ms to 2 %, none of noise and silence (VEC-TTS-03).
func TestTrack(t *testing.T) {
	for _, hz := range []float64{80, 121.3, 200, 333, 450} {
		track := Track(vowel(hz, 0.5))
		if len(track) < 14 || len(track) > 16 {
			t.Errorf("%g Hz: %d estimates", hz, len(track))
		}
		for i, got := range track {
			if math.Abs(got-hz) > 0.02*hz {
				t.Errorf("%g Hz: estimate %d is %.1f", hz, i, got)
			}
		}
	}
	noise := &sound.Sound{Rate: 16_000, Samples: make([]float32, 16_000)}
	if got := median(Track(noise)); got != 0 {
		t.Errorf("silence: %.1f Hz", got)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range noise.Samples {
		noise.Samples[i] = float32(0.5 * r.NormFloat64())
	}
	found := 0
	for _, hz := range Track(noise) {
		if hz > 0 {
			found++
		}
	}
	if found > 3 {
		t.Errorf("noise: %d estimates", found)
	}
}

func program1(t *testing.T, open func() (Synthesizer, error)) Synthesizer {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const sentence = "Hello, I am your robot. The weather is fine today."

// TestPrograms: both programs speak, faster and higher if asked to, with shapes of the mouth in order; hostile texts are only spoken.
func TestPrograms(t *testing.T) {
	for name, open := range map[string]func() (Synthesizer, error){"flite": NewFlite, "espeak-ng": NewEspeak} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := program1(t, open)
			plain, err := s.Speak(t.Context(), Request{Text: sentence})
			if err != nil || s.Name() != name || plain.Sound.RMS() < 0.02 || plain.Sound.Span() < 2*time.Second || plain.Sound.Span() > 6*time.Second {
				t.Fatalf("%s: %v", s.Name(), err)
			}
			fast, err := s.Speak(t.Context(), Request{Text: sentence, Speed: 2})
			if r := fast.Sound.Span().Seconds() / plain.Sound.Span().Seconds(); err != nil || r < 0.35 || r > 0.65 {
				t.Errorf("twice as fast: %.2f of the time, %v", r, err)
			}
			high, err := s.Speak(t.Context(), Request{Text: sentence, Pitch: 1.4})
			if r := median(Track(high.Sound)) / median(Track(plain.Sound)); err != nil || r < 1.3 || r > 1.5 || high.Sound.Span() != plain.Sound.Span() {
				t.Errorf("higher: %.2f, %v", r, err)
			}
			if plain.Timed != (name == "flite") || len(plain.Visemes) < 20 || plain.Visemes[len(plain.Visemes)-1].Shape != Silence {
				t.Errorf("timed %v, %d visemes", plain.Timed, len(plain.Visemes))
			}
			if !slices.IsSortedFunc(plain.Visemes, func(a, b Viseme) int { return int(a.At - b.At) }) || plain.Visemes[len(plain.Visemes)-1].At > plain.Sound.Span()+20*time.Millisecond {
				t.Errorf("visemes of %v: %v", plain.Sound.Span(), plain.Visemes)
			}
			for _, text := range []string{"-h --version", "$(id) `id` ; id", "'; rm x\" \\ %s %n", "/etc/passwd"} {
				text, err := Clean(text)
				if err != nil {
					t.Fatal(err)
				}
				if u, err := s.Speak(t.Context(), Request{Text: text}); err != nil || u.Sound.Span() > 15*time.Second {
					t.Errorf("%q: %v", text, err)
				}
			}
			if _, err := s.Speak(t.Context(), Request{Text: "a", Voice: "--help"}); errs.KindOf(err) != errs.Invalid {
				t.Errorf("a voice that is an option: %v", err)
			}
			if _, err := s.Speak(t.Context(), Request{Text: "a", Speed: 100}); !errors.Is(err, sound.ErrRange) {
				t.Errorf("speed 100: %v", err)
			}
		})
	}
}

// TestMissing: a program that is not installed is an error with the remedy.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for pkg, open := range map[string]func() (Synthesizer, error){"espeak-ng": NewEspeak, "flite": NewFlite} {
		if _, err := open(); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "install the package "+pkg) {
			t.Errorf("%s: %v", pkg, err)
		}
	}
}

// TestCancelProgram: a program that hangs ends with its request, and one that fails or writes nothing is an error.
func TestCancelProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	write := func(script string) Synthesizer {
		if err := os.WriteFile(filepath.Join(dir, "flite"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		return program1(t, NewFlite)
	}
	s := write("echo $$ >" + dir + "/pid; /bin/sleep 1000 & wait")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Speak(ctx, Request{Text: "a"})
		done <- err
	}()
	testwait.Until(t, 20*time.Second, "the program runs", func() error { _, err := os.Stat(dir + "/pid"); return err })
	began := time.Now()
	cancel()
	if err := testwait.For(t, done, "the end of the program"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	t.Logf("canceled in %v", time.Since(began))
	if os.Getenv("KENNEL_SOAK") == "1" && time.Since(began) > 100*time.Millisecond {
		t.Errorf("canceled in %v", time.Since(began))
	}
	if _, err := write("echo no such voice >&2; exit 3").Speak(t.Context(), Request{Text: "a"}); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "no such voice") {
		t.Errorf("fails: %v", err)
	}
	if _, err := write("exit 0").Speak(t.Context(), Request{Text: "a"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("writes nothing: %v", err)
	}
}

// TestCharacters: plain changes nothing; the others have their pitch whatever voice speaks, the strength of the speech, and are told apart (VEC-TTS-03).
func TestCharacters(t *testing.T) {
	s := program1(t, NewFlite)
	for _, name := range []string{"slt", "rms"} {
		u, err := s.Speak(t.Context(), Request{Text: sentence, Voice: name})
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(u.Sound.Samples)
		for _, c := range Characters {
			got, err := c.Apply(u)
			if err != nil {
				t.Fatal(err)
			}
			pitch := median(Track(got.Sound))
			if c.Name == "plain" {
				if got.Sound != u.Sound {
					t.Error("plain is not plain")
				}
				continue
			}
			natural := median(Track(u.Sound))
			want := min(max(c.Pitch, natural/2), natural*2)
			if math.Abs(pitch-want) > 0.12*want || math.Abs(float64(got.Sound.Peak()-u.Sound.Peak())) > 0.01 || len(got.Visemes) != len(u.Visemes) {
				t.Errorf("%s of %s: %.0f Hz, want %.0f; peak %.2f of %.2f", c.Name, name, pitch, want, got.Sound.Peak(), u.Sound.Peak())
			}
		}
		if !slices.Equal(before, u.Sound.Samples) {
			t.Error("a character changed the speech that it was given")
		}
	}
	if _, err := FindCharacter("nobody"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("unknown: %v", err)
	}
}

// TestVisemes: phones with their times, over several lines; and phones without.
func TestVisemes(t *testing.T) {
	got := timedVisemes("pau:0.2 hh:0.3 ax:0.4 l:0.5 ow:0.6 pau:0.8 \nnonsense x:y pau:0.1 m:0.2 b:0.3 s:0.4 \n")
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	want := []Viseme{{0, Silence}, {ms(200), EE}, {ms(300), AA}, {ms(400), NN}, {ms(500), OH}, {ms(600), Silence}, {ms(900), PP}, {ms(1100), SS}, {ms(1200), Silence}}
	if !slices.EqualFunc(got, want, func(a, b Viseme) bool { return a.Shape == b.Shape && (a.At-b.At).Abs() < time.Microsecond }) {
		t.Errorf("timed: %v", got)
	}
	s := vowel(150, 1)
	clear(s.Samples[:1600])
	clear(s.Samples[8000:9600])
	clear(s.Samples[14_400:])
	got = estimatedVisemes("m_'a\n s_i:_t_S\n", s)
	want = []Viseme{{ms(100), PP}, {ms(260), AA}, {ms(500), Silence}, {ms(600), SS}, {ms(660), IH}, {ms(780), DD}, {ms(840), CH}, {ms(900), Silence}}
	if !slices.EqualFunc(got, want, func(a, b Viseme) bool { return a.Shape == b.Shape && (a.At-b.At).Abs() < ms(15) }) {
		t.Errorf("estimated: %v", got)
	}
}

// stand is a synthesiser of tests: a vowel of 40 ms for each letter, and an error for the text that says so.
type stand struct {
	hold chan struct{} // nil: does not wait
}

func (stand) Name() string { return "stand-in" }

func (s stand) Speak(ctx context.Context, r Request) (Utterance, error) {
	if strings.Contains(r.Text, "fail") {
		return Utterance{}, errs.New(errs.Unavailable, "it fails")
	}
	if s.hold != nil {
		select {
		case <-ctx.Done():
			return Utterance{}, ctx.Err()
		case <-s.hold:
		}
	}
	u := Utterance{Sound: vowel(150, 0.04*float64(len(r.Text))), Timed: true}
	u.Visemes = []Viseme{{0, AA}, {u.Sound.Span(), Silence}}
	return u, nil
}

// room is a speaker whose mixer is mixed as fast as it can, and what it is told.
type room struct {
	*Speaker
	m      *sound.Mixer
	mu     sync.Mutex
	states []State
	heard  []int16
}

func newRoom(t *testing.T, s Synthesizer) *room {
	m, err := sound.NewMixer(sound.Config{Rate: 16_000})
	if err != nil {
		t.Fatal(err)
	}
	r := &room{Speaker: NewSpeaker(m, s), m: m}
	ctx, cancel := context.WithCancel(context.Background())
	var mixing sync.WaitGroup
	mixing.Go(func() {
		for ctx.Err() == nil {
			pcm := make([]int16, 160)
			m.Mix(pcm)
			r.mu.Lock()
			r.heard = append(r.heard, pcm...)
			r.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); mixing.Wait() })
	return r
}

func (r *room) told(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, s)
}

func (r *room) seen() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.states)
}

const two = "This is the first of two sentences. And this one is the second."

// TestSay: both sentences are heard one right after the other, and the states pass in order (part of VEC-AUD-09).
func TestSay(t *testing.T) {
	r := newRoom(t, stand{})
	if err := r.Say(t.Context(), Request{Text: two}, Character{}, r.told); err != nil {
		t.Fatal(err)
	}
	if want := []State{Generating, Ready, Playing, Finished}; !slices.Equal(r.seen(), want) {
		t.Errorf("states %v", r.seen())
	}
	loud := 0
	r.mu.Lock()
	x := sound.FromPCM(16_000, r.heard).Samples
	r.mu.Unlock()
	first, last := -1, 0
	for i := 0; i+160 <= len(x); i += 160 {
		if (&sound.Sound{Samples: x[i : i+160]}).RMS() > 0.1 {
			if loud++; first < 0 {
				first = i / 160
			}
			last = i / 160
		}
	}
	if letters := len(two) - 1; loud < 4*letters-3 || loud > 4*letters+3 || last-first > loud+8 {
		t.Errorf("%d blocks are loud, from %d to %d", loud, first, last)
	}
	if r.Mouth() != Silence {
		t.Errorf("the mouth is %v", r.Mouth())
	}
}

// TestSayCanceled: speech that plays, or is being made, ends with its request; only one speaks at a time; the mouth moves meanwhile.
func TestSayCanceled(t *testing.T) {
	for _, making := range []bool{false, true} {
		hold := make(chan struct{})
		if !making {
			close(hold)
		}
		r := newRoom(t, stand{hold})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Say(ctx, Request{Text: strings.Repeat(two+" ", 10)}, Character{}, r.told) }()
		want := []State{Generating}
		if !making {
			want = []State{Generating, Ready, Playing}
		}
		testwait.Until(t, 20*time.Second, "the utterance runs", func() error {
			if !slices.Equal(r.seen(), want) || !making && r.Mouth() != AA {
				return errors.New("not yet")
			}
			return nil
		})
		if err := r.Say(t.Context(), Request{Text: "a"}, Character{}, nil); !errors.Is(err, ErrBusy) {
			t.Errorf("another: %v", err)
		}
		cancel()
		if err := testwait.For(t, done, "the end of Say"); !errors.Is(err, context.Canceled) || !slices.Equal(r.seen(), append(want, Invalid)) {
			t.Errorf("making %v: %v, states %v", making, err, r.seen())
		}
		testwait.Until(t, 20*time.Second, "silence", func() error {
			if r.m.Remain() != 0 {
				return errors.New("not yet")
			}
			return nil
		})
		if at := r.m.Position(); r.Mouth() != Silence {
			t.Errorf("the mouth is %v at %d", r.Mouth(), at)
		}
	}
}

// TestSayFails: a text that cannot be spoken, a synthesiser that fails at once or in the second sentence, and a character that cannot be.
func TestSayFails(t *testing.T) {
	for text, want := range map[string][]State{
		"...":  {Invalid},
		"fail": {Generating, Invalid},
		"This is the first of two sentences. The second one is to fail.": {Generating, Ready, Playing, Invalid},
	} {
		r := newRoom(t, stand{})
		if err := r.Say(t.Context(), Request{Text: text}, Character{}, r.told); err == nil || !slices.Equal(r.seen(), want) {
			t.Errorf("%q: %v, states %v", text, err, r.seen())
		}
	}
	r := newRoom(t, stand{})
	if err := r.Say(t.Context(), Request{Text: "a", Speed: -1}, Character{}, r.told); !errors.Is(err, sound.ErrRange) {
		t.Errorf("speed: %v", err)
	}
	if err := r.Say(t.Context(), Request{Text: "a"}, Character{Speed: 100}, r.told); !errors.Is(err, sound.ErrRange) {
		t.Errorf("character: %v", err)
	}
	if err := r.Say(t.Context(), Request{Text: "a"}, Character{}, nil); err != nil {
		t.Errorf("after failures: %v", err)
	}
}

package bank

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/sound"
	"kennel/edge/sound/synth"
)

const rate = 16_000

// pitches are sounds of 100 ms that a mixture shows by their strength: each has its own.
const pitches = `
sound a
0 tone 500 for=100 attack=0 release=0 gain=0.1
sound b
0 tone 500 for=100 attack=0 release=0 gain=0.2
sound c
0 tone 500 for=100 attack=0 release=0 gain=0.3
`

type stage struct {
	*Engine
	m     *sound.Mixer
	calls []Call
}

func newStage(t testing.TB, texts ...string) *stage {
	t.Helper()
	s := &stage{}
	var banks []*Bank
	for _, text := range texts {
		k, err := Parse([]byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		banks = append(banks, k)
	}
	var err error
	if s.m, err = sound.NewMixer(sound.Config{Rate: rate}); err != nil {
		t.Fatal(err)
	}
	s.Engine = NewEngine(Config{Mixer: s.m, Banks: banks, Random: rand.NewPCG(1, 2), Observe: func(c Call) { s.calls = append(s.calls, c) }})
	return s
}

func (s *stage) post(t testing.TB, o Object, name string, volume float64, at int64) []*sound.Playing {
	t.Helper()
	p, err := s.Post(o, clip.SoundID(name), volume, at)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// hear mixes so many milliseconds, and returns a letter for the peak of each 50: "-" silence, a, b and c the sounds, "." something else.
func (s *stage) hear(ms int) string {
	var out strings.Builder
	for range ms / 50 {
		pcm := make([]int16, rate/20)
		s.m.Mix(pcm)
		peak := sound.FromPCM(rate, pcm).Peak()
		letter := byte('.')
		for c, want := range map[byte]float32{'-': 0, 'a': 0.1, 'b': 0.2, 'c': 0.3} {
			if peak > want-0.005 && peak < want+0.005 {
				letter = c
			}
		}
		out.WriteByte(letter)
	}
	return out.String()
}

// TestEvent: steps play one after the other to the sample, with others beside them, and waits between.
func TestEvent(t *testing.T) {
	s := newStage(t, pitches+`
event steps
play a
wait 100
play b
with a gain=0.001 speed=2
play c loops=2 gain=0.5
`)
	p := s.post(t, Animation, "steps", 1, 1600)
	if got := s.hear(800); got != "--aa--bb....----" { // c at half its gain is another sound
		t.Errorf("heard %s", got)
	}
	var at []int64
	for _, p := range p {
		at = append(at, p.At())
	}
	if want := []int64{1600, 4800, 4800, 6400}; !slices.Equal(at, want) {
		t.Errorf("begin at %d, want %d", at, want)
	}
	if _, err := s.Post(Animation, 7, 1, 0); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown event: %v", err)
	}
	if _, err := s.Post(2, clip.SoundID("a"), 1, 0); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown object: %v", err)
	}
}

// TestVariants: a step does not play one of the last 6 again, or with fewer variants one of all but the others (VEC-SND-04).
func TestVariants(t *testing.T) {
	for _, n := range []int{1, 2, 4, 9} {
		a := Action{Choices: make([]Choice, n)}
		s := newStage(t)
		var drawn []int
		seen := map[int]bool{}
		for range 300 {
			i := s.choose(&a)
			avoid := min(Recent, n-1)
			if slices.Contains(drawn[max(0, len(drawn)-avoid):], i) {
				t.Fatalf("%d variants: %d after %v", n, i, drawn[max(0, len(drawn)-avoid):])
			}
			drawn, seen[i] = append(drawn, i), true
		}
		if len(seen) != n {
			t.Errorf("%d of %d variants were played", len(seen), n)
		}
		if n == 9 && slices.Equal(drawn[:9], drawn[9:18]) {
			t.Error("the variants take turns")
		}
	}
}

// TestLively: with less stimulation a lively event is rarer and quieter; others are not (VEC-SND-05).
func TestLively(t *testing.T) {
	s := newStage(t, pitches+"event lively lively\nplay c\nevent calm\nplay c\n")
	count := func(name string) (n int, gain float64) {
		for range 200 {
			for _, p := range s.post(t, Animation, name, 1, 0) {
				n++
				pcm := make([]int16, 800)
				s.m.Mix(pcm)
				gain = max(gain, float64(sound.FromPCM(rate, pcm[200:600]).Peak()))
				p.Stop(0)
				s.m.Mix(pcm)
			}
		}
		return n, gain
	}
	for _, tt := range []struct {
		v    float64
		n    int
		gain float64
	}{{1, 200, 0.3}, {0.5, 120, 0.21}, {0, 40, 0.12}} {
		s.SetMood(Stimulation, tt.v)
		if n, gain := count("lively"); n < tt.n-25 || n > tt.n+25 || gain < tt.gain-0.01 || gain > tt.gain+0.01 {
			t.Errorf("stimulation %g: %d times, gain %.3f, want %d and %.3f", tt.v, n, gain, tt.n, tt.gain)
		}
		if n, gain := count("calm"); n != 200 || gain < 0.29 {
			t.Errorf("stimulation %g: the other %d times, gain %.3f", tt.v, n, gain)
		}
	}
}

// TestConditions: states, switches and ranges of parameters choose what is played; a switch follows its parameter; game objects are apart (VEC-SND-08).
func TestConditions(t *testing.T) {
	s := newStage(t, pitches+`
switch Energy by Power calm 0.3 lively 0.7 wild
event by_switch
when Mood angry
play c
when Mood happy
play b
event by_energy
when Energy calm
play a
when Energy lively
play b
when Energy wild
play c
event by_value
when Speed 0..50
play a
when Speed 50..100
play b
always
play c
event faster
set Speed 75
`)
	heard := func(o Object, name string) string {
		s.post(t, o, name, 1, s.m.Position()+800)
		got := strings.Trim(s.hear(400), "-")
		s.hear(100)
		return got
	}
	check := func(o Object, name, want string) {
		t.Helper()
		if got := heard(o, name); got != want {
			t.Errorf("%v, %s: heard %q, want %q", o, name, got, want)
		}
	}
	check(Animation, "by_switch", "")
	s.SetState(clip.SoundID("Mood"), clip.SoundID("happy"))
	check(Animation, "by_switch", "bb")
	s.SetSwitch(Animation, clip.SoundID("Mood"), clip.SoundID("angry"))
	check(Animation, "by_switch", "cc")
	check(Procedural, "by_switch", "bb")
	for v, want := range map[float64]string{0.1: "aa", 0.3: "bb", 0.69: "bb", 0.7: "cc"} {
		s.SetParameter(Animation, clip.SoundID("Power"), v, 0)
		check(Animation, "by_energy", want)
	}
	check(Procedural, "by_energy", "aa")
	check(Animation, "by_value", "aacc")
	s.post(t, Animation, "faster", 1, 0)
	check(Animation, "by_value", "bbcc")
	check(Procedural, "by_value", "aacc")
	s.SetParameter(Animation, clip.SoundID("Speed"), 0, time.Second)
	s.hear(200)
	check(Animation, "by_value", "bbcc") // 60 of 75 are left
	s.hear(200)
	check(Animation, "by_value", "aacc")
}

// TestActions: stop, volume, mute and unmute act on their game object, on what plays and on what comes.
func TestActions(t *testing.T) {
	s := newStage(t, pitches+`
event purr
play b loops=forever
event hush
stop purr over=10
event half
volume 0.5
event full
volume 1
event quiet
mute
event loud
unmute
event silence
stop all
`)
	s.post(t, Animation, "purr", 1, 0)
	s.post(t, Procedural, "a", 1, 0)
	s.hear(150)
	if got := s.hear(200); got != "bbbb" {
		t.Errorf("purr: %s", got)
	}
	for _, tt := range []struct{ event, want string }{{"half", "a"}, {"full", "b"}, {"quiet", "-"}, {"loud", "b"}, {"hush", "-"}} {
		s.post(t, Animation, tt.event, 1, 0)
		s.hear(50)
		if got := s.hear(100); got != tt.want+tt.want {
			t.Errorf("%s: heard %s", tt.event, got)
		}
	}
	s.post(t, Animation, "quiet", 1, 0)
	if p := s.post(t, Animation, "b", 1, 0); len(p) != 0 || s.hear(100) != "--" {
		t.Errorf("muted, and %d sounds play", len(p))
	}
	s.post(t, Animation, "loud", 1, 0)
	s.post(t, Animation, "purr", 1, 0)
	s.post(t, Animation, "silence", 1, 0)
	if s.hear(50); s.hear(100) != "--" {
		t.Error("stop all left a sound")
	}
}

// TestBundle: banks are loaded in the order of the bundle (part of VEC-BNK-01), Init first, and later ones win (VEC-BNK-02).
func TestBundle(t *testing.T) {
	quiet := &sound.Sound{Rate: 44_100, Samples: make([]float32, 4410)}
	for i := range quiet.Samples {
		quiet.Samples[i] = 0.2 * float32(1-2*(i/50%2))
	}
	files := fstest.MapFS{
		Bundle: {Data: []byte(`[{"bundle_name":"x","language":"SFX","path":"one","soundbank_name":"Victor_SFX"},
			{"bundle_name":"x","language":"SFX","path":"","soundbank_name":"Init"},{"bundle_name":"x","language":"English(US)","path":"two","soundbank_name":"Mine"}]`)},
		"one/Victor_SFX.sounds": {Data: []byte("event both\nplay a\nevent one\nplay a\n" + pitches)},
		"Init.sounds":           {Data: []byte("event both\nmute\nswitch Energy by Power low 1 high\n")},
		"two/Mine.sounds":       {Data: []byte("event both\nplay d\nfile d d.wav\n")},
		"two/d.wav":             {Data: quiet.AppendWAV(nil)},
	}
	banks, err := Load(files)
	if err != nil || len(banks) != 3 || len(banks[0].Switches) != 1 || len(banks[1].Sounds) != 3 {
		t.Fatalf("%d banks, %v", len(banks), err)
	}
	s := newStage(t)
	s.all = *Merge(banks...)
	if errs := s.all.Missing(rate); len(errs) != 0 {
		t.Error(errs)
	}
	s.post(t, Animation, "both", 1, 800)
	if p := s.post(t, Animation, "one", 1, 4000); len(p) != 1 {
		t.Error("an event of an earlier bank is gone")
	}
	if s.hear(50); s.hear(100) == "--" {
		t.Error("the file is not heard")
	}
	for name, bad := range map[string]string{"no JSON": "{", "outside": `[{"path":"..","soundbank_name":"a"}]`, "a path": `[{"soundbank_name":"../a"}]`,
		"no name": `[{}]`, "no file": `[{"soundbank_name":"a"}]`, "many": "[" + strings.Repeat("{},", MaxBanks) + "{}]"} {
		if _, err := Load(fstest.MapFS{Bundle: {Data: []byte(bad)}}); !errors.Is(err, ErrBundle) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(fstest.MapFS{}); !errors.Is(err, ErrBundle) {
		t.Errorf("no bundle: %v", err)
	}
	if errs := Merge(banks[2], &Bank{Events: map[uint32]*Event{1: {Actions: []Action{{Choices: []Choice{{Sound: 5}}}}}}}).Missing(rate); len(errs) != 1 || !errors.Is(errs[0], ErrUnknown) {
		t.Errorf("missing: %v", errs)
	}
}

// TestFire: a clip's states, switches and parameters are set before its sounds are posted, and each call is told as the original's tools see it (part of VEC-SND-14).
func TestFire(t *testing.T) {
	s := newStage(t, pitches+"event e\nwhen Mood happy\nplay c\n")
	id := clip.SoundID
	f := &clip.Fired{Posts: []clip.Post{{Event: id("e"), Volume: 1}, {Event: 99, Volume: 1}, {Event: id("a"), Volume: 0.5}},
		Audio: &clip.Audio{States: []clip.AudioState{{Group: id("Mood"), State: id("happy")}}, Switches: []clip.AudioState{{Group: 1, State: 2}},
			Parameters: []clip.AudioParameter{{Parameter: 3, Value: 4}}}}
	p, err := s.Fire(f, 0)
	if len(p) != 2 || !errors.Is(err, ErrUnknown) {
		t.Errorf("%d sounds, %v", len(p), err)
	}
	want := []Call{{Type: "SetState", Group: id("Mood"), State: id("happy")}, {Type: "SetSwitchState", Switch: 1, SwitchTo: 2, Object: 3994535597},
		{Type: "PostAudioEvent", Event: "e", Object: 3994535597}, {Type: "PostAudioEvent", Event: "a", Object: 3994535597}}
	if !reflect.DeepEqual(s.calls, want) {
		t.Errorf("calls %+v", s.calls)
	}
	if v := s.value(Animation, 3, 0); v != 4 {
		t.Errorf("parameter %g", v)
	}
	s.StopAll(Animation, 0)
	if s.hear(50); s.hear(50) != "-" {
		t.Error("sounds play after StopAll")
	}
	if p, err := s.Fire(&clip.Fired{}, 0); p != nil || err != nil {
		t.Errorf("nothing: %v %v", p, err)
	}
}

// TestSoundtrack: the sounds of a clip are heard at the sample of their keyframes, also between steps and in a second loop (part of VEC-AFF-08).
func TestSoundtrack(t *testing.T) {
	s := newStage(t, "sound a\n0 tone 500 for=20 attack=0 release=0 gain=0.5 wave=square\n")
	clips, err := clip.ParseText([]byte("clip x\n0 sound a\n101 sound a\n233 sound a\n400 head 0 over=100\n"))
	if err != nil {
		t.Fatal(err)
	}
	track := NewSoundtrack(s.Engine, clip.NewPlayer(clip.Vector, &clip.Locks{}, 1))
	s.hear(50)
	if err := track.Start(&clips[0], clip.Options{Loops: 2}); err != nil {
		t.Fatal(err)
	}
	begins := int64(rate/20) + samples(ahead, rate)
	var heard []int16
	ended := false
	for len(heard) < rate*6/5 {
		var f clip.Frame
		other, err := track.Step(&f)
		if err != nil {
			t.Fatal(err)
		}
		ended = ended || len(other) > 0
		pcm := make([]int16, 333) // no multiple of anything
		s.m.Mix(pcm)
		heard = append(heard, pcm...)
	}
	var at []int64
	quiet := 0
	for i, v := range heard {
		if v != 0 && quiet > 200 {
			at = append(at, int64(i)+rate/20-begins-1) // a wave begins with 0
		}
		if quiet++; v != 0 {
			quiet = 0
		}
	}
	span := samples(clips[0].Span(), rate)
	want := []int64{0, 1616, 3728, span, span + 1616, span + 3728}
	if !slices.Equal(at, want) || !ended {
		t.Errorf("heard at %d, want %d; ended %v", at, want, ended)
	}
	got, err := Render(&s.all, &clips[0], clip.Vector, rate, 1, time.Minute)
	if err != nil || got.Samples[1] == 0 || got.Samples[1616] != 0 || got.Samples[1617] == 0 || len(got.Samples) < int(span) {
		t.Errorf("rendered: %v", err)
	}
}

// TestErrors: what is wrong in a text, and where.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"clip a":                                    "line 1, column 1:",
		"file a":                                    "line 1, column 1:",
		"file a ../b.wav":                           "line 1, column 1:",
		"switch g by p a 0.3":                       "line 1, column 1:",
		"switch g of p a 0.3 b":                     "line 1, column 1:",
		"switch g by p a 0.3 b 0.2 c":               "line 1, column 23:",
		"switch g by p a x b":                       "line 1, column 17:",
		"event":                                     "line 1, column 1:",
		"event a b":                                 "line 1, column 1:",
		"event a":                                   "line 1, column 7:",
		"event a\nplay":                             "line 2, column 1:",
		"event a\nplay b |":                         "line 2, column 1:",
		"event a\nplay b c":                         "line 2, column 8:",
		"event a\nplay gain=1":                      "line 2, column 6:",
		"event a\nplay b loud=1":                    "line 2, column 8:",
		"event a\nplay b pitch=9":                   "line 2, column 8:",
		"event a\nwait":                             "line 2, column 1:",
		"event a\nwait x":                           "line 2, column 6:",
		"event a\nset p":                            "line 2, column 1:",
		"event a\nmute all":                         "line 2, column 1:",
		"event a\nwhen p":                           "line 2, column 1:",
		"event a\nwhen p 5..4\nplay b":              "line 2, column 8:",
		"event a\nplay b\nevent a\nplay b":          "line 3, column 7:",
		"sound a\n0 tone 400\nsound A\n0 tone 40":   "line 3, column 7:",
		"event a\n" + strings.Repeat("mute\n", 101): "line 102, column 1:",
		"switch g by p a 1 b\nswitch g by p a 1 b":  "line 2, column 8:",
	} {
		if _, err := Parse([]byte(text), nil); !errors.Is(err, synth.ErrText) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Parse([]byte("\nfile a b.wav"), fstest.MapFS{"b.wav": {Data: []byte("RIFF")}}); err == nil || !strings.Contains(err.Error(), "line 2, column 8:") {
		t.Errorf("a file that is none: %v", err)
	}
}

// FuzzParse: a bank that is read has events that can be posted.
func FuzzParse(f *testing.F) {
	f.Add([]byte(pitches + "event a lively\nplay a | b gain=2 vary=100\nwith c loops=3\nwait 5\nwhen Mood x\nstop a over=4\nalways\nset p 1 over=3\nmute\nunmute\nvolume 0.1\n"))
	f.Add([]byte(pitches + "switch g by p a 1 b 2 c\nevent e\nwhen g a\nplay c pitch=2 speed=0.5\nwhen p 0..1\nstop all\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := Parse(b, nil)
		if err != nil {
			if !errors.Is(err, synth.ErrText) {
				t.Fatal(err)
			}
			return
		}
		span := time.Duration(0)
		for _, s := range k.Sounds {
			span += s.Text.Span()
		}
		if span > 2*time.Second || len(k.Events) > 10 {
			return
		}
		m, err := sound.NewMixer(sound.Config{Rate: 8000, Most: 4})
		if err != nil {
			t.Fatal(err)
		}
		e := NewEngine(Config{Mixer: m, Banks: []*Bank{k}, Random: rand.NewPCG(1, 1)})
		for id := range k.Events {
			if _, err := e.Post(Animation, id, 1, 0); err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, sound.ErrFull) && !errors.Is(err, sound.ErrRange) {
				t.Fatal(err)
			}
			m.Mix(make([]int16, 100))
		}
	})
}

func ExampleEngine() {
	k, err := Parse([]byte("sound bark\n0 chirp 300..200 for=90\nevent greet\nplay bark\nplay bark pitch=1.2\n"), nil)
	if err != nil {
		panic(err)
	}
	m, err := sound.NewMixer(sound.Config{Rate: 16_000})
	if err != nil {
		panic(err)
	}
	e := NewEngine(Config{Mixer: m, Banks: []*Bank{k}})
	playing, err := e.Post(Animation, clip.SoundID("greet"), 1, 320)
	fmt.Println(len(playing), playing[0].At(), playing[1].At(), err)
	// Output: 2 320 1760 <nil>
}

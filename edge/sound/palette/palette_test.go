package palette

import (
	"math"
	"testing"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/repertoire"
	"kennel/edge/sound"
	"kennel/edge/sound/bank"
)

const rate = 16_000

// TestSounds: at least 40 sounds, each of which is heard, begins and ends without a click, and is like no other; every event finds its sounds.
func TestSounds(t *testing.T) {
	k, err := Bank()
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range k.Missing(rate) {
		t.Error(err)
	}
	if len(k.Sounds) < 40 || len(k.Events) < 40 {
		t.Errorf("%d sounds and %d events, want 40 of each", len(k.Sounds), len(k.Events))
	}
	seen, loops := map[float64]string{}, map[uint32]bool{}
	for _, e := range k.Events {
		for _, a := range e.Actions {
			for _, c := range a.Choices {
				loops[c.Sound] = c.Loops == sound.Forever
			}
		}
	}
	for id, s := range k.Sounds {
		got, err := s.At(rate)
		if err != nil {
			t.Fatal(err)
		}
		n := len(got.Samples)
		if got.RMS() < 0.01 || got.Peak() > 0.96 || got.Span() < 50*time.Millisecond || got.Span() > 3*time.Second {
			t.Errorf("%s: strength %.4f, peak %.3f, %v", s.Name, got.RMS(), got.Peak(), got.Span())
		}
		if a, b := math.Abs(float64(got.Samples[0])), math.Abs(float64(got.Samples[n-1])); a > 0.05 || b > 0.05 && !loops[id] {
			t.Errorf("%s: begins with %.3f, ends with %.3f", s.Name, a, b)
		}
		if got.RMS() == 0 || seen[got.RMS()] != "" {
			t.Errorf("%s sounds like %s", s.Name, seen[got.RMS()])
		}
		seen[got.RMS()] = s.Name
	}
}

// TestStored: every sound that bodies store is one of Kennel's, with a number of its own from the first of those that owners choose (AMIGO-SND-02).
func TestStored(t *testing.T) {
	k, err := Bank()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]string{}
	for name, n := range Stored() {
		if k.Events[clip.SoundID(name)] == nil {
			t.Errorf("%s is no sound of Kennel", name)
		}
		if was, twice := seen[n]; twice || n < 50 || n > 255 {
			t.Errorf("%s: %d, like %q", name, n, was)
		}
		seen[n] = name
	}
	if len(seen) < 12 {
		t.Errorf("%d sounds", len(seen))
	}
}

// TestClips: every sound that a clip of Kennel's posts is an event here, and is heard at its keyframe.
func TestClips(t *testing.T) {
	l, err := repertoire.Library()
	if err != nil {
		t.Fatal(err)
	}
	k, err := Bank()
	if err != nil {
		t.Fatal(err)
	}
	posts := 0
	for name, c := range l.Clips {
		for _, a := range c.Tracks.Audio {
			for _, g := range a.Groups {
				for _, id := range g.Events {
					posts++
					m, err := sound.NewMixer(sound.Config{Rate: rate})
					if err != nil {
						t.Fatal(err)
					}
					playing, err := bank.NewEngine(bank.Config{Mixer: m, Banks: []*bank.Bank{k}}).Post(bank.Animation, id, 1, rate/2)
					out := make([]int16, rate)
					m.Mix(out)
					if err != nil || len(playing) == 0 || playing[0].At() != rate/2 || sound.FromPCM(rate, out[:rate/2]).Peak() != 0 || sound.FromPCM(rate, out[rate/2:]).RMS() < 0.01 {
						t.Errorf("%s posts %d: %d sounds, %v", name, id, len(playing), err)
					}
				}
			}
		}
	}
	if posts < 15 {
		t.Errorf("clips post %d sounds", posts)
	}
	if _, ok := k.Events[clip.SoundID("kennel_mood_HAPPY")]; !ok {
		t.Error("a name in other letters has another number")
	}
}

package mind

import (
	"testing"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mood"
	"kennel/edge/sound/bank"
)

// newMind returns a mind that does not run.
func newMind(t *testing.T) *Mind {
	t.Helper()
	m, err := New(Config{Library: clip.NewLibrary()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMoodOfSounds: the mood sets the parameters of the sounds on every change (VEC-SND-06), the level of the purr with each petting; what a person orders is heard as from
// a robot that is stirred.
func TestMoodOfSounds(t *testing.T) {
	m := newMind(t)
	want := func(when string, stimulated, social, confident, happy, trust, purr float64) {
		t.Helper()
		for name, v := range map[string]float64{"Robot_Vic_Stimulation": stimulated, "Robot_Vic_Social": social, "Robot_Vic_Confident": confident, "Robot_Vic_Happy": happy,
			"Robot_Vic_Held_Trust": trust, "Robot_Vic_Purr_Level": purr} {
			for _, o := range []bank.Object{bank.Animation, bank.Procedural} {
				if got := m.audio.engine.Parameter(o, name); got < v-1e-9 || got > v+1e-9 {
					t.Errorf("%s: %s of %s is %v, want %v", when, name, o, got, v)
				}
			}
		}
	}
	want("at rest", 0, 0, 0, 0, 0, 0)
	if err := m.feels.post(0, []string{"FistBumpSuccess"}); err != nil {
		t.Fatal(err)
	}
	want("fist bump", 0.5, 0.3, 0, 0.3, 0.05, 0)
	m.feels.happened(0, "robot.petted")
	want("petted", 0.6, 0.3, 0, 0.5, 0.1, 0.25)
	m.feels.ordered(true)
	want("an order", 1, 0.3, 0, 0.5, 0.1, 0.25)
	m.feels.ordered(false)
	want("after it", 0.6, 0.3, 0, 0.5, 0.1, 0.25)
	for i := range 1800 {
		m.feels.fade(time.Duration(i) * time.Second)
	}
	if got := m.audio.engine.Parameter(bank.Animation, "Robot_Vic_Stimulation"); got != 0 {
		t.Errorf("after half an hour it is still stimulated: %v", got)
	}
	if got := m.audio.engine.Parameter(bank.Animation, "Robot_Vic_Purr_Level"); got != 0 {
		t.Errorf("after half an hour it still purrs: %v", got)
	}
}

// TestFadingTold: a mood that fades is told in steps, and at last that it rests; a reader that does not read misses some, and delays nothing.
func TestFadingTold(t *testing.T) {
	m := newMind(t)
	r := make(chan mindlink.Feeling, maxFeelings)
	m.feels.readers[r] = true
	m.feels.readers[make(chan mindlink.Feeling)] = true
	if err := m.feels.post(0, []string{"ReactToTriggerWord"}); err != nil {
		t.Fatal(err)
	}
	for i := range 3600 {
		m.feels.fade(time.Duration(i) * time.Second)
	}
	close(r)
	n, last := 0, mindlink.Feeling{}
	for f := range r {
		if e := f.Emotions["Stimulated"]; n > 0 && e.Before != last.Emotions["Stimulated"].Value {
			t.Errorf("change %d begins at %v, and the one before ended at %v", n, e.Before, last.Emotions["Stimulated"].Value)
		}
		n, last = n+1, f
	}
	if n < 20 || n > 40 || last.Emotions["Stimulated"].Value != 0 || last.Simple != mood.LowStim {
		t.Errorf("%d changes, the last one %+v; want 20 to 40, at last at rest", n, last)
	}
}

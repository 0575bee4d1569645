package rollout

import (
	"testing"
	"time"

	"kennel/ota"
)

// TestPostponed: a robot whose owner postpones gives its grant back, keeps no phase from passing, counts for no guard, and gets the release when its time has
// come.
func TestPostponed(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{50, 0}, {100, 0}}, Cap: 200, WatchS: 1, Guards: []Guard{}}), 200)
	w.step(0)
	n := 0
	for i := range w.facts {
		if f := &w.facts[i]; w.members[f.Thing].State == Granted && n < 40 {
			f.Choice = ota.Choice{Chosen: w.now, First: w.now, Until: w.now.Add(72 * time.Hour)}
			n++
		}
	}
	w.step(time.Minute)
	if w.count(Granted) != 60 || w.r.Progress.Why[WhyPostponed] != 40 {
		t.Fatalf("%d granted, %v; want 60, and 40 postponed", w.count(Granted), w.r.Progress.Why)
	}
	w.take(well)
	for range 3 {
		w.step(time.Minute)
	}
	if w.r.Phase != 1 || w.r.State != Running {
		t.Fatalf("%s in phase %d, lacks %+v; want the second phase", w.r.State, w.r.Phase, w.r.Progress.Lacks)
	}
	w.take(well)
	for range 3 {
		w.step(time.Minute)
	}
	if w.r.State != Done || w.count(Failed)+w.count(Lost)+w.count(Fell) > 0 {
		t.Errorf("%s, %d failed; want done", w.r.State, w.count(Failed))
	}
	for i := range w.facts {
		f := &w.facts[i]
		if f.Choice.Chosen.IsZero() {
			continue
		}
		for after, want := range map[time.Duration]WhyCode{time.Hour: WhyPostponed, 71 * time.Hour: WhyPostponed, 74 * time.Hour: WhyWindow, 87 * time.Hour: WhyGranted} { // 14:00, 03:00 UTC
			if _, why, _ := w.r.Ask(*f, w.members[f.Thing], 0, start.Add(after)); why.Code != want {
				t.Errorf("%s asks %v later: %s, want %s", f.Thing, after, why.Code, want)
			}
		}
	}
}

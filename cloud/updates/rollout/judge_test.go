package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kennel/infra/thing"
	"kennel/ota"
)

// days lets the fleet live, in steps of ten minutes: robots that are granted take the release at once, and each of them that has it meets its fate.
func (w *world) days(n float64, fate func(i int, f *Fact, since time.Duration)) {
	for end := w.now.Add(time.Duration(n * float64(24*time.Hour))); w.now.Before(end); {
		w.step(10 * time.Minute)
		w.take(well)
		for i := range w.facts {
			f := &w.facts[i]
			if m := w.members[f.Thing]; !m.Updated.IsZero() && fate != nil {
				fate(i, f, w.now.Sub(m.Updated))
			}
			if m := w.members[f.Thing]; m.State == Return && f.Present {
				f.Running = older
				w.members[f.Thing], _ = w.r.Report(m, ota.Status{Release: older, Running: older, Phase: ota.Current, Since: m.At}, w.now)
			}
		}
		if w.r.State == Stopped || w.r.State == Held && !w.free {
			return
		}
		if w.r.State == Held {
			w.release()
		}
	}
}

func (w *world) release() {
	w.r.accept(w.members)
	if w.r.Hold == HoldPhase {
		w.r.next(w.now, func(kind, _ string) { w.turns = append(w.turns, kind) })
		return
	}
	w.r.State, w.r.Hold, w.r.Evidence = Running, "", nil
}

// first returns the robot that is in the n-th place of the rollout's order.
func (w *world) nth(n int) *Fact {
	order := slices.Clone(w.facts)
	slices.SortFunc(order, func(a, b Fact) int {
		if w.r.Place(a.Thing) < w.r.Place(b.Thing) {
			return -1
		}
		return 1
	})
	return &w.facts[slices.IndexFunc(w.facts, func(f Fact) bool { return f.Thing == order[n].Thing })]
}

// TestPhases (issues 17.5 and 27.11): each phase has its exact number of robots, from the front of one order; those held out come after the last one.
func TestPhases(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{1, 600}, {10, 600}, {50, 0}, {100, 600}}, Cap: 100_000}), 2000)
	w.free = true
	for _, want := range []int{20, 200, 1000, 1900} {
		w.step(time.Second)
		treated := 0
		for _, m := range w.members {
			if m.treated() {
				treated++
			}
		}
		if treated != want || w.count(Control) < MinControl {
			t.Errorf("phase %d: %d robots granted, %d compared; want %d and at least %d", w.r.Phase+1, treated, w.count(Control), want, MinControl)
		}
		for phase := w.r.Phase; w.r.Phase == phase; {
			w.days(0.01, nil)
		}
	}
	w.days(0.1, nil)
	if w.r.State != Done || w.count(Through) != 2000 {
		t.Errorf("%s with %d through", w.r.State, w.count(Through))
	}
	want := []string{TurnBaking, TurnHeld, TurnPhase, TurnBaking, TurnPhase, TurnBaking, TurnPhase, TurnBaking, TurnPhase, TurnDone}
	if !slices.Equal(w.turns, want) {
		t.Errorf("turns %q; want %q", w.turns, want)
	}
	for _, tt := range []struct {
		robots int
		phases []Phase
		want   []int
	}{
		{5, []Phase{{20, 0}, {100, 0}}, []int{1, 5}}, {4, []Phase{{20, 0}, {50, 0}, {100, 0}}, []int{1, 2, 4}}, {1000, []Phase{{0.1, 0}, {33.3, 0}, {99.9, 0}}, []int{1, 333, 999}},
	} {
		w := fleet(running(t, Spec{Phases: tt.phases, Cap: 10_000, Guards: []Guard{}}), tt.robots)
		for i, n := range tt.want {
			w.step(time.Minute)
			if w.take(well); w.count(Through) != n {
				t.Errorf("%d robots, phase %d: %d updated, want %d", tt.robots, i+1, w.count(Through), n)
			}
			w.step(time.Minute)
			w.step(time.Minute)
		}
	}
}

// TestHarmStops (issue 27.6): a release that makes robots crash stops in the phase where it shows, within the time that robots are watched, with its evidence; robots
// that have it go back in steps, the first ten before all others.
func TestHarmStops(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 1000, Rollback: true}), 2000)
	w.days(2, func(i int, f *Fact, since time.Duration) {
		if i%5 == 0 && since > time.Hour {
			f.Problems = []string{"crash/g1"}
		}
	})
	e := w.r.Evidence
	if w.r.State != Stopped || w.r.Phase != 0 || e == nil || e.Code != HoldEvidence || e.Metric != Problems || e.Bad < 5 || e.Of != 200 || e.Strength < StopAt || len(e.Robots) == 0 || !w.r.Back {
		t.Fatalf("%s in phase %d, evidence %+v", w.r.State, w.r.Phase, e)
	}
	if n := w.count(Return) + w.count(Returned); n != BackFirst {
		t.Errorf("%d robots go back at first, want %d", n, BackFirst)
	}
	last := 0
	for w.count(Through) > 0 && w.now.Before(start.Add(72*time.Hour)) {
		w.step(time.Minute)
		if n := w.count(Return); n > 9*max(last, BackFirst) {
			t.Fatalf("%d robots go back after %d", n, last)
		}
		w.days(0.001, nil)
		for i := range w.facts {
			f := &w.facts[i]
			if m := w.members[f.Thing]; m.State == Return {
				f.Running = older
				w.members[f.Thing], _ = w.r.Report(m, ota.Status{Release: older, Running: older, Phase: ota.Current, Since: m.At}, w.now)
			}
		}
		last = w.count(Returned)
	}
	if n := w.count(Returned); n != 200 {
		t.Errorf("%d of 200 are back", n)
	}
}

// TestRollbackThatFails: robots that cannot go back keep the others from being told.
func TestRollbackThatFails(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{50, 600}, {100, 600}}, Cap: 1000, Guards: []Guard{}}), 400)
	w.days(0.1, nil)
	w.r.State, w.r.Back = Aborted, true
	for range 20 {
		w.step(time.Minute)
		for id, m := range w.members {
			if m.State == Return {
				w.members[id], _ = w.r.Report(m, ota.Status{Release: older, Running: string(newer), Phase: ota.Failed, Code: int(ota.SlotFailed), Since: m.At}, w.now)
			}
		}
	}
	if n := w.count(Return); n != BackFirst || w.count(Through) == 0 {
		t.Errorf("%d were told to go back although none can", n)
	}
}

// TestWithdraw (issue 27.1): once a rollout is stopped, a robot that has installed the release and waits for its reboot is told to drop it. It counts as returned
// only when it says so of that very wish, and one that booted the release all the same is taken back.
func TestWithdraw(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{100, 600}}, Cap: 100, Guards: []Guard{}}), 4)
	w.step(0)
	for id, m := range w.members {
		w.members[id], _ = w.r.Report(m, ota.Status{Release: newer, Running: older, Phase: ota.Installed, Since: m.Granted, Next: newer}, w.now)
	}
	w.r.State = Aborted
	if w.step(time.Minute); w.count(Return) != 4 {
		t.Fatalf("%d of 4 are told to return", w.count(Return))
	}
	report := func(n int, s ota.Status) Member {
		id := w.facts[n].Thing
		w.members[id], _ = w.r.Report(w.members[id], s, w.now)
		return w.members[id]
	}
	wish := w.members[w.facts[0].Thing].At
	for i, s := range []ota.Status{
		{Release: older, Running: older, Phase: ota.Current},                                                                     // an earlier agent, which drops nothing
		{Release: older, Running: older, Phase: ota.Current, Since: wish, Next: newer},                                           // not dropped yet
		{Release: newer, Running: older, Phase: ota.Installed, Since: wish.Add(-time.Minute), Next: newer},                       // the report before
		{Release: older, Running: older, Phase: ota.Current, Since: wish.Add(-time.Hour)},                                        // of another wish
		{Release: older, Running: older, Phase: ota.Failed, Since: wish, Code: int(ota.SlotFailed), Reason: "slot not writable"}, // it cannot
	} {
		if m := report(0, s); m.State != Return {
			t.Errorf("report %d: %s, want %s", i, m.State, Return)
		}
	}
	if m := report(0, ota.Status{Release: older, Running: older, Phase: ota.Current, Since: wish}); m.State != Returned {
		t.Errorf("%+v; want it to have returned", m)
	}
	w.step(time.Hour) // what it runs does not count as its word
	if w.count(Return) != 3 {
		t.Errorf("%d are still to return, want 3", w.count(Return))
	}
	w.facts[1].Running = string(newer) // it booted the release at night
	w.step(time.Hour)
	if d, ok := w.r.Desired(w.members[w.facts[1].Thing]); !ok || !d.Rollback || d.Release != older {
		t.Errorf("a robot that booted the release should run %+v, %t", d, ok)
	}
	w.facts[0].Running = string(newer) // so did one that had said that it would not
	w.step(time.Hour)
	if m := w.members[w.facts[0].Thing]; m.State != Return {
		t.Errorf("%+v; want it to be taken back", m)
	}
	w.facts[2].Running = "3.0.0.1" // a hotfix took its place
	w.step(time.Hour)
	if m := w.members[w.facts[2].Thing]; m.State != Idle {
		t.Errorf("%+v; want nothing to be told", m)
	}
}

// TestNights (issue 27.2): a quarter of the robots is switched off for the night, in both groups, and the last phase has a control too: nothing is stopped.
func TestNights(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 2000, Rollback: true}), 2000)
	w.free = true
	for range 7 * 24 * 6 {
		hour := w.now.Hour()
		for i := range w.facts {
			f := &w.facts[i]
			off := i%4 == 0 && (hour >= 22 || hour < 6)
			if f.Present && off {
				f.Since = w.now
			}
			f.Present = !off
		}
		w.days(1.0/144, nil)
		if w.r.State == Stopped {
			t.Fatalf("stopped: %s", w.r.Why)
		}
	}
	if w.r.State != Done {
		t.Errorf("%s, lacks %+v", w.r.State, w.r.Progress.Lacks)
	}
}

// TestVanished (issue 27, build 5): robots that vanish while they update hold the rollout at two, and stop it at five, without a rollback.
func TestVanished(t *testing.T) {
	for lost, want := range map[int]State{1: Baking, 2: Held, 5: Stopped} {
		w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 2000, Rollback: true}), 1000)
		w.step(0)
		n := 0
		for i := range w.facts {
			f := &w.facts[i]
			if m := w.members[f.Thing]; m.State == Granted && n < lost {
				n++
				w.members[f.Thing], _ = w.r.Report(m, ota.Status{Release: newer, Running: older, Phase: ota.Downloading}, w.now)
				f.Present, f.Since = false, w.now.Add(time.Minute)
			}
		}
		for i := range w.facts {
			if f := &w.facts[i]; f.Present && w.members[f.Thing].State == Granted {
				f.Running = string(newer)
				w.members[f.Thing], _ = w.r.Report(w.members[f.Thing], ota.Status{Release: newer, Running: f.Running, Phase: ota.Current}, w.now)
			}
		}
		for range 20 {
			w.step(10 * time.Minute)
		}
		if w.r.State != want || w.r.Back || w.count(Lost)+w.count(Return) != lost {
			t.Errorf("%d lost: %s (%s), %d lost; want %s", lost, w.r.State, w.r.Why, w.count(Lost), want)
		}
	}
}

// TestFellBack (issue 27.3): a robot that falls back is not granted again, counts as bad, and two of them hold the rollout, five stop it and take all back.
func TestFellBack(t *testing.T) {
	for fell, want := range map[int]State{1: Baking, 2: Held, 5: Stopped} {
		w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 2000, Rollback: true}), 1000)
		w.step(0)
		w.take(well)
		n := 0
		for i := range w.facts {
			f := &w.facts[i]
			if m := w.members[f.Thing]; m.State == Through && n < fell {
				n++
				f.Running = older
				w.members[f.Thing], _ = w.r.Report(m, ota.Status{Release: newer, Running: older, Phase: ota.FellBack, Code: int(ota.Other), Since: m.Granted}, w.now)
			}
		}
		for range 10 {
			w.step(10 * time.Minute)
		}
		if w.r.State != want || w.count(Fell) != fell || w.r.Back != (want == Stopped) {
			t.Errorf("%d fell back: %s (%s), %d known, back %t; want %s", fell, w.r.State, w.r.Why, w.count(Fell), w.r.Back, want)
		}
		for i := range w.facts {
			if m := w.members[w.facts[i].Thing]; m.State == Fell {
				if m, why, changed := w.r.Ask(w.facts[i], m, 0, w.now); changed || why.Code != WhyFell {
					t.Errorf("a robot that fell back got %+v, %s", m, why.Code)
				}
			}
		}
	}
}

// TestLateProblem (issue 27.7): with the default guards, a problem that comes 20 hours after the update counts as much as one of the first hours.
func TestLateProblem(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 1000, Rollback: true}), 2000)
	w.days(2, func(i int, f *Fact, since time.Duration) {
		if i%5 == 0 && since > 20*time.Hour {
			f.Problems = []string{"fault/914"}
		}
	})
	if e := w.r.Evidence; w.r.State != Stopped || w.r.Phase != 0 || e == nil || e.Metric != Problems {
		t.Errorf("%s in phase %d: %s", w.r.State, w.r.Phase, w.r.Why)
	}
}

// TestFailuresTakeBack: a stop for updates that failed takes robots back if two fell back among them, not if none began to run the release.
func TestFailuresTakeBack(t *testing.T) {
	for phase, back := range map[ota.Phase]bool{ota.FellBack: true, ota.Failed: false} {
		w := fleet(running(t, Spec{Phases: []Phase{{1, 600}, {100, 600}}, Cap: 2000, Rollback: true, Guards: []Guard{{Metric: Failures, Share: 0.05, Sample: 5}}}), 500)
		w.step(0)
		n := 0
		for _, f := range w.facts {
			if m := w.members[f.Thing]; m.State == Granted && n < 4 {
				n++
				w.members[f.Thing], _ = w.r.Report(m, ota.Status{Release: newer, Running: older, Phase: phase, Code: int(ota.SlotFailed), Since: m.Granted}, w.now)
			}
		}
		w.take(well)
		w.step(time.Minute)
		if w.r.State != Stopped || w.r.Evidence.Metric != Failures || w.r.Back != back {
			t.Errorf("%s: %s (%s), back %t; want stopped, back %t", phase, w.r.State, w.r.Why, w.r.Back, back)
		}
	}
}

// TestPauseKeepsWatching (issue 27.4): what happens in a pause counts, and a rollout that a person continued is stopped again by the next bad robot.
func TestPauseKeepsWatching(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 2000}), 2000)
	w.days(0.05, nil)
	w.r.State = Paused
	w.days(0.5, func(i int, f *Fact, _ time.Duration) {
		if i%3 == 0 {
			f.Problems = []string{"fault/914"}
		}
	})
	if w.r.State != Stopped || w.r.Evidence.Bad < 50 {
		t.Fatalf("after a pause: %s, %+v", w.r.State, w.r.Evidence)
	}
	w.release()
	if w.step(time.Minute); w.r.State != Running && w.r.State != Baking {
		t.Fatalf("let go on: %s: %s", w.r.State, w.r.Why)
	}
	for i := range w.facts {
		if m := w.members[w.facts[i].Thing]; m.State == Through && m.Bad == "" {
			w.facts[i].Problems = []string{"fault/914"}
			break
		}
	}
	if w.step(time.Minute); w.r.State != Stopped {
		t.Errorf("one more bad robot: %s", w.r.State)
	}
}

// TestExposure (issue 27.5): a phase does not pass while most of its own robots are offline, nor before they were watched; it says what it lacks.
func TestExposure(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 2000}), 1050)
	for i := 1; i < 105; i++ {
		f := w.nth(i)
		f.Present, f.Since = false, start.Add(-time.Hour)
	}
	w.days(2, nil)
	if w.r.Phase != 0 || w.r.State != Held || w.r.Hold != HoldPhase || !slices.ContainsFunc(w.r.Progress.Lacks, func(l Lack) bool { return l.Code == "reach" }) {
		t.Errorf("one of 105 updated: %s in phase %d, lacks %+v", w.r.State, w.r.Phase+1, w.r.Progress.Lacks)
	}
	w = fleet(running(t, Spec{Phases: []Phase{{20, 600}, {100, 600}}, Cap: 2000}), 1000)
	w.days(0.9, nil)
	if w.r.Phase != 0 || len(w.r.Progress.Lacks) != 1 || w.r.Progress.Lacks[0].Code != "exposure" {
		t.Errorf("after 22 hours: phase %d, lacks %+v", w.r.Phase+1, w.r.Progress.Lacks)
	}
	if w.days(0.3, nil); w.r.Phase != 1 {
		t.Errorf("after 29 hours: %s in phase %d, lacks %+v", w.r.State, w.r.Phase+1, w.r.Progress.Lacks)
	}
}

// TestSmallFleet (issue 27.6 and build 4): a small fleet updates 1, 2, 4, 8 robots, a person releases each phase, and one bad robot holds it, although a robot that waits
// has a problem of its own.
func TestSmallFleet(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{100, 600}}, Guards: []Guard{{Metric: Problems, Share: 0.05, Sample: 1}}}), 20)
	w.nth(19).Problems = []string{"fault/801"}
	for _, want := range []int{1, 2, 4, 8} {
		w.days(2, nil)
		if w.count(Through) != want || w.r.State != Held || w.r.Hold != HoldPhase {
			t.Fatalf("%d updated, %s for %s; want %d", w.count(Through), w.r.State, w.r.Hold, want)
		}
		w.release()
	}
	w.days(0.1, nil)
	w.nth(10).Problems = []string{"fault/914"}
	if w.days(1, nil); w.r.State != Held || w.r.Hold != HoldBad || w.count(Through) != 16 {
		t.Fatalf("with a bad robot: %s for %s, %d updated", w.r.State, w.r.Hold, w.count(Through))
	}
	w.release()
	w.days(3, nil)
	w.release()
	if w.days(3, nil); w.r.State != Done || w.count(Through) != 20 {
		t.Errorf("%s for %q with %d of 20, lacks %+v", w.r.State, w.r.Hold, w.count(Through), w.r.Progress.Lacks)
	}
}

// TestEveryGuardCounts (issue 27.7): a second guard of problems counts its own.
func TestEveryGuardCounts(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 600}, {100, 600}}, Cap: 2000, Guards: []Guard{
		{Metric: Problems, Share: 0.05, Sample: 30, Problem: "loop"}, {Metric: Problems, Share: 0.05, Sample: 30, Problem: "fault/914"}}}), 1000)
	w.days(1, func(i int, f *Fact, _ time.Duration) {
		if i%4 == 0 {
			f.Problems = []string{"fault/914"}
		}
	})
	if w.r.State != Stopped || w.r.Evidence.Problem != "fault/914" {
		t.Errorf("%s, %+v", w.r.State, w.r.Evidence)
	}
}

// TestOwnProblems: what a robot had before the release, what all robots have, and a low battery stop nothing.
func TestOwnProblems(t *testing.T) {
	for name, set := range map[string]func(i int, f *Fact, updated bool){
		"before":  func(i int, f *Fact, _ bool) { f.Problems = []string{"loop"} },
		"all":     func(i int, f *Fact, _ bool) { f.Problems = []string{fmt.Sprintf("fault/%d", 800+i%3)} },
		"battery": func(_ int, f *Fact, updated bool) { f.Problems = map[bool][]string{true: {"battery"}}[updated] },
	} {
		w := fleet(running(t, Spec{Phases: []Phase{{50, 600}}, Cap: 2000, Guards: []Guard{{Metric: Problems, Share: 0.1, Sample: 20}}}), 1000)
		for range 200 {
			for i := range w.facts {
				set(i, &w.facts[i], !w.members[w.facts[i].Thing].Updated.IsZero())
			}
			w.days(1.0/144, nil)
		}
		if w.r.State != Done {
			t.Errorf("%s: %s for %s, lacks %+v", name, w.r.State, w.r.Why, w.r.Progress.Lacks)
		}
	}
}

// TestEnvironment (issue 27.9): an outage of the archives' store holds the rollout at most; robots that it kept from updating are no failures and try again.
func TestEnvironment(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{50, 600}, {100, 600}}, Cap: 500, Rollback: true}), 1000)
	w.step(0)
	w.take(func(int, *Fact) (ota.Code, bool) { return ota.BadURL, true })
	w.step(time.Minute)
	if w.r.State != Held || w.r.Hold != HoldEnvironment || w.r.Back || w.r.Progress.Guards[0].Updated.Bad != 0 {
		t.Fatalf("%s for %s, guards %+v", w.r.State, w.r.Hold, w.r.Progress.Guards)
	}
	w.release()
	w.step(time.Minute)
	if w.days(0.2, nil); w.count(Through) != 500 || w.r.State == Stopped {
		t.Errorf("afterwards %d are through, %s", w.count(Through), w.r.State)
	}
}

// TestKept (issue 27.10): robots that a person keeps at another release do not hold up their phase, and it says how many there are.
func TestKept(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{50, 0}, {100, 0}}, Cap: 500, Guards: []Guard{}}), 100)
	for i := range 40 {
		w.nth(i).Wished = true
	}
	w.step(0)
	w.take(well)
	w.step(time.Minute)
	if w.r.Progress.Phases[0].Kept != 40 {
		t.Errorf("phase %+v", w.r.Progress.Phases[0])
	}
	if w.step(time.Minute); w.r.Phase != 1 {
		t.Errorf("%s in phase %d, lacks %+v", w.r.State, w.r.Phase+1, w.r.Progress.Lacks)
	}
}

// TestCloudAway (issue 27.2): after the cloud was away nothing is judged or granted until robots had time to come back, with and without a control.
func TestCloudAway(t *testing.T) {
	for _, n := range []int{20, 1000} {
		w := fleet(running(t, Spec{Phases: []Phase{{100, 600}}, Cap: 500}), n)
		w.days(0.05, nil)
		gone := w.now.Add(time.Minute)
		for i := range w.facts {
			w.facts[i].Present, w.facts[i].Since = false, gone
		}
		w.step(5 * time.Hour)
		if w.r.State == Stopped || w.r.State == Held || w.r.Still.IsZero() {
			t.Errorf("%d robots: %s: %s", n, w.r.State, w.r.Why)
		}
		for i := range w.facts {
			w.facts[i].Present = true
		}
		w.step(time.Minute)
		if w.r.State == Stopped || w.r.State == Held {
			t.Errorf("%d robots: %s: %s", n, w.r.State, w.r.Why)
		}
	}
}

// TestSuspended (issue 27.2 and build 5): while more than a fifth of the control is away, a phase is not judged, its observation pauses, and it says so.
func TestSuspended(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 7200}, {100, 7200}}, Cap: 2000}), 2000)
	w.days(0.01, nil)
	away := func(share int) {
		for i := range w.facts {
			if f := &w.facts[i]; w.members[f.Thing].State == Control {
				f.Present, f.Since = i%100 >= share, w.now
			}
		}
	}
	if away(40); w.r.State != Baking {
		t.Fatal(w.r.State, w.r.Why)
	}
	w.step(time.Minute)
	baked := w.r.BakedS
	for range 6 {
		w.step(10 * time.Minute)
	}
	if w.r.BakedS != baked || !slices.ContainsFunc(w.r.Progress.Lacks, func(l Lack) bool { return l.Code == "suspended" }) {
		t.Errorf("observed for another %d s; lacks %+v", w.r.BakedS-baked, w.r.Progress.Lacks)
	}
	away(10)
	w.step(time.Minute)
	w.step(time.Minute)
	if w.r.BakedS <= baked || slices.ContainsFunc(w.r.Progress.Lacks, func(l Lack) bool { return l.Code == "suspended" }) {
		t.Errorf("observed for another %d s; lacks %+v", w.r.BakedS-baked, w.r.Progress.Lacks)
	}
}

// TestFits (issue 27.10): a rate at which no download ends in time is refused.
func TestFits(t *testing.T) {
	s := Spec{Species: thing.Vector, Version: newer, Bandwidth: 1_000_000, Cap: 1000}
	if err := s.Fits(180 << 20); err == nil {
		t.Error("180 MiB at 1,000 bytes a second are taken")
	}
	s.Cap = 100
	if err := s.Fits(180 << 20); err != nil {
		t.Error(err)
	}
}

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"kennel/infra/thing"
	"kennel/ota"
)

const (
	older = "2.0.0.1"
	newer = ota.Version("2.0.1.1")
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func running(t *testing.T, s Spec) *Rollout {
	t.Helper()
	s.Species, s.Version = thing.Vector, newer
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return &Rollout{ID: "r", Spec: s, Salt: "salt", State: Running, Since: start, Changed: start, Progress: NoProgress()}
}

// world is a small fleet that takes the release at once when it may.
type world struct {
	r       *Rollout
	facts   []Fact
	members map[thing.ID]Member
	now     time.Time
	turns   []string
	free    bool // a person releases whatever is held
}

func fleet(r *Rollout, n int) *world {
	w := &world{r: r, members: map[thing.ID]Member{}, now: start}
	for i := range n {
		w.facts = append(w.facts, Fact{Thing: thing.ID(fmt.Sprintf("vic:%06d", i)), In: true, Running: older, Present: true, Since: start.Add(-time.Hour)})
	}
	return w
}

func (w *world) step(after time.Duration) {
	w.now = w.now.Add(after)
	for _, turn := range w.r.Step(w.facts, w.members, w.now).Turns {
		w.turns = append(w.turns, turn.Kind)
	}
}

func (w *world) count(s Standing) (n int) {
	for _, m := range w.members {
		if m.State == s {
			n++
		}
	}
	return n
}

// take lets the robots that hold a grant run the release, or do what bad says.
func (w *world) take(bad func(i int, f *Fact) (ota.Code, bool)) {
	for i := range w.facts {
		f := &w.facts[i]
		m := w.members[f.Thing]
		if !m.State.Open() {
			continue
		}
		st := ota.Status{Release: newer, Running: string(newer), Phase: ota.Current}
		if code, is := bad(i, f); is {
			st = ota.Status{Release: newer, Running: older, Phase: "failed", Code: int(code)}
		}
		f.Running = st.Running
		w.members[f.Thing], _ = w.r.Report(m, st, w.now)
	}
}

func well(int, *Fact) (ota.Code, bool) { return 0, false }

// TestCap: never more than Cap hold a grant; one that does not begin gives its place to another, and comes after those that did not try.
func TestCap(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{100, 0}}, Cap: 20, Guards: []Guard{}}), 100)
	w.step(0)
	first := slices.Collect(maps.Keys(w.members))
	if w.count(Granted) != 20 || w.r.Progress.Why[WhyCap] != 80 {
		t.Fatalf("%d granted, %v", w.count(Granted), w.r.Progress.Why)
	}
	for range 7 {
		w.step(10 * time.Minute)
	}
	if w.count(Granted) != 20 || w.count(Idle) != 20 {
		t.Errorf("after an hour %d granted, %d idle; want another 20", w.count(Granted), w.count(Idle))
	}
	for _, id := range first {
		if w.members[id].State != Idle {
			t.Errorf("%s is granted again before others", id)
		}
	}
	if m, why, changed := w.r.Ask(w.facts[99], w.members[w.facts[99].Thing], 20, w.now); changed || why.Code != WhyCap || m.State != Idle {
		t.Errorf("an asking robot got %+v, %+v", m, why)
	}
	if m, why, changed := w.r.Ask(w.facts[99], w.members[w.facts[99].Thing], 19, w.now); !changed || why.Code != WhyGranted || m.State != Granted {
		t.Errorf("with a free place it got %+v, %+v", m, why)
	}
}

// TestEmptyPhase: a phase without robots leads on at once; a rollout without any waits for them.
func TestEmptyPhase(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{10, 0}, {11, 600}, {100, 0}}, Cap: 100, Guards: []Guard{}}), 10)
	w.step(0)
	w.take(well)
	for range 3 {
		w.step(time.Minute)
	}
	if w.r.Phase != 2 || w.count(Granted) != 9 {
		t.Errorf("phase %d, %d granted", w.r.Phase, w.count(Granted))
	}
	w = fleet(running(t, Spec{}), 0)
	if w.step(0); w.r.State != Running || w.r.Phase != 0 {
		t.Errorf("%s in phase %d", w.r.State, w.r.Phase)
	}
}

// TestLatecomers: a robot that appears later joins the phase that it would have been in, and a finished rollout still has the release for it.
func TestLatecomers(t *testing.T) {
	w := fleet(running(t, Spec{Phases: []Phase{{30, 600}, {100, 0}}, Cap: 1000, Guards: []Guard{}}), 200)
	w.step(0)
	late := fleet(w.r, 400).facts[200:]
	w.facts = append(w.facts, late...)
	w.step(time.Second)
	for _, f := range w.facts {
		if granted := w.members[f.Thing].State == Granted; granted != (w.r.PhaseOf(f.Thing) == 0) || granted && w.count(Granted) < 60 {
			t.Errorf("%s of phase %d: granted %t", f.Thing, w.r.PhaseOf(f.Thing), granted)
		}
	}
	w.r.State, w.r.Phase = Done, 1
	if m, why, ok := w.r.Ask(Fact{Thing: "vic:new", In: true, Running: older}, Member{}, 0, w.now); !ok || m.State != Granted {
		t.Errorf("%+v, %+v", m, why)
	}
}

// TestWhy (issue 17, must hold 3): each robot has an answer, the right one, in words.
func TestWhy(t *testing.T) {
	r := running(t, Spec{Phases: []Phase{{50, 0}, {90, 0}}, Cap: 5, Window: &ota.Window{From: "02:00", To: "04:00"}, Needs: &ota.Needs{Battery: true}, Regions: []string{"Europe", "UTC"}})
	r.Stages = []Stage{{Percent: 50, Robots: 100, Cut: 0.5}, {Percent: 90, Robots: 180, Cut: 0.9}}
	var first, second, never thing.ID
	for i := range 200 {
		id := thing.ID(fmt.Sprintf("vic:%d", i))
		switch r.PhaseOf(id) {
		case 0:
			first = id
		case 1:
			second = id
		default:
			never = id
		}
	}
	ok := Fact{Thing: first, In: true, Running: older, Present: true, Zone: "Europe/Berlin", Since: start}
	with := func(f func(*Fact)) Fact { x := ok; f(&x); return x }
	night := time.Date(2026, 11, 24, 1, 30, 0, 0, time.UTC) // 02:30 in Berlin
	for _, tt := range []struct {
		f     Fact
		m     Member
		state State
		now   time.Time
		want  WhyCode
		words string
	}{
		{ok, Member{}, Running, night, WhyCap, "one of the 5"},
		{ok, Member{}, Running, start, WhyWindow, "until 24 November 2026 02:00 CET"},
		{with(func(f *Fact) { f.Zone = "Europe/Nowhere" }), Member{}, Running, start, WhyWindow, "02:00 UTC"},
		{with(func(f *Fact) { f.Zone = "Asia/Tokyo" }), Member{}, Running, night, WhyNotIn, "not one of the robots"},
		{with(func(f *Fact) { f.In = false }), Member{}, Running, night, WhyNotIn, "not one of the robots"},
		{with(func(f *Fact) { f.Thing = "pleo:1" }), Member{}, Running, night, WhyNotIn, "not one of the robots"},
		{with(func(f *Fact) { f.Running = string(newer) }), Member{}, Running, night, WhyDone, "runs 2.0.1.1"},
		{with(func(f *Fact) { f.Running = "3.0.0.0" }), Member{}, Running, night, WhyNewer, "newer"},
		{with(func(f *Fact) { f.Present = false }), Member{}, Running, night, WhyOffline, "since 23 November 2026 12:00 UTC"},
		{with(func(f *Fact) { f.Present, f.Since = false, time.Time{} }), Member{}, Running, night, WhyOffline, "never online"},
		{with(func(f *Fact) { f.LowPower = true }), Member{}, Running, night, WhyBattery, "battery"},
		{with(func(f *Fact) { f.Busy = true }), Member{}, Running, night, WhyBusy, "another rollout"},
		{with(func(f *Fact) { f.Wished = true }), Member{}, Running, night, WhyWished, "goes before"},
		{with(func(f *Fact) { f.Choice = ota.Choice{Chosen: start, Until: night.Add(time.Hour)} }), Member{}, Running, night, WhyPostponed, "Its owner"},
		{with(func(f *Fact) { f.Choice = ota.Choice{Chosen: start, Until: start} }), Member{}, Running, night, WhyCap, "one of the 5"},
		{with(func(f *Fact) { f.Choice = ota.Choice{Chosen: start, Until: start} }), Member{}, Running, start, WhyWindow, "until 24 November"},
		{with(func(f *Fact) { f.Choice = ota.Choice{Chosen: start, Until: night, Now: true} }), Member{}, Running, start, WhyCap, "one of the 5"},
		{with(func(f *Fact) { f.Choice = ota.Choice{Chosen: start, Until: start, Now: true} }), Member{}, Running, start, WhyWindow, "until 24 November"},
		{with(func(f *Fact) { f.Choice = ota.Choice{Chosen: start, Until: night, Now: true} }), Member{}, Paused, start, WhyPaused, "paused"},
		{with(func(f *Fact) { f.Choice = ota.Choice{Chosen: start, Until: night, Now: true}; f.LowPower = true }), Member{}, Running, start, WhyBattery, "battery"},
		{with(func(f *Fact) { f.Thing = second }), Member{}, Running, night, WhyPhase, "phase 2 (180 robots)"},
		{with(func(f *Fact) { f.Thing = never }), Member{}, Running, night, WhyExcluded, "90 %"},
		{ok, Member{}, Draft, night, WhyDraft, "draft"},
		{ok, Member{}, Waiting, night, WhyApproval, "second person"},
		{ok, Member{}, Paused, night, WhyPaused, "paused"},
		{ok, Member{}, Held, night, WhyHeld, "held"},
		{with(func(f *Fact) { f.Thing = second }), Member{State: Control}, Running, night, WhyControl, "compared"},
		{ok, Member{State: Fell, From: older, Reason: "robotd died"}, Running, night, WhyFell, "robotd died"},
		{ok, Member{}, Stopped, night, WhyStopped, "stopped"},
		{ok, Member{}, Aborted, night, WhyAborted, "aborted"},
		{ok, Member{State: Granted, Granted: start, Until: night, Reason: "the robot is not on its charger"}, Running, night, WhyGranted, "not on its charger"},
		{ok, Member{State: Updating, At: start}, Running, night, WhyUpdating, "updating since"},
		{ok, Member{State: Failed, Code: 209}, Running, night, WhyFailed, "signature"},
		{ok, Member{State: Lost, At: start}, Running, night, WhySilent, "silent since"},
		{ok, Member{State: Return, From: older}, Stopped, night, WhyBack, "go back to " + older},
		{ok, Member{State: Returned, From: older, At: start}, Stopped, night, WhyReturned, "on 23 November"},
		{ok, Member{State: Through, At: start}, Stopped, night, WhyDone, "since 23 November"},
	} {
		x := *r
		x.State, x.Changed = tt.state, start
		if w := x.Explain(tt.f, tt.m, tt.now); w.Code != tt.want || !strings.Contains(w.Words, tt.words) {
			t.Errorf("%+v %+v: %+v; want %s and %q", tt.f, tt.m, w, tt.want, tt.words)
		}
	}
}

// TestReports: what a robot says of itself settles its standing, also after it was away, and what is about another release does not.
func TestReports(t *testing.T) {
	r := running(t, Spec{})
	for _, tt := range []struct {
		from Standing
		st   ota.Status
		want Standing
	}{
		{Granted, ota.Status{Release: newer, Phase: ota.Pending, Reason: "waits"}, Granted},
		{Granted, ota.Status{Release: newer, Phase: "download"}, Updating},
		{Granted, ota.Status{Release: "9.9.9.9", Phase: "download"}, Granted},
		{Updating, ota.Status{Release: newer, Phase: "failed", Code: 204, Running: older}, Failed},
		{Updating, ota.Status{Release: newer, Phase: ota.Current, Running: string(newer)}, Through},
		{Lost, ota.Status{Release: newer, Phase: ota.Current, Running: string(newer)}, Through},
		{Failed, ota.Status{Release: newer, Phase: "download"}, Failed},
		{Through, ota.Status{Release: newer, Phase: ota.Failed, Code: 204}, Through},
		{Through, ota.Status{Release: newer, Phase: ota.FellBack, Code: 219, Running: older}, Fell},
		{Updating, ota.Status{Release: newer, Phase: ota.FellBack, Code: 219, Running: older}, Fell},
		{Fell, ota.Status{Release: newer, Phase: ota.FellBack, Code: 219, Running: older}, Fell},
		{Idle, ota.Status{Release: newer, Phase: "download"}, Idle},
	} {
		if m, _ := r.Report(Member{State: tt.from}, tt.st, start); m.State != tt.want {
			t.Errorf("%s and %+v: %s, want %s", tt.from, tt.st, m.State, tt.want)
		}
	}
	w := fleet(r, 1)
	id := w.facts[0].Thing
	w.members[id] = Member{Thing: id, State: Through, From: older, At: start}
	w.facts[0].Running = older
	if w.step(time.Minute); w.members[id].State != Through { // its status may be older than its report
		t.Errorf("%+v", w.members[id])
	}
	if w.step(FellBack); w.members[id].State != Fell {
		t.Errorf("%+v; want it to have fallen back", w.members[id])
	}
	w.members[id] = Member{Thing: id, State: Updating, From: older, At: w.now}
	if w.step(StallAfter + time.Second); w.members[id].State != Failed || w.members[id].Code != int(ota.TimedOut) {
		t.Errorf("%+v; want a stalled one to have failed", w.members[id])
	}
}

// TestCheck: what cannot be is refused with a reason.
func TestCheck(t *testing.T) {
	for _, bad := range []Spec{
		{Species: "cat", Version: newer}, {Version: newer}, {Species: "vic", Version: "2"}, {Species: "vic", Version: newer, Channel: "x"},
		{Species: "vic", Version: newer, Phases: []Phase{{50, 0}, {50, 0}}}, {Species: "vic", Version: newer, Phases: []Phase{{101, 0}}},
		{Species: "vic", Version: newer, Phases: []Phase{{10, -1}}}, {Species: "vic", Version: newer, Cap: -1},
		{Species: "vic", Version: newer, Guards: []Guard{{Metric: "mood", Sample: 1}}}, {Species: "vic", Version: newer, Guards: []Guard{{Metric: Silent}}},
		{Species: "vic", Version: newer, Guards: []Guard{{Metric: Silent, Sample: 1}}}, {Species: "vic", Version: newer, Guards: []Guard{{Silent, 0.1, 1, ""}, {Silent, 0.2, 1, ""}}},
		{Species: "vic", Version: newer, WatchS: -1},
		{Species: "vic", Version: newer, Window: &ota.Window{From: "x"}},
	} {
		if err := bad.Check(); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	s := Spec{Species: "vic", Version: newer}
	if err := s.Check(); err != nil || s.Channel != Prod || len(s.Guards) != 3 || len(s.Phases) != 4 || s.Cap != 100 {
		t.Errorf("%+v, %v", s, err)
	}
}

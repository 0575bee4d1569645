package alert_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

func TestRule(t *testing.T) {
	for _, tt := range []struct {
		rule            alert.Rule
		robots, present int
		want            bool
	}{
		{alert.Rule{Robots: 5, Share: 0.1}, 5, 50, true}, {alert.Rule{Robots: 5, Share: 0.1}, 4, 4, false}, {alert.Rule{Robots: 5, Share: 0.1}, 5, 51, false},
		{alert.Rule{Robots: 1}, 1, 1000, true}, {alert.Rule{Robots: 2, Share: 1}, 2, 2, true}, {alert.Rule{Robots: 2, Share: 1}, 2, 3, false},
	} {
		if got := tt.rule.Holds(registry.ProblemCount{Robots: tt.robots, Present: tt.present}); got != tt.want {
			t.Errorf("%+v, %d of %d: %v", tt.rule, tt.robots, tt.present, got)
		}
	}
	// By default: a fault of 1 % of a large release is told, and so is a problem that is more common than on other releases; a low battery of some is not, nor a difference that may be chance.
	for _, tt := range []struct {
		kind                                   string
		robots, present, others, othersPresent int
		want                                   bool
	}{
		{"fault", 9_999, 100_000, 0, 0, true}, {"fault", 1_000, 100_000, 0, 0, true}, {"fault", 999, 100_000, 0, 0, false}, {"fault", 10, 900, 0, 0, true}, {"fault", 9, 900, 0, 0, false}, {"fault", 9, 90, 0, 0, true},
		{"battery", 9_999, 100_000, 0, 0, false}, {"battery", 9_999, 100_000, 9_900, 100_000, false}, {"battery", 3_000, 100_000, 0, 50_000, true}, {"battery", 1_000, 100_000, 0, 50_000, false},
		{"loop", 6, 70, 0, 20, false}, {"loop", 6, 70, 0, 0, false}, {"loop", 60, 700, 7, 700, true}, {"crash", 50, 100, 0, 100, false},
	} {
		if got := alert.DefaultRule.Holds(registry.ProblemCount{Kind: tt.kind, Robots: tt.robots, Present: tt.present, Others: tt.others, OthersPresent: tt.othersPresent}); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestLook: an alert fires when the rule holds, follows the numbers, and is resolved when the count is far below it; the next time, unless it is soon, is another one.
func TestLook(t *testing.T) {
	pool := pgtest.New(t)
	svc := alert.New(alertpg.New(pool), registrypg.New(pool, slog.New(slog.DiscardHandler)).ProblemsByRelease)
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	look := func(want ...string) {
		t.Helper()
		if err := svc.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := svc.Alerts(t.Context())
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s %s/%s %d of %d, over %v", a.Release, a.Kind, a.Code, a.Robots, a.Present, a.Resolved != nil))
			if a.Since.IsZero() || time.Since(a.Since) > time.Hour {
				t.Errorf("since %v", a.Since)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if r, err := svc.Rule(t.Context()); err != nil || r != alert.DefaultRule {
		t.Errorf("%+v, %v; want the default", r, err)
	}
	for _, bad := range []alert.Rule{{Robots: 0, Share: 0.5}, {Robots: 3, Share: 1.1}, {Robots: 3, Share: -0.1}} {
		if _, err := svc.SetRule(t.Context(), alert.Wanted{Robots: bad.Robots, Share: bad.Share}, "op"); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := svc.SetRule(t.Context(), alert.Wanted{Robots: 3, Share: 0.3, Excess: new(1.0)}, "op"); err != nil {
		t.Fatal(err)
	}
	if r, err := svc.Rule(t.Context()); err != nil || r.Robots != 3 || r.Share != 0.3 || r.By != "op" || r.Changed.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
	look()
	exec(`INSERT INTO registry_thing (thing, present) SELECT 'vic:' || i, true FROM generate_series(1, 9) AS i`)
	exec(`UPDATE registry_facet SET os = '2.0', codes = CASE WHEN thing < 'vic:4' THEN '{fault/914,loop}' WHEN thing = 'vic:4' THEN '{loop}' ELSE '{}' END::text[]`)
	exec(`UPDATE registry_facet SET codes = '{fault/914}', os = '2.1' WHERE thing = 'vic:9'`) // another release
	look("2.0 fault/914 3 of 8, over false", "2.0 loop/ 4 of 8, over false")                  // the newest first
	exec(`UPDATE registry_facet SET codes = '{fault/914}' WHERE thing = 'vic:5'`)
	exec(`UPDATE registry_facet SET present = false WHERE thing = 'vic:4'`) // who is absent does not count
	look("2.0 fault/914 4 of 7, over false", "2.0 loop/ 3 of 7, over false")
	// A count near the rule resolves nothing, nor does one far below for a moment; one that has been far below for a while does.
	later := func(d time.Duration) {
		exec(fmt.Sprintf(`UPDATE alert_found SET missed = missed - interval '%[1]d seconds', resolved = resolved - interval '%[1]d seconds'`, int(d.Seconds())))
	}
	some := func(n int) {
		exec(fmt.Sprintf(`UPDATE registry_facet SET codes = CASE WHEN thing < 'vic:%d' THEN '{fault/914,loop}' ELSE '{fault/914}' END::text[] WHERE thing < 'vic:4'`, n+1))
	}
	for range 3 {
		some(2)
		look("2.0 fault/914 4 of 7, over false", "2.0 loop/ 2 of 7, over false")
		later(alert.ResolveAfter)
		some(1)
		look("2.0 fault/914 4 of 7, over false", "2.0 loop/ 2 of 7, over false")
	}
	later(alert.ResolveAfter)
	look("2.0 fault/914 4 of 7, over false", "2.0 loop/ 2 of 7, over true")
	some(3) // soon again: the same alert
	look("2.0 fault/914 4 of 7, over false", "2.0 loop/ 3 of 7, over false")
	some(0)
	look("2.0 fault/914 4 of 7, over false", "2.0 loop/ 3 of 7, over false")
	later(alert.ResolveAfter)
	look("2.0 fault/914 4 of 7, over false", "2.0 loop/ 3 of 7, over true")
	later(alert.ReopenWithin)
	some(3) // much later: another
	look("2.0 loop/ 3 of 7, over false", "2.0 fault/914 4 of 7, over false", "2.0 loop/ 3 of 7, over true")

	// A fault that is told under another kind too is one alert.
	exec(`UPDATE registry_facet SET codes = CASE WHEN thing < 'vic:5' THEN '{body/898,fault/898}' ELSE '{}' END::text[]`)
	look("2.0 fault/898 3 of 7, over false", "2.0 loop/ 3 of 7, over false", "2.0 fault/914 4 of 7, over false", "2.0 loop/ 3 of 7, over true")
}

// TestParts (issue 16, finding 6): what a process tells about its parts is an alert, followed as it changes and heard by webhooks; it is resolved when the
// process no longer tells it. Alerts about robots stay as they are, and so do those of another process.
func TestParts(t *testing.T) {
	pool := pgtest.New(t)
	store := alertpg.New(pool)
	svc := alert.New(store, registrypg.New(pool, slog.New(slog.DiscardHandler)).ProblemsByRelease)
	since := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	disk := alert.Part{Name: "disk", Reason: "volume of data is low", Since: since}
	broker := alert.Part{Name: "broker", Failing: true, Reason: "no connection", Since: since}
	tell := func(place string, parts ...alert.Part) {
		t.Helper()
		if err := store.Told(t.Context(), place, parts); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want ...string) {
		t.Helper()
		list, err := svc.Alerts(t.Context())
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s: %s %s, %s, over %v", a.Place, a.Code, a.Kind, a.Reason, a.Resolved != nil))
			if a.ID == 0 || !a.Since.Equal(since) {
				t.Errorf("%+v", a)
			}
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	age := func() {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `UPDATE alert_part SET told = told - interval '2 minutes'`); err != nil {
			t.Fatal(err)
		}
	}
	tell("a", disk, broker)
	tell("b", broker)
	expect("a: broker part_failing, no connection, over false", "a: disk part_warning, volume of data is low, over false", "b: broker part_failing, no connection, over false")
	disk.Failing, disk.Reason = true, "volume of data is full"
	tell("a", disk)
	if err := svc.Look(t.Context()); err != nil { // of the fleet
		t.Fatal(err)
	}
	expect("a: broker part_failing, no connection, over false", "a: disk part_failing, volume of data is full, over false", "b: broker part_failing, no connection, over false")
	age()
	tell("b", broker)
	if err := svc.Look(t.Context()); err != nil { // process a has ended
		t.Fatal(err)
	}
	expect("a: broker part_failing, no connection, over true", "a: disk part_failing, volume of data is full, over true", "b: broker part_failing, no connection, over false")
	tell("a", disk) // soon again: the same alert
	expect("a: broker part_failing, no connection, over true", "a: disk part_failing, volume of data is full, over false", "b: broker part_failing, no connection, over false")
	age()
	tell("b", broker)
	if _, err := pool.Exec(t.Context(), `UPDATE alert_part SET resolved = resolved - $1::interval`, alert.ReopenWithin); err != nil {
		t.Fatal(err)
	}
	tell("a", disk) // another alert
	expect("a: broker part_failing, no connection, over true", "a: disk part_failing, volume of data is full, over false", "a: disk part_failing, volume of data is full, over true", "b: broker part_failing, no connection, over false")
}

// TestWatch: a part that fails for a moment makes no alert; a warning does at once, and what is over is told once.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &telling{}
		svc := alert.New(store, nil)
		ctx, stop := context.WithCancel(t.Context())
		start := time.Now()
		var now atomic.Pointer[[]alert.Part]
		now.Store(&[]alert.Part{{Name: "broker", Failing: true, Since: start}, {Name: "disk", Since: start}})
		done := make(chan error, 1)
		go func() {
			done <- svc.Watch(ctx, "here", func(context.Context) []alert.Part { return *now.Load() }, func(error) {})
		}()
		synctest.Wait()
		if told := store.all(); len(told) != 1 || len(told[0]) != 1 || told[0][0].Name != "disk" {
			t.Errorf("at once: %+v", told)
		}
		time.Sleep(alert.TellEvery + time.Second)
		synctest.Wait()
		if told := store.all(); len(told) != 2 || len(told[1]) != 2 {
			t.Errorf("after 11 s: %+v", told)
		}
		now.Store(new([]alert.Part))
		time.Sleep(5 * alert.TellEvery)
		synctest.Wait()
		if told := store.all(); len(told) != 3 || len(told[2]) != 0 {
			t.Errorf("after its end: %+v", told)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

type telling struct {
	alert.Store
	mu   sync.Mutex
	told [][]alert.Part
}

func (s *telling) Told(_ context.Context, _ string, parts []alert.Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, parts)
	return nil
}

func (s *telling) all() [][]alert.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

package alert_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/mail"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/cloud/telemetry/das"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

// counts are sums of events that a test sets.
type counts das.Recent

func (c *counts) Recent(_ context.Context, now time.Time, _ time.Duration, of []das.EventSince) (das.Recent, error) {
	r := das.Recent(*c)
	r.Events = nil
	for _, q := range of { // the last hour, to the minute
		if age := now.Sub(q.Since); age < time.Hour || age >= time.Hour+time.Minute {
			return r, fmt.Errorf("events since %v ago", age)
		}
	}
	for _, e := range c.Events {
		for _, q := range of {
			if q.Event == e.Event {
				r.Events = append(r.Events, das.EventCount{EventSince: q, Version: e.Version, N: e.N})
			}
		}
	}
	r.Heard = nil
	for _, h := range c.Heard { // every robot, all the time
		for at := now.Truncate(das.Hour).Add(-das.Hour); !at.After(now); at = at.Add(das.Hour) {
			r.Heard = append(r.Heard, das.Heard{At: at, Version: h.Version, Robots: h.Robots})
		}
	}
	return r, nil
}

// postbox keeps letters as "kind to: subject matter", or refuses them.
type postbox struct {
	got []string
	err error
}

func (p *postbox) Post(ctx context.Context, m mail.Mail) error {
	if p.err != nil {
		return p.err
	}
	l, say, err := alert.Composer("https://kennel.example/alerts")(ctx, m)
	p.got = append(p.got, fmt.Sprintf("%s %s: %s: %s %v %v", l.Template, m.To, l.Other, l.Why, say && !l.At.IsZero() && strings.HasSuffix(l.Link, "/alerts"), err))
	return nil
}

// A threshold fires for each version that is at its level, is not resolved while a value is near the level, nor by a moment below, and tells people of each turn once.
func TestThresholds(t *testing.T) {
	pool := pgtest.New(t)
	sums, post := &counts{}, &postbox{}
	svc := alert.New(alertpg.New(pool), func(context.Context, int) ([]registry.ProblemCount, error) { return nil, nil })
	svc.Sums, svc.Mail = sums, post
	if _, err := svc.SetMailing(t.Context(), alert.Mailing{To: []string{"b@example.org", "a@example.org", "a@example.org"}}); err != nil {
		t.Fatal(err)
	}
	crashes := func(robots, crashed int) {
		sums.Ages = []das.Age{{Version: "2.0.1", Robots: robots}, {Version: "2.0.1", Class: das.Crash, Robots: crashed}, {Version: "2.0.0", Robots: 500}}
	}
	look := func(want ...string) {
		t.Helper()
		if err := svc.LookAtSums(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := svc.Alerts(t.Context())
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s %s/%s %d of %d over %v", a.Release, a.Kind, a.Code, a.Robots, a.Present, a.Resolved != nil))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	later := func() {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `UPDATE alert_crossed SET missed = missed - interval '1 hour', resolved = resolved - interval '1 hour'`); err != nil {
			t.Fatal(err)
		}
	}
	told := func(want ...string) {
		t.Helper()
		slices.Sort(post.got)
		if !slices.Equal(post.got, want) {
			t.Errorf("letters %q; want %q", post.got, want)
		}
		post.got = nil
	}
	list, err := svc.Thresholds(t.Context())
	if err != nil || len(list) != 1 || list[0].Kind != alert.CrashShare || list[0].Level != 0.02 {
		t.Fatalf("%+v, %v; want the one from the beginning", list, err)
	}
	crashes(500, 9) // 1.8 %: near the level, which begins nothing
	look()
	crashes(50, 2) // 4 %, but two robots
	look()
	post.err = errors.New("away") // the letters come later
	crashes(500, 25)
	if err := svc.LookAtSums(t.Context()); err == nil {
		t.Error("letters that were not taken are no error")
	}
	post.err = nil
	look("2.0.1 crash_share/ 25 of 500 over false")
	const words = "2.0.1: 25 of 500 robots crashed in the last 24 hours, 5 %; the limit is 2 % true <nil>"
	told("alert-firing a@example.org: "+words, "alert-firing b@example.org: "+words)
	for range 3 { // near the level, and below for a moment
		crashes(500, 9)
		look("2.0.1 crash_share/ 9 of 500 over false")
		later()
		crashes(500, 1)
		look("2.0.1 crash_share/ 9 of 500 over false")
	}
	sums.Ages[0].Robots, sums.Ages[1].Robots = 0, 0 // no robot of the version is heard of
	later()
	sums.Ages = sums.Ages[2:]
	look("2.0.1 crash_share/ 9 of 500 over false")
	sums.Ages = nil // nor any other
	look("2.0.1 crash_share/ 9 of 500 over false")
	crashes(500, 1)
	sums.Ages[0].Minutes, sums.Ages[2].Minutes = 20, 20 // the events do not come any longer
	look("2.0.1 crash_share/ 9 of 500 over false")
	told()
	crashes(500, 1)
	look("2.0.1 crash_share/ 9 of 500 over true")
	told() // it may fire again
	later()
	look("2.0.1 crash_share/ 9 of 500 over true")
	if len(post.got) != 2 || !strings.HasPrefix(post.got[0], "alert-resolved a@example.org: 2.0.1: 9 of 500") {
		t.Errorf("letters %q", post.got)
	}
	post.got = nil

	// Faults, each code by itself, and rates of events; without recipients there are no letters, not later either.
	if _, err := svc.SetMailing(t.Context(), alert.Mailing{}); err != nil {
		t.Fatal(err)
	}
	if err := svc.DropThreshold(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	for _, l := range []alert.Limit{{Kind: alert.FaultShare, Level: 0.1, Robots: 2, Hours: 1}, {Kind: alert.FaultShare, Of: "801", Level: 0.01, Robots: 1, Hours: 1}, {Kind: alert.EventRate, Of: "log.error", Level: 20, Robots: 2, Hours: 1}} {
		if x, err := svc.AddThreshold(t.Context(), l, "op"); err != nil || x.ID == 0 || x.By != "op" {
			t.Fatalf("%+v, %v", x, err)
		}
	}
	sums.Ages = []das.Age{{Version: "2.0.1", Robots: 10}, {Version: "2.0.0", Robots: 1}, {Version: "2.0.1", Class: "fault/914", Robots: 5}, {Version: "2.0.1", Class: "fault/801", Robots: 1}}
	sums.Heard = []das.Heard{{Version: "2.0.1", Robots: 10}, {Version: "2.0.0", Robots: 1}}
	sums.Events = []das.EventCount{{EventSince: das.EventSince{Event: "log.error"}, Version: "2.0.1", N: 205}, {EventSince: das.EventSince{Event: "log.error"}, Version: "2.0.0", N: 99}}
	look("2.0.1 event_rate/log.error 10 of 10 over false", "2.0.1 fault_share/801 1 of 10 over false", "2.0.1 fault_share/914 5 of 10 over false", "2.0.1 crash_share/ 9 of 500 over true")
	if _, err := svc.SetMailing(t.Context(), alert.Mailing{To: []string{"a@example.org"}}); err != nil {
		t.Fatal(err)
	}
	look("2.0.1 event_rate/log.error 10 of 10 over false", "2.0.1 fault_share/801 1 of 10 over false", "2.0.1 fault_share/914 5 of 10 over false", "2.0.1 crash_share/ 9 of 500 over true")
	told()

	for _, bad := range []alert.Limit{{Kind: "share", Level: 1, Robots: 1, Hours: 1}, {Kind: alert.CrashShare, Of: "x", Level: 1, Robots: 1, Hours: 1}, {Kind: alert.CrashShare, Robots: 1, Hours: 1},
		{Kind: alert.CrashShare, Level: 2, Robots: 1, Hours: 1}, {Kind: alert.FaultShare, Of: "motor", Level: 1, Robots: 1, Hours: 1}, {Kind: alert.EventRate, Level: 1, Robots: 1, Hours: 1},
		{Kind: alert.CrashShare, Level: 1, Hours: 1}, {Kind: alert.CrashShare, Level: 1, Robots: 1, Hours: 73}} {
		if _, err := svc.AddThreshold(t.Context(), bad, "op"); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for range alert.MaxThresholds - 3 {
		if _, err := svc.AddThreshold(t.Context(), alert.Limit{Kind: alert.CrashShare, Level: 1, Robots: 1, Hours: 1}, "op"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := svc.AddThreshold(t.Context(), alert.Limit{Kind: alert.CrashShare, Level: 1, Robots: 1, Hours: 1}, "op"); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("one more: %v", err)
	}
	if err := svc.DropThreshold(t.Context(), 1_000_000); errs.KindOf(err) != errs.NotFound {
		t.Errorf("none: %v", err)
	}
	for _, bad := range []string{"noone", "A <a@example.org>", "a@example.org\nBcc: b@example.org", ""} {
		if _, err := svc.SetMailing(t.Context(), alert.Mailing{To: []string{bad}}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

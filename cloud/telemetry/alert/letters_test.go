package alert_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

// told returns the templates of the letters to one recipient since the last call.
func (p *postbox) told() string {
	var out []string
	for _, l := range p.got {
		name, _, _ := strings.Cut(l, " ")
		out = append(out, name)
	}
	p.got = nil
	return strings.Join(out, " ")
}

// TestLetters (issue 27, items 8 and 13): one letter when an alert fires, another when a warning becomes a failure or ten times the robots have it, none while it flaps, is silenced or
// stays as it is, and one at the end when that has lasted. An acknowledgement ends when the alert becomes more severe or is resolved.
func TestLetters(t *testing.T) {
	pool := pgtest.New(t)
	store, post := alertpg.New(pool), &postbox{}
	present := 10
	problems := []registry.ProblemCount{}
	svc := alert.New(store, func(context.Context, int) ([]registry.ProblemCount, error) { return problems, nil })
	svc.Mail, svc.Desk = post, store
	if _, err := svc.SetMailing(t.Context(), alert.Mailing{To: []string{"a@example.org"}}); err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	letters := func(want string) {
		t.Helper()
		for range 3 { // once, however often it is looked at
			if err := svc.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := post.told(); got != want {
			t.Errorf("letters %q, want %q", got, want)
		}
	}
	only := func() alert.Alert {
		t.Helper()
		list, err := svc.Alerts(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v; want one alert", list, err)
		}
		return list[0]
	}
	job := func(failing bool) {
		t.Helper()
		if err := store.Told(t.Context(), "here", []alert.Part{{Name: "job rollout.step", Failing: failing, Reason: "conflict", Since: time.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	ends := func() { exec(`UPDATE alert_part SET told = told - $1::interval`, 2*alert.PartAfter) }
	job(false)
	letters("alert-firing")
	if err := svc.Ack(t.Context(), only().ID, alert.Note{Why: "mine"}, "ann"); err != nil {
		t.Fatal(err)
	}
	if a := only(); a.Ack == nil || a.Ack.By != "ann" || a.Ack.Why != "mine" || time.Since(a.Ack.At) > time.Minute {
		t.Errorf("acknowledged: %+v", a.Ack)
	}
	job(true)
	letters("alert-worse")
	if a := only(); a.Ack != nil {
		t.Errorf("acknowledged although it is worse: %+v", a.Ack)
	}
	for range 5 { // it fails and recovers
		ends()
		letters("")
		if only().Resolved == nil {
			t.Error("not resolved")
		}
		job(true)
		letters("")
		job(false)
		letters("")
	}
	ends()
	letters("")
	exec(`UPDATE alert_part SET resolved = resolved - $1::interval`, alert.ReopenWithin)
	letters("alert-resolved")
	exec(`DELETE FROM alert_part`)

	// Robots.
	problem := func(robots int) {
		problems = []registry.ProblemCount{{Release: "2.0", Kind: "fault", Code: "914", Robots: robots, Present: max(present, robots)}}
	}
	problem(5)
	letters("alert-firing")
	problem(49)
	letters("")
	problem(50)
	letters("alert-worse")
	problem(40)
	letters("")
	problem(50)
	letters("")
	id := only().ID
	if err := svc.Ack(t.Context(), id, alert.Note{}, "ann"); err != nil {
		t.Fatal(err)
	}
	problems = nil
	letters("")
	exec(`UPDATE alert_found SET missed = missed - $1::interval`, alert.ResolveAfter)
	letters("")
	if err := svc.Ack(t.Context(), id, alert.Note{}, "ann"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("acknowledged after its end: %v", err)
	}
	problem(50)
	letters("")
	if a := only(); a.ID != id || a.Resolved != nil || a.Ack != nil {
		t.Errorf("fires again: %+v", a)
	}

	// A silence.
	for _, bad := range []alert.Hush{{Alert: id, Minutes: 60}, {Alert: id, Why: "x"}, {Alert: id, Minutes: 60, Why: strings.Repeat("x", alert.MaxWhy+1)}} {
		if _, err := svc.Silence(t.Context(), bad, "ann"); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := svc.Silence(t.Context(), alert.Hush{Alert: 1_000_000, Minutes: 60, Why: "x"}, "ann"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("no alert: %v", err)
	}
	q, err := svc.Silence(t.Context(), alert.Hush{Alert: id, Minutes: 240, Why: "known"}, "ann")
	if err != nil || q.Release != "2.0" || q.Kind != "fault" || q.Code != "914" || q.By != "ann" || q.Until.Sub(q.Since).Round(time.Second) != 4*time.Hour {
		t.Fatalf("%+v, %v", q, err)
	}
	problem(5_000)
	letters("")
	if a := only(); a.Silenced == nil || a.Silenced.ID != q.ID || a.Silenced.Why != "known" {
		t.Errorf("silenced: %+v", a.Silenced)
	}
	if list, err := svc.Silences(t.Context()); err != nil || !slices.Equal(list, []alert.Silence{q}) {
		t.Errorf("silences %+v, %v", list, err)
	}
	if err := svc.Unsilence(t.Context(), q.ID); err != nil {
		t.Fatal(err)
	}
	letters("alert-worse")
	if err := svc.Unsilence(t.Context(), q.ID); errs.KindOf(err) != errs.NotFound {
		t.Errorf("ended twice: %v", err)
	}
}

// TestVanished: robots that go offline are told when they are more than usual at the hour or than on other releases, and the alert lasts until they are back.
func TestVanished(t *testing.T) {
	pool := pgtest.New(t)
	store, fleet := alertpg.New(pool), registrypg.New(pool, slog.New(slog.DiscardHandler))
	svc := alert.New(store, fleet.ProblemsByRelease)
	svc.Presence, svc.History = fleet, store
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
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
			state := "fires"
			if a.Resolved != nil {
				state = "over"
			}
			got = append(got, a.Release+" "+a.Kind+"/"+a.Code+" "+state)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	exec(`INSERT INTO registry_thing (thing, present, since, last_seen) SELECT 'vic:' || lpad(i::text, 4, '0'), true, clock_timestamp() - interval '1 day', clock_timestamp() FROM generate_series(0, 1999) AS i`)
	exec(`UPDATE registry_facet SET os = CASE WHEN thing < 'vic:1000' THEN '1' ELSE '2' END, fit = 3, codes = CASE WHEN thing < 'vic:1000' THEN '{fault/914}' ELSE '{}' END::text[]`)
	gone := func(from, until int, ago string) {
		t.Helper()
		exec(`UPDATE registry_thing SET present = false, since = clock_timestamp() - $3::interval WHERE thing >= 'vic:' || lpad($1::int::text, 4, '0') AND thing < 'vic:' || lpad($2::int::text, 4, '0')`, from, until, ago)
	}
	look("1 fault/914 fires")
	gone(1000, 1030, "10 minutes") // 3 % of a release: usual, as far as that is known, and too few to be more than on the other
	gone(0, 20, "10 minutes")
	look("1 fault/914 fires")
	gone(1030, 1200, "1 minute") // they may be back soon
	look("1 fault/914 fires")
	gone(1030, 1200, "10 minutes") // 20 %
	look("2 vanished/ fires", "1 fault/914 fires")
	exec(`UPDATE registry_thing SET present = false, since = clock_timestamp() - interval '20 minutes' WHERE thing < 'vic:0700'`) // what is known of the other goes with them
	look("1 vanished/ fires", "2 vanished/ fires", "1 fault/914 fires")
	exec(`UPDATE registry_facet SET codes = '{}'`)
	exec(`UPDATE alert_found SET missed = missed - $1::interval`, alert.ResolveAfter)
	look("1 vanished/ fires", "2 vanished/ fires", "1 fault/914 fires")

	// They stay away: that is no end.
	exec(`UPDATE registry_thing SET since = since - interval '3 hours' WHERE NOT present`)
	exec(`UPDATE alert_found SET since = since - interval '3 hours'`)
	look("1 vanished/ fires", "2 vanished/ fires", "1 fault/914 fires")
	exec(`UPDATE registry_thing SET present = true, since = clock_timestamp() WHERE thing >= 'vic:0004'`)
	look("1 vanished/ fires", "2 vanished/ fires", "1 fault/914 fires")
	exec(`UPDATE alert_found SET missed = missed - $1::interval`, alert.ResolveAfter)
	if err := svc.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := svc.Alerts(t.Context()); err != nil || slices.ContainsFunc(list, func(a alert.Alert) bool { return a.Resolved == nil }) {
		t.Errorf("they are back: %+v, %v", list, err)
	}

	// At this hour many robots are switched off, as on the days before; all releases alike.
	exec(`DELETE FROM alert_found`)
	exec(`DELETE FROM alert_gone`)
	exec(`INSERT INTO alert_gone (species, at, gone, base) SELECT 'vic', clock_timestamp() - make_interval(days => d, mins => 10), 600, 2000 FROM generate_series(1, 5) AS d`)
	gone(0, 250, "10 minutes")
	gone(1000, 1250, "10 minutes")
	look()
	gone(1000, 1450, "10 minutes")
	look("2 vanished/ fires")
}

package rolloutwire_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutapi"
	"kennel/cloud/updates/rollout/rolloutpg"
	"kennel/cloud/updates/rollout/rolloutwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otapg"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	older = "2.0.0.1"
	newer = ota.Version("2.0.1.1")
)

// hints collects what robots are told; safe for concurrent use.
type hints struct {
	mu   sync.Mutex
	told map[thing.ID]ota.Desired
}

func (h *hints) Hint(_ context.Context, id thing.ID, _ string, payload []byte) {
	d, err := ota.ParseDesired(payload)
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[id] = d
}

// cloud is the releases and rollouts of one process.
type cloud struct {
	*rollout.Service
	releases *ota.Service
	hints    *hints
	now      atomic.Int64 // ns; 0: the clock
}

func open(pool *pgxpool.Pool) *cloud {
	c := &cloud{hints: &hints{told: map[thing.ID]ota.Desired{}}}
	c.releases = ota.New(otapg.New(pool), c.hints)
	log := slog.New(slog.DiscardHandler)
	store := registrypg.New(pool, log)
	robots := registry.New(store, store, registry.Sources{}, log)
	c.Service = rollout.New(rollout.Config{Store: rolloutpg.New(pool), Fleet: rolloutwire.Fleet(robots.Briefs, crashpg.New(pool).Crashed), Known: c.releases.Known, Path: c.releases.Path, Wished: c.releases.Wished, Hint: c.hints, Now: func() time.Time {
		if ns := c.now.Load(); ns != 0 {
			return time.Unix(0, ns)
		}
		return time.Now()
	}})
	c.releases.Follow(c.Service)
	return c
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// fill makes n robots that run the older release and are present, and the release.
func fill(t testing.TB, pool *pgxpool.Pool, c *cloud, n int) {
	t.Helper()
	exec(t, pool, `INSERT INTO registry_thing (thing, present, since) SELECT 'vic:' || to_char(i, 'FM000000'), true, now() - interval '1 day' FROM generate_series(1, $1) AS i`, n)
	exec(t, pool, `UPDATE registry_facet SET os = $1, os_key = $2`, older, filter.VersionKey(older))
	if err := c.releases.AddRelease(t.Context(), ota.Release{Species: thing.Vector, Version: newer, Artifact: ota.Artifact{URL: "https://s3.example/a.ota", Size: 7}}); err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, c *cloud, s rollout.Spec) rollout.Rollout {
	t.Helper()
	s.Species, s.Version = thing.Vector, newer
	if s.Channel == "" {
		s.Channel = rollout.Beta
	}
	r, err := c.Create(t.Context(), "", s, false, "author")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// planned makes a rollout that has put its robots in order and has granted none: they were all away.
func planned(t *testing.T, pool *pgxpool.Pool, c *cloud, s rollout.Spec) rollout.Rollout {
	t.Helper()
	r := create(t, c, s)
	exec(t, pool, `UPDATE registry_facet SET present = false`)
	if err := c.StepOne(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `UPDATE registry_facet SET present = true`)
	return r
}

func robot(i int) thing.ID { return thing.ID(fmt.Sprintf("vic:%06d", i)) }

// TestCapIsExact (issue 17, must hold 3): a cap of N grants exactly N, to 1 to 256 robots that ask at once of two processes which also run steps, and another
// rollout of the species takes none of them twice.
func TestCapIsExact(t *testing.T) {
	pool := pgtest.New(t)
	a, b := open(pool), open(pool)
	fill(t, pool, a, 300)
	for _, tt := range []struct{ clients, places int }{{1, 10}, {2, 1}, {16, 10}, {256, 10}, {256, 255}} {
		exec(t, pool, `DELETE FROM rollout_rollout`)
		var ids []string
		for range 2 {
			ids = append(ids, planned(t, pool, a, rollout.Spec{Phases: []rollout.Phase{{Percent: 100, BakeS: 60}}, Cap: tt.places, Guards: []rollout.Guard{}}).ID)
		}
		var granted atomic.Int64
		var all sync.WaitGroup
		for i := range tt.clients {
			all.Go(func() {
				c := []*cloud{a, b}[i%2]
				for range 2 { // a robot that asks again holds the same grant
					d, err := c.releases.Ask(t.Context(), robot(i+1), older)
					if err != nil {
						t.Error(err)
						return
					}
					if d.Release == "" {
						return
					}
					if d.Release != newer || d.Rollout == "" || d.URL == "" || d.Until.IsZero() {
						t.Errorf("desired %+v", d)
					}
				}
				granted.Add(1)
			})
		}
		if tt.clients == 256 {
			for i := range 4 {
				all.Go(func() {
					if err := []*cloud{a, b}[i%2].StepOne(t.Context(), ids[i%2]); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		var each []int
		rows, err := pool.Query(t.Context(), `SELECT count(*) FILTER (WHERE state = 'granted') FROM rollout_member GROUP BY rollout ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
			each = append(each, n)
		}
		if slices.Max(each) > tt.places || tt.clients >= 2*tt.places && (len(each) != 2 || each[0] != tt.places) || tt.clients < tt.places && int(granted.Load()) != tt.clients {
			t.Errorf("%d clients, cap %d: two rollouts granted %v, %d robots hold one", tt.clients, tt.places, each, granted.Load())
		}
	}
}

// TestTurns: prod waits for a second person; pause takes idle grants back and keeps updates going; each turn is told to webhooks; a person's wish for a
// robot goes before, and the species' one after.
func TestTurns(t *testing.T) {
	pool := pgtest.New(t)
	c, ctx := open(pool), t.Context()
	fill(t, pool, c, 20)
	exec(t, pool, `INSERT INTO webhook_hook (id, url, kinds, filter, secret, note, by_whom, created) VALUES (gen_random_uuid(), 'https://x.example', '{rollout.waiting,rollout.started,rollout.paused,rollout.aborted}', '', '', '', '', now())`)
	r := create(t, c, rollout.Spec{Channel: rollout.Prod, Phases: []rollout.Phase{{Percent: 100, BakeS: 60}}, Cap: 10, Guards: []rollout.Guard{}})
	desired := func(id thing.ID, want ota.Version) ota.Desired {
		t.Helper()
		d, err := c.releases.Ask(ctx, id, older)
		if err != nil || d.Release != want {
			t.Errorf("%s should run %+v, %v; want %q", id, d, err, want)
		}
		return d
	}
	do := func(a rollout.Action, by string, want rollout.State) {
		t.Helper()
		if got, err := c.Do(ctx, r.ID, a, "because", by); err != nil || got.State != want {
			t.Errorf("%s: %s, %v; want %s", a, got.State, err, want)
		}
	}
	if r.State != rollout.Waiting {
		t.Fatalf("state %s", r.State)
	}
	desired(robot(1), "")
	if _, err := c.Do(ctx, r.ID, rollout.Approve, "", "author"); errs.KindOf(err) != errs.Denied {
		t.Errorf("approved by its author: %v", err)
	}
	if why, err := c.Explain(ctx, robot(1)); err != nil || len(why) != 1 || why[0].Code != rollout.WhyApproval {
		t.Errorf("why %+v, %v", why, err)
	}
	do(rollout.Approve, "other", rollout.Running)
	exec(t, pool, `UPDATE registry_facet SET present = false`)
	if err := c.StepOne(ctx, r.ID); err != nil { // which puts them in order
		t.Fatal(err)
	}
	exec(t, pool, `UPDATE registry_facet SET present = true`)
	desired(robot(1), newer)
	if err := c.StepOne(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	if len(c.hints.told) != 9 {
		t.Errorf("%d robots were told; want the other 9 of the cap", len(c.hints.told))
	}
	if err := c.releases.Report(ctx, robot(1), ota.Status{ID: "1", Release: newer, Phase: "download", Running: older}); err != nil {
		t.Fatal(err)
	}
	do(rollout.Pause, "author", rollout.Paused)
	desired(robot(1), newer) // it has begun
	idle := 0
	for id, d := range c.hints.told {
		if d.Release == "" {
			idle++
			desired(id, "")
		}
	}
	if idle != 9 {
		t.Errorf("%d were told to wait, want 9", idle)
	}
	if _, err := c.Do(ctx, r.ID, rollout.Approve, "", "other"); errs.KindOf(err) != errs.Conflict {
		t.Errorf("approved again: %v", err)
	}
	if err := c.releases.Report(ctx, robot(1), ota.Status{ID: "2", Release: newer, Phase: "failed", Code: 209, Running: older}); err != nil {
		t.Fatal(err)
	}
	if why, err := c.Explain(ctx, robot(1)); err != nil || why[0].Code != rollout.WhyFailed || why[0].Error != 209 || !strings.Contains(why[0].Words, "signature") {
		t.Errorf("why %+v, %v", why, err)
	}
	if _, err := c.Do(ctx, r.ID, rollout.Resume, "", "author"); errs.CodeOf(err) != "same_person" {
		t.Errorf("resumed by its author: %v", err)
	}
	do(rollout.Resume, "other", rollout.Running)
	desired(robot(1), "")
	do(rollout.TryAgain, "author", rollout.Running)
	desired(robot(1), newer)
	if err := c.releases.Report(ctx, robot(1), ota.Status{ID: "3", Release: newer, Phase: ota.Current, Running: string(newer)}); err != nil {
		t.Fatal(err)
	}
	if err := c.releases.AddRelease(ctx, ota.Release{Species: thing.Vector, Version: "9.0.0.0"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.releases.SetSpeciesDesired(ctx, thing.Vector, "9.0.0.0", "op"); err != nil {
		t.Fatal(err)
	}
	desired(robot(1), newer)
	desired("vic:stranger", "9.0.0.0")
	if _, err := c.releases.SetDesired(ctx, robot(1), "9.0.0.0", "op"); err != nil {
		t.Fatal(err)
	}
	desired(robot(1), "9.0.0.0")
	if _, err := c.releases.SetDesired(ctx, robot(20), "9.0.0.0", "op"); err != nil { // it takes no place of the rollout
		t.Fatal(err)
	}
	for range 2 {
		if err := c.StepOne(ctx, r.ID); err != nil {
			t.Fatal(err)
		}
	}
	if why, err := c.Explain(ctx, robot(20)); err != nil || why[0].Code != rollout.WhyWished {
		t.Errorf("why %+v, %v", why, err)
	}
	if _, err := c.releases.SetDesired(ctx, robot(1), "", "op"); err != nil {
		t.Fatal(err)
	}
	do(rollout.GoBack, "author", rollout.Aborted)
	if err := c.StepOne(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	if d := desired(robot(1), older); !d.Rollback {
		t.Errorf("%+v; want it to go back", d)
	}
	if err := c.releases.Report(ctx, robot(1), ota.Status{ID: "4", Release: older, Phase: ota.Current, Running: older}); err != nil {
		t.Fatal(err)
	}
	if why, err := c.Explain(ctx, robot(1)); err != nil || why[0].Code != rollout.WhyReturned {
		t.Errorf("why %+v, %v", why, err)
	}
	turns, err := c.Turns(ctx, r.ID)
	var kinds []string
	for _, x := range turns {
		kinds = append(kinds, x.Kind)
	}
	if want := []string{"rollout.aborted", "rollout.retried", "rollout.resumed", "rollout.paused", "rollout.started", "rollout.waiting"}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("turns %q, %v", kinds, err)
	}
	var told int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM webhook_event WHERE data->>'version' = $1`, newer).Scan(&told); err != nil || told != 4 {
		t.Errorf("%d events for webhooks, %v", told, err)
	}
	list, err := c.Robots(ctx, r.ID, rollout.Which{Code: rollout.WhyReturned, Limit: 10})
	if err != nil || len(list) != 1 || list[0].Thing != robot(1) {
		t.Errorf("robots %+v, %v", list, err)
	}
}

// TestZones: what a rollout knows of robots' zones follows their settings, also when these are erased.
func TestZones(t *testing.T) {
	pool := pgtest.New(t)
	store := rolloutpg.New(pool)
	doc := func(text string) {
		t.Helper()
		exec(t, pool, `INSERT INTO jdocs_doc (thing, name, doc_version, fmt_version, json_doc, changed_by) VALUES ('vic:1', 'vic.RobotSettings', 1, 1, $1, 'x')
			ON CONFLICT (thing, account, name) DO UPDATE SET json_doc = excluded.json_doc`, text)
	}
	want := func(zone string) {
		t.Helper()
		if z, err := store.Zones(t.Context(), nil); err != nil || z["vic:1"] != zone {
			t.Errorf("zones %v, %v; want %q", z, err, zone)
		}
	}
	want("")
	doc(`{"volume": 3}`)
	want("")
	doc(`{"time_zone": "Europe/Berlin", "volume": 3}`)
	want("Europe/Berlin")
	doc(`{"time_zone":"Asia/Tokyo"}`)
	want("Asia/Tokyo")
	doc(`{"time_zone": 7}`)
	want("")
	doc(`{"time_zone":"Asia/Tokyo"}`)
	exec(t, pool, `UPDATE jdocs_doc SET deleted = true, json_doc = '' WHERE thing = 'vic:1'`)
	want("")
	doc(`{"time_zone":"Asia/Tokyo"}`)
	exec(t, pool, `UPDATE jdocs_doc SET deleted = false`)
	doc(`{"time_zone":"Etc/GMT+3"}`)
	want("Etc/GMT+3")
	exec(t, pool, `DELETE FROM jdocs_doc`)
	want("")
}

// TestPage: the list leads to a rollout's own page, which shows its phases, robots by phase and answer, codes, history and course, with buttons for those who may
// use them. A robot's page says why it waits.
func TestPage(t *testing.T) {
	pool := pgtest.New(t)
	c := open(pool)
	fill(t, pool, c, 60)
	r := planned(t, pool, c, rollout.Spec{Phases: []rollout.Phase{{Percent: 5, BakeS: 60}, {Percent: 100, BakeS: 60}}, Cap: 1, Guards: []rollout.Guard{}})
	order, err := c.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	first := robot(1) // one of the open phase
	for i := 1; order.PhaseOf(first) != 0; i++ {
		first = robot(i)
	}
	if _, err := c.releases.Ask(t.Context(), first, older); err != nil {
		t.Fatal(err)
	}
	if err := c.releases.Report(t.Context(), first, ota.Status{ID: "1", Release: newer, Phase: "failed", Code: 209}); err != nil {
		t.Fatal(err)
	}
	if err := c.StepOne(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	var lines []string
	pages := rolloutapi.Pages(c.Service, c.releases, func(_ context.Context, action, object, _ string) error {
		lines = append(lines, action+" "+object)
		return nil
	})
	as := func(role auth.Role) context.Context {
		return auth.WithCaller(t.Context(), auth.Caller{Role: role, Name: "op"})
	}
	show := func(role auth.Role, query string, want ...string) string {
		t.Helper()
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		v.Set("id", r.ID)
		html, err := pages[3].Ask(as(role), v)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(html), w) {
				t.Errorf("%s: no %q in\n%s", query, w, html)
			}
		}
		return string(html)
	}
	robots := func(html string) int { return strings.Count(html, "data-robot=") }
	if list, err := pages[0].Show(as(auth.Viewer)); err != nil || !strings.Contains(string(list), `href="/rollouts/rollout?id=`+r.ID+`"`) || strings.Contains(string(list), "<form") || strings.Contains(string(list), "/rollouts/new") {
		t.Errorf("the list of a viewer: %s, %v", list, err)
	}
	all := show(auth.Admin, "", `data-state="running"`, `value="pause"`, `class="danger"`, "with code 209: ", `data-turn="rollout.started"`, "author", `id="t-course"`, `<td class="num right" data-label="Failed">1</td>`)
	if robots(all) != 50 || !strings.Contains(all, `rel="next"`) {
		t.Errorf("%d robots on the first page", robots(all))
	}
	if html := show(auth.Viewer, "after="+string(robot(50))); robots(html) != 10 || strings.Contains(html, `rel="next"`) || strings.Contains(html, "<form") {
		t.Errorf("%d robots on the second page: %s", robots(html), html)
	}
	if html := show(auth.Viewer, "phase=1", `data-robot="`+string(first)+`" data-why="failed"`); robots(html) != 3 {
		t.Errorf("%d robots of phase 1", robots(html))
	}
	if html := show(auth.Viewer, "phase=1&why=failed", `aria-current="true">phase 1`); robots(html) != 1 {
		t.Errorf("%d failed robots of phase 1", robots(html))
	}
	if html := show(auth.Viewer, "phase=2&why=failed"); robots(html) != 0 {
		t.Errorf("%d failed robots of phase 2", robots(html))
	}
	if _, err := pages[3].Ask(as(auth.Viewer), url.Values{"id": {r.ID}, "phase": {"x"}}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("phase x: %v", err)
	}
	pause := url.Values{"rollout": {r.ID}, "action": {"pause"}}
	if err := pages[0].Do(as(auth.Admin), pause); err != nil || !slices.Equal(lines, []string{"rollout.pause " + r.ID}) || pages[0].Back(pause) != "/rollouts/rollout?id="+r.ID {
		t.Errorf("%v, %q", err, lines)
	}
	show(auth.Admin, "", `data-state="paused"`, `value="resume"`)
	q := httptest.NewRequestWithContext(as(auth.Viewer), "GET", "/things/vic:000001/rollouts", nil)
	q.SetPathValue("thing", string(first))
	_, html, err := pages[2].Tab(q.Context(), q)
	if err != nil || !strings.Contains(string(html), "Its update failed with code 209") ||
		!strings.Contains(string(html), "failed with code 209: "+ota.NotAuthentic.Words()) {
		t.Errorf("%s, %v", html, err)
	}
}

// A robot whose program crashed in the version that it runs has a problem that it did not have before the update; a crash of another version is none of this one's.
func TestCrashIsProblem(t *testing.T) {
	pool := pgtest.New(t)
	exec(t, pool, `WITH g AS (INSERT INTO crash_group (program, signature, first_seen, last_seen, versions) VALUES ('vic-engine', 'f', now(), now(), '{}') RETURNING id)
		INSERT INTO crash_crash (id, thing, crashed, name, program, os, version, boot_id, at, received, size, log_size, reason, analysis, modules, looked)
		SELECT gen_random_uuid(), thing, g.id, 'x', 'vic-engine', os, 'engine 7', '', now(), now() - age, 1, 0, '', '{}', '{}', now()
		FROM g, (VALUES ('vic:00e20100', $1, interval '1 hour'), ('vic:00e20101', $2, interval '1 hour'), ('vic:00e20102', $1, interval '25 hours')) AS v (thing, os, age)`, string(newer), older)
	briefs := func(context.Context, filter.Filter, []thing.ID) (out []registry.Brief, err error) {
		for _, id := range []thing.ID{"vic:00e20100", "vic:00e20101", "vic:00e20102"} {
			out = append(out, registry.Brief{Thing: id, Version: string(newer), Codes: []string{"crash/" + string(newer), "fault/914"}})
		}
		return out, nil
	}
	facts, err := rolloutwire.Fleet(briefs, crashpg.New(pool).Crashed)(t.Context(), filter.Filter{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var group string
	if err := pool.QueryRow(t.Context(), `SELECT id::text FROM crash_group`).Scan(&group); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"fault/914", "crash/" + group}, {"fault/914"}, {"fault/914"}} {
		if !slices.Equal(facts[i].Problems, want) {
			t.Errorf("%s: %q, want %q", facts[i].Thing, facts[i].Problems, want)
		}
	}
}

// TestGoneCohort (issue 27.8): a rollout keeps the cohort that it is for; one whose cohort is gone all the same concerns no robot, and every robot still gets an answer.
func TestGoneCohort(t *testing.T) {
	pool := pgtest.New(t)
	c, ctx := open(pool), t.Context()
	fill(t, pool, c, 3)
	first := planned(t, pool, c, rollout.Spec{Phases: []rollout.Phase{{Percent: 100}}, Guards: []rollout.Guard{}})
	broken := planned(t, pool, c, rollout.Spec{Phases: []rollout.Phase{{Percent: 100}}, Guards: []rollout.Guard{}})
	exec(t, pool, `UPDATE rollout_rollout SET doc = jsonb_set(doc, '{cohort}', '"cohort:gone"') WHERE id = $1`, broken.ID)
	if what, err := c.UsesCohort(ctx, "gone"); err != nil || !strings.Contains(what, broken.ID) {
		t.Errorf("%q, %v; want rollout %s", what, err, broken.ID)
	}
	fleet := c.Fleet
	c.Fleet = func(ctx context.Context, f filter.Filter, also []thing.ID) ([]rollout.Fact, error) {
		if f.Uses(filter.Cohort) {
			return nil, errs.New(errs.NotFound, "there is no cohort gone")
		}
		return fleet(ctx, f, also)
	}
	one := rolloutapi.Pages(c.Service, c.releases, nil)[3]
	if html, err := one.Ask(auth.WithCaller(ctx, auth.Caller{Role: auth.Viewer}), url.Values{"id": {broken.ID}}); err != nil || !strings.Contains(string(html), `class="problem"`) {
		t.Errorf("the page of a rollout whose cohort is gone: %s, %v", html, err)
	}
	if d, err := c.releases.Ask(ctx, robot(1), older); err != nil || d.Rollout != first.ID {
		t.Errorf("%+v, %v; want the other rollout's grant", d, err)
	}
	if why, err := c.Explain(ctx, robot(2)); err != nil || len(why) != 2 || why[0].Code != rollout.WhyNotIn {
		t.Errorf("%+v, %v", why, err)
	}
	if err := c.Step(ctx); errs.KindOf(err) != errs.NotFound {
		t.Errorf("step: %v; want it to tell of the cohort", err)
	}
	if _, err := c.Do(ctx, broken.ID, rollout.Abort, "", "op"); err != nil {
		t.Fatal(err)
	}
	if what, err := c.UsesCohort(ctx, "gone"); err != nil || what != "" {
		t.Errorf("%q, %v after the abort", what, err)
	}
}

// TestManyRollouts (issue 27.14): the step reaches all that are under way, however many newer ones there are, and those that ended long ago but have robots with a grant.
func TestManyRollouts(t *testing.T) {
	pool := pgtest.New(t)
	c, ctx := open(pool), t.Context()
	fill(t, pool, c, 3)
	old := create(t, c, rollout.Spec{Phases: []rollout.Phase{{Percent: 100}}, Cap: 3, Guards: []rollout.Guard{}})
	if err := c.StepOne(ctx, old.ID); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `INSERT INTO rollout_rollout (species, state, doc) SELECT species, 'draft', doc FROM rollout_rollout, generate_series(1, 250)`)
	exec(t, pool, `UPDATE rollout_rollout SET state = 'done', doc = doc || '{"state": "done", "changed": "2026-01-01T00:00:00Z"}' WHERE id = $1`, old.ID)
	var open int
	if err := pool.QueryRow(ctx, `SELECT open FROM rollout_rollout WHERE id = $1`, old.ID).Scan(&open); err != nil || open != 3 {
		t.Errorf("%d hold a grant, %v; want 3", open, err)
	}
	exec(t, pool, `UPDATE registry_facet SET os = $1`, newer)
	if err := c.Step(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := c.Get(ctx, old.ID)
	if err != nil || r.Progress.Why[rollout.WhyDone] != 3 {
		t.Errorf("%+v, %v; want the grants settled", r.Progress, err)
	}
	if err := pool.QueryRow(ctx, `SELECT open FROM rollout_rollout WHERE id = $1`, old.ID).Scan(&open); err != nil || open != 0 {
		t.Errorf("%d hold a grant, %v; want none", open, err)
	}
	if used, err := c.Used(ctx, thing.Vector, newer); err != nil || used == "" {
		t.Errorf("used %q, %v", used, err)
	}
}

package rolloutwire_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutapi"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
)

// TestLeavingTheCohort: robots that are no longer in the cohort because they run the release now are through, and count.
func TestLeavingTheCohort(t *testing.T) {
	pool := pgtest.New(t)
	c := open(pool)
	fill(t, pool, c, 3)
	r := create(t, c, rollout.Spec{Phases: []rollout.Phase{{Percent: 100, BakeS: 60}}, Cap: 2, Cohort: filter.MustParse("version:<2.0.1"), Guards: []rollout.Guard{}})
	for range 3 {
		if err := c.StepOne(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		exec(t, pool, `UPDATE registry_facet SET os = $1, os_key = $2 WHERE thing IN (SELECT thing FROM rollout_member)`, newer, filter.VersionKey(string(newer)))
	}
	got, err := c.Get(t.Context(), r.ID)
	if err != nil || got.Progress.Why[rollout.WhyDone] != 3 || got.State != rollout.Baking {
		t.Errorf("%s, %+v, %v", got.State, got.Progress, err)
	}
}

// TestHeldRobots: what a process holds of a rollout's robots follows the changes of another one, rows that were deleted, and work that failed.
func TestHeldRobots(t *testing.T) {
	pool := pgtest.New(t)
	a, b := open(pool), open(pool)
	fill(t, pool, a, 6)
	r := create(t, a, rollout.Spec{Phases: []rollout.Phase{{Percent: 100, BakeS: 60}}, Cap: 2, Guards: []rollout.Guard{}})
	for i := range 8 {
		c := []*cloud{a, b}[i%2]
		if err := c.StepOne(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		exec(t, pool, `UPDATE registry_facet SET os = $1 WHERE thing IN (SELECT thing FROM rollout_member)`, newer)
		if got, err := c.Get(t.Context(), r.ID); err != nil || got.Progress.Why[rollout.WhyDone] != min(2*i, 6) {
			t.Errorf("step %d: %+v, %v", i, got.Progress, err)
		}
	}
	exec(t, pool, `DELETE FROM rollout_member WHERE thing = $1`, robot(1))
	for _, c := range []*cloud{a, b} {
		if ids, err := c.Store.Things(t.Context(), r.ID); err != nil || len(ids) != 5 || slices.Contains(ids, robot(1)) {
			t.Errorf("%q, %v; want the 5 others", ids, err)
		}
	}
	want := errs.New(errs.Conflict, "no")
	if err := a.Store.Update(t.Context(), r.ID, nil, func(w *rollout.Work) error { clear(w.Members); return want }); errs.KindOf(err) != errs.Conflict {
		t.Error(err)
	}
	if err := a.Store.Update(t.Context(), r.ID, nil, func(w *rollout.Work) error {
		if len(w.Members) != 5 || w.Members[robot(2)].State != rollout.Through {
			t.Errorf("%+v after work that failed", w.Members)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestSteppingStones: robots on the way to a rollout's release get what they need before it, in order, keep their place, and are told apart by their answers.
func TestSteppingStones(t *testing.T) {
	pool := pgtest.New(t)
	c, ctx := open(pool), t.Context()
	fill(t, pool, c, 3)
	for _, v := range []ota.Version{older, "1.5.0.0"} {
		if err := c.releases.AddRelease(ctx, ota.Release{Species: thing.Vector, Version: v, Artifact: ota.Artifact{URL: "https://s3.example/" + string(v)}}); err != nil {
			t.Fatal(err)
		}
	}
	r := create(t, c, rollout.Spec{Phases: []rollout.Phase{{Percent: 100, BakeS: 60}}, Cap: 2, Guards: []rollout.Guard{}})
	for v, lowest := range map[ota.Version]ota.Version{newer: older, older: "1.5.0.0"} { // of a rollout that runs already
		if err := c.releases.SetLowest(ctx, thing.Vector, v, lowest); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, pool, `UPDATE registry_facet SET os = '1.0.0.0' WHERE thing <> $1`, robot(3))
	if err := c.StepOne(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	report := func(i int, st ota.Status) {
		t.Helper()
		st.ID = fmt.Sprint(st)
		if err := c.releases.Report(ctx, robot(i), st); err != nil {
			t.Fatal(err)
		}
		exec(t, pool, `UPDATE registry_facet SET os = $2 WHERE thing = $1`, robot(i), st.Running)
	}
	why := func(i int, want rollout.WhyCode, first ota.Version) {
		t.Helper()
		w, err := c.Explain(ctx, robot(i))
		if err != nil || w[0].Code != want || w[0].First != first || strings.Contains(w[0].Words, "It gets "+string(first)+" first: 2.0.1.1 cannot") != (first != "") {
			t.Errorf("%+v, %v; want %s after %q", w, err, want, first)
		}
	}
	asks := func(i int, running string, want ota.Version) {
		t.Helper()
		if d, err := c.releases.Ask(ctx, robot(i), running); err != nil || d.Release != want {
			t.Errorf("%+v, %v; want %s", d, err, want)
		}
	}
	members := func() map[thing.ID]rollout.Member {
		w, err := c.Store.Look(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return w.Members
	}
	var on []int // robots that hold a grant
	for i := 1; i <= 3; i++ {
		if members()[robot(i)].State == rollout.Granted {
			on = append(on, i)
		}
	}
	if len(on) != 2 {
		t.Fatalf("granted %v", on)
	}
	on = slices.DeleteFunc(on, func(i int) bool { return i == 3 })
	a := on[0]
	why(a, rollout.WhyGranted, "1.5.0.0")
	asks(a, "1.0.0.0", "1.5.0.0")
	report(a, ota.Status{Release: "1.5.0.0", Running: "1.0.0.0", Phase: ota.Downloading})
	why(a, rollout.WhyUpdating, "1.5.0.0")
	report(a, ota.Status{Release: "1.5.0.0", Running: "1.5.0.0", Phase: ota.Current})
	why(a, rollout.WhyGranted, older)
	asks(a, "1.5.0.0", older)
	granted := members()[robot(a)].Granted
	report(a, ota.Status{Release: older, Running: "1.5.0.0", Phase: ota.Downloading})
	why(a, rollout.WhyUpdating, older)
	if m := members()[robot(a)]; !m.Granted.Equal(granted) || m.From != "1.5.0.0" {
		t.Errorf("%+v: want its new time only once", m)
	}
	report(a, ota.Status{Release: newer, Running: older, Phase: ota.Pending})
	why(a, rollout.WhyGranted, "")
	asks(a, older, newer)
	report(a, ota.Status{Release: newer, Running: string(newer), Phase: ota.Current})
	why(a, rollout.WhyDone, "")
	if err := c.StepOne(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	b := 3 - a // the other one that runs 1.0.0.0
	asks(b, "1.0.0.0", "1.5.0.0")
	report(b, ota.Status{Release: "1.5.0.0", Running: "1.0.0.0", Phase: ota.Failed, Code: 209})
	why(b, rollout.WhyFailed, "")
	if n := len(members()); n > 3 || members()[robot(3)].Tries > 1 {
		t.Errorf("%+v", members())
	}
}

// TestNewRollout: the form makes the rollout that it describes, in the name of the person who sent it; one for prod waits for another person. What was typed
// stays when it is refused.
func TestNewRollout(t *testing.T) {
	pool := pgtest.New(t)
	c := open(pool)
	fill(t, pool, c, 7)
	var lines []string
	form := rolloutapi.Pages(c.Service, c.releases, func(_ context.Context, action, object, detail string) error {
		lines = append(lines, action+" "+object+" "+detail)
		return nil
	})[1]
	ctx := auth.WithCaller(t.Context(), auth.Caller{Role: auth.ReleaseManager, Name: "rel@example.org"})
	v := url.Values{"release": {"vic " + string(newer)}, "channel": {"prod"}, "cohort": {"tag:beta"}, "cap": {"7"}, "bandwidth": {"1000"}, "from": {"22:00"}, "to": {"05:00"}, "percent": {"2.5", "100", "", ""},
		"bake": {"0.5", "24", "1", ""}, "share": {"5", "", "1"}, "sample": {"20", "30", "40"}, "charger": {"yes"}, "rollback": {"yes"}, "note": {" calm "}}
	if err := form.Do(ctx, v); err != nil {
		t.Fatal(err)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	want := rollout.Spec{Species: thing.Vector, Version: newer, Channel: rollout.Prod, Cohort: filter.MustParse("tag:beta"), Phases: []rollout.Phase{{Percent: 2.5, BakeS: 1800}, {Percent: 100, BakeS: 86400}}, Cap: 7, Bandwidth: 1000,
		Window: &ota.Window{From: "22:00", To: "05:00"}, Needs: &ota.Needs{Charger: true}, Guards: []rollout.Guard{{Metric: rollout.Failures, Share: 0.05, Sample: 20}, {Metric: rollout.Problems, Share: 0.01, Sample: 40}}, WatchS: 86400, Rollback: true, Note: "calm"}
	if got := list[0]; !reflect.DeepEqual(got.Spec, want) || got.State != rollout.Waiting || got.By != "rel@example.org" {
		t.Errorf("%+v is %s by %s; want %+v", got.Spec, got.State, got.By, want)
	}
	if !slices.Equal(lines, []string{"rollout.create " + list[0].ID + " vic 2.0.1.1 to prod"}) { // 30.5: it names the rollout
		t.Errorf("audit %q", lines)
	}
	for name, text := range map[string]string{"cap": "many", "percent": "200", "from": "25:00", "cohort": "owner:ann", "release": "vic 7.7.7.7", "share": "x"} {
		bad := maps.Clone(v)
		bad[name] = []string{text}
		if err := form.Do(ctx, bad); errs.KindOf(err) != errs.Invalid && errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s %s: %v", name, text, err)
		}
	}
	for i, want := range []string{`value="22:00"`, `<option value="vic 2.0.1.1" selected`, `name="charger" value="yes" checked`, `value="2.5"`, `> calm </textarea>`} {
		if html, err := form.Ask(ctx, v); err != nil || !strings.Contains(string(html), want) {
			t.Errorf("%d: no %q in\n%s, %v", i, want, html, err)
		}
	}
	count := maps.Clone(v)
	for asked, want := range map[string]int{"tag:beta": 0, "tag:": -1, "": 7, "version:<2.0.1": 7} { // that is so many robots, before it starts
		count["cohort"], count["count"] = []string{asked}, []string{"yes"}
		html, err := form.Ask(ctx, count)
		if err != nil || strings.Contains(string(html), fmt.Sprintf(`data-forecast="%d"`, want)) != (want >= 0) || strings.Contains(string(html), `role="alert"`) != (want < 0) {
			t.Errorf("%q: want %d robots: %s, %v", asked, want, html, err)
		}
	}
	if html, err := form.Ask(ctx, url.Values{}); err != nil || !strings.Contains(string(html), `data-forecast="7"`) || strings.Count(string(html), `name="percent"`) != 5 || !strings.Contains(string(html), `value="100"`) {
		t.Errorf("%s, %v", html, err)
	}
	if list, err := c.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d rollouts, %v", len(list), err)
	}
}

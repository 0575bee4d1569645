package health_test

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/health"
	"kennel/cloud/telemetry/health/healthapi"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

var noon = time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)

// sums answers with tallies of the period asked for, and of the one before.
type sums struct {
	now, before, course []das.Tally
	hours               []das.HourSum
	asked               []das.Slots
}

func (s *sums) Tallies(_ context.Context, of das.Slots) ([]das.Tally, error) {
	s.asked = append(s.asked, of)
	if !of.Until.After(noon) {
		return s.before, nil
	}
	if !of.Whole {
		return s.now, nil
	}
	whole := map[das.Class]das.Tally{}
	for _, t := range s.now {
		w := whole[t.Class]
		w.Class, w.Robots, w.Slots, w.Events = t.Class, w.Robots+t.Robots, w.Slots+t.Slots, w.Events+t.Events
		whole[t.Class] = w
	}
	var out []das.Tally
	for _, w := range whole {
		out = append(out, w)
	}
	return out, nil
}

func (s *sums) Compare(ctx context.Context, of das.Slots, mid time.Time) (now, was, whole []das.Tally, err error) {
	before := of
	before.Until, of.Since = mid, mid
	now, _ = s.Tallies(ctx, of)
	was, _ = s.Tallies(ctx, before)
	of.Whole = true
	whole, err = s.Tallies(ctx, of)
	return now, was, whole, err
}

func (s *sums) Course(context.Context, das.Slots, string) ([]das.Tally, error) { return s.course, nil }

func (s *sums) HourSums(context.Context, time.Time) ([]das.HourSum, error) { return s.hours, nil }

// ran makes the tallies of a version.
func ran(version string, robots, crashed int) []das.Tally {
	out := []das.Tally{{Version: version, Robots: robots, Slots: robots, Events: int64(10 * robots)}}
	if crashed > 0 {
		out = append(out, das.Tally{Version: version, Class: das.Crash, Robots: crashed, Slots: crashed, Events: int64(crashed)})
	}
	return out
}

func service(s *sums) *health.Service {
	return &health.Service{Sums: s, Now: func() time.Time { return noon }, Fleet: health.Fleet{
		Cohort: func(_ context.Context, name string) ([]thing.ID, error) {
			if name != "beta" {
				return nil, errs.New(errs.NotFound, "no cohort %s", name)
			}
			return []thing.ID{"vic:a0"}, nil
		},
		Battery: func(context.Context, string, []thing.ID) (health.Battery, error) {
			return health.Battery{Levels: []health.Count{{Name: "low", Robots: 3}}, Lowest: []health.Lowest{{Thing: "vic:a0", Volts: 3.512}}}, nil
		},
		Funnel: func(context.Context, string, []thing.ID) ([]health.Count, error) {
			return []health.Count{{Name: "registered", Robots: 500}}, nil
		},
	}}
}

// A version is bad when chance does not explain its crashes beside the others and the time before; few robots say nothing.
func TestVerdict(t *testing.T) {
	const v = "2.0.1"
	for _, c := range []struct {
		name        string
		now, before []das.Tally
		want        health.State
	}{
		{"5 % of 500, nothing before", ran(v, 500, 25), nil, health.Bad},
		{"5 % of 500, none before", ran(v, 500, 25), ran("2.0.0", 500, 0), health.Bad},
		{"5 % of 250, none of the others", slices.Concat(ran(v, 250, 13), ran("2.0.0", 250, 0)), nil, health.Bad},
		{"5 % of 500, as before", ran(v, 500, 25), ran("2.0.0", 500, 22), health.Well},
		{"as bad as itself before", ran(v, 500, 25), ran(v, 500, 25), health.Well},
		{"nothing", ran(v, 500, 0), nil, health.Well},
		{"one robot of 20", ran(v, 20, 1), ran("2.0.0", 500, 0), health.Well},
		{"three of 20", ran(v, 20, 3), ran("2.0.0", 500, 0), health.Bad},
		{"all of 19", ran(v, 19, 19), ran("2.0.0", 500, 0), health.Few},
		{"two robots of 20, in each of 24 hours", []das.Tally{{Version: v, Robots: 20, Slots: 480}, {Version: v, Class: das.Crash, Robots: 2, Slots: 48}}, ran("2.0.0", 500, 0), health.Well},
	} {
		o, err := service(&sums{now: c.now, before: c.before}).Report(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(o.Versions, func(x health.Version) bool { return x.Version == v }); i < 0 || o.Versions[i].State != c.want {
			t.Errorf("%s: %+v; want %s", c.name, o.Versions, c.want)
		}
	}
}

// A report has all its parts, of a cohort too; the newest version is the first.
func TestReport(t *testing.T) {
	s := &sums{now: slices.Concat(ran("2.0.9", 100, 1), ran("2.0.10", 200, 40), []das.Tally{
		{Version: "2.0.9", Class: "fault/914", Robots: 2, Slots: 2, Events: 5}, {Version: "2.0.10", Class: "fault/914", Robots: 9, Slots: 9, Events: 9}, {Version: "2.0.9", Class: "fault/801", Robots: 1, Slots: 1, Events: 1},
		{Version: "2.0.9", Class: das.BatteryLow, Robots: 4}, {Version: "2.0.9", Class: das.Failures, Robots: 4, Events: 7},
		{Version: "2.0.9", Class: das.VoiceHeard, Events: 50}, {Version: "2.0.9", Class: das.VoiceDone, Events: 30}, {Version: "2.0.9", Class: das.VoiceLost, Events: 10}}),
		course: []das.Tally{{At: noon.Truncate(das.Day), Version: "a", Robots: 3}, {At: noon.Truncate(das.Day), Version: "b", Robots: 4}, {At: noon.Truncate(das.Day), Version: "b", Class: das.Crash, Robots: 1}}}
	svc := service(s)
	o, err := svc.Report(t.Context(), "7d", "beta")
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Versions) != 2 || o.Versions[0].Version != "2.0.10" || o.Versions[0].State != health.Bad || o.Versions[0].CrashFree != 0.8 || o.Versions[1].Low != 4 || o.Versions[1].Failures != 7 || o.Versions[1].Faulty != 2 {
		t.Errorf("versions %+v", o.Versions)
	}
	if len(o.Faults) != 2 || o.Faults[0] != (health.Fault{Code: 914, Robots: 11, Times: 14, Most: "2.0.10"}) {
		t.Errorf("faults %+v", o.Faults)
	}
	if o.Voice == nil || *o.Voice != (health.Voice{Heard: 50, Done: 30, Lost: 10, Share: 0.75}) {
		t.Errorf("voice %+v", o.Voice)
	}
	if len(o.Course) != 1 || o.Course[0].Robots != 7 || o.Course[0].Crashed != 1 || o.Robots != 300 || o.Crashed != 41 {
		t.Errorf("course %+v, %d robots, %d crashed", o.Course, o.Robots, o.Crashed)
	}
	if of := s.asked[0]; of.Every != das.Day || !slices.Equal(of.Things, []thing.ID{"vic:a0"}) || !of.Until.Equal(noon.Truncate(das.Day).Add(das.Day)) || of.Until.Sub(of.Since) != 7*das.Day || !s.asked[1].Until.Equal(of.Since) {
		t.Errorf("asked %+v", s.asked)
	}
	for _, q := range [][2]string{{"8d", ""}, {"7d", "gamma"}} {
		if _, err := svc.Report(t.Context(), q[0], q[1]); err == nil {
			t.Errorf("%v: no error", q)
		}
	}
	// The page says the same.
	list := func(context.Context) ([]cohort.Cohort, error) { return []cohort.Cohort{{Name: "beta"}}, nil }
	html, err := healthapi.Page(svc, list).Ask(t.Context(), url.Values{"period": {"7d"}, "cohort": {"beta"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<span class="pill fail">crashes more than usual</span>`, "86.3 %", ">914</a>", "3.51 V", "75.0 %", `registered <span class="num">500</span>`, `href="/health?cohort=beta&amp;period=30d"`, `aria-current="true">beta`} {
		if !strings.Contains(string(html), want) {
			t.Errorf("no %s in the page", want)
		}
	}
	// Without any event it says so.
	html, err = healthapi.Page(service(&sums{}), list).Show(t.Context())
	if err != nil || strings.Count(string(html), "No data.") < 2 || !strings.Contains(string(html), "No events in the last") || strings.Contains(string(html), "NaN") {
		t.Errorf("an empty page: %v %s", err, html)
	}
}

// TestCard: the overview has a chart of the last hours, with its numbers as a table; an hour without robots counts 0.
func TestCard(t *testing.T) {
	list := func(context.Context) ([]cohort.Cohort, error) { return nil, nil }
	card := func(s *sums) string {
		html, err := healthapi.Page(service(s), list).Card(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(html)
	}
	hour := noon.Truncate(time.Hour)
	html := card(&sums{hours: []das.HourSum{{At: hour.Add(-47 * time.Hour), Robots: 3}, {At: hour, Robots: 8, Crashes: 2}}})
	rows := regexp.MustCompile(`<th scope="row">([^<]*)</th><td[^>]*>(\d+)</td><td[^>]*>(\d+)</td>`).FindAllStringSubmatch(html, -1)
	if len(rows) != 48 || !slices.Equal(rows[0][1:], []string{"21 Nov 12:00", "8", "2"}) || !slices.Equal(rows[1][1:], []string{"21 Nov 11:00", "0", "0"}) || !slices.Equal(rows[47][1:], []string{"19 Nov 13:00", "3", "0"}) || strings.Count(html, `class="line"`) != 2 {
		t.Errorf("%d rows, %s", len(rows), html)
	}
	if rows := strings.Count(card(&sums{hours: []das.HourSum{{At: hour, Robots: 1}}}), `<th scope="row">`); rows != 6 {
		t.Errorf("%d rows of a fleet that is an hour old", rows)
	}
	if html := card(&sums{}); html != "" {
		t.Errorf("without robots: %s", html)
	}
}

package daspg

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// planted stores events of two robots: a fault a day, a battery in every hour, and what does not fit its description.
func planted(t *testing.T) *das.Service {
	t.Helper()
	s := Open(pgtest.New(t))
	n := map[thing.ID]uint64{}
	put := func(at time.Time, id thing.ID, e events.Event) {
		t.Helper()
		n[id]++
		e.Seq, e.BootID, e.RobotID, e.TS = n[id], "b", id.Serial(), at.UnixMilli()+e.TS
		if e.Level == "" {
			e.Level = events.Info
		}
		if err := s.EnsurePartitions(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), das.Group{Received: at, Items: []das.Item{{Thing: id, Events: []events.Event{e}}}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	for hour := range 6 {
		at := noon.Add(time.Duration(hour-6) * time.Hour)
		put(at, "vic:1", events.Event{Name: "battery.low", Source: "robotd", RobotVersion: "2.0.1.6091", I1: events.Num(int64(3300 + 20*hour)), Level: events.Warning})
		if hour%2 == 0 {
			put(at.Add(time.Minute), "vic:2", events.Event{Name: "battery.low", Source: "robotd", RobotVersion: "2.1.0.1", I1: events.Num(3500), Level: events.Debug})
		}
	}
	put(noon.Add(-time.Minute), "vic:2", events.Event{Name: "robot.fault_code", Source: "agentd", S1: "914", S2: "vic-engine 'quoted' 100%", I1: events.Num(914), Level: events.Error})
	put(noon.Add(-time.Minute), "vic:2", events.Event{Name: "battery.low", S1: "no such value", RobotVersion: "2.1.0.2"})
	put(noon.Add(-time.Minute), "vic:1", events.Event{Name: "battery.on_charger_changed", I1: events.Num(7)})
	put(noon.Add(-time.Minute), "vic:1", events.Event{Name: "robot.from_a_newer_one", S4: "kept"})
	put(noon.Add(-time.Minute), "vic:1", events.Event{Name: "robot.from_the_past", TS: -48 * 3600 * 1000})
	return das.NewService(s).WithRobots(func(_ context.Context, f string) ([]thing.ID, error) {
		if f != "cohort:beta" {
			return nil, errs.New(errs.Invalid, "filter %q", f)
		}
		return []thing.ID{"vic:2"}, nil
	})
}

func filterOf(t *testing.T, query string) das.Filter {
	t.Helper()
	v, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	f, err := das.ReadFilter(v, noon, nil)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return f
}

// TestFilter (VEC-DAS-09): each condition selects what it says, and text that looks like SQL is text.
func TestFilter(t *testing.T) {
	svc := planted(t)
	for _, tt := range []struct {
		query string
		want  int
	}{
		{"", 14},
		{"thing=vic:2", 5},
		{"robots=cohort:beta&name=battery.low", 4},
		{"event=battery.", 11},
		{"name=battery.low", 10},
		{"version=2.1.*", 4},
		{"version=2.1.0.1", 3},
		{"level=warning", 7},
		{"level=info", 11},
		{"source=agentd", 1},
		{"name=battery.low&value=battery%3C3340", 2},
		{"name=battery.low&value=battery%3E%3D3340&value=i1!%3D3500", 4},
		{"value=s1%3D914&value=s2~QUOTED", 1},
		{"value=s2~100%25", 1},
		{"value=s2~%25", 1},
		{"value=s1!%3D914", 1},
		{"value=s2%3D'%3B%20DROP%20TABLE%20das_event%3B%20--", 0},
		{"source='%20OR%20true%20--", 0},
		{"version=*", 14},
		{"since=2h", 8},
		{"since=2h&until=1h", 2},
		{"clock=robot&since=2h", 7},
		{"clock=robot&since=3d&until=1d", 1},
		{"fits=no", 2},
	} {
		recs, err := svc.List(t.Context(), filterOf(t, tt.query), 0, das.Cursor{})
		if err != nil || len(recs) != tt.want {
			t.Errorf("%s: %d records, %v; want %d", tt.query, len(recs), err, tt.want)
		}
		streamed := 0
		if more, err := svc.Stream(t.Context(), filterOf(t, tt.query), func(das.Record) error { streamed++; return nil }); err != nil || more || streamed != tt.want {
			t.Errorf("%s: streamed %d, more %v, %v; want %d", tt.query, streamed, more, err, tt.want)
		}
	}
	if _, err := svc.List(t.Context(), das.Filter{Robots: "no filter"}, 0, das.Cursor{}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a filter of the fleet that is none: %v", err)
	}
	if recs, err := svc.List(t.Context(), das.Filter{Values: []das.Condition{{Field: "s1 = '' OR true --", Op: "="}}}, 0, das.Cursor{}); err != nil || len(recs) != 0 {
		t.Errorf("a column that is none: %d records, %v", len(recs), err)
	}
}

// TestCounts: hours, robots, quantiles, the total, and events that do not fit their description.
func TestCounts(t *testing.T) {
	svc := planted(t)
	ask := func(query string) das.Counts {
		t.Helper()
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := das.ReadCounts(v, noon, nil)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		q.Filter.Until = noon
		c, err := svc.Counts(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return c
	}
	c := ask("name=battery.low&of=battery&by=hour")
	keys := []string{}
	for _, g := range c.Groups {
		keys = append(keys, fmt.Sprintf("%s %d/%d", g.Key, g.Events, g.Robots))
	}
	if want := "2026-11-21T06:00:00Z 2/2|2026-11-21T07:00:00Z 1/1|2026-11-21T08:00:00Z 2/2|2026-11-21T09:00:00Z 1/1|2026-11-21T10:00:00Z 2/2|2026-11-21T11:00:00Z 2/2"; strings.Join(keys, "|") != want {
		t.Errorf("hours %v", keys)
	}
	n := das.Numbers{Count: 9, Min: 3300, Max: 3500, Mean: 3400, P50: 3380, P90: 3500, P99: 3500}
	if c.Total.Events != 10 || c.Total.Robots != 2 || c.Total.Misfits != 1 || c.Total.Numbers == nil || *c.Total.Numbers != n || c.Of != "i1" || c.Cut {
		b, _ := json.Marshal(c)
		t.Errorf("%s", b)
	}
	c = ask("by=event")
	if len(c.Groups) != 5 || c.Groups[0].Key != "battery.low" || c.Groups[0].Misfits != 1 || c.Total.Misfits != 2 {
		t.Errorf("%+v", c)
	}
	for by, want := range map[string]int{"day": 1, "version": 4, "source": 3, "level": 4, "robot": 2} {
		if c := ask("by=" + by); len(c.Groups) != want || c.Total.Events != 14 {
			t.Errorf("%s: %+v", by, c)
		}
	}
	if c := ask("clock=robot&by=day&since=3d"); len(c.Groups) != 2 || c.Groups[0].Key != "2026-11-19T00:00:00Z" {
		t.Errorf("by the robots' clocks: %+v", c)
	}
	if c := ask("name=nothing.at_all&of=i1"); c.Total.Events != 0 || c.Total.Numbers != nil || len(c.Groups) != 0 {
		t.Errorf("nothing: %+v", c)
	}
	for query, want := range map[string]string{"by=week": "want one of hour, day", "of=s1": "want a number", "of=i9": "want a number"} {
		v, _ := url.ParseQuery(query)
		if _, err := das.ReadCounts(v, noon, nil); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestMisfitIsTheSameInPostgres: the rule in SQL and the one in Go agree on events whose values are there or not at random.
func TestMisfitIsTheSameInPostgres(t *testing.T) {
	s := Open(pgtest.New(t))
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	names := append(events.Known(), "robot.unknown")
	it := das.Item{Thing: "vic:1"}
	var want []uint64
	for seq := range uint64(600) {
		e := events.Event{Seq: seq, Level: events.Info, RobotID: "1", BootID: "b", Name: names[rnd.IntN(len(names))]}
		for _, to := range []*string{&e.S1, &e.S2, &e.S3, &e.S4} {
			if rnd.IntN(4) == 0 {
				*to = "x"
			}
		}
		for _, to := range []*events.Int{&e.I1, &e.I2, &e.I3, &e.I4} {
			if rnd.IntN(4) == 0 {
				*to = events.Num(int64(rnd.IntN(3)))
			}
		}
		if it.Events = append(it.Events, e); e.Misfit() != "" {
			want = append(want, seq)
		}
	}
	if _, err := s.Commit(t.Context(), das.Group{Received: noon, Items: []das.Item{it}}, das.Raw{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	recs, err := s.List(t.Context(), das.Filter{Misfit: true}, 1000, das.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, r := range recs {
		got = append(got, r.Seq)
	}
	slices.Sort(got)
	if !reflect.DeepEqual(got, want) || len(want) < 50 {
		t.Errorf("seed %d: Postgres finds %d, Go %d: %v and %v", seed, len(got), len(want), got, want)
	}
}

// TestAskIsBounded: a question that takes too long ends, and says what to do.
func TestAskIsBounded(t *testing.T) {
	s := Open(pgtest.New(t))
	err := s.ask(t.Context(), time.Millisecond, `SELECT pg_sleep(10)`, nil, func(rows pgx.Rows) error { rows.Next(); return rows.Err() })
	if errs.KindOf(err) != errs.Exhausted || !strings.Contains(err.Error(), "choose a shorter time") {
		t.Errorf("%v", err)
	}
}

// TestLosses (VEC-DAS-02): a gap in seq is a loss until it is filled; what is no longer kept is none.
func TestLosses(t *testing.T) {
	s := Open(pgtest.New(t))
	put := func(at time.Time, boot string, first, last uint64) {
		t.Helper()
		if _, err := s.Commit(t.Context(), das.Group{Received: at, Items: []das.Item{batch("vic:1", boot, first, last)}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	put(noon, "b1", 1, 10)
	put(noon.Add(time.Minute), "b1", 15, 20)
	put(noon.Add(2*time.Minute), "b1", 31, 40)
	put(noon.Add(2*time.Minute), "b2", 5, 6)
	got, err := s.Losses(t.Context(), "vic:1", noon.Add(-time.Hour), noon.Add(time.Hour))
	want := []das.Loss{{BootID: "b1", First: 21, Last: 30, From: noon.Add(time.Minute), To: noon.Add(2 * time.Minute)}, {BootID: "b1", First: 11, Last: 14, From: noon, To: noon.Add(time.Minute)}}
	if err != nil || !reflect.DeepEqual(got, want) || got[0].Events() != 10 {
		t.Errorf("%+v, %v", got, err)
	}
	put(noon.Add(3*time.Minute), "b1", 11, 14) // it came late
	if _, err := s.pool.Exec(t.Context(), `DELETE FROM das_event WHERE seq BETWEEN 16 AND 18`); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Losses(t.Context(), "vic:1", noon.Add(-time.Hour), noon.Add(time.Hour)); err != nil || len(got) != 1 || got[0].First != 21 {
		t.Errorf("filled: %+v, %v", got, err)
	}
}

// TestCompare (VEC-DAS-16): each robot counts once, over the days on which it was heard of; who told of two variations is left out; an end ends it.
func TestCompare(t *testing.T) {
	s := Open(pgtest.New(t))
	svc := das.NewService(s)
	seq := uint64(0)
	put := func(days float64, id thing.ID, name, s1, s2 string, i1 int64) {
		t.Helper()
		seq++
		at := noon.Add(time.Duration(-days * 24 * float64(time.Hour)))
		e := events.Event{Seq: seq, BootID: "b", RobotID: id.Serial(), Level: events.Info, Name: name, S1: s1, S2: s2, S3: "2.1", I1: events.Num(i1)}
		if _, err := s.Commit(t.Context(), das.Group{Received: at, Items: []das.Item{{Thing: id, Events: []events.Event{e}}}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.EnsurePartitions(t.Context(), noon.AddDate(0, 0, -3)); err != nil {
		t.Fatal(err)
	}
	for i, variation := range []string{"control", "control", "treatment", "treatment", "another"} {
		id := thing.ID(fmt.Sprint("vic:", i+1))
		put(3, id, "experiment.assigned", "faster", variation, 0)
		put(1, id, "experiment.assigned", "faster", variation, 0) // at each boot
		put(0.2, id, "robot.boot", "", "", 0)
		for range 3 * (i + 1) { // over the days -1 and 0 that the question is about
			put(0.1, id, "battery.low", "", "", int64(3000+100*i))
		}
	}
	put(2.5, "vic:1", "battery.low", "", "", 1) // before the time that is asked for
	put(2, "vic:6", "experiment.assigned", "faster", "control", 0)
	put(1, "vic:6", "experiment.assigned", "faster", "treatment", 0)
	put(3, "vic:7", "experiment.assigned", "faster", "treatment", 0)
	put(0.9, "vic:7", "experiment.ended", "faster", "treatment", 0)
	put(0.1, "vic:7", "battery.low", "", "", 9000) // not under it
	put(1, "vic:8", "experiment.assigned", "slower", "control", 0)
	for {
		if r, err := s.Roll(t.Context()); err != nil {
			t.Fatal(err)
		} else if r.Groups == 0 {
			break
		}
	}
	q := das.CompareQuery{Key: "faster", Name: "battery.low", Since: noon.Add(-30 * time.Hour), Until: noon}
	c, err := svc.Compare(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := []das.Arm{{Variation: "control", Robots: 2, Days: 4, Events: 9, Mean: 2.25, Variance: 1.125}, {Variation: "another", Robots: 1, Days: 2, Events: 15, Mean: 7.5},
		{Variation: "treatment", Robots: 3, Days: 5, Events: 21, Mean: 3.5, Variance: 9.75}}
	if !reflect.DeepEqual(c.Arms, want) || c.Changed != 1 || c.Control != "control" || len(c.Differences) != 2 || !c.Differences[0].Few || c.Differences[1].By != 1.25 || c.Differences[1].Clear {
		t.Errorf("%+v", c)
	}
	q.Of = "i1"
	if c, err = svc.Compare(t.Context(), q); err != nil || len(c.Arms) != 3 || c.Arms[0].Mean != 3050 || c.Arms[2].Robots != 2 || c.Arms[2].Mean != 3250 || c.Differences[1].By != 200 {
		t.Errorf("means: %+v, %v", c, err)
	}
	if _, err := svc.Compare(t.Context(), das.CompareQuery{Key: "none", Name: "battery.low"}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("an experiment that nobody told of: %v", err)
	}
	list, err := svc.Experiments(t.Context(), noon.AddDate(0, 0, -7))
	if err != nil || len(list) != 2 || list[0].Key != "faster" || len(list[0].Variations) != 3 || list[0].Variations[1] != (das.Variation{Variation: "control", Robots: 3}) || list[0].Files[0] != "2.1" {
		t.Errorf("%+v, %v", list, err)
	}
}

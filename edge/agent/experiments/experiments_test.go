package experiments

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
)

// asInTheSource has the spellings of the seed's tables 597 and 598.
const asInTheSource = `{"meta": {"project_id": "cozmo", "revision": 1, "version": 2}, /* of Cozmo */ "experiments": [{
"activation_mode": "automatic", "audience_tags": ["vic"], "forced_variations": [{"tag": "00e20101", "variation": "treatment"}],
"key": "report_test_auto", "pop_frac_pct": 50, "pause_time_utc_iso8601": "2026-11-10T00:00:00Z", "resume_time_utc_iso8601": "2026-11-12T00:00:00Z",
"start_time_utc_iso8601": "2026-11-01T00:00:00", "stopt_time_utc_iso8601": "2026-12-01",
"variations": [{"key": "control", "pop_fract_pct": 50}, {"key": "treatment", "pop_fract_pct": 50}], "version": 3}]}`

func at(day int) time.Time { return time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC) }

func parse(t *testing.T, text string) Experiment {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil || len(p.Experiments) != 1 {
		t.Fatal(p, err)
	}
	return p.Experiments[0]
}

// TestParse is VEC-DAS-16: both spellings mean the same.
func TestParse(t *testing.T) {
	want := Plan{Version: "2.1", Experiments: []Experiment{{Key: "report_test_auto", Version: 3, Automatic: true, Audience: []string{"vic"},
		Forced: []Forced{{"00e20101", "treatment"}}, Percent: 50, Variations: []Variation{{"control", 50}, {"treatment", 50}},
		Start: at(1), Stop: at(31), Pause: at(10), Resume: at(12)}}}
	spelled := strings.NewReplacer("stopt_", "stop_", "pop_fract_pct", "pop_frac_pct").Replace(asInTheSource)
	for _, text := range []string{asInTheSource, spelled} {
		if p, err := Parse([]byte(text)); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%+v, %v, want %+v", p, err, want)
		}
	}
	for change, want := range map[string]string{
		`"pop_frac_pct": 50,=>"pop_frac_pct": 101,`:                          "pop_frac_pct is 101: want 0 to 100",
		`"stopt_time=>"stop_time_utc_iso8601": "2027-01-01", "stopt_time`:    "want one of them",
		`"2026-12-01"=>"soon"`:                                               `stop_time_utc_iso8601: "soon": want a time such as`,
		`"2026-12-01"=>"2026-10-01"`:                                         "before it starts",
		`"2026-11-12T00:00:00Z"=>"2026-11-09T00:00:00Z"`:                     "before it pauses",
		`"variation": "treatment"=>"variation": "placebo"`:                   `forced variation "placebo": want one of ["control" "treatment"]`,
		`"key": "treatment", "pop_fract_pct": 50=>"key": "treatment"`:        `variation "treatment": no pop_frac_pct`,
		`"treatment", "pop_fract_pct": 50=>"treatment", "pop_fract_pct": 51`: "101 % in all",
		`"key": "treatment", "p=>"key": "control", "p`:                       "duplicate variation",
		`"report_test_auto"=>""`:                                             "want 1 to 64 bytes",
		`"version": 3}=>"version": 3}, {"key": "report_test_auto", "variations": [{"key": "a", "pop_frac_pct": 1}]}`: "duplicate key",
	} {
		from, to, _ := strings.Cut(change, "=>")
		if _, err := Parse([]byte(strings.Replace(asInTheSource, from, to, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

// TestAssign: time, audience and forced variations, in this order.
func TestAssign(t *testing.T) {
	e := parse(t, asInTheSource)
	vic := Robot{Serial: "00e20100", Tags: []string{"vic"}}
	forced := Robot{Serial: "00e20101"}
	drawn := e
	drawn.Percent = 100
	for name, tc := range map[string]struct {
		e    Experiment
		r    Robot
		day  int
		why  string
		some bool
	}{
		"too early":        {drawn, vic, 0, NotStarted, false},
		"begins":           {drawn, vic, 1, Drawn, true},
		"pauses":           {drawn, vic, 10, Paused, false},
		"resumes":          {drawn, vic, 12, Drawn, true},
		"ends":             {drawn, vic, 31, Ended, false},
		"forced":           {e, forced, 2, Forcedly, true},
		"forced, paused":   {e, forced, 11, Paused, false},
		"another audience": {drawn, Robot{Serial: "00e20100", Tags: []string{"pleo"}}, 2, NotForUs, false},
		"by hand":          {Experiment{Key: "x", Percent: 100, Variations: []Variation{{"a", 100}}}, vic, 2, ByHand, false},
		"0 %":              {Experiment{Key: "x", Automatic: true, Variations: []Variation{{"a", 100}}}, vic, 2, NotDrawn, false},
	} {
		if a := tc.e.Assign(tc.r, at(tc.day)); a.Why != tc.why || (a.Variation != "") != tc.some {
			t.Errorf("%s: %+v, want %s", name, a, tc.why)
		}
	}
}

// TestDraw: the shares of a fleet are those of the file; a robot's variation never changes, also when more take part.
func TestDraw(t *testing.T) {
	e := parse(t, asInTheSource)
	e.Variations = []Variation{{"control", 70}, {"treatment", 30}}
	more := e
	more.Percent = 90
	count := map[string]int{}
	const robots = 10000
	for i := range robots {
		r := Robot{fmt.Sprintf("%08x", 0x00e20100+i), []string{"vic"}}
		a := e.Assign(r, at(2))
		count[a.Variation]++
		if b := more.Assign(r, at(2)); a.Variation != "" && a != b {
			t.Fatalf("%s had %+v, and with more robots %+v", r.Serial, a, b)
		}
	}
	for v, want := range map[string]int{"": robots / 2, "control": robots * 35 / 100, "treatment": robots * 15 / 100} {
		if got := count[v]; got < want*9/10 || got > want*11/10 {
			t.Errorf("%d robots have %q, want about %d", got, v, want)
		}
	}
	if v, why := e.draw("00e20102"); v+why != "treatment"+Drawn {
		t.Errorf("robot 00e20102 has %q, %s: the draw is another than that of earlier releases", v, why)
	}
}

// TestFollow: each part is told once, what ends too, and a broken file changes nothing.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		var mu sync.Mutex
		var got []string
		day := 2
		emit := func(e events.Event) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%s %s %s %s %s", e.Name, e.S1, e.S2, e.S3, e.S4))
		}
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return at(day)
		}
		go func() {
			_ = Follow(t.Context(), root, Robot{Serial: "00e20101"}, now, emit, slog.New(slog.DiscardHandler))
		}()
		for _, step := range []struct {
			file string
			day  int
			want string
		}{
			{"", 2, "[]"},
			{asInTheSource, 2, "[experiment.assigned report_test_auto treatment 2.1 forced]"},
			{"{", 2, "[]"},
			{asInTheSource, 11, "[experiment.ended report_test_auto treatment 2.1 forced]"},
			{asInTheSource, 13, "[experiment.assigned report_test_auto treatment 2.1 forced]"},
			{strings.Replace(asInTheSource, `"variation": "treatment"`, `"variation": "control"`, 1), 13,
				"[experiment.ended report_test_auto treatment 2.1 forced experiment.assigned report_test_auto control 2.1 forced]"},
		} {
			mu.Lock()
			got, day = nil, step.day
			mu.Unlock()
			if step.file != "" {
				if err := robotfs.WriteFile(root, File, []byte(step.file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(look)
			synctest.Wait()
			if fmt.Sprint(got) != step.want {
				t.Errorf("day %d: %v, want %s", step.day, got, step.want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(asInTheSource))
	f.Add([]byte(`{"experiments":[{"key":"a","variations":[{"key":"b","pop_frac_pct":1}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		for _, e := range p.Experiments {
			if a := e.Assign(Robot{Serial: "00e20100"}, at(2)); a.Why == "" || (a.Variation != "") != (a.Why == Drawn || a.Why == Forcedly) {
				t.Errorf("%+v of %+v", a, e)
			}
		}
	})
}

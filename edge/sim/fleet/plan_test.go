package fleet

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kennel/infra/thing"
)

const vic = thing.ID("vic:00f00000")

func steps(p *Plan, n int) (out []Step) {
	for range n {
		s, ok := p.Next()
		if !ok {
			break
		}
		out = append(out, s)
	}
	return out
}

// TestPlan: a plan follows from profile, seed and robot alone; its steps are in order and go together.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0, 1)
		rate := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0.001, 1e4))
		p := presets["idle"]
		p.Events, p.Settings, p.Drops, p.Reboots = rate.Draw(t, "events"), rate.Draw(t, "settings"), rate.Draw(t, "drops"), rate.Draw(t, "reboots")
		p.Offline = Offline{PerDay: rate.Draw(t, "offline"), Shortest: time.Minute, Longest: 72 * time.Hour}
		p.Clock = Clocks{Share: share.Draw(t, "clocks"), Behind: 1000 * time.Hour, Ahead: time.Hour}
		p.Network = Network{Share: share.Draw(t, "networks"), Latency: time.Second, Loss: 0.1, Stall: time.Second, Cuts: rate.Draw(t, "cuts")}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		id := thing.ID(fmt.Sprintf("vic:%08x", rapid.Uint32().Draw(t, "serial")))
		one, two := p.Plan(seed, id), p.Plan(seed, id)
		if one.Clock != two.Clock || one.Wire != two.Wire {
			t.Fatalf("%+v and %+v from one seed", one, two)
		}
		got := steps(one, 200)
		if again := steps(two, 200); !reflect.DeepEqual(got, again) {
			t.Fatalf("one seed, two plans:\n%v\n%v", got, again)
		}
		var at time.Duration
		var events uint64
		away := false
		for _, s := range got {
			if s.At < at {
				t.Fatalf("%v comes after %v", s, at)
			}
			at = s.At
			switch s.Kind {
			case Emit:
				if s.N != events {
					t.Fatalf("event %d after %d others", s.N, events)
				}
				events++
			case Leave, Return:
				if away == (s.Kind == Leave) {
					t.Fatalf("%s while away is %v", s.Kind, away)
				}
				away = !away
			case Change:
				if s.Field == "" || s.Value == "" {
					t.Fatalf("%+v changes nothing", s)
				}
			}
		}
	})
}

// TestEndOfTime: what is rare beyond all calendars neither comes early nor again and again.
func TestEndOfTime(t *testing.T) {
	p := presets["idle"]
	p.Events, p.Reboots = 1e-300, 0.001
	pl := p.Plan(1, vic)
	n := 0
	for at := time.Duration(0); ; n++ {
		s, ok := pl.Next()
		if !ok {
			break
		}
		if s.At < at || n > 1000 {
			t.Fatalf("step %d: %+v after %v", n, s, at)
		}
		at = s.At
	}
	if n < 50 {
		t.Errorf("%d steps in 292 years, want about 200", n)
	}
}

// TestPlansDiffer: robots and seeds have their own.
func TestPlansDiffer(t *testing.T) {
	p := presets["rough"]
	seen := map[string]string{}
	for seed := range uint64(3) {
		for i := range 50 {
			id := thing.ID(fmt.Sprintf("vic:%08x", i))
			plan := fmt.Sprint(steps(p.Plan(seed, id), 5))
			name := fmt.Sprint(seed, "/", id)
			if other, ok := seen[plan]; ok {
				t.Errorf("%s and %s have the same plan", name, other)
			}
			seen[plan] = name
		}
	}
}

// TestStreamsAreIndependent: another rate of one kind leaves the others where they were.
func TestStreamsAreIndependent(t *testing.T) {
	only := func(p Profile) (out []Step) {
		for _, s := range steps(p.Plan(7, vic), 5000) {
			if s.Kind == Change && len(out) < 20 {
				out = append(out, s)
			}
		}
		return out
	}
	p := presets["lively"]
	want := only(p)
	p.Events, p.Drops, p.Clock.Share = 100, 50, 1
	if got := only(p); len(want) != 20 || !reflect.DeepEqual(got, want) {
		t.Errorf("settings moved:\n%v\n%v", got, want)
	}
}

// TestRates: over many robots the rates are what the profile says.
func TestRates(t *testing.T) {
	p := presets["rough"]
	const robots, days = 400, 20
	count := map[Kind]float64{}
	bad, wrong, boots := 0.0, 0.0, 0.0
	for i := range robots {
		pl := p.Plan(1, thing.ID(fmt.Sprintf("vic:%08x", i)))
		if pl.Wire != (Wire{}) {
			bad++
		}
		throw := func(c Clock) {
			boots++
			if c != (Clock{}) {
				wrong++
			}
			if c.Off > p.Clock.Ahead || -c.Off > p.Clock.Behind {
				t.Fatalf("clock %+v", c)
			}
		}
		throw(pl.Clock)
		for s, _ := pl.Next(); s.At < days*24*time.Hour; s, _ = pl.Next() {
			count[s.Kind]++
			if s.Kind == Reboot {
				throw(s.Clock)
			}
		}
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance*want {
			t.Errorf("%s: %.3f, want %.3f", what, got, want)
		}
	}
	near("bad networks", bad/robots, p.Network.Share, 0.3)
	near("wrong clocks", wrong/boots, p.Clock.Share, 0.1)
	near("events an hour", count[Emit]/(robots*days*24), p.Events, 0.02)
	near("settings an hour", count[Change]/(robots*days*24), p.Settings, 0.05)
	near("reboots a day", count[Reboot]/(robots*days), p.Reboots, 0.05)
	near("drops an hour", count[Drop]/(robots*days*24), p.Drops+p.Network.Share*p.Network.Cuts, 0.3)
	spell := (p.Offline.Shortest + p.Offline.Longest) / 2
	near("spells a day", count[Leave]/(robots*days), 1/(1/p.Offline.PerDay+spell.Hours()/24), 0.05)
}

func TestClock(t *testing.T) {
	boot := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now := boot.Add(time.Minute)
	for _, tc := range []struct {
		c    Clock
		want time.Time
	}{
		{Clock{}, now},
		{Clock{Off: time.Hour}, now.Add(time.Hour)},
		{Clock{Off: -time.Hour}, now.Add(-time.Hour)},
		{Clock{Reset: true}, time.Unix(60, 0)},
	} {
		if got := tc.c.at(boot, now); !got.Equal(tc.want) {
			t.Errorf("%+v: %v, want %v", tc.c, got, tc.want)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	pl := presets["rough"].Plan(1, vic)
	for b.Loop() {
		pl.Next()
	}
}

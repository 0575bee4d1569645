package vitalspg_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"kennel/cloud/fleet/vitals"
	"kennel/cloud/fleet/vitals/vitalspg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex = thing.ID("vic:00e20100")

func TestSamples(t *testing.T) {
	pool := pgtest.New(t)
	s := vitalspg.New(pool)
	now := time.Now().UTC().Truncate(vitals.Fine.Every)
	f := func(v float64) *float64 { return &v }
	add := func(g vitals.Grain, list ...vitals.Sample) {
		t.Helper()
		if err := s.Add(t.Context(), g, list); err != nil {
			t.Fatal(err)
		}
	}
	add(vitals.Fine, vitals.Sample{Thing: rex, At: now, Volts: f(3.9), Low: f(3.9), LateP99: f(100), Problems: 1})
	add(vitals.Fine, vitals.Sample{Thing: rex, At: now, Volts: f(3.7), Low: f(3.6), Temperature: f(40), LateP99: f(50)}, vitals.Sample{Thing: "vic:00e20101", At: now, Volts: f(1)})
	add(vitals.Fine, vitals.Sample{Thing: rex, At: now, Problems: 0}) // says nothing: nothing is taken back
	add(vitals.Fine, vitals.Sample{Thing: rex, At: now.Add(-vitals.Fine.Keep - time.Hour), Volts: f(1)})
	add(vitals.Coarse, vitals.Sample{Thing: rex, At: now.Add(-vitals.Fine.Keep - time.Hour), Volts: f(2)}, vitals.Sample{Thing: rex, At: now.Add(-vitals.Coarse.Keep - time.Hour), Volts: f(1)})
	list := func(g vitals.Grain, from time.Time) []vitals.Sample {
		t.Helper()
		out, err := s.List(t.Context(), rex, g, from, now.Add(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := list(vitals.Fine, now.Add(time.Minute)) // within a slot: the slot
	if len(got) != 1 || *got[0].Volts != 3.7 || *got[0].Low != 3.6 || *got[0].Temperature != 40 || *got[0].LateP99 != 100 || got[0].Problems != 1 || !got[0].At.Equal(now) {
		t.Errorf("%+v", got)
	}
	if n := len(list(vitals.Fine, time.Time{})); n != 2 {
		t.Errorf("%d fine samples before they are forgotten, want 2", n)
	}
	if err := s.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fine, coarse := list(vitals.Fine, time.Time{}), list(vitals.Coarse, time.Time{}); len(fine) != 1 || len(coarse) != 1 || *coarse[0].Volts != 2 {
		t.Errorf("after forgetting: %+v, %+v", fine, coarse)
	}
}

// TestProcessesTogether: processes that write the same slots in any order neither wait in a circle nor lose anything.
func TestProcessesTogether(t *testing.T) {
	s := vitalspg.New(pgtest.New(t))
	now := time.Now().UTC().Truncate(time.Hour)
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			var list []vitals.Sample
			for i := range 500 {
				low := float64(p)
				list = append(list, vitals.Sample{Thing: thing.ID(fmt.Sprintf("vic:%08x", (i*7+p*31)%500)), At: now, Low: &low})
			}
			if err := s.Add(t.Context(), vitals.Fine, list); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	out, err := s.List(t.Context(), "vic:00000007", vitals.Fine, now, now.Add(time.Hour))
	if err != nil || len(out) != 1 || *out[0].Low != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

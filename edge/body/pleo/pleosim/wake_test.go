package pleosim

import (
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/infra/api/poke"
)

// TestShakeWakes: a Pleo that is off wakes when it is shaken, if its battery is not empty (PLEO-ARC-09).
func TestShakeWakes(t *testing.T) {
	r, err := NewRobot(Config{Charge: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	run := func() lifeos.Power {
		for range time.Second / period {
			r.Step(nil, nil)
		}
		return r.State().Power
	}
	if run() != lifeos.Off {
		t.Fatal("with an empty battery it is on")
	}
	for _, c := range []struct {
		charge float64
		want   lifeos.Power
	}{{0.2, lifeos.Off}, {0.9, lifeos.On}} {
		r.Charge(false, c.charge)
		p, err := poke.Poke{}.Named(poke.Shake)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Poke(p); err != nil {
			t.Fatal(err)
		}
		if got := run(); got != c.want {
			t.Errorf("shaken with a charge of %v it is %v, want %v", c.charge, got, c.want)
		}
	}
}

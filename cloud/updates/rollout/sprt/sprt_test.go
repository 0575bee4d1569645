package sprt

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFalseAlarms: under harmless the evidence reaches 100 in at most 1 % of the runs, whatever the order of robots and however often it is looked at, and
// harm of ten times the usual rate is found in most runs.
func TestFalseAlarms(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	run := func(rate, ratio float64) bool {
		var s Test
		updated, control := 200, 100
		for updated > 0 && control > 0 {
			hazard := rate * (float64(updated)*ratio + float64(control)) / 50
			if rnd.Float64() > hazard {
				if updated--; rnd.IntN(3) == 0 { // windows end
					control--
				}
				continue
			}
			bad := rnd.Float64() < float64(updated)*ratio/(float64(updated)*ratio+float64(control))
			s.Bad(bad, float64(updated)/float64(updated+control))
			if bad {
				updated--
			} else {
				control--
			}
			if s.Evidence() >= 100 {
				return true
			}
		}
		return false
	}
	alarms, found := 0, 0
	for range 4000 {
		if run(0.02, 1) {
			alarms++
		}
		if run(0.02, 10) {
			found++
		}
	}
	if alarms > 40 || found < 3600 {
		t.Errorf("%d false alarms and %d of 4000 found; want at most 40, and at least 3600", alarms, found)
	}
}

// TestTrials: attempts that fail as often as is allowed raise no alarm in more than 1 % of the runs, those that fail four times as often do in most.
func TestTrials(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	run := func(p float64) bool {
		bad := 0
		for n := range 300 {
			if rnd.Float64() < p {
				bad++
			}
			if s := Trials(bad, n+1, 0.05); s.Evidence() >= 100 {
				return true
			}
		}
		return false
	}
	alarms, found := 0, 0
	for range 4000 {
		if run(0.05) {
			alarms++
		}
		if run(0.2) {
			found++
		}
	}
	if alarms > 40 || found < 3900 {
		t.Errorf("%d false alarms and %d of 4000 found; want at most 40, and at least 3900", alarms, found)
	}
}

// TestBounds: what no bad robot leaves possible, and what no comparison and many robots make of the evidence.
func TestBounds(t *testing.T) {
	if h := Hidden(1); math.Abs(h-0.95) > 1e-9 {
		t.Errorf("one robot hides %v, want 0.95", h)
	}
	if h := Hidden(59); h > 0.05 || Hidden(58) < 0.05 {
		t.Errorf("59 robots hide %v, want at most 0.05", h)
	}
	var e Test
	e.Bad(true, 1)
	e.Bad(true, 0)
	if e.Evidence() != 1 {
		t.Errorf("without a comparison the evidence is %v", e.Evidence())
	}
	for range 1000 {
		e.Bad(true, 0.01)
	}
	if math.IsInf(e.Evidence(), 0) {
		t.Error("evidence overflows")
	}
}

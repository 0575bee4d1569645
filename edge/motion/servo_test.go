package motion

import (
	"math"
	"testing"
	"time"
)

// TestServo: a joint that takes positions is led within its limits, arrives in the time that its plan says, and tells a blocked way.
func TestServo(t *testing.T) {
	const dt = 100 * time.Millisecond // a slow body
	most := Ramp{Speed: 2, Accel: 4, Decel: 4}
	for name, tc := range map[string]struct {
		target  float64
		ramp    Ramp
		within  time.Duration
		held    bool // the joint does not follow
		taken   float64
		takes   time.Duration
		outcome Outcome
	}{
		"as fast as allowed": {1, Ramp{}, 0, false, 1, 1000 * ms, Done},
		"slowly":             {1, Ramp{Speed: 0.5}, 0, false, 1, 2125 * ms, Done},
		"in 4 s":             {1, Ramp{}, 4 * time.Second, false, 1, 4 * time.Second, Done},
		"too soon":           {1, Ramp{}, ms, false, 1, 1000 * ms, Done},
		"beyond its range":   {9, Ramp{}, 0, false, 1.5, 1250 * ms, Done},
		"held by a hand":     {1, Ramp{}, 0, true, 1, 1000 * ms, Blocked},
	} {
		s, err := NewServo(ServoConfig{Range: [2]float64{-1.5, 1.5}, Most: most, Tolerance: 0.02, Patience: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		taken, takes, err := s.MoveTo(0, tc.target, tc.ramp, tc.within)
		if err != nil || taken != tc.taken || (takes-tc.takes).Abs() > ms {
			t.Errorf("%s: to %v in %v, %v; want %v in %v", name, taken, takes, err, tc.taken, tc.takes)
		}
		at, last, n := 0.0, 0.0, 0
		for ; s.Outcome() == Running && n < 100; n++ {
			x, on := s.Step(dt, at)
			if v := math.Abs(x-last) / dt.Seconds(); !on || v > most.Speed+1e-9 {
				t.Fatalf("%s: from %v to %v in a step", name, last, x)
			}
			if last = x; !tc.held {
				at = x
			}
		}
		if s.Outcome() != tc.outcome || tc.outcome == Done && math.Abs(at-tc.taken) > 0.02 {
			t.Errorf("%s: %v at %v, want %v at %v", name, s.Outcome(), at, tc.outcome, tc.taken)
		}
		if took := time.Duration(n) * dt; tc.outcome == Done && (took-takes).Abs() > 2*dt {
			t.Errorf("%s: it took %v, planned were %v", name, took, takes)
		}
	}
}

// TestServoStops: a stop ends within the deceleration and holds; a release has no power at once.
func TestServoStops(t *testing.T) {
	s, err := NewServo(ServoConfig{Range: [2]float64{-2, 2}, Most: Ramp{Speed: 1, Accel: 2, Decel: 2}, Tolerance: 0.02, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.MoveTo(0, 2, Ramp{}, 0); err != nil {
		t.Fatal(err)
	}
	x := 0.0
	for range 100 {
		x, _ = s.Step(10*ms, x)
	}
	s.Stop()
	began := x
	for range 100 {
		x, _ = s.Step(10*ms, x)
	}
	if y, on := s.Step(10*ms, x); !on || y != x || x-began > 0.26 || s.Outcome() != Cancelled {
		t.Errorf("stopped at %v after %v more, holds %t, %v", x, x-began, on, s.Outcome())
	}
	s.Release(Stopped)
	if _, on := s.Step(10*ms, x); on || s.Outcome() != Cancelled {
		t.Errorf("released: power %t, %v", on, s.Outcome())
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		if _, _, err := s.MoveTo(0, bad, Ramp{}, 0); err != ErrInvalid {
			t.Errorf("to %v: %v, want %v", bad, err, ErrInvalid)
		}
	}
	if _, err := NewServo(ServoConfig{}); err == nil {
		t.Error("a servo without limits was taken")
	}
}

package power

import (
	"math"
	"testing"
	"time"
)

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		name      string
		volts     float64
		onCharger bool
		want      Level
	}{
		{"full at the limit", 4.1, false, Full},
		{"full on the charger", 4.1, true, Full},
		{"just below full", 4.099, false, Nominal},
		{"just below full on the charger", 4.099, true, Nominal},
		{"low on the charger at the limit", 4.0, true, Low},
		{"the same voltage off the charger", 4.0, false, Nominal},
		{"just above low", 3.601, false, Nominal},
		{"low at the limit", 3.6, false, Low},
		{"empty", 0, false, Low},
	} {
		if got := Classify(tc.volts, tc.onCharger); got != tc.want {
			t.Errorf("%s: Classify(%v, %v) = %v, want %v", tc.name, tc.volts, tc.onCharger, got, tc.want)
		}
	}
}

func TestNextKeepsALevelWithinTheHysteresis(t *testing.T) {
	for _, tc := range []struct {
		name      string
		prev      Level
		volts     float64
		onCharger bool
		want      Level
	}{
		{"full stays", Full, 4.081, false, Full},
		{"full ends", Full, 4.08, false, Nominal},
		{"low stays", Low, 3.619, false, Low},
		{"low ends", Low, 3.62, false, Nominal},
		{"low stays on the charger", Low, 4.019, true, Low},
		{"low ends on the charger", Low, 4.02, true, Nominal},
		{"low was the charger's, which is gone", Low, 3.9, false, Nominal},
		{"the charger comes", Nominal, 3.9, true, Low},
		{"low to full at once", Low, 4.2, true, Full},
		{"first measurement", Unknown, 3.61, false, Nominal},
	} {
		if got := Next(tc.prev, tc.volts, tc.onCharger); got != tc.want {
			t.Errorf("%s: Next(%v, %v, %v) = %v, want %v", tc.name, tc.prev, tc.volts, tc.onCharger, got, tc.want)
		}
	}
}

const frame = 5120 * time.Microsecond

// TestDipDoesNotChangeTheLevel is the test that VEC-PWR-01 names: 0.3 V for 200 ms, at every charge that is farther from a limit
// than the filter lets such a dip reach.
func TestDipDoesNotChangeTheLevel(t *testing.T) {
	const reach = 0.3 * 0.04 // volts: 1 - e^(-0.2/5) is just below 0.04
	for v := 3.3; v < 4.2; v += 0.005 {
		b := Battery{}.Step(Input{Volts: v}, 0)
		want := b.Level
		if (v > LowVolts && v < LowVolts+reach) || (v >= FullVolts && v < FullVolts+reach-HysteresisVolts) {
			continue
		}
		for at := time.Duration(0); at < 5*time.Second; at += frame {
			in := Input{Volts: v}
			if at < 200*time.Millisecond {
				in.Volts -= 0.3
			}
			if b = b.Step(in, frame); b.Level != want {
				t.Fatalf("%.3f V dipping: level %v at %v (%.4f V), want %v", v, b.Level, at, b.Volts, want)
			}
		}
	}
}

func TestFilterHasItsTimeConstant(t *testing.T) {
	for _, dt := range []time.Duration{time.Millisecond, frame, 5 * time.Second} {
		v := 0.0
		for at := time.Duration(0); at < TimeConstant; at += dt {
			v = Filter(v, 1, dt, TimeConstant)
		}
		if want := 1 - 1/math.E; math.Abs(v-want) > 2e-3 {
			t.Errorf("steps of %v: %.4f after one time constant, want %.4f", dt, v, want)
		}
	}
	if got := Filter(3, 4, -1, TimeConstant); got != 3 {
		t.Errorf("time running backwards: %v, want 3", got)
	}
}

func TestDisconnectedBatteryStartsAnew(t *testing.T) {
	b := Battery{}.Step(Input{Volts: 4.2}, 0)
	b = b.Step(Input{Volts: 0.3, Disconnected: true}, frame)
	if b != (Battery{}) {
		t.Fatalf("disconnected: %+v, want nothing known", b)
	}
	b = b.Step(Input{Volts: 3.7}, frame)
	if want := (Battery{Volts: 3.7, Level: Nominal}); b != want {
		t.Errorf("connected again: %+v, want %+v", b, want)
	}
	if got := b.Step(Input{Volts: math.NaN()}, frame); got != b {
		t.Errorf("no number: %+v, want %+v", got, b)
	}
}

func TestStats(t *testing.T) {
	var s Stats
	if s.Mean() != 0 {
		t.Errorf("Mean of nothing = %v", s.Mean())
	}
	for _, v := range []float64{3.5, 4, 3} {
		s.Add(v)
	}
	if want := (Stats{N: 3, Min: 3, Max: 4, Sum: 10.5}); s != want || s.Mean() != 3.5 {
		t.Errorf("got %+v, mean %v", s, s.Mean())
	}
}

func TestLevelsPrintAsWords(t *testing.T) {
	for l, want := range map[Level]string{Unknown: "unknown", Low: "low", Nominal: "nominal", Full: "full", 9: "level(9)"} {
		if l.String() != want {
			t.Errorf("%d prints as %q, want %q", uint8(l), l, want)
		}
	}
}

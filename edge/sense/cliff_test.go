package sense

import (
	"math"
	"math/rand/v2"
	"testing"
)

// floor is four sensors' readings.
func floor(v ...float64) *[MaxCliffs]float64 {
	var r [MaxCliffs]float64
	copy(r[:], v)
	return &r
}

// counts are readings of Vector's sensors.
func counts(v float64) float64 { return v / 1024 }

// VEC-IO-20: below 40 % of the running level or 100 counts, for two frames.
func TestCliffThresholds(t *testing.T) {
	for _, tc := range []struct {
		name        string
		floor, then float64 // counts
		low         bool
	}{
		{"bright floor, above 40 %", 800, 321, false},
		{"bright floor, below 40 %", 800, 319, true},
		{"dark floor, above 100 counts", 200, 101, false},
		{"dark floor, below 100 counts", 200, 99, true},
		{"no light at all", 600, 0, true},
		{"no number", 600, math.NaN(), true},
	} {
		c := NewCliffs(Default().Cliff, 4)
		f := counts(tc.floor)
		for range 400 {
			c.Step(frame, floor(f, f, f, f))
		}
		bad := floor(f, counts(tc.then), f, f)
		ev := c.Step(frame, bad)
		if ev.Lost != 0 || c.Detected() {
			t.Errorf("%s: a cliff after one frame (VEC-IO-20: minimum 2)", tc.name)
		}
		ev = c.Step(frame, bad)
		want := Set(0)
		if tc.low {
			want = 1 << 1
		}
		if c.Low() != want || ev.Lost != want || c.Detected() != tc.low || c.All() {
			t.Errorf("%s: low %b, lost %b after two frames, want %b", tc.name, c.Low(), ev.Lost, want)
		}
	}
}

// VEC-IO-20: each sensor has its own floor level, which follows the floor.
func TestCliffLevelsAdapt(t *testing.T) {
	c := NewCliffs(Default().Cliff, 4)
	for range 1000 {
		c.Step(frame, floor(counts(900), counts(500), counts(300), counts(260)))
	}
	for i, want := range []float64{900, 500, 300, 260} {
		if got := c.Floor(i) * 1024; math.Abs(got-want) > 1 {
			t.Errorf("sensor %d: floor level %.0f, want %.0f counts", i, got, want)
		}
	}
	for range 2 {
		c.Step(frame, floor(counts(300), counts(300), counts(300), counts(260)))
	}
	if c.Low() != 1 {
		t.Errorf("300 counts everywhere: low %b, want only the sensor that knew 900", c.Low())
	}
	for v := 500.0; v > 120; v *= 0.9995 { // a floor that gets darker and darker
		if c.Step(frame, floor(counts(900), counts(v), counts(300), counts(260))); c.Low().Has(1) {
			t.Fatalf("a cliff at %.0f counts, floor level %.0f", v, 1024*c.Floor(1))
		}
	}
}

func TestCliffComesAndGoes(t *testing.T) {
	c := NewCliffs(Default().Cliff, 4)
	good, bad := floor(0.6, 0.6, 0.6, 0.6), floor(0, 0, 0, 0)
	if c.Known() {
		t.Error("known before a frame")
	}
	for range 100 {
		c.Step(frame, good)
	}
	c.Step(frame, bad)
	if ev := c.Step(frame, bad); ev.Lost != 0xf || !c.All() {
		t.Fatalf("lifted: %+v, all %v (VEC-IO-21)", ev, c.All())
	}
	for i := range 9 {
		if ev := c.Step(frame, good); ev.Found != 0 {
			t.Fatalf("floor believed after %d frames", i+1)
		}
	}
	if ev := c.Step(frame, good); ev.Found != 0xf || c.Detected() {
		t.Errorf("put down: %+v", ev)
	}
	c.Step(frame, bad)
	c.Dark()
	if c.Known() {
		t.Error("known without power")
	}
	if ev := c.Step(frame, bad); ev.Lost != 0 {
		t.Error("frames from before and after the power was off were counted together (VEC-PWR-22)")
	}
	if none := NewCliffs(Default().Cliff, 0); none.All() {
		t.Error("a body without cliff sensors reports a cliff")
	}
}

// Put down half over an edge, or on a darker floor.
func TestCliffRelearns(t *testing.T) {
	c := NewCliffs(Default().Cliff, 4)
	for range 400 {
		c.Step(frame, floor(0.9, 0.9, 0.9, 0.9))
	}
	c.Relearn()
	for range 20 {
		c.Step(frame, floor(0.13, 0.6, 0.6, 0.6))
	}
	if c.Low() != 1 {
		t.Errorf("over an edge that reflects a little: low %b, want sensor 0", c.Low())
	}
	c.Relearn()
	for range 20 {
		c.Step(frame, floor(0.3, 0.3, 0.3, 0.3))
	}
	if c.Low() != 0 {
		t.Errorf("on a dark floor: low %b, want none", c.Low())
	}
}

// VEC-IO-23.
func TestLines(t *testing.T) {
	c := NewCliffs(Default().Cliff, 4)
	white := floor(0.8, 0.8, 0.8, 0.8)
	for range 400 {
		c.Step(frame, white)
	}
	for range 200 {
		if ev := c.Step(frame, floor(0.8, 0.65, 0.8, 0.8)); ev != (CliffEvents{}) {
			t.Fatalf("a change of a fifth: %+v", ev)
		}
	}
	for range 400 {
		c.Step(frame, white)
	}
	black := floor(0.8, 0.5, 0.8, 0.8)
	c.Step(frame, black)
	if ev := c.Step(frame, black); ev != (CliffEvents{Dark: 1 << 1}) {
		t.Errorf("onto a line: %+v", ev)
	}
	for range 10 {
		if ev := c.Step(frame, black); ev != (CliffEvents{}) {
			t.Errorf("on the line: %+v", ev)
		}
	}
	c.Step(frame, white)
	if ev := c.Step(frame, white); ev != (CliffEvents{LineEnd: 1 << 1}) {
		t.Errorf("off it: %+v", ev)
	}
	c.Step(frame, floor(0.8, 0.8, 1, 0.8))
	shine := floor(0.8, 0.8, 1.2, 0.8) // above the scale is its end
	c.Step(frame, shine)
	if c.Floor(2) > 1 {
		t.Errorf("floor level %v", c.Floor(2))
	}
}

// VEC-IO-20: noise makes no event; whatever is read, a cliff lasts at least ten frames and begins no sooner than two after its end.
func TestCliffProperties(t *testing.T) {
	for seed := range rounds(4) {
		rng := rand.New(rand.NewPCG(seed, 2))
		c := NewCliffs(Default().Cliff, 4)
		for range 5000 {
			var r [MaxCliffs]float64
			for i := range 4 {
				r[i] = counts([]float64{260, 300, 600, 900}[i] * (1 + 0.05*rng.NormFloat64()))
			}
			if rng.IntN(50) == 0 {
				r[rng.IntN(4)] = 0 // one lost measurement
				if ev := c.Step(frame, &r); ev.Lost != 0 {
					t.Fatalf("seed %d: %+v", seed, ev)
				}
				for i := range 4 {
					r[i] = counts([]float64{260, 300, 600, 900}[i])
				}
			}
			if ev := c.Step(frame, &r); ev != (CliffEvents{}) {
				t.Fatalf("seed %d: noise gave %+v", seed, ev)
			}
		}
		since := [4]int{-100, -100, -100, -100}
		for step := range 20000 {
			var r [MaxCliffs]float64
			for i := range 4 {
				r[i] = rng.Float64()
			}
			ev := c.Step(frame, &r)
			for i := range 4 {
				if ev.Lost.Has(i) && step-since[i] < 2 || ev.Found.Has(i) && step-since[i] < 10 {
					t.Fatalf("seed %d: sensor %d changed %d frames after it changed", seed, i, step-since[i])
				}
				if (ev.Lost | ev.Found).Has(i) {
					since[i] = step
				}
			}
		}
	}
}

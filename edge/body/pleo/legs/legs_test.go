package legs

import (
	"math"
	"math/rand/v2"
	"testing"

	"kennel/edge/motion"
)

// TestRest: straight legs put it on four feet; with two bent on one side it leans to that side and with two in front it leans forward, on its soles; folded legs
// leave it on its belly; and no posture of legs within their ranges (PLEO-JNT-13) leans it farther than 45 degrees.
func TestRest(t *testing.T) {
	all := [Count]bool{true, true, true, true}
	rest := func(a Angles) Stance {
		f := a.Place()
		return f.Rest()
	}
	if s := rest(Angles{}); s.Down != all || s.Lean != 0 {
		t.Errorf("straight: %+v", s)
	}
	if s := rest(Angles{Lower: [Count]float64{FrontLeft: 90, BackLeft: -70}}); s.Lean < 0.05 || s.Lean > 0.3 || !s.Down[FrontRight] || !s.Down[BackRight] || s.Low != LeftSide {
		t.Errorf("left legs bent: %+v", s)
	}
	if s := rest(Angles{Upper: [Count]float64{FrontLeft: -20, FrontRight: -20}, Lower: [Count]float64{FrontLeft: 40, FrontRight: 40}}); s.Down != all || s.Lean < 0.01 || s.Low != Nose {
		t.Errorf("bowing: %+v", s)
	}
	if s := rest(Angles{Upper: [Count]float64{55, 55, -45, -45}, Lower: [Count]float64{90, 90, -70, -70}}); s.Down[FrontLeft] || s.Lean > 0.1 {
		t.Errorf("lying: %+v", s)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var a Angles
		for i := range Count {
			if i < BackLeft {
				a.Upper[i], a.Lower[i] = -30+85*r.Float64(), 90*r.Float64()
			} else {
				a.Upper[i], a.Lower[i] = -45+85*r.Float64(), -70*r.Float64()
			}
		}
		if s := rest(a); s.Lean > 45*math.Pi/180 {
			t.Fatalf("%+v leans by %v rad", a, s.Lean)
		}
	}
}

// TestStep: the body goes against its feet, and no farther than those that are down say.
func TestStep(t *testing.T) {
	a := Angles{}
	before := a.Place()
	a.Upper = [Count]float64{-10, -10, -10, -10}
	after := a.Place()
	all := [Count]bool{true, true, true, true}
	far := 2 * piece * math.Sin(10*math.Pi/180)
	near := func(got, want motion.Pose) bool {
		return math.Abs(got.X-want.X) < 1e-9 && math.Abs(got.Y-want.Y) < 1e-9 && math.Abs(got.Theta-want.Theta) < 1e-9
	}
	if got, want := Step(&before, &after, all), (motion.Pose{X: far}); !near(got, want) {
		t.Errorf("legs go back: %+v, want %+v", got, want)
	}
	if got := Step(&before, &after, [Count]bool{FrontLeft: true}); got != (motion.Pose{}) {
		t.Errorf("on one foot: %+v", got)
	}
	a.Upper = [Count]float64{FrontLeft: 10, FrontRight: -10, BackLeft: 10, BackRight: -10}
	after = a.Place()
	if got := Step(&before, &after, all); got.Theta < 0.05 || math.Abs(got.X) > 1e-9 {
		t.Errorf("left legs forward and right legs back: %+v, want a turn to the left", got)
	}
	if got, want := Moved(motion.Pose{X: 1, Theta: math.Pi / 2}, motion.Pose{X: 0.5, Theta: math.Pi}), (motion.Pose{X: 1, Y: 0.5, Theta: -math.Pi / 2}); !near(got, want) {
		t.Errorf("moved: %+v, want %+v", got, want)
	}
}

func BenchmarkRest(b *testing.B) {
	a := Angles{Upper: [Count]float64{-16, -10, 16, 20}, Lower: [Count]float64{32, 60, -32, -50}}
	f := a.Place()
	for b.Loop() {
		f.Rest()
	}
}

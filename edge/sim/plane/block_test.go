package plane

import (
	"math"
	"testing"
	"time"

	"kennel/infra/api/poke"
)

// cubeWorld has a robot with a cube before it.
func cubeWorld(t *testing.T) *World {
	t.Helper()
	return with(t, &Map{Objects: []Object{{Shape: "box", At: Pose{0.3, 0, math.Pi / 2}, Size: Vec{cubeEdge, cubeEdge}, Marker: "cube"}, {Shape: "disc", At: Pose{1, 1, 0}, Radius: 0.1}}})
}

// feels lets seconds pass and returns the mean and the extremes of what the cube feels along an axis, in g.
func feels(w *World, seconds float64, axis int) (mean, least, most float64) {
	const dt = 5 * time.Millisecond
	least, most = math.Inf(1), math.Inf(-1)
	n := int(seconds / dt.Seconds())
	for range n {
		w.Step(dt, 0, 0)
		a, _ := w.CubeFeels(0)
		g := a[axis] / Gravity
		mean, least, most = mean+g/float64(n), min(least, g), max(most, g)
	}
	return mean, least, most
}

// TestCubeFeels: a cube in the world feels its weight along the axis that is up, taps, shaking, that it is taken and put down, and a robot that pushes it.
func TestCubeFeels(t *testing.T) {
	w := cubeWorld(t)
	if w.Cubes() != 1 {
		t.Fatalf("%d cubes", w.Cubes())
	}
	do := func(side string) {
		t.Helper()
		if err := w.Poke(poke.Poke{Verb: poke.Cube, Side: side}); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(side string) {
		t.Helper()
		if w.Poke(poke.Poke{Verb: poke.Cube, Side: side}) == nil {
			t.Errorf("%s is not refused", side)
		}
	}
	if mean, least, most := feels(w, 1, 2); math.Abs(mean-1) > 0.01 || least < 0.95 || most > 1.05 {
		t.Errorf("at rest %v, %v to %v", mean, least, most)
	}
	if _, away := w.CubeFeels(0); math.Abs(away-0.3) > 1e-9 {
		t.Errorf("%v m away", away)
	}
	do(poke.Tap)
	if _, least, _ := feels(w, 0.05, 2); least > -1 {
		t.Errorf("a tap: %v", least)
	}
	do(poke.Roll)
	feels(w, 1, 0)
	if mean, _, _ := feels(w, 0.5, 0); math.Abs(mean+1) > 0.01 { // its back is on top
		t.Errorf("rolled over: %v", mean)
	}
	for range 3 {
		do(poke.Roll)
	}
	feels(w, 2, 0)
	if mean, _, _ := feels(w, 0.5, 2); math.Abs(mean-1) > 0.01 {
		t.Errorf("rolled around: %v", mean)
	}
	do(poke.Rattle)
	if _, least, most := feels(w, 1, 1); least > -1.5 || most < 1.5 { // its heading is a quarter turn: it is shaken along its left axis
		t.Errorf("shaken: %v to %v", least, most)
	}
	refused(poke.Place)
	do(poke.Take)
	refused(poke.Take)
	feels(w, 1, 2)
	if s := w.State(); !s.Gone[0] {
		t.Error("a cube in a hand is still on the floor")
	}
	if _, away := w.CubeFeels(0); away < 0.32 {
		t.Errorf("in a hand %v m away", away)
	}
	do(poke.Place)
	feels(w, 1, 2)
	if mean, least, most := feels(w, 1, 2); w.State().Gone[0] || math.Abs(mean-1) > 0.01 || least < 0.95 || most > 1.05 {
		t.Errorf("put down %v, %v to %v", mean, least, most)
	}
	shaky := 0.0
	for range 600 { // 3 s at 0.1 m/s: it reaches the cube and pushes it
		w.Step(5*time.Millisecond, 0.1, 0.1)
		a, _ := w.CubeFeels(0)
		shaky = max(shaky, math.Hypot(a[0], a[1])/Gravity)
	}
	if w.State().Objects[0][0] < 0.31 || shaky < 0.2 {
		t.Errorf("pushed to %v, felt %v", w.State().Objects[0], shaky)
	}
	refused("nonsense")
	if none := with(t, &Map{}); none.Poke(poke.Poke{Verb: poke.Cube, Side: poke.Tap}) == nil {
		t.Error("a tap on no cube")
	}
}

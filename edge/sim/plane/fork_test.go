package plane

import (
	"math"
	"testing"

	"kennel/infra/api/poke"
)

// Hooks of the lift in these tests, in m ahead of the robot's origin.
const hooks = 0.004

// raise moves the fork to a height in small steps, as time passes, and reports whether nothing was in the way.
func raise(w *World, to float64) bool {
	for n := 0; n < 400; n++ {
		up := w.fork.up + min(max(to-w.fork.up, -5e-4), 5e-4)
		if !w.MoveFork(w.robot.Nose+hooks, up) {
			return false
		}
		w.Step(tick, 0, 0)
		if up == to {
			return true
		}
	}
	return false
}

// roll drives ahead, or back, by about so many metres.
func roll(w *World, way float64) {
	for range int(math.Round(math.Abs(way) / 0.1 / tick.Seconds())) {
		w.Step(tick, math.Copysign(0.1, way), math.Copysign(0.1, way))
	}
}

// docked is a robot with its lift low and the hooks in the hole of a cube, and more things.
func docked(t *testing.T, m Map) *World {
	t.Helper()
	r := rover()
	m.Objects = append([]Object{{Shape: "box", At: Pose{r.Nose + cubeEdge/2 + 0.002, 0.002, 0.05 + math.Pi/2}, Size: Vec{cubeEdge, cubeEdge}, Marker: "cube"}}, m.Objects...)
	w := with(t, &m)
	w.MoveFork(w.robot.Nose+hooks, 0.032)
	return w
}

func (w *World) cube() Pose { return w.objects[0] }

// TestLiftCarriesCube: hooks that rise in the hole of a cube raise it; it goes where the robot goes, what it meets stops the robot, and the robot sees over its place. Where the lift is lowered it is
// put down, and the robot leaves it there. The cube feels its weight all the time.
func TestLiftCarriesCube(t *testing.T) {
	w := docked(t, Map{Walls: []Wall{{From: Vec{0.4, -1}, To: Vec{0.4, 1}}}})
	from := w.pose.From(w.cube().place())
	if !raise(w, 0.08) || w.Carried() != 0 {
		t.Fatalf("carries %d", w.Carried())
	}
	if s := w.State(); math.Abs(s.Raised[0]-(0.08-holeTop)) > 1e-9 || s.Gone[0] {
		t.Errorf("raised %v", s.Raised)
	}
	if mean, _, _ := feels(w, 1, 2); math.Abs(mean-1) > 0.02 {
		t.Errorf("in the air it feels %v g", mean)
	}
	for range 200 { // half a turn
		w.Step(tick, -0.1, 0.1)
	}
	turned := w.pose[2]
	if at := w.pose.From(w.cube().place()); at.to(from).norm() > 1e-9 || math.Abs(turned) < 1 {
		t.Errorf("turned by %v it has the cube at %v, want %v", turned, at, from)
	}
	for range 200 {
		w.Step(tick, 0.1, -0.1)
	}
	roll(w, 1)
	if ahead := w.cube()[0] + cubeEdge/2; !w.State().Blocked || math.Abs(ahead-0.4) > 3e-3 || w.pose[0]+w.robot.Nose > 0.4-cubeEdge+5e-3 {
		t.Errorf("the cube is at %v before a wall at 0.4, the robot at %v", w.cube(), w.pose)
	}
	roll(w, -0.1)
	if !raise(w, 0.032) || w.Carried() != -1 || w.State().Raised[0] != 0 {
		t.Fatalf("put down: carries %d, raised %v", w.Carried(), w.State().Raised)
	}
	at := w.cube()
	roll(w, -0.1)
	if w.cube() != at || w.pose.From(at.place()).to(from).norm() < 0.09 {
		t.Errorf("it was put down at %v, and is at %v", at, w.cube())
	}
}

// TestLiftMissesCube: hooks beside the hole, or not before a side, or that rise from above it, lift nothing.
func TestLiftMissesCube(t *testing.T) {
	for name, at := range map[string]Pose{"square": {0.002, 0, 0.05}, "aside": {0.002, 0.012, 0}, "askew": {0.006, 0, 0.3}, "far": {0.006, 0, 0}} {
		r := rover()
		reach := hooks
		if name == "askew" {
			reach = 0.012 // its corner is nearer than its side
		}
		w := with(t, &Map{Objects: []Object{{Shape: "box", At: Pose{r.Nose + cubeEdge/2 + at[0], at[1], at[2]}, Size: Vec{cubeEdge, cubeEdge}, Marker: "cube"}}})
		w.MoveFork(r.Nose+reach, 0.032)
		w.MoveFork(r.Nose+reach, 0.08)
		if carries := w.Carried() == 0; carries != (name == "square") {
			t.Errorf("%s: carries: %v", name, carries)
		}
	}
	w := docked(t, Map{})
	w.fork.up = 0.04
	if raise(w, 0.08); w.Carried() != -1 {
		t.Error("hooks above the hole lift it")
	}
}

// TestCubeFalls: a robot that is laid on its side loses the cube on its lift, which falls, feels that, and rests beside it; a hand takes one from the lift; one that is put down over a cliff is gone.
func TestCubeFalls(t *testing.T) {
	w := docked(t, Map{})
	raise(w, 0.08)
	must(t, w.PickUp())
	feels(w, 1, 2)
	if s := w.State(); w.Carried() != 0 || s.Raised[0] < liftHeight {
		t.Errorf("in a hand it carries %d, raised %v", w.Carried(), s.Raised)
	}
	must(t, w.Tip(OnLeftSide))
	_, least, most := feels(w, 1, 2)
	if w.Carried() != -1 || least > 0.5 || most < 1.5 {
		t.Errorf("it fell: carries %d, felt %v to %v", w.Carried(), least, most)
	}
	if mean, _, _ := feels(w, 0.5, 2); w.State().Raised[0] != 0 || w.State().Gone[0] || math.Abs(mean-1) > 0.01 {
		t.Errorf("it rests: %v, feels %v", w.State(), mean)
	}
	w = docked(t, Map{})
	raise(w, 0.08)
	must(t, w.Poke(poke.Poke{Verb: poke.Cube, Side: poke.Take}))
	w.Step(tick, 0, 0)
	if w.Carried() != -1 || !w.State().Gone[0] || w.State().Raised[0] != 0 {
		t.Errorf("taken: carries %d, %v", w.Carried(), w.State())
	}
	w = docked(t, Map{Cliffs: []Cliff{{Corners: []Vec{{0.15, -1}, {1, -1}, {1, 1}, {0.15, 1}}}}})
	raise(w, 0.08)
	roll(w, 0.1)
	if raise(w, 0.032); w.Carried() != -1 || !w.State().Gone[0] {
		t.Errorf("over a cliff: carries %d, %v", w.Carried(), w.State())
	}
}

// TestLiftRollsCube: hooks that come down on the top of a cube lie on it. The robot drives back with them lowered, and the cube turns over its edge: the side that was away from the robot is on
// top, which it feels, and it is one edge nearer. Hooks that slip off let it fall back.
func TestLiftRollsCube(t *testing.T) {
	over := func(w *World) {
		t.Helper()
		if raise(w, 0.06); w.Carried() != -1 {
			t.Fatal("it carries")
		}
		if raise(w, 0.032) {
			t.Fatal("hooks went through the top")
		}
		if math.Abs(w.fork.up-cubeEdge) > 1e-3 {
			t.Errorf("hooks lie at %v", w.fork.up)
		}
	}
	begin := func() *World {
		w := docked(t, Map{})
		w.fork.up = 0.05 // it came with the lift raised
		over(w)
		return w
	}
	w := begin()
	at := w.cube()
	for range 140 { // 70 mm back
		w.MoveFork(w.robot.Nose+hooks, max(w.fork.up-5e-4, 0.032))
		w.Step(tick, -0.1, -0.1)
	}
	way := at.place().to(w.cube().place())
	if math.Abs(way[0]+cubeEdge) > 2e-3 || math.Abs(way[1]) > 4e-3 || w.fork.pulled != -1 {
		t.Errorf("it went %v", way)
	}
	feels(w, 0.5, 0)
	// Its heading is a quarter turn to the left of the robot's: the robot was at its left side, so the right one is on top.
	if mean, _, _ := feels(w, 0.5, 1); math.Abs(mean+1) > 0.02 {
		t.Errorf("along its left axis it feels %v g", mean)
	}
	w = begin()
	draw := func(n int) {
		for range n { // 0.5 mm
			w.MoveFork(w.robot.Nose+hooks, max(w.fork.up-5e-4, 0.032))
			w.Step(tick, -0.1, -0.1)
		}
	}
	draw(70)
	feels(w, 1, 0)
	if tilt := w.blocks[0].tilt; tilt < quarter/2 || tilt > quarter-0.1 {
		t.Errorf("before a robot that stopped it leans by %v", tilt)
	}
	if draw(30); w.blocks[0].tilt != 0 || w.fork.pulled != -1 {
		t.Errorf("the robot drove on: it leans by %v", w.blocks[0].tilt)
	}
	w = begin()
	at = w.cube()
	for range 20 { // 10 mm: it is tipped
		w.Step(tick, -0.1, -0.1)
	}
	if w.blocks[0].tilt < 0.1 {
		t.Errorf("tipped by %v", w.blocks[0].tilt)
	}
	raise(w, 0.06)
	if mean, _, _ := feels(w, 0.5, 2); w.blocks[0].tilt != 0 || w.cube().place().to(at.place()).norm() > 1e-9 || math.Abs(mean-1) > 0.02 {
		t.Errorf("it fell back to %v, tipped by %v, from %v, and feels %v g", w.cube(), w.blocks[0].tilt, at, mean)
	}
}

// TestHandRollsEverySide: rolled over by a hand from any side up, and by the lift, a cube's axes stay those of a cube.
func TestHandRollsEverySide(t *testing.T) {
	b := block{own: [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}
	for n, toward := range [][2]float64{{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {0, 1}, {1, 0}} {
		b.toward = toward
		before := b.feels([3]float64{0, 0, 1})
		b.tilt = math.Pi / 2
		tipped := b.feels([3]float64{0, 0, 1})
		b.turnOver()
		b.tilt = 0
		after := b.feels([3]float64{0, 0, 1})
		var dot float64
		for i := range after {
			if math.Abs(after[i]-tipped[i]) > 1e-9 {
				t.Errorf("turn %d: %v tipped and %v turned over", n, tipped, after)
			}
			dot += after[i] * before[i]
		}
		if math.Abs(dot) > 1e-9 {
			t.Errorf("turn %d: %v is no quarter turn from %v", n, after, before)
		}
	}
}

package sim

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/sim/plane"
	"kennel/infra/api/live"
	"kennel/infra/api/poke"
)

// standing is a robot in that world, and what says where it is.
func standing(t *testing.T, m *plane.Map) (*vectorsim.Board, *truth) {
	t.Helper()
	board := vectorsim.New(vectorsim.Config{World: m, Seed: 1})
	says, err := newTruth(board)
	if err != nil || says == nil {
		t.Fatal(says, err)
	}
	return board, says
}

// drive lets a second pass in which both treads turn at 0.1 m/s.
func drive(t *testing.T, board *vectorsim.Board) {
	t.Helper()
	if err := board.InWorld(func(w *plane.World) error {
		for range 20 {
			w.Step(50*time.Millisecond, 0.1, 0.1)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestTruth: what is said of a world is the world; its map is said to who does not have it.
func TestTruth(t *testing.T) {
	if says, err := newTruth(vectorsim.New(vectorsim.Config{Seed: 1})); says != nil || err != nil {
		t.Errorf("a body that is nowhere: %+v, %v", says, err)
	}
	for _, name := range plane.Names() {
		m, err := plane.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		board, says := standing(t, m)
		w := says.see("")
		if err := w.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w.Map.Name != name || len(w.Map.Walls) != len(m.Walls) || len(w.Map.Cliffs) != len(m.Cliffs) || len(w.Map.Shapes) != len(m.Objects) ||
			len(w.Things) != len(m.Objects) ||
			(w.Map.Charger == nil) != (m.Charger == nil) || w.Map.Omitted != 0 || w.Map.Body.Width != 0.06 || len(w.Map.Body.Cliffs) != 4 ||
			len(w.NoFloor) != 4 {
			t.Errorf("%s: %+v of %+v", name, w.Map, m)
		}
		drive(t, board)
		after := says.see(w.Rev)
		if after.Map != nil || after.Rev != w.Rev {
			t.Errorf("%s: the map of %s again, of %s", name, w.Rev, after.Rev)
		}
		if moved := after.Pose[0] - w.Pose[0]; math.Abs(moved-0.1) > 0.001 || after.Origin != w.Pose || len(after.Trail) != 2 ||
			after.Trail[1] != after.Pose.Point() {
			t.Errorf("%s: moved %v m, %+v", name, moved, after)
		}
		says.begin() // its core is another one
		if w := says.see(after.Rev); w.Origin != after.Pose || len(w.Trail) != 1 {
			t.Errorf("%s: a new core reckons from %v with a trail of %d, want from %v", name, w.Origin, len(w.Trail), after.Pose)
		}
	}
}

// TestTrail: the trail covers the last seconds, and is bounded however often it is asked for.
func TestTrail(t *testing.T) {
	board, says := standing(t, &plane.Map{})
	var w live.World
	for range 3 * live.MaxTrail {
		if err := board.InWorld(func(w *plane.World) error { w.Step(100*time.Millisecond, 0.1, 0.1); return nil }); err != nil {
			t.Fatal(err)
		}
		w = says.see("")
	}
	if n := len(w.Trail); n != live.MaxTrail || w.Trail[n-1] != w.Pose.Point() {
		t.Errorf("%d points that end at %v, want %d that end at %v", n, w.Trail[n-1], live.MaxTrail, w.Pose)
	}
	for range 250 { // 25 s at rest
		if err := board.InWorld(func(w *plane.World) error { w.Step(100*time.Millisecond, 0, 0); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if w := says.see(""); len(w.Trail) != 1 {
		t.Errorf("%d points after it stood for longer than a trail lasts, want where it is", len(w.Trail))
	}
}

// TestLargeMap: what does not fit a frame is counted, and the rest is said; names are cut.
func TestLargeMap(t *testing.T) {
	m := &plane.Map{}
	for i := range 400 {
		y := 5 + float64(i)
		m.Walls = append(m.Walls, plane.Wall{From: plane.Vec{-1, y}, To: plane.Vec{1, y}})
		m.Cliffs = append(m.Cliffs, plane.Cliff{Corners: []plane.Vec{{5, y}, {6, y}, {6, y + 0.5}}})
		m.Lines = append(m.Lines, plane.Line{From: plane.Vec{-1, y}, To: plane.Vec{1, y}})
		m.Objects = append(m.Objects, plane.Object{Name: strings.Repeat("ö\x00", 60), Shape: "disc", At: plane.Pose{-5, y, 0}, Radius: 0.1})
	}
	_, says := standing(t, m)
	w := says.see("")
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	if len(w.Map.Walls) != live.MaxWalls || len(w.Map.Cliffs) != live.MaxCliffs || len(w.Map.Shapes) != live.MaxThings ||
		len(w.Things) != live.MaxThings ||
		len(w.Map.Lines) != live.MaxLines || w.Map.Lines[0] != (live.Line{From: live.Point{-1, 5}, To: live.Point{1, 5}, Width: 0.015}) ||
		w.Map.Omitted != 4*400-live.MaxWalls-live.MaxCliffs-live.MaxLines-live.MaxThings || w.Map.Shapes[0].Name != strings.Repeat("ö", 20) {
		t.Errorf("%d walls, %d cliffs, %d things, %d omitted, a thing called %q", len(w.Map.Walls), len(w.Map.Cliffs), len(w.Map.Shapes),
			w.Map.Omitted, w.Map.Shapes[0].Name)
	}
	round := &plane.Map{Cliffs: []plane.Cliff{{Corners: make([]plane.Vec, 600)}}}
	for i := range round.Cliffs[0].Corners {
		sin, cos := math.Sincos(float64(i) / 600 * 2 * math.Pi)
		round.Cliffs[0].Corners[i] = plane.Vec{5 + cos, sin}
	}
	if _, says := standing(t, round); says.m.Omitted != 1 || says.see("").Map.Cliffs != nil {
		t.Errorf("a cliff with more corners than a frame has room for: %d omitted", says.m.Omitted)
	}
}

// TestBeside: a client sees the robot's world, and what a hand can do there.
func TestBeside(t *testing.T) {
	m, err := plane.Builtin("room")
	if err != nil {
		t.Fatal(err)
	}
	board, says := standing(t, m)
	w := beside{board, says}.See("")
	if err := w.Check(); err != nil || w.Map.Name != "room" || !slices.Contains(w.Verbs, poke.Touch) || !slices.Contains(w.Verbs, poke.Lift) {
		t.Errorf("%+v, %v", w, err)
	}
	if w := (beside{board, nil}).See(""); w != nil {
		t.Errorf("a body that is nowhere: %+v", w)
	}
}

package plane

import (
	"math"
	"testing"
	"time"

	"kennel/edge/sense"
)

// TestSensed: the robot's own senses recognise the postures and motions of the world (VEC-IMU-06 to 09, VEC-IMU-16).
func TestSensed(t *testing.T) {
	w := with(t, &Map{Cliffs: []Cliff{{Corners: []Vec{{0.3, -1}, {1, -1}, {1, 1}, {0.3, 1}}, Drop: 0.7}}})
	mover := sense.NewMover(sense.Default().Motion)
	var seen sense.MotionEvents
	live := func(seconds, left, right float64) sense.Motion {
		for range int(math.Round(seconds / tick.Seconds())) {
			w.Step(tick, left, right)
			in := w.Inertia()
			none := true
			for i := range w.robot.Cliffs {
				none = none && !w.Floor(i)
			}
			seen |= mover.Step(tick, sense.MotionInput{Accel: in.Accel, Gyro: in.Gyro, NoFloor: none, Driven: left != 0 || right != 0})
		}
		return mover.Motion()
	}
	if m := live(3, 0, 0); m.OffTreads != sense.OnTreads || m.PickedUp || !m.Still || m.Gyro != sense.GyroCalibrated {
		t.Fatalf("at rest: %+v", m)
	}
	before := mover.Motion().Heading
	if m := live(1, -0.02, 0.02); m.OffTreads != sense.OnTreads || m.PickedUp || math.Abs(m.Heading-before-w.State().Pose[2]) > 0.02 {
		t.Errorf("turning: %+v, really %v", m, w.State().Pose)
	}
	live(1, 0, 0)
	must(t, w.PickUp())
	if m := live(1.5, 0, 0); !m.PickedUp || !m.Held || m.OffTreads != sense.InAir {
		t.Errorf("in a hand: %+v", m)
	}
	for posture, want := range map[Posture]sense.OffTreads{
		OnLeftSide: sense.OnLeftSide, OnRightSide: sense.OnRightSide, OnBack: sense.OnBack, OnFace: sense.OnFace,
	} {
		must(t, w.Tip(posture))
		if m := live(2, 0, 0); m.OffTreads != want || !m.PickedUp || m.Falling {
			t.Errorf("%s: %+v", posture, m)
		}
	}
	must(t, w.PickUp())
	live(1, 0, 0)
	must(t, w.PutDown(Pose{}))
	if m := live(4, 0, 0); m.OffTreads != sense.OnTreads || m.PickedUp || m.Held {
		t.Errorf("put down: %+v", m)
	}
	if seen&(sense.FallBegan|sense.FallImpact|sense.GyroBroken) != 0 || seen&sense.Delocalized == 0 {
		t.Errorf("events %b before any fall", seen)
	}
	live(3.5, 0.1, 0.1)
	if s := w.State(); s.Falls != 1 || seen&sense.FallBegan == 0 || seen&sense.FallImpact == 0 {
		t.Errorf("over the edge: %+v, events %b", s, seen)
	}
}

// TestTurn: a hand turns the robot on its treads, which do not notice; the gyro does, and a wall ends it.
func TestTurn(t *testing.T) {
	w := with(t, &Map{})
	must(t, w.Turn(1, time.Second))
	for i := range 60 {
		if l, r := w.Step(tick, 0, 0); l != 0 || r != 0 {
			t.Fatalf("its treads turned by %v and %v", l, r)
		}
		if g := w.Inertia().Gyro[2]; math.Abs(g-1) > 0.02 {
			t.Fatalf("step %d: the gyro says %v rad/s, want 1", i, g)
		}
	}
	go1(w, 1, 0, 0)
	if p := w.State().Pose; math.Abs(p[2]-1) > 1e-9 || p[0] != 0 || p[1] != 0 || math.Abs(w.Inertia().Gyro[2]) > 0.02 {
		t.Errorf("turned to %v, gyro %v; want by 1 and at rest", p, w.Inertia().Gyro)
	}
	w = with(t, &Map{Walls: []Wall{{From: Vec{-1, 0.035}, To: Vec{1, 0.035}}, {From: Vec{-1, -0.035}, To: Vec{1, -0.035}}}})
	must(t, w.Turn(-3, time.Second))
	go1(w, 2, 0, 0)
	if a := w.State().Pose[2]; a > -0.05 || a < -1 {
		t.Errorf("between walls it turned by %v", a)
	}
	for _, err := range []error{w.Turn(math.NaN(), time.Second), w.Turn(1, 0), w.Turn(1e9, time.Second)} {
		if err == nil {
			t.Error("a turn that cannot be")
		}
	}
	must(t, w.PickUp())
	if err := w.Turn(1, time.Second); err == nil {
		t.Error("turned on its treads in a hand")
	}
}

// TestEcho: the nearest surface in the cone answers, one that is met at a slant does not (AMIGO-OPEN-16).
func TestEcho(t *testing.T) {
	const deg = math.Pi / 180
	wall := func(x, y, length, slant float64) Wall {
		c, s := math.Cos(slant+math.Pi/2)*length/2, math.Sin(slant+math.Pi/2)*length/2
		return Wall{From: Vec{x - c, y - s}, To: Vec{x + c, y + s}}
	}
	none := math.Inf(1)
	for _, tt := range []struct {
		name string
		m    Map
		at   Mount
		want float64
	}{
		{"head on", Map{Walls: []Wall{wall(2, 0, 1, 0)}}, Mount{}, 2},
		{"from the sonar's place", Map{Walls: []Wall{wall(2, 0, 1, 0)}}, Mount{X: 0.15}, 1.85},
		{"to the side", Map{Walls: []Wall{{From: Vec{-1, 1}, To: Vec{1, 1}}}}, Mount{Y: 0.1, Yaw: 90 * deg}, 0.9},
		{"a turned sonar meets the wall head on at its edge", Map{Walls: []Wall{wall(2, 0, 9, 0)}}, Mount{Yaw: 7.5 * deg}, 2},
		{"slanted by 59 degrees", Map{Walls: []Wall{wall(1, 0, 0.02, 59*deg)}}, Mount{}, 1},
		{"slanted by 61 degrees", Map{Walls: []Wall{wall(1, 0, 0.02, 61*deg)}}, Mount{}, none},
		{"a slanted surface hides what is behind it", Map{Walls: []Wall{wall(1, 0, 3, 70*deg), wall(2, 0, 1, 0)}}, Mount{}, none},
		{"at the edge of the cone", Map{Walls: []Wall{wall(2, 0.2, 0.2, 0)}}, Mount{}, 2 / math.Cos(3.75*deg)},
		{"beside the cone", Map{Walls: []Wall{wall(2, 0.4, 0.2, 0)}}, Mount{}, none},
		{"a post", Map{Objects: []Object{{Shape: "disc", At: Pose{1, 0, 0}, Radius: 0.05, Fixed: true}}}, Mount{}, 0.95},
		{"below the sonar", Map{Walls: []Wall{{From: Vec{1, -1}, To: Vec{1, 1}, Height: 0.05}}}, Mount{Z: 0.1}, none},
		{"nothing", Map{}, Mount{}, none},
	} {
		if got := with(t, &tt.m).Echo(tt.at, 15*deg, 60*deg); got != tt.want && math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v m, want %v", tt.name, got, tt.want)
		}
	}
}

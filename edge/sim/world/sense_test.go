package world

import (
	"math"
	"testing"

	"kennel/edge/sense"
)

// TestSensed: what the world lets a robot feel is what the robot's own senses read it as (VEC-IMU-06 to 09, VEC-IMU-16, VEC-IMU-17).
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

package anim

import (
	"errors"
	"testing"

	"kennel/edge/core"
)

// TestOrder: the trajectory equals the lines that a person would write.
func TestOrder(t *testing.T) {
	m := &Motion{Joints: []string{"robot.body.head.yaw", "robot.body.tail.yaw", "robot.body.head.yaw"}, Keyframes: []Keyframe{
		{0, []int32{500_000, -250_000, 9}}, {80, []int32{0, 100_000, 9}},
	}}
	got, err := m.Order()
	if err != nil {
		t.Fatal(err)
	}
	first, err1 := core.Parse("robot.body.head.yaw = 0.5; robot.body.tail.yaw = -0.25")
	second, err2 := core.Parse("robot.body.head.yaw = 0 time:640ms; robot.body.tail.yaw = 0.1 time:0.64")
	if want := first.Then(second); errors.Join(err1, err2) != nil || got.String() != want.String() {
		t.Errorf("%s\nwant %s", got, want)
	}
	m.Keyframes[1].Rows = 451_000 // over an hour
	if _, err := m.Order(); !errors.Is(err, ErrMotion) {
		t.Error(err)
	}
	m.Keyframes[1].Rows = maxRows
	if _, err := m.Order(); !errors.Is(err, ErrMotion) {
		t.Error(err)
	}
	m.Keyframes[0].Values = nil
	if _, err := m.Order(); !errors.Is(err, ErrMotion) {
		t.Error(err)
	}
}

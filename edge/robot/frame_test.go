package robot

import (
	"math"
	"testing"
)

func near(a, b Vec) bool {
	const tiny = 1e-12
	return math.Abs(a.X-b.X) < tiny && math.Abs(a.Y-b.Y) < tiny && math.Abs(a.Z-b.Z) < tiny
}

// TestAxes: right-handed, counter-clockwise, and what that makes of yaw, pitch and roll (GOSTAI-FRAME-04, GOSTAI-FRAME-05, GOSTAI-YPR-01).
func TestAxes(t *testing.T) {
	x, y, z := Vec{X: 1}, Vec{Y: 1}, Vec{Z: 1}
	if !near(z.Cross(x), y) || !near(x.Cross(y), z) {
		t.Error("the frame is not right-handed")
	}
	quarter := math.Pi / 2
	for _, tc := range []struct {
		name     string
		turn     Attitude
		of, want Vec
	}{
		{"yaw turns forward to the left", Attitude{Yaw: quarter}, x, Left.Direction()},
		{"pitch turns forward down", Attitude{Pitch: quarter}, x, Down.Direction()},
		{"pitch takes a hanging limb backward", Attitude{Pitch: quarter}, Down.Direction(), Back.Direction()},
		{"roll lifts the left side", Attitude{Roll: quarter}, Left.Direction(), Up.Direction()},
		{"roll, then pitch, then yaw", Attitude{Yaw: quarter, Pitch: quarter, Roll: quarter}, y, y},
		{"nothing", Attitude{}, Vec{1, 2, 3}, Vec{1, 2, 3}},
	} {
		if got := tc.turn.Turn(tc.of); !near(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestFrameRules covers GOSTAI-FRAME-01, GOSTAI-FRAME-02 and GOSTAI-FRAME-03.
func TestFrameRules(t *testing.T) {
	for _, tc := range []struct {
		camera, moves, symmetric, gravity bool
		front                             FrontRule
		up                                UpRule
	}{
		{true, true, true, true, FrontCamera, UpGravity},
		{false, true, true, true, FrontDriving, UpGravity},
		{false, false, true, false, FrontSymmetry, UpSymmetry},
		{false, false, false, false, FrontMarked, UpMarked},
	} {
		if f := FrameFor(tc.camera, tc.moves, tc.symmetric, tc.gravity); f.Front != tc.front || f.Up != tc.up {
			t.Errorf("%+v: %+v", tc, f)
		}
	}
	f := Frame{Axle: Vec{X: 0.02, Z: -0.03}}
	axle := f.AxleAt(Vec{X: 1, Y: 2}, math.Pi/2)
	if !near(axle, Vec{1, 2.02, -0.03}) || !near(f.OriginAt(axle, math.Pi/2), Vec{X: 1, Y: 2}) {
		t.Errorf("axle at %v, back at %v", axle, f.OriginAt(axle, math.Pi/2))
	}
}

// TestOrientation covers GOSTAI-YPR-02, GOSTAI-YPR-03 and GOSTAI-NAME-02.
func TestOrientation(t *testing.T) {
	for _, tc := range []struct {
		axis  Vec
		taken []string
		want  string
	}{
		{Vec{Z: 1}, nil, "yaw"}, {Vec{Y: -1}, nil, "pitch"}, {Vec{X: 1}, nil, "roll"},
		{Vec{X: 0.2, Y: 0.3, Z: -0.9}, nil, "yaw"},
		{Vec{X: 0.2, Y: 0.3, Z: 0.9}, []string{"yaw"}, "pitch"},
		{Vec{Z: 1}, []string{"yaw", "pitch"}, "roll"},
		{Vec{Z: 1}, []string{"yaw", "pitch", "roll"}, ""},
	} {
		if got := Orientation(tc.axis, tc.taken...); got != tc.want {
			t.Errorf("%v without %v: %s, want %s", tc.axis, tc.taken, got, tc.want)
		}
		if tc.want != "" && !isStandard(tc.want) {
			t.Errorf("%s is no component", tc.want)
		}
	}
	if got := Reference(Range{-1, 3}, false, 9); got != 1 {
		t.Errorf("a joint without gravity rests at %v, want the middle", got)
	}
	if got := Reference(Range{-1, 3}, true, 0.5); got != 0.5 {
		t.Errorf("a joint with gravity rests at %v, want where it hangs", got)
	}
}

// TestWrap covers the intervals of GOSTAI-IF-06.1.
func TestWrap(t *testing.T) {
	for _, a := range []float64{0, 1, -1, math.Pi, -math.Pi, 4, -4, 7, -7, 100, -1e-20, 1e9} {
		p, w := WrapPi(a), WrapTurn(a)
		if !(p > -math.Pi && p <= math.Pi) || !(w >= 0 && w < 2*math.Pi) {
			t.Errorf("%v: %v and %v, outside (-π, π] and [0, 2π)", a, p, w)
		}
		if math.Abs(math.Sin(a)-math.Sin(p)) > 1e-6 || math.Abs(math.Cos(a)-math.Cos(w)) > 1e-6 {
			t.Errorf("%v is not the angle %v, %v", a, p, w)
		}
	}
	if WrapPi(-math.Pi) != math.Pi || WrapPi(math.Pi) != math.Pi {
		t.Error("π is the end that belongs to the interval")
	}
}

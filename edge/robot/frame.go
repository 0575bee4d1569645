package robot

import (
	"math"
	"slices"
	"time"
)

// Vec is a place or a direction in the robot's frame, metres: X forward, Y left, Z up (GOSTAI-FRAME-02 to 04).
type Vec struct{ X, Y, Z float64 }

// Cross returns v × w.
func (v Vec) Cross(w Vec) Vec {
	return Vec{v.Y*w.Z - v.Z*w.Y, v.Z*w.X - v.X*w.Z, v.X*w.Y - v.Y*w.X}
}

// Add returns v + w.
func (v Vec) Add(w Vec) Vec { return Vec{v.X + w.X, v.Y + w.Y, v.Z + w.Z} }

// Sub returns v - w.
func (v Vec) Sub(w Vec) Vec { return Vec{v.X - w.X, v.Y - w.Y, v.Z - w.Z} }

// Direction returns the direction of a word of localization, for a viewer who looks along X (GOSTAI-FRAME-06); the zero vector for the
// words of the middle, and for numbers.
func (l Loc) Direction() Vec {
	switch l.word {
	case front, axisX:
		return Vec{X: 1}
	case back:
		return Vec{X: -1}
	case left, axisY:
		return Vec{Y: 1}
	case right:
		return Vec{Y: -1}
	case up, axisZ:
		return Vec{Z: 1}
	case down:
		return Vec{Z: -1}
	}
	return Vec{}
}

// WrapPi returns the angle a in (-π, π], as limited joints report it (GOSTAI-IF-06.1).
func WrapPi(a float64) float64 {
	a = WrapTurn(a)
	if a > math.Pi {
		a -= 2 * math.Pi
	}
	return a
}

// WrapTurn returns the angle a in [0, 2π), as wheels report it (GOSTAI-IF-06.1).
func WrapTurn(a float64) float64 {
	a = math.Mod(a, 2*math.Pi)
	if a < 0 {
		a += 2 * math.Pi
	}
	if a >= 2*math.Pi { // a tiny negative angle, rounded
		a = 0
	}
	return a
}

// Attitude is yaw about Z, pitch about Y and roll about X in radians, each counter-clockwise about its axis: positive yaw is left, pitch
// nose down or limb backward, roll left side up (GOSTAI-FRAME-05, GOSTAI-YPR-01).
type Attitude struct{ Yaw, Pitch, Roll float64 }

// Turn rotates v by roll, then pitch, then yaw: from the frame of a part into the frame that the part is mounted in.
func (a Attitude) Turn(v Vec) Vec {
	s, c := math.Sincos(a.Roll)
	v = Vec{v.X, c*v.Y - s*v.Z, s*v.Y + c*v.Z}
	s, c = math.Sincos(a.Pitch)
	v = Vec{c*v.X + s*v.Z, v.Y, -s*v.X + c*v.Z}
	s, c = math.Sincos(a.Yaw)
	return Vec{c*v.X - s*v.Y, s*v.X + c*v.Y, v.Z}
}

// FrontRule says what made X the front of a body (GOSTAI-FRAME-02).
type FrontRule uint8

// The rules in their order; a body takes the first that applies.
const (
	FrontCamera   FrontRule = iota + 1 // the camera's default direction
	FrontDriving                       // the natural direction of motion
	FrontSymmetry                      // the axis of symmetry, towards the small side
	FrontMarked                        // arbitrary, and marked on the body
)

// UpRule says what made Z the top of a body (GOSTAI-FRAME-03).
type UpRule uint8

// The rules in their order.
const (
	UpGravity  UpRule = iota + 1 // against gravity
	UpSymmetry                   // the axis of symmetry in the plane orthogonal to X
	UpMarked                     // arbitrary, and marked on the body
)

// Frame is a body's frame of reference. Its origin is the centre of mass (GOSTAI-FRAME-01); odometry is about the middle between the
// driven wheels, which lies at Axle.
type Frame struct {
	Front FrontRule
	Up    UpRule
	Axle  Vec // m, from the centre of mass
}

// FrameFor returns the frame that the rules give a body: hasCamera, moves and symmetric are the questions of FRAME-02 in their order.
func FrameFor(hasCamera, moves, symmetric, gravity bool) Frame {
	f := Frame{Front: FrontMarked, Up: UpGravity}
	switch {
	case hasCamera:
		f.Front = FrontCamera
	case moves:
		f.Front = FrontDriving
	case symmetric:
		f.Front = FrontSymmetry
	}
	if !gravity {
		f.Up = UpMarked
		if symmetric {
			f.Up = UpSymmetry
		}
	}
	return f
}

// AxleAt returns where the middle between the driven wheels is, for a centre of mass at origin with heading yaw on the floor.
func (f Frame) AxleAt(origin Vec, yaw float64) Vec {
	return origin.Add(Attitude{Yaw: yaw}.Turn(f.Axle))
}

// OriginAt is the inverse of AxleAt.
func (f Frame) OriginAt(axle Vec, yaw float64) Vec { return axle.Sub(Attitude{Yaw: yaw}.Turn(f.Axle)) }

// Orientation names the component of a rotation about axis: yaw, pitch or roll, the closest one that is not among taken, so that the
// last joint without an exact match gets what remains (GOSTAI-YPR-03). It returns "" if all are taken.
func Orientation(axis Vec, taken ...string) string {
	best, most := "", -1.0
	for _, c := range []struct {
		name string
		part float64
	}{{"yaw", axis.Z}, {"pitch", axis.Y}, {"roll", axis.X}} {
		if a := math.Abs(c.part); a > most && !slices.Contains(taken, c.name) {
			best, most = c.name, a
		}
	}
	return best
}

// Reference returns a joint's angle in the pose that yaw, pitch and roll are named in: standing, limbs hanging, which is hanging for a
// joint that gravity acts on; the middle of its range for any other (GOSTAI-YPR-02).
func Reference(r Range, gravity bool, hanging float64) float64 {
	if gravity || math.IsInf(r.Min, 0) || math.IsInf(r.Max, 0) {
		return hanging
	}
	return (r.Min + r.Max) / 2
}

// Place is a robot's estimated pose relative to where it started. X and Y are in m, Theta in rad, counter-clockwise.
type Place struct {
	At          time.Duration // when, on CLOCK_MONOTONIC; 0: unknown
	X, Y, Theta float64
	Pitch       float64 // rad, positive nose down; 0 if unknown
	Moving      bool
}

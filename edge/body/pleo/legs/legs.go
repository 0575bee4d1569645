// Package legs says where a Pleo's feet are, which of them carry it, and how its body moves when they do: the odometry of a walking Pleo and the floor of a
// simulated one.
//
// Pleo's legs turn about axes across the body alone. A leg has two pieces, and a foot with a flat sole. The body's frame is the device model's: X forward, Y left,
// Z up, metres, with its origin in the middle between the hips. Angles are in degrees as Pleo counts: forward is positive (PLEO-JNT-12).
package legs

import (
	"math"

	"kennel/edge/motion"
)

// The measures of a Pleo. The programming guide gives none: they are own choices after a toy of 0.5 m.
const (
	hipX, hipY   = 0.090, 0.055 // m from the middle
	piece        = 0.050        // m, of both pieces of a leg
	soleX, soleY = 0.018, 0.014 // m, half of a sole
	bellyX       = 0.080        // m, half of the belly, which rests on the floor when all legs are folded
	bellyY       = 0.040
	bellyZ       = -0.030
	touches      = 0.0015 // m: a sole that close to the floor presses its switch
)

// The feet, in the order of Pose.
const (
	FrontLeft = iota
	FrontRight
	BackLeft
	BackRight
	Count
)

// Angles are the joints of the legs in degrees: shoulder or hip, and elbow or knee, of each leg; and the torso's, to the right.
type Angles struct {
	Upper, Lower [Count]float64
	Torso        float64
}

// Vec is a place in the body's frame.
type Vec [3]float64

// Feet are where the soles are.
type Feet [Count]Vec

// Place returns where the feet are.
func (a *Angles) Place() (f Feet) {
	const deg = math.Pi / 180
	for i := range f {
		x, y := hipX, hipY
		bend := -a.Torso * deg / 2 // of the front half to the left, and of the other to the right
		if i >= BackLeft {
			x, bend = -hipX, -bend
		}
		if i == FrontRight || i == BackRight {
			y = -hipY
		}
		s1, c1 := math.Sincos(a.Upper[i] * deg)
		s2, c2 := math.Sincos((a.Upper[i] + a.Lower[i]) * deg)
		x += piece * (s1 + s2)
		sin, cos := math.Sincos(bend)
		f[i] = Vec{x*cos - y*sin, x*sin + y*cos, -piece * (c1 + c2)}
	}
	return f
}

// Stance is how a Pleo that is not held rests on a level floor.
type Stance struct {
	Down [Count]bool // soles on the floor
	Lean float64     // rad between the body's up and the floor's
	Low  Side        // which of its sides is lowest, if it leans
}

// Side is a side of a body.
type Side uint8

// The sides.
const (
	LeftSide Side = iota
	RightSide
	Nose
	Tail
)

// points are what can touch the floor: corners of soles, and of the belly.
const points = 4*Count + 4

// Rest returns how a Pleo with its centre of mass in the middle rests: on the three lowest points around it, and what else is as low.
func (f *Feet) Rest() (s Stance) {
	var p [points]Vec
	for i, foot := range f {
		for k := range 4 {
			p[4*i+k] = Vec{foot[0] + corner(k, 1)*soleX, foot[1] + corner(k, 2)*soleY, foot[2]}
		}
	}
	for k := range 4 {
		p[4*Count+k] = Vec{corner(k, 1) * bellyX, corner(k, 2) * bellyY, bellyZ}
	}
	a, b, c, ok := floor(&p)
	if !ok {
		return s // there is always one: the belly is around the middle
	}
	s.Lean = math.Atan(math.Hypot(a, b))
	switch {
	case math.Abs(b) >= math.Abs(a) && b >= 0: // the floor rises to its left
		s.Low = LeftSide
	case math.Abs(b) >= math.Abs(a):
		s.Low = RightSide
	case a > 0:
		s.Low = Nose
	default:
		s.Low = Tail
	}
	for i := range f {
		for _, q := range p[4*i : 4*i+4] {
			if q[2]-(a*q[0]+b*q[1]+c) <= touches {
				s.Down[i] = true
			}
		}
	}
	return s
}

// corner returns the sign of one of four corners along X (bit 1) or Y (bit 2).
func corner(k, bit int) float64 {
	if k&bit != 0 {
		return 1
	}
	return -1
}

// floor returns the plane z = ax + by + c through three points that has none below it and the middle above it. Of several it is the same one.
func floor(p *[points]Vec) (a, b, c float64, ok bool) {
	const tiny = 1e-9
	for i := range p {
		for j := i + 1; j < points; j++ {
			for k := j + 1; k < points; k++ {
				ux, uy, uz := p[j][0]-p[i][0], p[j][1]-p[i][1], p[j][2]-p[i][2]
				vx, vy, vz := p[k][0]-p[i][0], p[k][1]-p[i][1], p[k][2]-p[i][2]
				area := ux*vy - uy*vx
				if math.Abs(area) < tiny || !around(p[i], p[j], p[k], area) {
					continue
				}
				a, b = (uz*vy-uy*vz)/area, (ux*vz-uz*vx)/area
				c = p[i][2] - a*p[i][0] - b*p[i][1]
				if lowest(p, a, b, c) {
					return a, b, c, true
				}
			}
		}
	}
	return 0, 0, 0, false
}

// around reports whether the middle is in the triangle, seen from above. area is twice its own, with its sign.
func around(p, q, r Vec, area float64) bool {
	side := func(a, b Vec) float64 { return (a[0]*b[1] - a[1]*b[0]) / area }
	const edge = -1e-9
	return side(p, q) >= edge && side(q, r) >= edge && side(r, p) >= edge
}

func lowest(p *[points]Vec, a, b, c float64) bool {
	const tiny = 1e-9
	for _, q := range p {
		if q[2] < a*q[0]+b*q[1]+c-tiny {
			return false
		}
	}
	return true
}

// Step returns how the body went while its feet moved from before to after, in the frame before. The feet that are down in both stay where they are as nearly
// as they can: legs that cannot move sideways slip in a turn. Fewer than two feet move no body.
func Step(before, after *Feet, down [Count]bool) motion.Pose {
	var n, bx, by, ax, ay float64
	for i := range down {
		if down[i] {
			n++
			bx, by = bx+before[i][0], by+before[i][1]
			ax, ay = ax+after[i][0], ay+after[i][1]
		}
	}
	if n < 2 {
		return motion.Pose{}
	}
	bx, by, ax, ay = bx/n, by/n, ax/n, ay/n
	var dot, cross float64
	for i := range down {
		if down[i] {
			px, py, qx, qy := before[i][0]-bx, before[i][1]-by, after[i][0]-ax, after[i][1]-ay
			dot += qx*px + qy*py
			cross += qx*py - qy*px
		}
	}
	theta := math.Atan2(cross, dot)
	sin, cos := math.Sincos(theta)
	return motion.Pose{X: bx - (ax*cos - ay*sin), Y: by - (ax*sin + ay*cos), Theta: theta}
}

// Moved returns the pose p after a step in its own frame.
func Moved(p, step motion.Pose) motion.Pose {
	sin, cos := math.Sincos(p.Theta)
	return motion.Pose{X: p.X + step.X*cos - step.Y*sin, Y: p.Y + step.X*sin + step.Y*cos, Theta: math.Remainder(p.Theta+step.Theta, 2*math.Pi)}
}

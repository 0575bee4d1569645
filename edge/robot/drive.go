package robot

import (
	"math"
	"time"
)

// Wheels is a pair of driven wheels, as the example of the standard moves a robot with them (GOSTAI-SUP-11).
type Wheels struct {
	Radius float64 // m
	Track  float64 // m, between the middles of the two wheels
}

// Go returns by how much each wheel turns, in radians, to drive x metres forward.
func (w Wheels) Go(x float64) (left, right float64) { return x / w.Radius, x / w.Radius }

// Turn returns by how much each wheel turns, in radians, for Mobile's turn(x): right for a positive x (GOSTAI-IF-15.2). The example of the
// standard is right only if its wheelDistance means half the track.
func (w Wheels) Turn(x float64) (left, right float64) {
	v := x * w.Track / 2 / w.Radius
	return v, -v
}

// YawOfTurn returns the change of heading, counter-clockwise, that Mobile's turn(x) asks for.
func YawOfTurn(x float64) float64 { return -x }

// Adaptive is the trajectory modifier adaptive:T of the standard's example: a value reaches its target in about T, and a target that moves
// makes a new plan from where the value is (GOSTAI-SUP-11). The zero value takes 1 s.
type Adaptive struct {
	Within time.Duration // T; 0: 1 s

	target float64
	left   time.Duration
	going  bool
}

// Step returns where the value should be dt after it was at now.
func (a *Adaptive) Step(now, target float64, dt time.Duration) float64 {
	if !a.going || target != a.target {
		a.going, a.target, a.left = true, target, a.Within
		if a.left <= 0 {
			a.left = time.Second
		}
	}
	if dt >= a.left || math.Abs(target-now) == 0 {
		a.left = 0
		return target
	}
	next := now + (target-now)*dt.Seconds()/a.left.Seconds()
	a.left -= dt
	return next
}

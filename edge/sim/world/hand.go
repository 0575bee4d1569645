package world

import (
	"fmt"
	"math"
	"time"
)

// Own defaults of a hand and of a fall.
const (
	liftTime   = 0.5  // s from the floor into the hand
	liftHeight = 0.2  // m
	tipTime    = 0.4  // s for a quarter turn
	impactTime = 0.02 // s
	impactG    = 8
)

// hand is what moves the robot other than its treads.
type hand struct {
	since       float64 // s, of a lift or a fall
	drop        float64 // m, of the fall
	impact      float64 // s that are left of it
	pitch, roll float64 // where it turns to
	rate        float64 // rad/s
	lying       Posture // how it will lie when it has fallen
}

// PickUp takes the robot off the floor, or from where it lies; in the hand it turns upright. A robot that falls cannot be caught.
func (w *World) PickUp() error {
	if w.posture == Falling {
		return fmt.Errorf("world: the robot is falling, want it at rest")
	}
	if w.posture != InHand {
		w.posture, w.below = InHand, false
		w.feel.height = 0
		w.hand = hand{rate: math.Pi / 2 / tipTime}
	}
	return nil
}

// PutDown sets the robot on its treads at p, from a hand or anywhere. Where there is no floor it falls.
func (w *World) PutDown(p Pose) error {
	if w.posture == Falling {
		return fmt.Errorf("world: the robot is falling, want it at rest")
	}
	var c checker
	if c.pose("the place to put the robot down", p); c.err != nil {
		return c.err
	}
	if !w.free(p) {
		return fmt.Errorf("world: something is at %v, want room for the robot", p)
	}
	w.pose, w.posture, w.below = Pose{p[0], p[1], wrap(p[2])}, OnTreads, false
	w.hand = hand{rate: math.Pi / 2 / tipTime}
	w.feel.down()
	w.lookDown()
	return nil
}

// Tip turns the robot over where it is, onto a side, its back or its face; a robot in a hand is laid down.
func (w *World) Tip(to Posture) error {
	pitch, roll, ok := lying(to)
	if !ok {
		return fmt.Errorf("world: tip it to %.40q, want a side, its back or its face", string(to))
	}
	if w.posture == Falling {
		return fmt.Errorf("world: the robot is falling, want it at rest")
	}
	if w.posture == InHand && !w.free(w.pose) {
		return fmt.Errorf("world: something is at %v, want room for the robot", w.pose)
	}
	if w.posture == InHand && w.Cliff(w.pose.place()) {
		return fmt.Errorf("world: no floor is at %v, want one to lay the robot on", w.pose)
	}
	w.posture = to
	w.feel.height = 0
	w.hand = hand{rate: math.Pi / 2 / tipTime, pitch: pitch, roll: roll}
	return nil
}

// PutOnCharger stands the robot in the charger.
func (w *World) PutOnCharger() error { return w.putBefore(0) }

// TakeOffCharger stands it in front of the charger, its tail clear of the rails.
func (w *World) TakeOffCharger() error { return w.putBefore(railLength + 0.02) }

func (w *World) putBefore(from float64) error {
	if w.m.Charger == nil {
		return fmt.Errorf("world: there is no charger, want a map with one")
	}
	return w.PutDown(w.dock(from))
}

// lying is the attitude of a posture.
func lying(p Posture) (pitch, roll float64, ok bool) {
	switch p {
	case OnLeftSide:
		return 0, -math.Pi / 2, true
	case OnRightSide:
		return 0, math.Pi / 2, true
	case OnBack:
		return 0, math.Pi, true
	case OnFace:
		return math.Pi / 2, 0, true
	}
	return 0, 0, false
}

// lookDown lets a robot fall that has its middle over a cliff.
func (w *World) lookDown() {
	if i := w.over(w.pose.place()); i >= 0 {
		w.fall(or(w.m.Cliffs[i].Drop, dropHeight))
	}
}

// fall begins a fall of so many metres.
func (w *World) fall(drop float64) {
	ways := [...]Posture{OnLeftSide, OnRightSide, OnBack, OnFace}
	w.posture = Falling
	w.falls++
	w.hand = hand{drop: drop, lying: ways[w.rng.IntN(len(ways))]}
	w.hand.pitch, w.hand.roll, _ = lying(w.hand.lying)
	// It turns over while it falls, and lies as it turned.
	w.hand.rate = math.Pi / math.Sqrt(2*drop/Gravity)
}

// carry lets s seconds of hands and falls pass.
func (w *World) carry(s float64) {
	h := &w.hand
	h.since += s
	h.impact = max(0, h.impact-s)
	w.feel.rise = 0
	switch w.posture {
	case InHand:
		// From rest to rest, with the acceleration that belongs to it.
		if t := h.since / liftTime; t < 1 {
			t2, t3 := float64(t*t), float64(t*t*t)
			w.feel.height = float64(liftHeight * (float64(10*t3) - float64(15*t2*t2) + float64(6*t2*t3)))
			w.feel.rise = float64(liftHeight / (liftTime * liftTime) * (float64(60*t) - float64(180*t2) + float64(120*t3)))
		} else {
			w.feel.height = liftHeight
		}
	case Falling:
		w.feel.height = -float64(Gravity / 2 * float64(h.since*h.since))
		w.feel.rise = -Gravity
		if -w.feel.height >= h.drop {
			w.feel.height = -h.drop
			w.feel.rise = 0
			h.impact = impactTime
			w.posture, w.below = h.lying, true
		}
	}
	w.feel.turnTo(h.pitch, h.roll, float64(h.rate*s), s)
}

// FallTime is how long a fall of so many metres takes.
func FallTime(drop float64) time.Duration {
	return time.Duration(math.Sqrt(2*drop/Gravity) * float64(time.Second))
}

package plane

import (
	"fmt"
	"math"
	"time"
)

// Own defaults of a hand and of a fall.
const (
	liftTime   = 0.5  // s from the floor into the hand
	liftHeight = 0.2  // m; higher takes longer, with the same acceleration
	pushTime   = 0.5  // s
	shakeG     = 2    // peak
	shakeRate  = 5    // Hz
	tipTime    = 0.4  // s for a quarter turn
	impactTime = 0.02 // s
	impactG    = 8
)

// hand moves the robot by other means than its treads.
type hand struct {
	since       float64 // s, of a lift, a push or a fall
	height      float64 // m, of the lift
	drop        float64 // m, of the fall
	impact      float64 // s that are left of it
	pitch, roll float64 // where it turns to
	rate        float64 // rad/s
	lying       Posture // how it will lie when it has fallen
	turn        float64 // rad that a hand still turns it on its treads
	turning     float64 // rad/s
	push        Vec     // m, by which a hand pushes it on its treads
	shaking     float64 // s that a hand still shakes it
}

// PickUp takes the robot off the floor, or from where it lies; in the hand it turns upright. A robot that falls cannot be caught.
func (w *World) PickUp() error { return w.lift(liftHeight) }

func (w *World) lift(height float64) error {
	if w.posture == Falling {
		return fmt.Errorf("world: the robot is falling, want it at rest")
	}
	if w.posture != InHand {
		w.posture, w.below = InHand, false
		w.feel.height = 0
		w.hand = hand{height: height, rate: math.Pi / 2 / tipTime}
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
	if !w.free(p) || !w.bears(p) {
		return fmt.Errorf("world: no room for the robot at %v", p)
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
		return fmt.Errorf("world: no room for the robot at %v", w.pose)
	}
	if w.posture == InHand && w.Cliff(w.pose.place()) {
		return fmt.Errorf("world: no floor at %v to lay the robot on", w.pose)
	}
	w.posture = to
	w.feel.height = 0
	w.hand = hand{rate: math.Pi / 2 / tipTime, pitch: pitch, roll: roll}
	return nil
}

// Turn is a hand that turns the robot on its treads, by so many radians within the time, in which they slide. What is in the way stops it. The
// robot has to stand on its treads.
func (w *World) Turn(angle float64, in time.Duration) error {
	var c checker
	c.number("the angle to turn the robot by", angle, -100, 100)
	c.number("the time to turn the robot in", in.Seconds(), 0.01, 1000)
	if c.err != nil {
		return c.err
	}
	if w.posture != OnTreads {
		return fmt.Errorf("world: the robot is %s, want it on its treads", w.posture)
	}
	w.hand.turn, w.hand.turning = angle, angle/in.Seconds()
	return nil
}

// slide turns a robot that a hand turns, for s seconds.
func (w *World) slide(s float64) {
	h := &w.hand
	if h.turn == 0 || w.below {
		return
	}
	most := float64(h.turning * s)
	if math.Abs(most) > math.Abs(h.turn) {
		most = h.turn
	}
	h.turn -= most
	n := math.Ceil(math.Abs(most) * max(w.robot.Nose, w.robot.Tail) / fineness)
	for range int(n) {
		if _, turned := w.creep(0, most/n); turned != most/n {
			h.turn = 0
			return
		}
	}
}

// shove moves a robot that a hand pushes, for s seconds. What is in the way ends the push.
func (w *World) shove(s float64) {
	h := &w.hand
	if h.push == (Vec{}) {
		return
	}
	was, _ := ease(h.since / pushTime)
	is, _ := ease((h.since + s) / pushTime)
	way := h.push.times(is - was)
	n := math.Ceil(way.norm() / fineness)
	for range int(n) {
		v := w.pose.place().plus(way.times(1 / n))
		if w.blocked = !w.enter(Pose{v[0], v[1], w.pose[2]}); w.blocked {
			break
		}
	}
	if w.blocked || is == 1 {
		h.push = Vec{}
	}
}

// ease goes from rest to rest while t goes from 0 to 1: it returns the share of the way and, in ways by the square of the time, the acceleration.
func ease(t float64) (share, bend float64) {
	if t >= 1 {
		return 1, 0
	}
	t2, t3 := float64(t*t), float64(t*t*t)
	return float64(10*t3) - float64(15*t2*t2) + float64(6*t2*t3), float64(60*t) - float64(180*t2) + float64(120*t3)
}

// PutOnCharger puts the robot into the charger.
func (w *World) PutOnCharger() error { return w.putBefore(0) }

// TakeOffCharger puts it in front of the charger, its tail clear of the rails.
func (w *World) TakeOffCharger() error { return w.putBefore(railLength + 0.02) }

func (w *World) putBefore(from float64) error {
	if w.m.Charger == nil {
		return fmt.Errorf("world: no charger, want a map with one")
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
		w.fall(w.m.Cliffs[i].Deep())
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
		t := math.Sqrt(h.height/liftHeight) * liftTime
		share, bend := ease(h.since / t)
		w.feel.height, w.feel.rise = float64(h.height*share), float64(h.height/float64(t*t)*bend)
		h.shaking = max(0, h.shaking-s)
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

package plane

import (
	"errors"
	"fmt"
	"math"

	"kennel/infra/api/poke"
)

// Verbs are what Poke does to any robot, beside poke.Cube. A simulator adds what the body itself feels.
var Verbs = []string{poke.Lift, poke.Put, poke.Push, poke.Turn, poke.Spin, poke.Shake}

// sides are the postures of the sides that a robot is laid on.
var sides = map[string]Posture{poke.Back: OnBack, poke.Left: OnLeftSide, poke.Right: OnRightSide, poke.Face: OnFace}

// Poke does to the robot what a person beside it would; p is complete. It returns an error if p is no verb of the world, or not possible now.
func (w *World) Poke(p poke.Poke) error {
	switch p.Verb {
	case poke.Lift:
		if w.posture == InHand {
			return errors.New("world: the robot is held in a hand, want it on the floor")
		}
		return w.lift(p.Args[poke.Height])
	case poke.Put:
		if w.below || w.Cliff(w.pose.place()) || !w.free(w.pose) {
			return w.PutDown(w.m.Start)
		}
		return w.PutDown(w.pose)
	case poke.Push:
		if w.posture != OnTreads {
			return fmt.Errorf("world: the robot is %s, want it on its treads", w.posture)
		}
		sin, cos := math.Sincos(w.pose[2] + p.Args[poke.Toward])
		w.hand.since, w.hand.push = 0, Vec{cos, sin}.times(p.Args[poke.By])
		return nil
	case poke.Turn:
		return w.Tip(sides[p.Side])
	case poke.Spin:
		return w.Turn(p.Args[poke.Angle], p.Seconds())
	case poke.Shake:
		if w.posture != InHand {
			return fmt.Errorf("world: the robot is %s, want it in a hand", w.posture)
		}
		w.hand.shaking = p.Args[poke.For]
		return nil
	case poke.Cube:
		return w.pokeCube(p)
	}
	return p.Refused()
}

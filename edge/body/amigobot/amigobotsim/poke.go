package amigobotsim

import (
	"slices"

	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
)

// Verbs returns the actions of a hand on the robot.
func (r *Robot) Verbs() []string {
	return slices.Concat([]string{poke.Press, poke.Hold, poke.Drain, poke.Dip, poke.Reset, poke.Tools}, plane.Verbs)
}

// Poke pokes the robot between two cycles, as a person beside it would; p is complete. It returns an error if that is not possible now.
// The buttons are pressed and released at once.
func (r *Robot) Poke(p poke.Poke) error {
	switch p.Verb {
	case poke.Press:
		r.SetBlack(true)
		r.SetBlack(false)
	case poke.Hold:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = r.now + p.Seconds()
	case poke.Drain:
		r.SetVolts(p.Args[poke.Volts])
	case poke.Dip:
		r.BrownOut()
	case poke.Reset:
		r.SetReset(true)
		r.SetReset(false)
	case poke.Tools: // AMIGO-UI-06
		r.SetBlack(true)
		r.SetReset(true)
		r.SetReset(false)
		r.SetBlack(false)
	default:
		return r.InWorld(func(w *plane.World) error { return w.Poke(p) })
	}
	return nil
}

package vectorsim

import (
	"errors"
	"slices"
	"time"

	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
)

// fingers are a person's fingers on the body. They let go after a time.
type fingers struct {
	back, button time.Duration // how long one still is there
}

func (f *fingers) step(dt time.Duration) {
	f.back, f.button = max(0, f.back-dt), max(0, f.button-dt)
}

// Verbs returns the actions of a hand on the body.
func (b *Board) Verbs() []string {
	verbs := []string{poke.Touch, poke.Press}
	if b.cfg.World != nil {
		verbs = slices.Concat(verbs, plane.Verbs)
	}
	if len(b.cubes) > 0 {
		verbs = append(verbs, poke.Cube)
	}
	return verbs
}

// Poke pokes the body between two periods, as a person beside it would; p is complete. It returns an error if that is not possible now.
func (b *Board) Poke(p poke.Poke) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case p.Verb == poke.Touch:
		b.world.fingers.back = p.Seconds()
	case p.Verb == poke.Press:
		b.world.fingers.button = p.Seconds()
	case b.world.ground == nil:
		return errors.New("vectorsim: the body has no world, want one to move it in")
	case p.Verb == poke.Cube && len(b.cubes) > 0 && (p.Side == poke.On || p.Side == poke.Off):
		b.cubes[0].Power(p.Side == poke.On)
	default:
		return b.world.ground.Poke(p)
	}
	return nil
}

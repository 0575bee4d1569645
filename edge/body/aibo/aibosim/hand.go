package aibosim

import (
	"fmt"
	"math"

	"kennel/edge/body/aibo/statics"
	"kennel/infra/api/poke"
)

// Verbs returns the actions of a hand on the body.
func (r *Robot) Verbs() []string { return []string{poke.Lift, poke.Put, poke.Turn} }

// Poke does p, which is complete, between two rows.
func (r *Robot) Poke(p poke.Poke) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch p.Verb {
	case poke.Lift:
		r.inHand = true
	case poke.Put:
		r.inHand, r.fell = false, false
		r.rest(statics.Upright)
	case poke.Turn:
		up, known := sides[p.Side]
		if !known {
			return fmt.Errorf("turn: no side %.20q", p.Side)
		}
		r.inHand = false
		r.rest(up)
	default:
		return fmt.Errorf("this body cannot be poked with %.20q", p.Verb)
	}
	return nil
}

// sides are the directions up in the frame of a body that lies on a side.
var sides = map[string]statics.Vec{poke.Back: {0, 0, -1}, poke.Left: {0, -1, 0}, poke.Right: {0, 1, 0}, poke.Face: {-1, 0, 0.01}}

// Hold holds a joint fast, or lets it go; an error for a joint that the body does not have.
func (r *Robot) Hold(native string, held bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.joints {
		if r.joints[i].native == native {
			r.joints[i].stuck = held
			return nil
		}
	}
	return fmt.Errorf("aibosim: joint: expected one of %v, found %.40q", r.cfg.Model, native)
}

// Charge puts the body on its charger, or takes it off.
func (r *Robot) Charge(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.OnCharger = on
}

// SetVolts leaves the battery at a voltage within its range.
func (r *Robot) SetVolts(v float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if math.IsNaN(v) {
		return
	}
	r.charge = min(max((v-EmptyVolts)/(FullVolts-EmptyVolts), 0), 1)
}

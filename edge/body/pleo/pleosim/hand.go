package pleosim

import (
	"errors"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/infra/api/poke"
)

// Verbs returns the actions of a hand on the body.
func (r *Robot) Verbs() []string {
	return []string{poke.Touch, poke.Pat, poke.Press, poke.Lift, poke.Put, poke.Turn, poke.Shake}
}

// pads are the sensors of the places that can be patted.
var pads = map[string]lifeos.Sensor{poke.Head: lifeos.SensorHead, poke.Chin: lifeos.SensorChin, poke.Neck: lifeos.SensorBack, poke.Rump: lifeos.SensorTail,
	poke.ForeLeft: 11, poke.ForeRight: 12, poke.HindLeft: 9, poke.HindRight: 10}

// The readings of the tilt sensor (PLEO-SEN-29).
const onFeet = 1

var tilts = map[string]int32{poke.Left: 2, poke.Right: 3, poke.Face: 4, poke.Back: 6}

// shaken is the reading of a Pleo that is shaken.
const shaken = 200

// Poke does p, which is complete.
func (r *Robot) Poke(p poke.Poke) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch p.Verb {
	case poke.Touch:
		r.hold(lifeos.SensorHead, 1, p.Seconds())
	case poke.Pat:
		r.hold(pads[p.Side], 1, p.Seconds())
	case poke.Press:
		if r.os.Power() != lifeos.On {
			if r.charge < wakes {
				return errors.New("the battery is empty; put it on its charger")
			}
			r.power()
			return nil
		}
		r.hold(lifeos.SensorWakeup, 1, p.Seconds())
	case poke.Shake:
		if r.os.Power() != lifeos.On && r.charge >= wakes { // PLEO-ARC-09
			r.power()
		}
		r.hold(lifeos.SensorShake, shaken, p.Seconds())
	case poke.Lift:
		r.feet(0)
		r.inHand = true
	case poke.Put:
		r.feet(1)
		r.inHand = false
		r.body.Set(sensorTilt, onFeet)
	case poke.Turn:
		r.feet(0)
		r.body.Set(sensorTilt, tilts[p.Side])
	default:
		return p.Refused()
	}
	return nil
}

// hold gives a sensor a reading for a time, and then 0.
func (r *Robot) hold(id lifeos.Sensor, v int32, lasts time.Duration) {
	r.body.Set(id, v)
	r.plans = append(r.plans, plan{r.now + lasts, func() { r.body.Set(id, 0) }})
}

func (r *Robot) feet(v int32) {
	for id := lifeos.SensorFrontLeft; id <= lifeos.SensorBackRight; id++ {
		r.body.Set(id, v)
	}
}

// ErrSlot says that a card cannot be inserted where one is, or removed where none is.
var ErrSlot = errors.New("pleosim: card slot")

// Insert puts a card into the slot; ErrSlot if there is one.
func (r *Robot) Insert(card lifeos.Storage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cfg.Card != nil {
		return ErrSlot
	}
	r.cfg.Card = card
	r.body.Set(lifeos.SensorCardDetect, 1)
	r.os.Insert(card)
	return nil
}

// Eject takes the card out and returns it; ErrSlot if there is none.
func (r *Robot) Eject() (lifeos.Storage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	card := r.cfg.Card
	if card == nil {
		return nil, ErrSlot
	}
	r.cfg.Card = nil
	r.body.Set(lifeos.SensorCardDetect, 0)
	r.os.Eject()
	return card, nil
}

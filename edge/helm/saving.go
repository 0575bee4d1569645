package helm

import (
	"time"

	"kennel/edge/body"
	"kennel/edge/power"
	"kennel/edge/rt"
	"kennel/edge/sense"
)

// partsTake is how long it takes at most until a body's parts have the power that they are told to have, and say so: the frame on its way, the
// body's period and the answer, several times over; own default.
const partsTake = 50 * time.Millisecond

// allowance is what the robot's parts may use now, and whether that is less than all.
func (h *Helm) allowance() (a power.Allowance, saving bool) {
	calm, asleep, heat, shed := h.saver.Calm(), h.sleep.State.Asleep(), h.power.Hottest(), h.power.Shedding.Now
	return power.Allow(calm, asleep, heat, shed), calm || asleep || heat > power.Cool || shed > power.ShedNothing
}

// thin leaves out the distances that come more often than is allowed, for all who look at the measurement (VEC-PWR-20). A sensor has a rhythm of
// its own: one that comes a tenth of the interval too early counts.
func (h *Helm) thin() {
	s := &h.sense
	a, saving := h.allowance()
	since := s.ProxAt - h.prox.At
	if !saving || since < 0 || a.ProxEvery > 0 && since >= a.ProxEvery-a.ProxEvery/10 {
		h.prox = sense.ProxInput{Metres: s.ProxMetres, At: s.ProxAt, Signal: s.ProxSignal, Ambient: s.ProxAmbient, Rates: s.ProxSignal > 0 || s.ProxAmbient > 0}
	}
	s.ProxMetres, s.ProxAt = h.prox.Metres, h.prox.At
}

// save takes the power from what may have none. Lights are dark while the robot sleeps and while it sheds display and camera; what programs wish
// for comes back when it may (VEC-PWR-07, VEC-PWR-20). The range finder shares its power with the cliff sensors (VEC-HW-07, VEC-BODY-32):
// they lose it where no distance is allowed and nobody has the treads. Who takes these waits until the sensors see: until then each of them
// sees a cliff, and nothing rolls (VEC-PWR-22).
func (h *Helm) save(f *rt.Frame) {
	act := f.Act
	a, _ := h.allowance()
	act.Lights = h.act.Lights
	if h.sleep.State.Asleep() || !a.Display {
		act.Lights = [body.MaxLights]body.Light{}
	} else {
		h.indicate(&act.Lights)
	}
	act.Off = 0
	if !h.power.MayCharge() { // VEC-PWR-53
		act.Off |= body.ChargerPart
	}
	if a.ProxEvery == 0 && !h.now.Moving && h.nobodys() {
		act.Off |= body.SensorsPart
		h.blind, h.blindAt = true, f.Now
	} else if h.blind && f.Now-h.blindAt > partsTake && !h.sense.Power.Has(body.SensorsOff) && h.known.CliffsKnown {
		h.blind = false
	}
}

// nobodys reports whether nobody owns the treads.
func (h *Helm) nobodys() bool {
	for a := range h.actuators {
		if owner, _ := h.claims.OwnerOf(a); owner != 0 && h.parts.wheels.Has(a) {
			return false
		}
	}
	return true
}

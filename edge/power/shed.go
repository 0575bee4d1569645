package power

import (
	"fmt"
	"time"
)

// Shed is how much load a robot gives up when its battery runs down and it could not dock (VEC-PWR-07). Each step keeps what the ones before
// it gave up. The zero value sheds nothing.
type Shed uint8

// The steps in their order.
const (
	ShedNothing Shed = iota
	ShedTalk         // no wake word, no cloud
	ShedSight        // no camera, display and range finder
	ShedWork         // less work for the processor
	ShedAll          // power off
)

// ShedVolts are the filtered voltages at and below which a step is taken, by Shed; own defaults (VEC-PWR-07).
var ShedVolts = [...]float64{ShedTalk: 3.5, ShedSight: 3.45, ShedWork: 3.4, ShedAll: 3.35}

// A step is taken back when the voltage is above its limit by ShedHysteresisVolts and at least ShedHold after the newest step: a battery
// that is relieved recovers by itself (own defaults).
const (
	ShedHysteresisVolts = 0.05
	ShedHold            = 30 * time.Second
)

var shedNames = [...]string{"nothing", "talk", "sight", "work", "all"}

func (s Shed) String() string {
	if int(s) < len(shedNames) {
		return shedNames[s]
	}
	return fmt.Sprintf("shed(%d)", uint8(s))
}

// Shedding is the step of the moment. The zero value sheds nothing.
type Shedding struct {
	Now  Shed
	Held time.Duration // since Now changed, at most ShedHold
}

// Step takes in the battery, dt after the step before. On the charger nothing more is shed, and what was is taken back as the voltage
// rises. An unknown battery changes nothing. One call moves by one step down or up, so that an observer sees each of them, in order;
// ShedAll is final.
func (s Shedding) Step(b Battery, onCharger bool, dt time.Duration) Shedding {
	s.Held = min(s.Held+max(dt, 0), ShedHold)
	switch {
	case s.Now == ShedAll || b.Level == Unknown:
	case !onCharger && b.Volts <= ShedVolts[s.Now+1]:
		s = Shedding{Now: s.Now + 1}
	case s.Now != ShedNothing && s.Held >= ShedHold && b.Volts > ShedVolts[s.Now]+ShedHysteresisVolts:
		s = Shedding{Now: s.Now - 1}
	}
	return s
}

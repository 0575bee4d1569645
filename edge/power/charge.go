package power

import (
	"fmt"
	"time"
)

// Charging is the state of charging. The zero value is away from the charger.
type Charging uint8

// The states. Being on the charger and charging are two facts (VEC-PWR-51): Resting is on it without.
const (
	Away     Charging = iota
	Resting           // on the charger; it does not charge
	Active            // charging
	Cooldown          // on the charger, paused because the battery is hot (VEC-PWR-53)
	Charged           // on the charger, full
)

// ChargeSettle is how long the flags must agree before the state follows: contacts bounce while a robot drives on the pads (own default).
const ChargeSettle = 200 * time.Millisecond

var chargingNames = [...]string{"away", "resting", "charging", "cooldown", "charged"}

func (c Charging) String() string {
	if int(c) < len(chargingNames) {
		return chargingNames[c]
	}
	return fmt.Sprintf("charging(%d)", uint8(c))
}

// OnCharger reports whether the pads have power, which is all that connected means (VEC-PWR-52): status bit 0x1000.
func (c Charging) OnCharger() bool { return c != Away }

// ChargeInput holds the measurements of one step.
type ChargeInput struct {
	OnCharger bool
	Charging  bool // without OnCharger it means nothing
	Level     Level
	Body      Heat
}

// Charge is the charger's story. The zero value is away.
type Charge struct {
	State   Charging
	For     time.Duration // in this state
	Charged time.Duration // charging since it came on the charger (VEC-PWR-51)

	next  Charging
	agree time.Duration
}

// Step takes in what is measured, dt after the step before.
func (c Charge) Step(in ChargeInput, dt time.Duration) Charge {
	dt = max(dt, 0)
	c.For += dt
	if c.State == Active {
		c.Charged += dt
	}
	says := Away
	switch {
	case !in.OnCharger:
	case in.Charging:
		says = Active
	case in.Body >= Hot:
		says = Cooldown
	case in.Level == Full:
		says = Charged
	default:
		says = Resting
	}
	switch {
	case says == c.State:
		c.next, c.agree = says, 0
	case says != c.next:
		c.next, c.agree = says, 0
	default:
		if c.agree += dt; c.agree >= ChargeSettle {
			c.For, c.agree = 0, 0
			if c.State == Away {
				c.Charged = 0
			}
			c.State = says
		}
	}
	return c
}

// MayCharge reports whether charging is allowed: not while the battery is hot (VEC-PWR-10, VEC-PWR-53). Its rate cannot be set over the link.
func MayCharge(body Heat) bool { return body < Hot }

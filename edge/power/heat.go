package power

import (
	"fmt"
	"math"
	"time"
)

// Heat is a step of a temperature ladder (VEC-PWR-10). The zero value is cool.
type Heat uint8

// The steps. What each asks for includes what the ones before it do.
const (
	Cool    Heat = iota
	Warm         // slow down
	Hot          // stop activity; body: pause charging, status bit 0x40000 (part of VEC-PWR-11, VEC-PWR-53); CPU: overheating icon
	TooHot       // clean shutdown with peripherals off
	Burning      // cut the power at once
)

var heatNames = [...]string{"cool", "warm", "hot", "too hot", "burning"}

func (h Heat) String() string {
	if int(h) < len(heatNames) {
		return heatNames[h]
	}
	return fmt.Sprintf("heat(%d)", uint8(h))
}

// Ladder is the temperatures in degrees Celsius at and above which Warm, Hot, TooHot and Burning begin.
type Ladder [4]float64

// The ladders are apart: battery and processor bear different heat (VEC-PWR-10; own defaults but for the processor's 90).
var (
	BodyLadder = Ladder{45, 50, 55, 60}
	CPULadder  = Ladder{80, 90, 95, 100}
)

// A step is left HeatHysteresis degrees below its limit. A temperature must say the same for HeatConfirm before it counts, and outside the
// two limits it is a broken sensor's and does not (own defaults).
const (
	HeatHysteresis = 2.0
	HeatConfirm    = time.Second
	HeatLeast      = -40.0
	HeatMost       = 150.0
)

// Guard follows one temperature. The zero value is cool.
type Guard struct {
	Heat  Heat
	next  Heat
	agree time.Duration // for how long the temperature has said next
}

// Step takes in a temperature, dt after the one before.
func (g Guard) Step(l *Ladder, celsius float64, dt time.Duration) Guard {
	if math.IsNaN(celsius) || celsius < HeatLeast || celsius > HeatMost {
		g.next, g.agree = g.Heat, 0 // it proves nothing, in neither direction
		return g
	}
	says := Cool
	for i, limit := range l {
		if at := Heat(i + 1); celsius >= limit || at <= g.Heat && celsius > limit-HeatHysteresis {
			says = at
		}
	}
	switch {
	case says == g.Heat:
		g.next, g.agree = says, 0
	case g.next == g.Heat || (says > g.Heat) != (g.next > g.Heat):
		g.next, g.agree = says, 0
	default:
		// A value that climbs on while it is being confirmed is confirmed as the lowest it was.
		if says > g.Heat {
			g.next = min(g.next, says)
		} else {
			g.next = max(g.next, says)
		}
		if g.agree += max(dt, 0); g.agree >= HeatConfirm {
			g.Heat, g.agree = g.next, 0
		}
	}
	return g
}

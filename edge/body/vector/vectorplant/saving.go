package vectorplant

import (
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
	"kennel/edge/power"
	"kennel/edge/sense"
)

// partsTake is how long it takes at most until a body's parts have the power that they are told to have, and say so: the frame on its way, the
// body's period and the answer, several times over; own default.
const partsTake = 50 * time.Millisecond

// allowance returns the parts that may have power now, and whether that is less than all.
func (p *Plant) allowance() (a power.Allowance, saving bool) {
	asleep, heat, shed := p.sleep.Asleep(), p.power.Hottest(), p.power.Shedding.Now
	return power.Allow(p.calm, asleep, heat, shed), p.calm || asleep || heat > power.Cool || shed > power.ShedNothing
}

// thin drops distances that come more often than permitted (VEC-PWR-20). A sensor has a rhythm of its own: a distance up to a tenth of the
// interval too early is kept.
func (p *Plant) thin() {
	s := &p.sense
	a, saving := p.allowance()
	since := s.ProxAt - p.prox.At
	if !saving || since < 0 || a.ProxEvery > 0 && since >= a.ProxEvery-a.ProxEvery/10 {
		p.prox = sense.ProxInput{Metres: s.ProxMetres, At: s.ProxAt, Signal: s.ProxSignal, Ambient: s.ProxAmbient,
			Rates: s.ProxSignal > 0 || s.ProxAmbient > 0}
	}
	s.ProxMetres, s.ProxAt = p.prox.Metres, p.prox.At
}

// save switches off the parts that may have no power. Lights are dark while the robot sleeps and while it sheds display and camera; the
// programs' colours come back afterwards (VEC-PWR-07, VEC-PWR-20). The range finder shares its power with the cliff sensors (VEC-HW-07,
// VEC-BODY-32): they lose it where no distance is allowed and no program has the treads. A program that takes these waits until the sensors
// see: until then each of them sees a cliff, and nothing rolls (VEC-PWR-22).
func (p *Plant) save(m *control.Moment, act *vectordriver.Act) {
	a, _ := p.allowance()
	if p.sleep.Asleep() || !a.Display {
		act.Lights = [4]vectordriver.Light{}
	} else {
		p.indicate(&act.Lights)
	}
	act.Off = 0
	if !p.power.MayCharge() { // VEC-PWR-53
		act.Off |= vectordriver.ChargerPart
	}
	if a.ProxEvery == 0 && !p.now.Moving && !p.owned() {
		act.Off |= vectordriver.SensorsPart
		p.blind, p.blindAt = true, m.Now
	} else if p.blind && m.Now-p.blindAt > partsTake && !p.sense.Power.Has(body.SensorsOff) && p.known.CliffsKnown {
		p.blind = false
	}
}

// owned reports whether an owner holds a tread.
func (p *Plant) owned() bool {
	for _, a := range p.wheels {
		if p.held(a) {
			return true
		}
	}
	return false
}

// indicator pairs a state of the robot with the lights that show it: while no program uses them (part of VEC-IO-30), or before every program (part of VEC-LGT-06).
type indicator struct {
	when   func(*power.Keeper) bool
	first  bool
	lights [4]vectordriver.Light
}

// chargeStarts is how long a charger may take to begin, and to pause between two tries, before that it does not charge is a problem; own default.
const chargeStarts = 10 * time.Second

// indicators: the first one that applies is shown. The source has colours for a robot that cannot charge (teal), and for the state of other
// programs: blue while the microphone listens, all orange without Wi-Fi. The rest are own defaults; the lower lights are those that
// programs use.
var indicators = func() []indicator {
	red, green, teal := vectordriver.Light{R: 255}, vectordriver.Light{G: 96}, vectordriver.Light{G: 128, B: 128}
	status := func(l vectordriver.Light) [4]vectordriver.Light { return [4]vectordriver.Light{3: l} }
	return []indicator{
		{func(k *power.Keeper) bool { return k.Shutdown.Off != power.StayOn }, true, [4]vectordriver.Light{red, red, red, red}},
		{func(k *power.Keeper) bool { return k.Hottest() >= power.Hot }, false, status(red)},
		{func(k *power.Keeper) bool {
			return k.Charge.State == power.Resting && k.Battery.Level == power.Low && k.Charge.For >= chargeStarts
		}, true, [4]vectordriver.Light{teal, teal, teal, teal}},
		{(*power.Keeper).SeekCharger, true, status(red)},
		{func(k *power.Keeper) bool { return k.Charge.State == power.Active }, false, status(green)},
	}
}()

// indicate shows the robot's state: on lights that no program has lit or claimed, and a low battery's on all of its own.
func (p *Plant) indicate(lights *[4]vectordriver.Light) {
	for i := range indicators {
		if !indicators[i].when(&p.power) {
			continue
		}
		for l, a := range p.leds {
			own, dark := indicators[i].lights[l], vectordriver.Light{}
			if indicators[i].first && own != dark || !p.held(a) && lights[l] == dark {
				lights[l] = own
			}
		}
		return
	}
}

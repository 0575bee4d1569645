package amigobotsim

import "time"

// The battery (AMIGO-SAFE-05 to 07, AMIGO-OPEN-07, AMIGO-OPEN-17).
const (
	capacity   = 2.2 // Ah
	busyAmps   = 0.7
	fullVolts  = 13.8
	lowVolts   = 11.0 // at lowShare of its charge
	lowShare   = 0.15
	emptyVolts = 10.0 // AmigOS shuts down below it
	flatShare  = -0.1 // the charge does not fall below it; own default
	alarmEvery = 30 * time.Second
)

// Charger is the kind of charger in the robot's charging socket.
type Charger uint8

// The chargers fill an empty battery in 8 and in 3 hours, or in twice that time while the robot is on.
const (
	NoCharger Charger = iota
	StandardCharger
	FastCharger
)

var chargeHours = [...]float64{StandardCharger: 8, FastCharger: 3}

type battery struct {
	charge  float64 // share of the capacity; below 0 it is empty
	charger Charger
	alarm   time.Duration // when the next one is due
}

func batteryAt(volts float64) battery {
	if volts >= lowVolts {
		return battery{charge: min(lowShare+float64((volts-lowVolts)/(fullVolts-lowVolts)*(1-lowShare)), 1)}
	}
	return battery{charge: max((volts-emptyVolts)/(lowVolts-emptyVolts)*lowShare, flatShare)}
}

func (b *battery) volts() float64 {
	if b.charge >= lowShare {
		return lowVolts + float64((b.charge-lowShare)/(1-lowShare)*(fullVolts-lowVolts))
	}
	return emptyVolts + float64(b.charge/lowShare*(lowVolts-emptyVolts))
}

// pass lets a cycle pass in which the robot takes so many amperes.
func (b *battery) pass(amps float64) {
	hours := cycle.Hours()
	switch {
	case b.charger == NoCharger:
		b.charge -= float64(amps / capacity * hours)
	case amps > 0:
		b.charge += hours / chargeHours[b.charger] / 2
	default:
		b.charge += hours / chargeHours[b.charger]
	}
	b.charge = min(max(b.charge, flatShare), 1)
}

// SetVolts charges the battery to a voltage, 9.4 to 13.8 V.
func (r *Robot) SetVolts(volts float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.power.charge = batteryAt(volts).charge
}

// SetCharger connects the charging socket.
func (r *Robot) SetCharger(c Charger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.power.charger = c
}

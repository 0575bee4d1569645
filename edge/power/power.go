// Package power reads a battery: it smooths its voltage and names its level (VEC-PWR-01 to 03). It also says what to shed, what heat asks for,
// what the charger does, how much sleep is owed and why a robot goes off (VEC-PWR-07, 10, 12 to 44, 51 to 53, part of VEC-PWR-11). Pure functions on values; the
// real-time core calls Step once per measurement; a reporter of a battery keeps Stats.
package power

import (
	"fmt"
	"math"
	"time"
)

// Levels and limits in volts: published for the original battery. The filter and the hysteresis are our own defaults: the source gives
// no number.
const (
	FullVolts         = 4.1             // VEC-PWR-02
	LowVolts          = 3.6             // VEC-PWR-02
	LowOnChargerVolts = 4.0             // VEC-PWR-02
	HysteresisVolts   = 0.02            // VEC-PWR-03
	TimeConstant      = 5 * time.Second // VEC-PWR-01
)

// Level is a battery level with its published value. The zero value is Unknown: the battery is not connected or not measured yet.
type Level uint8

// The levels (VEC-PWR-02).
const (
	Unknown Level = iota
	Low
	Nominal
	Full
)

var levelNames = [...]string{"unknown", "low", "nominal", "full"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// Input is one measurement.
type Input struct {
	Volts        float64
	OnCharger    bool // the pads are powered; it moves the limit of Low
	Disconnected bool // the battery is off: its voltage means nothing
}

// Battery is the state of a battery after some measurements. The zero value was never measured.
type Battery struct {
	Volts float64 // filtered; meaningless while Level is Unknown
	Level Level
}

// Step takes in one measurement, dt after the one before. The first measurement, and the first after the battery was disconnected,
// is taken as it is. A value that is no number is ignored.
func (b Battery) Step(in Input, dt time.Duration) Battery {
	switch {
	case in.Disconnected:
		return Battery{}
	case math.IsNaN(in.Volts) || math.IsInf(in.Volts, 0):
		return b
	case b.Level == Unknown:
		b.Volts = in.Volts
	default:
		b.Volts = Filter(b.Volts, in.Volts, dt, TimeConstant)
	}
	b.Level = Next(b.Level, b.Volts, in.OnCharger)
	return b
}

// Filter is a first-order low pass: it moves prev towards sample by the share of the step that dt is worth at time constant tau.
// A dt of 0 or less changes nothing.
func Filter(prev, sample float64, dt, tau time.Duration) float64 {
	if dt <= 0 {
		return prev
	}
	return prev + float64((sample-prev)*-math.Expm1(-float64(dt)/float64(tau))) // rounded: the same on every processor
}

// Classify names the level of a connected battery. The figure with the order of tests is lost; ours is Full, then Low with the limit
// that the charger decides, then Nominal (VEC-PWR-02).
func Classify(volts float64, onCharger bool) Level {
	switch {
	case volts >= FullVolts:
		return Full
	case volts <= lowLimit(onCharger):
		return Low
	}
	return Nominal
}

// Next is Classify with a memory: a level is left only when the voltage is beyond its limit by HysteresisVolts (VEC-PWR-03).
func Next(prev Level, volts float64, onCharger bool) Level {
	switch {
	case prev == Full && volts > FullVolts-HysteresisVolts:
		return Full
	case prev == Low && volts < lowLimit(onCharger)+HysteresisVolts:
		return Low
	}
	return Classify(volts, onCharger)
}

func lowLimit(onCharger bool) float64 {
	if onCharger {
		return LowOnChargerVolts
	}
	return LowVolts
}

// Stats sums voltages up for the periodic report (VEC-PWR-03). The zero value is empty.
type Stats struct {
	N             int
	Min, Max, Sum float64
}

// Add takes in one voltage.
func (s *Stats) Add(volts float64) {
	if s.N == 0 {
		s.Min, s.Max = volts, volts
	}
	s.N++
	s.Sum += volts
	s.Min, s.Max = min(s.Min, volts), max(s.Max, volts)
}

// Mean returns the average, 0 of nothing.
func (s Stats) Mean() float64 {
	if s.N == 0 {
		return 0
	}
	return s.Sum / float64(s.N)
}

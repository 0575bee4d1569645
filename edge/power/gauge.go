package power

import (
	"time"
)

// There is no fuel gauge in the robot (VEC-HW-02): what is left is read off the voltage, and how long to charge off how fast it rose
// (VEC-PWR-04). The source keeps its model to itself; the table and the rates are own defaults.

// GaugePoint says that at this filtered voltage, away from the charger, this much time to play is left.
type GaugePoint struct {
	Volts float64
	Left  time.Duration
}

// DefaultGauge is for a battery that lasts about 40 minutes, down to where all load is shed.
var DefaultGauge = []GaugePoint{
	{3.35, 0}, {3.45, 3 * time.Minute}, {3.6, 10 * time.Minute}, {3.7, 17 * time.Minute}, {3.8, 24 * time.Minute}, {3.9, 29 * time.Minute},
	{4.0, 34 * time.Minute}, {4.1, 39 * time.Minute}, {4.2, 42 * time.Minute},
}

// Rates of charging until one is measured, and what is believed of a measurement.
const (
	chargeRate      = 0.02 / 60 // V/s, own default
	chargeRateLeast = 0.001 / 60
	chargeRateMost  = 0.5 / 60
	chargeMeasure   = 30 * time.Second // of charging without a break are one measurement
	chargeSettle    = 3 * TimeConstant // before the first
	chargeBelieve   = 0.5              // share of a new measurement
)

// PlayLeft reads the table: how long the robot can play at this voltage.
func PlayLeft(table []GaugePoint, volts float64) time.Duration {
	last := len(table) - 1
	switch {
	case !(volts > table[0].Volts): // also what is no number
		return table[0].Left
	case volts >= table[last].Volts:
		return table[last].Left
	}
	i := 1
	for volts > table[i].Volts {
		i++
	}
	a, b := table[i-1], table[i]
	return a.Left + time.Duration(float64((volts-a.Volts)/(b.Volts-a.Volts))*float64(b.Left-a.Left))
}

// Gauge learns how fast a battery charges. The zero value knows nothing yet.
type Gauge struct {
	Rate float64 // V/s while charging, as learnt; 0: not yet

	runs  bool          // a measurement is under way
	from  float64       // where it began
	lasts time.Duration // since then
}

// Step takes in the battery, dt after the step before.
func (g Gauge) Step(b Battery, charging bool, dt time.Duration) Gauge {
	if !charging || b.Level == Unknown {
		g.runs = false
		return g
	}
	if !g.runs { // what the filter still makes up for says nothing
		g.runs, g.from, g.lasts = true, b.Volts, -chargeSettle
		return g
	}
	if g.lasts < 0 {
		if g.lasts += max(dt, 0); g.lasts >= 0 {
			g.from, g.lasts = b.Volts, 0
		}
		return g
	}
	if g.lasts += max(dt, 0); g.lasts < chargeMeasure {
		return g
	}
	rate := (b.Volts - g.from) / g.lasts.Seconds()
	g.from, g.lasts = b.Volts, 0
	if !(rate >= chargeRateLeast && rate <= chargeRateMost) {
		return g // the end of charging, or the voltage's jump when it begins
	}
	if g.Rate == 0 {
		g.Rate = rate
	} else {
		g.Rate += float64(chargeBelieve * (rate - g.Rate))
	}
	return g
}

// Suggested is how long to charge until the battery is full: suggested_charger_sec. 0: it is full, or unknown.
func (g Gauge) Suggested(b Battery) time.Duration {
	if b.Level == Unknown || b.Volts >= FullVolts {
		return 0
	}
	rate := g.Rate
	if rate == 0 {
		rate = chargeRate
	}
	return time.Duration(float64((FullVolts - b.Volts) / rate * float64(time.Second))).Round(time.Second)
}

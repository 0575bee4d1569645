package sip

import (
	"math"
	"testing"
)

// TestUnits: what raw numbers are in SI units, by the manual's numbers.
func TestUnits(t *testing.T) {
	for name, tc := range map[string]struct{ got, want float64 }{
		"1000 of X, in m (AMIGO-SIP-03)":                   {1000 * DistanceUnit, 0.5083},
		"a quarter turn of Th, in rad (AMIGO-SIP-05)":      {1024 * AngleUnit, math.Pi / 2},
		"100 of Left, in m/s (AMIGO-SIP-06)":               {100 * SpeedUnit, 0.06154},
		"124 of Battery, in V (AMIGO-SIP-08)":              {124 * VoltageUnit, 12.4},
		"1500 of a range, in m (AMIGO-SIP-15)":             {1500 * RangeUnit, 1.5},
		"10 of Vel2, in m/s (AMIGO-CMD-32)":                {10 * Vel2Unit, 0.2},
		"255 of Analog, in V (AMIGO-SIP-17)":               {255 * AnalogByteUnit, 5},
		"2047 of an analogue input, in V (AMIGO-XP-09)":    {2047 * AnalogUnit, 5},
		"ticks of 1 m, of a wheel of 10 cm (AMIGO-POS-03)": {TicksPerMetre, 30398.6},
	} {
		if math.Abs(tc.got-tc.want) > 1e-5*tc.want {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}

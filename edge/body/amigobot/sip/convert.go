package sip

import "math"

// Device units in SI units (AMIGO-POS-03, AMIGO-POS-08 and the rows named).
const (
	DistanceUnit   = 0.5083e-3          // m: X and Y (AMIGO-SIP-03)
	AngleUnit      = 2 * math.Pi / 4096 // rad: Th and Control, 0.001534 in the manual (AMIGO-SIP-05)
	SpeedUnit      = 0.6154e-3          // m/s: Left and Right (AMIGO-SIP-06)
	VoltageUnit    = 0.1                // V: Battery and Config.LowBattery (AMIGO-SIP-08)
	RangeUnit      = 1e-3               // m: Reading.Range, Config and commands (AMIGO-SIP-15)
	Vel2Unit       = 0.020              // m/s: Vel2 (AMIGO-CMD-32)
	AnalogByteUnit = 5.0 / 255          // V: Standard.Analog (AMIGO-SIP-17)
	AnalogUnit     = 5.0 / 2047         // V: IO.Analog (AMIGO-XP-09)

	TicksPerMetre = 9550 / (math.Pi * 0.100) // of an encoder, with a wheel of 10 cm (AMIGO-POS-03)
)

// X and Y have 15 bits (AMIGO-SIP-03).
const distanceMask = 0x7FFF

// Unwrap returns by how many distance units a coordinate grew between two packets, given that it is less than half of its range
// (AMIGO-SIP-03).
func Unwrap(last, now uint16) int {
	return int(int16((now-last)<<1)) / 2
}

package vectordriver

import (
	"errors"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/faultcode"
)

// cliffFaults is in the order of the wire's cliff indices, which is not the order of the codes (part of VEC-BODY-18).
var cliffFaults = [4]faultcode.Code{
	spine.FrontLeft:  faultcode.CliffFrontLeft,
	spine.FrontRight: faultcode.CliffFrontRight,
	spine.BackLeft:   faultcode.CliffBackLeft,
	spine.BackRight:  faultcode.CliffBackRight,
}

// selfTestFault maps the result of the body's self tests (part of VEC-BODY-18, VEC-BOOT-05). A failed device that the source does not name
// maps to 0. A failed touch sensor, 895, has no field in the data frame.
func selfTestFault(device, item uint8) faultcode.Code {
	switch {
	case device == spine.FaultProximity:
		return faultcode.TimeOfFlight
	case device == spine.FaultCliff && int(item) < len(cliffFaults):
		return cliffFaults[item]
	}
	return 0
}

// ErrNoBody: Open heard nothing at all: no board, no power, or another speed.
var ErrNoBody = errors.New("vector: the body does not answer")

// ErrNoApplication: the board's boot-loader is alive and has nothing to start; it needs its firmware.
var ErrNoApplication = errors.New("vector: body has no application")

// FaultOf returns the fault code of an error of this package, 0 for any other error.
func FaultOf(err error) faultcode.Code {
	switch {
	case errors.Is(err, ErrNoBody):
		return faultcode.NoBody
	case errors.Is(err, body.ErrLink), errors.Is(err, ErrNoApplication):
		return faultcode.BodySilent
	}
	return 0
}

// statusBits maps a body's reports to bits of RobotStatus (VEC-BODY-23, VEC-BODY-24).
var statusBits = []struct {
	power body.Power
	bit   uint32
}{
	{body.BatteryDisconnected, 0x800},
	{body.OnCharger, 0x1000},
	{body.Charging, 0x2000},
	{body.Overheated, 0x40000},
	{body.EncodersOff, 0x100000},
	{body.BelowCritical, 0x1000000},
	{body.ShutdownImminent, 0x2000000},
}

// RobotStatus returns the bits of RobotStatus that the body alone decides; the plant adds the bits about motion.
func RobotStatus(s *Sense) uint32 {
	var bits uint32
	for _, b := range statusBits {
		if s.Power.Has(b.power) {
			bits |= b.bit
		}
	}
	if s.Button {
		bits |= 0x10
	}
	if s.Motors[spine.Head].Unseen {
		bits |= 0x200000
	}
	if s.Motors[spine.Lift].Unseen {
		bits |= 0x400000
	}
	return bits
}

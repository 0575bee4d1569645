package vector

import (
	"errors"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
)

// Fault codes of the body (VEC-BODY-18, VEC-BOOT-05).
const (
	FaultCliffFrontRight = 890
	FaultCliffFrontLeft  = 891
	FaultCliffBackRight  = 892
	FaultCliffBackLeft   = 893
	FaultProximity       = 894
	FaultTouch           = 895 // no field of the data frame says so; for whoever judges the touch readings
	FaultSilent          = 898 // the body does not communicate any more
	FaultNoBody          = 899 // nothing was ever heard of it
)

// cliffFaults is in the order of the wire's cliff indices, which is not the order of the codes.
var cliffFaults = [4]uint16{FaultCliffFrontLeft, FaultCliffFrontRight, FaultCliffBackLeft, FaultCliffBackRight}

// selfTestFault maps the result of the body's self tests. A failed device that the source does not name maps to 0.
func selfTestFault(device, item uint8) uint16 {
	switch {
	case device == spine.FaultProximity:
		return FaultProximity
	case device == spine.FaultCliff && int(item) < len(cliffFaults):
		return cliffFaults[item]
	}
	return 0
}

// ErrNoBody: Open heard nothing at all: no board, no power, or another speed.
var ErrNoBody = errors.New("vector: no body answers")

// ErrNoApplication: the board's boot-loader is alive and has nothing to start; it needs its firmware.
var ErrNoApplication = errors.New("vector: body has no application")

// FaultOf returns the fault code that an error of this package stands for, 0 for any other.
func FaultOf(err error) uint16 {
	switch {
	case errors.Is(err, ErrNoBody):
		return FaultNoBody
	case errors.Is(err, body.ErrLink), errors.Is(err, ErrNoApplication):
		return FaultSilent
	}
	return 0
}

// statusBits maps what a body reports to bits of RobotStatus (VEC-BODY-23, VEC-BODY-24).
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

// RobotStatus returns the bits of RobotStatus that the body alone decides; the rest belongs to those who know the motion.
func RobotStatus(s *body.Sense) uint32 {
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

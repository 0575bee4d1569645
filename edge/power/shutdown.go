package power

import (
	"fmt"
	"time"

	"kennel/edge/faultcode"
)

// Cause is why a robot switches itself off, with its published value (VEC-PWR-40).
type Cause uint8

// The causes. UnknownCause is reported after a start without a recorded shutdown (VEC-PWR-42).
const (
	UnknownCause Cause = iota
	ButtonPress
	BatteryCriticalVolt
	BatteryCriticalTemp
	GyroNotCalibrating
)

var causeNames = [...]string{"SHUTDOWN_UNKNOWN", "SHUTDOWN_BUTTON", "SHUTDOWN_BATTERY_CRITICAL_VOLT", "SHUTDOWN_BATTERY_CRITICAL_TEMP",
	"SHUTDOWN_GYRO_NOT_CALIBRATING"}

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("SHUTDOWN_%d", uint8(c))
}

// Fault is the code the robot shows, 0 for an unknown cause.
func (c Cause) Fault() faultcode.Code {
	switch c {
	case ButtonPress:
		return faultcode.ShutdownButton
	case BatteryCriticalVolt:
		return faultcode.ShutdownBatteryLow
	case BatteryCriticalTemp:
		return faultcode.ShutdownBatteryHot
	case GyroNotCalibrating:
		return faultcode.ShutdownGyro
	}
	return 0
}

// Off is how a robot goes off. The zero value is that it stays on.
type Off uint8

// The ways.
const (
	StayOn Off = iota
	Clean      // stop services, write what is to be written, then the body's power (VEC-PWR-41)
	Cut        // the body's power now (VEC-PWR-10)
)

// CriticalConfirm is how long the body must report a critical voltage: motors make it dip (VEC-PWR-01; own default).
const CriticalConfirm = time.Second

// ShutdownInput is all that can switch a robot off.
type ShutdownInput struct {
	Body, CPU     Heat
	Shed          Shed
	OnCharger     bool
	BelowCritical bool // the body says so: off the charger it will power down (status bit 0x1000000)
	Imminent      bool // the body cuts the power very soon by itself (status bit 0x2000000)
	Button        bool // the long press ended
	GyroFailed    bool // VEC-IMU-16
}

// Shutdown decides once; what was decided stays, except that Clean may become Cut. The zero value stays on.
type Shutdown struct {
	Off   Off
	Cause Cause // of the first decision: what is logged and broadcast (VEC-PWR-40)

	critical time.Duration
}

// Step takes in what there is, dt after the step before. Where several things call for it at once, heat counts before voltage, and both
// before a person and a broken sensor: they cannot wait. There is one cause for all heat, the processor's included.
func (s Shutdown) Step(in ShutdownInput, dt time.Duration) Shutdown {
	if in.BelowCritical && !in.OnCharger {
		s.critical = min(s.critical+max(dt, 0), CriticalConfirm)
	} else {
		s.critical = 0
	}
	hottest := max(in.Body, in.CPU)
	off, cause := StayOn, UnknownCause
	switch {
	case hottest >= Burning:
		off, cause = Cut, BatteryCriticalTemp
	case hottest >= TooHot, in.Imminent && in.Body >= Hot:
		off, cause = Clean, BatteryCriticalTemp
	case in.Shed == ShedAll, in.Imminent, s.critical >= CriticalConfirm:
		off, cause = Clean, BatteryCriticalVolt
	case in.Button:
		off, cause = Clean, ButtonPress
	case in.GyroFailed:
		off, cause = Clean, GyroNotCalibrating
	}
	if s.Off == StayOn {
		s.Cause = cause
	}
	s.Off = max(s.Off, off)
	return s
}

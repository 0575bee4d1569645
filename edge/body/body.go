// Package body says what the real-time core asks of any body: measure, move, stop.
//
// A driver (edge/body/vector, ...) owns its port, its session and its units; above it everything is SI. The types here have a
// fixed size and hold no pointers, so that a step copies them without allocating.
//
// Every time of this package is CLOCK_MONOTONIC of the system, as a duration since its epoch: the clock that clock_nanosleep
// waits on and that every process of the robot shares. Package mono reads it.
package body

import (
	"errors"
	"time"
)

// Sizes of the fixed tables. A body uses the first entries it has and says so in its Description.
const (
	MaxMotors = 24
	MaxCliffs = 8
	MaxLights = 16
)

// Errors that Read and Write return; the loop counts them and goes on.
var (
	// ErrTimeout: the body sent nothing whole before the deadline.
	ErrTimeout = errors.New("body: no frame before the deadline")
	// ErrFull: the port took no bytes; the frame of commands was dropped whole. The next one replaces it.
	ErrFull = errors.New("body: port takes no more bytes")
	// ErrLink: the port itself failed; the driver must be closed and opened again.
	ErrLink = errors.New("body: link failed")
)

// Description says what a body has. It does not change while the driver is open.
type Description struct {
	Species  string // as in certs/thing: "vic", "amigo", ...
	Model    string
	Firmware string        // as the body reports it; "" until it did
	Period   time.Duration // the body's own rhythm, e.g. 5.12 ms (VEC-MOT-05); 0: none, the loop keeps its own deadlines
	Motors   []string      // compact structure-tree names in index order, e.g. wheelL, wheelR, arm, headPitch
	Cliffs   []string
	Lights   []string
}

// Motor is one motor's measured state.
type Motor struct {
	Position float64 // rad (m for a linear motor), from where it stood when Epoch began
	Speed    float64 // rad/s (m/s)
	// Unseen: it moved while its encoder was off, so Position is wrong from here on (VEC-BODY-24).
	Unseen bool
}

// Light is one RGB light, 0 to 255 a channel.
type Light struct{ R, G, B uint8 }

// Sense is one measurement of everything a body reports. The zero value is "nothing measured yet".
type Sense struct {
	At    time.Duration // when the frame was read
	Seq   uint32        // the body's own frame counter; a gap is a frame lost, or overtaken while the loop was late
	Epoch uint32        // changes whenever the body started anew: Seq and the positions begin again
	Fresh bool          // false: no new frame since the last step

	Motors [MaxMotors]Motor
	Cliffs [MaxCliffs]float64 // reflected light, 0 to 1; low means no floor

	BatteryVolts float64
	ChargerVolts float64 // 0 away from the charger
	Temperature  float64 // degrees Celsius
	Power        Power

	ProxMetres float64       // distance ahead as the sensor says it: beyond its range is nothing there, below it is no measurement (VEC-BODY-26)
	ProxAt     time.Duration // when that distance was measured; 0: never
	// How much light came back from there, and how much there was anyhow, in 1e6 counts a second (VEC-IO-24); both 0: the body does not say.
	ProxSignal, ProxAmbient float64
	Touch                   float64       // 0 to 1 of the sensor's scale; the last good reading (VEC-BODY-27)
	TouchAt                 time.Duration // when Touch was measured; 0: never
	Button                  bool
	Fault                   uint16 // numbered fault the body reports (VEC-BODY-18), 0: none

	Inertial Inertial
}

// Inertial is one sample of the inertial sensors, in the frame of the part that they sit in (Vector: its head): X forward, Y left, Z up.
type Inertial struct {
	Accel [3]float64    // m/s2, what they feel: at rest 1 g upwards, in free fall nothing
	Gyro  [3]float64    // rad/s, counter-clockwise
	At    time.Duration // when it was measured; 0: there is none
}

// Power is the set of facts about the battery and its charger.
type Power uint16

// Bits of Power.
const (
	OnCharger Power = 1 << iota // the pads are powered
	Charging
	BatteryDisconnected
	Overheated
	BelowCritical
	ShutdownImminent
	EncodersOff
	SensorsOff // cliff and distance sensors have no power: their values are old
)

// Has reports whether all bits of q are set.
func (p Power) Has(q Power) bool { return p&q == q }

// Parts is a set of what a body can be told to take the power from (VEC-HW-07, VEC-PWR-53).
type Parts uint8

// Bits of Parts.
const (
	ChargerPart Parts = 1 << iota // it does not charge
	SensorsPart                   // cliff and distance sensors; Sense.Power says SensorsOff then
)

// Act is what the loop asks of the body in one step.
type Act struct {
	Motors [MaxMotors]float64 // duty, -1 to 1
	Lights [MaxLights]Light
	Off    Parts // has no power; a body that cannot do that, or is not known to, has all its parts on
}

// Body is a driver as the loop sees it. Its methods are called by one goroutine, allocate nothing (until the link fails) and touch
// nothing but the port.
type Body interface {
	Describe() Description
	// Read waits at most until deadline for a whole frame and fills s with the newest there is; older ones that queued up behind a
	// late loop are skipped. A deadline in the past polls. On any error s keeps its values with Fresh false.
	Read(s *Sense, deadline time.Duration) error
	// Write sends one frame of commands: one per frame read, which is also what keeps the body's watchdog quiet. Duties outside
	// -1 to 1 are limited, NaN counts as 0.
	Write(a *Act) error
	// Halt stops all motion. It is safe to repeat and ends every error path, timeout and shutdown.
	Halt() error
	// Shutdown halts and asks the body to cut its own power, where it can. It may wait until the port has sent everything.
	Shutdown() error
	// Close halts as far as the port allows and gives the port back. After it every method answers ErrLink. Safe to repeat.
	Close() error
}

// Link counts what a driver met on its port since it was opened.
type Link struct {
	Frames       uint64 // good frames of measurements
	Overtaken    uint64 // of those, skipped because a newer one had arrived
	Corrupt      uint64 // frames with a bad checksum, unknown type or wrong size
	SkippedBytes uint64 // bytes that belonged to no good frame
	Refused      uint64 // commands the body answered with a refusal
	Full         uint64 // frames of commands dropped with ErrFull
	ProxRefused  uint64 // distances outside the sensor's range (VEC-BODY-26)
	TouchRefused uint64 // touch readings outside theirs (VEC-BODY-27)
}

// Linked is a body that counts. Link is called by the goroutine of Read.
type Linked interface{ Link() Link }

// Package body defines the interface between the real-time core and any body: measure, move, stop.
//
// A body describes its channels (what it measures), its drives (what can be set) and its timing. A frame of measurements (Sense) is a value
// with a time for each channel; a frame of commands (Act) is a set-point for each drive. Only the plant of that body knows the meaning of a
// channel (edge/body/<species>); the loop, its tape and the tests carry channels by number.
//
// A driver owns its port, its session and its units; above it everything is SI. Sense and Act have a fixed size and hold no pointers, so
// that a step copies them without allocating.
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
	MaxChannels = 96
	MaxDrives   = 64
)

// Errors that Read and Write return; the loop counts them and continues.
var (
	// ErrTimeout: the body sent nothing whole before the deadline.
	ErrTimeout = errors.New("body: no frame before the deadline")
	// ErrFull: the port took no bytes; the frame of commands was dropped whole. The next one replaces it.
	ErrFull = errors.New("body: port full")
	// ErrLink: the port itself failed; the driver must be closed and opened again.
	ErrLink = errors.New("body: link failed")
)

// Channel is one value that a body measures.
type Channel struct {
	Name string // the slot of the tree that it feeds, such as "wheelL.speed", or the driver's own word for a raw value
	Unit string // SI unit of the values; "": a number without a unit, or a flag of 0 and 1
}

// Goals is a set of kinds of set-points for a drive.
type Goals uint8

// The goals of a drive.
const (
	Duty       Goals = 1 << iota // -1 to 1 of its power
	Speed                        // rad/s or m/s
	Position                     // rad or m
	Trajectory                   // positions with times
	Level                        // 0 to 1: a light, or a part that can be without power
)

// Drive is one thing that can be set. Every drive rests at 0 when it is told Duty or Speed; a Position of no goal is held.
type Drive struct {
	Device string // compact name in the tree, such as "wheelL"
	Takes  Goals
}

// Timing is the rhythm of a body.
type Timing struct {
	Rhythm time.Duration // the body's own: one frame each, which paces the loop, e.g. 5.12 ms (VEC-MOT-05); 0: none
	Step   time.Duration // the loop's period for a body without a rhythm; 0: the loop's default
	Stale  time.Duration // no power for the motors while the newest measurement is older (VEC-BODY-33)
	Silent time.Duration // a body that sent no frame for this long is opened again
}

// Description lists the parts of a body. It does not change while the driver is open, and its lists must not be changed.
type Description struct {
	Species  string // as in infra/thing: "vic", "amigo", ...
	Model    string
	Firmware string // as the body reports it; "" until it did
	Channels []Channel
	Drives   []Drive
	Timing
}

// Sense is one frame of measurements. The zero value is "nothing measured yet".
type Sense struct {
	At    time.Duration // when the frame was read
	Seq   uint32        // the body's own frame counter; a gap is a frame lost, or overtaken while the loop was late
	Epoch uint32        // changes whenever the body restarted: Seq and the positions begin again
	Fresh bool          // false: no new frame since the last step
	Fault uint16        // numbered fault that the body reports (part of VEC-BODY-18), or that it is silent; 0: none

	Values [MaxChannels]float64
	Times  [MaxChannels]time.Duration // when each was measured; 0: never
}

// Set notes a value of channel c that was measured at the given time.
func (s *Sense) Set(c int, v float64, at time.Duration) { s.Values[c], s.Times[c] = v, at }

// Act is one frame of commands: a goal and its set-point for each drive. The zero value is "everything at rest".
type Act struct {
	Goals  [MaxDrives]Goals // one of Takes; 0: none, the drive keeps or loses its power as its body does at rest
	Values [MaxDrives]float64
}

// Set tells drive d its goal.
func (a *Act) Set(d int, g Goals, v float64) { a.Goals[d], a.Values[d] = g, v }

// Still takes the power from everything that moves: duties and speeds become 0, positions are held no longer. Levels stay.
func (a *Act) Still() {
	for d, g := range a.Goals {
		if g != Level {
			a.Goals[d], a.Values[d] = 0, 0
		}
	}
}

// Motor is one motor's measured state, as drivers and the pieces of motion exchange it.
type Motor struct {
	Position float64 // rad (m for a linear motor), from where it was when Epoch began
	Speed    float64 // rad/s (m/s)
	// Unseen: it moved while its encoder was off, so Position is wrong from here on (VEC-BODY-24).
	Unseen bool
}

// Inertial is one sample of the inertial sensors, in the frame of the part that they sit in (Vector: its head): X forward, Y left, Z up.
type Inertial struct {
	Accel [3]float64    // m/s2: at rest 1 g upwards, in free fall 0
	Gyro  [3]float64    // rad/s, counter-clockwise
	At    time.Duration // when it was measured; 0: no sample
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

// Body is a driver as the loop sees it. Its methods are called by one goroutine, allocate nothing (until the link fails) and touch
// nothing but the port.
type Body interface {
	Describe() Description
	// Read waits at most until deadline for a whole frame and fills s with the newest there is; older ones that queued up behind a
	// late loop are skipped. A deadline in the past polls. On any error s keeps its values with Fresh false.
	Read(s *Sense, deadline time.Duration) error
	// Write sends one frame of commands, one per frame read, which also keeps the body's watchdog quiet. Set-points outside the
	// range of their drive are limited, NaN counts as no goal, and so does a goal that the drive does not take.
	Write(a *Act) error
	// Halt stops all motion. It is safe to repeat and ends every error path, timeout and shutdown.
	Halt() error
	// Shutdown halts and asks the body to cut its own power, where it can. It may wait until the port has sent everything.
	Shutdown() error
	// Close halts as far as the port allows and gives the port back. After it every method answers ErrLink. Safe to repeat.
	Close() error
}

// Link holds a driver's counts on its port since it was opened.
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

// Package sense turns measurements into a robot's knowledge of itself: touched, at an edge, something ahead, button gestures, and how it
// lies, falls or is held (VEC-IO, VEC-IMU).
//
//	touch.go   touched or not, over a baseline that follows the weather       cliff.go   floor or not, a limit for each sensor
//	prox.go    distance ahead: found, free, hidden by the lift                button.go  press, double press, long presses
//	tilt.go    which way is up, heading, gyro bias                            motion.go  treads down, in the air, held, falling, shaken
//	config.go  every number, with its row                                     senses.go  all of them, one step a frame
//	unexpected.go  turns without a command, or commands without a turn
//
// Everything here is a pure step on values: time comes as an argument, nothing allocates, the same inputs give the same outputs. SI units;
// X forward, Y left, Z up; angles counter-clockwise. A driver's last good value comes with the time it was measured and is counted once.
//
// The source describes the method in general without the figures. The limits are therefore settings, with our own defaults unless a row
// gives them. Outputs change only after their cause held for a stated time, so that noise never makes an event; a gap between two steps
// counts as maxGap at most.
//
// Accelerations are what the sensor feels: at rest 1 g upwards, in free fall nothing.
package sense

import "time"

// maxGap is the most that the time between two steps adds to how long something held: what happened in a longer gap was not seen.
const maxGap = 50 * time.Millisecond

// steady is a condition that changes only after the raw one said otherwise long enough without a break.
type steady struct {
	on      bool
	differs bool          // raw was unlike on in the step before
	held    time.Duration // for how long
}

// step takes in the raw condition, dt after the one before, and reports whether on changed.
func (s *steady) step(raw bool, dt, rise, fall time.Duration) bool {
	if raw == s.on {
		s.differs, s.held = false, 0
		return false
	}
	if s.differs {
		s.held += min(max(dt, 0), maxGap)
	}
	s.differs = true
	need := rise
	if s.on {
		need = fall
	}
	if s.held < need {
		return false
	}
	s.set(raw)
	return true
}

// set changes the condition at once.
func (s *steady) set(on bool) { *s = steady{on: on} }

package motion

import (
	"fmt"
	"math"
	"time"
)

// ServoConfig is one joint that takes positions: its own electronics bring it there.
type ServoConfig struct {
	Range     [2]float64    // rad, its travel
	Most      Ramp          // limits of speed and acceleration
	Tolerance float64       // rad, near enough to be there
	Patience  time.Duration // how long it may stay away from where its plan ended before the way counts as blocked
}

// Servo leads a joint that takes positions to its targets within its limits. It belongs to one goroutine and allocates nothing after NewServo.
type Servo struct {
	cfg     ServoConfig
	prof    Profile
	on      bool // it has a position to hold
	outcome Outcome
	late    time.Duration // since its plan ended
}

// NewServo returns a servo without power, or an error that names the first setting that cannot be.
func NewServo(c ServoConfig) (*Servo, error) {
	if !finite(c.Range[0], c.Range[1], c.Tolerance) || c.Range[0] >= c.Range[1] || c.Tolerance <= 0 || !c.Most.valid() || c.Patience <= 0 {
		return nil, fmt.Errorf("motion: servo %+v, want an increasing range, and limits, tolerance and patience above 0", c)
	}
	return &Servo{cfg: c}, nil
}

// MoveTo leads the servo to a target, limited to its range, and holds it there; at is where it is now. Zero speeds of r mean the limits. With a
// time of more than 0 it goes at the pace that takes so long. It returns the target that is left and how long the plan takes.
func (s *Servo) MoveTo(at, target float64, r Ramp, within time.Duration) (taken float64, takes time.Duration, err error) {
	if !finite(at, target, r.Speed, r.Accel, r.Decel) || min(r.Speed, r.Accel, r.Decel) < 0 || within < 0 {
		return 0, 0, ErrInvalid
	}
	if !s.on {
		s.prof.Reset(at)
	}
	taken = min(max(target, s.cfg.Range[0]), s.cfg.Range[1])
	s.prof.Aim(taken, r.or(s.cfg.Most).within(s.cfg.Most))
	seconds := s.prof.takes(s.prof.ramp.Speed)
	if within > 0 {
		seconds = s.prof.Pace(within.Seconds())
	}
	s.on, s.outcome, s.late = true, Running, 0
	return taken, time.Duration(seconds * float64(time.Second)), nil
}

// Stop slows the servo down and holds it where it stops.
func (s *Servo) Stop() {
	if s.on && !s.prof.Done() {
		brake := s.cfg.Most.Decel
		s.prof.Aim(s.prof.X+math.Copysign(s.prof.V*s.prof.V/(2*brake), s.prof.V), s.cfg.Most)
	}
	s.end(Cancelled)
}

// Release takes its power: a hand may move it.
func (s *Servo) Release(o Outcome) {
	s.on = false
	s.end(o)
}

func (s *Servo) end(o Outcome) {
	if s.outcome == Running {
		s.outcome = o
	}
}

// Outcome returns how the newest command went; Running while it lasts.
func (s *Servo) Outcome() Outcome { return s.outcome }

// Step returns the position to send; false: none, it has no power. at is where the servo is.
func (s *Servo) Step(dt time.Duration, at float64) (position float64, on bool) {
	if !s.on {
		return 0, false
	}
	s.prof.Step(dt.Seconds())
	if s.outcome == Running && s.prof.Done() {
		switch s.late += dt; {
		case math.Abs(at-s.prof.X) <= s.cfg.Tolerance:
			s.outcome = Done
		case s.late > s.cfg.Patience:
			s.outcome = Blocked
		}
	}
	return s.prof.X, true
}

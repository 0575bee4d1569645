// Package limbs leads the joints of a body whose every joint is a part of its own, with a servo that takes positions: the half of a plant that such bodies share.
package limbs

import (
	"time"

	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/motion"
)

// Own defaults.
const (
	usualShare = 0.5         // of a joint's highest speed, where an order names none (MTN-U02)
	mostShare  = 0.95        // of it, so that the servo can follow
	gather     = 0.05        // s in which a joint reaches its highest speed
	patience   = time.Second // after which a joint that is not there is blocked
)

// Config describes a joint.
type Config struct {
	Slot      int                          // that goals set
	Unit      float64                      // rad in one of the slot's own units
	Range     [2]float64                   // rad
	Speed     float64                      // rad/s, its highest
	Tolerance float64                      // rad, near enough to be there
	Snap      func(target float64) float64 // changes a target in rad to one that the joint knows; nil: it knows all
}

// Joint is one joint. It belongs to the goroutine of the loop.
type Joint struct {
	Angle float64 // rad, measured
	Heard bool    // Angle was measured

	cfg   Config
	servo *motion.Servo
	usual motion.Ramp
}

// New returns a joint without power, or an error that names the first setting that cannot be.
func New(c Config) (*Joint, error) {
	ramp := func(share float64) motion.Ramp {
		return motion.Ramp{Speed: c.Speed * share, Accel: c.Speed / gather, Decel: c.Speed / gather}
	}
	s, err := motion.NewServo(motion.ServoConfig{Range: c.Range, Most: ramp(mostShare), Tolerance: c.Tolerance, Patience: patience})
	return &Joint{cfg: c, servo: s, usual: ramp(usualShare)}, err
}

// Slot returns the slot that goals set.
func (j *Joint) Slot() int { return j.cfg.Slot }

// Unit returns the rad in one of the slot's own units.
func (j *Joint) Unit() float64 { return j.cfg.Unit }

// Begin starts an order for this joint, as control.Plant does.
func (j *Joint) Begin(o *control.Order, r *control.Result) error {
	if o.Kind != control.Set {
		return control.ErrUnable // it has no wheels, and walking is a motion
	}
	if !j.Heard {
		return control.ErrUnmeasured
	}
	for i, g := range o.Goals[:o.N] {
		if g.Slot != j.cfg.Slot {
			continue
		}
		target, ramp := g.Value*j.cfg.Unit, j.usual
		switch {
		case o.Speed > 0:
			ramp = motion.Ramp{Speed: o.Speed * j.cfg.Unit}
		case o.Within > 0:
			ramp = motion.Ramp{} // as fast as the time needs, within the limits
		}
		if j.cfg.Snap != nil {
			target = j.cfg.Snap(target)
		}
		taken, takes, err := j.servo.MoveTo(j.Angle, target, ramp, o.Within)
		if err != nil {
			return err
		}
		r.Taken[i] = taken / j.cfg.Unit
		if o.Within > 0 {
			r.Takes = max(r.Takes, takes)
		}
		if o.Speed > 0 {
			r.Speed = min(o.Speed, j.cfg.Speed*mostShare/j.cfg.Unit)
		}
	}
	return nil
}

// Step writes the joint's position for drive i, and says how it is and whether it moves. It has no power after Release, and while everything is stopped.
func (j *Joint) Step(dt time.Duration, stop motion.Reason, act *body.Act, i int) (r control.PartReport, moving bool) {
	if stop&motion.Everything != 0 {
		j.servo.Release(motion.Stopped)
	}
	v, on := j.servo.Step(dt, j.Angle)
	word := "free"
	if on {
		act.Set(i, body.Position, v)
		word = "holding"
		if j.servo.Outcome() == motion.Running {
			word, moving = "moving", true
		}
	}
	return control.PartReport{State: word, Outcome: j.servo.Outcome(), Known: j.Heard}, moving
}

// Outcome returns how the newest order went.
func (j *Joint) Outcome() motion.Outcome { return j.servo.Outcome() }

// Stop slows the joint down and holds it where it stops.
func (j *Joint) Stop() { j.servo.Stop() }

// Release takes the joint's power.
func (j *Joint) Release(o motion.Outcome) { j.servo.Release(o) }

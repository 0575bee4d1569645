package motion

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body"
)

// JointConfig is one joint with hard stops at both ends.
type JointConfig struct {
	Motor  MotorConfig
	Stops  [2]float64 // rad, lower and upper; homing drives to the lower
	Margin float64    // rad, how near a target may be to a stop; own default
	Most   Ramp       // limits of speed and acceleration (VEC-MOT-01, VEC-MOT-02)

	Tolerance   float64 // rad, near enough to be there; own default
	HandAngle   float64 // rad; so far from its place the joint is in a person's hand and lets go (VEC-MOT-08); own default
	LagAngle    float64 // rad, so far behind its plan the plan waits; own default
	BlockedTime float64 // s of stall that make the zero doubtful; own default
	HomeDuty    float64 // the low power of homing; own default
	HomeSpeed   float64 // rad/s; own default
	Contact     float64 // s below the guard's speed that mean the stop; own default
	Tries       int     // homings per command before it is given up; own default
}

// offShare of the travel beyond a stop proves a wrong zero (VEC-MOT-07, VEC-MCT-11).
const offShare = 0.05

// State is the activity of a joint. The zero value is Free.
type State uint8

// States of a joint.
const (
	Free State = iota // no power: a hand may move it
	Homing
	Moving
	Holding
)

func (s State) String() string {
	switch s {
	case Free:
		return "free"
	case Homing:
		return "homing"
	case Moving:
		return "moving"
	case Holding:
		return "holding"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// phase is a part of homing: touch the stop, back off, touch it again. A joint that cannot back off, or meets the second stop elsewhere, met
// something else than the stop.
type phase uint8

const (
	seek phase = iota
	backOff
	confirm
)

type joint struct {
	cfg     JointConfig
	est     estimator
	guard   Guard
	prof    Profile
	state   State
	outcome Outcome
	target  float64
	ramp    Ramp
	within  float64 // s that the way to the target shall take; 0: as the ramp says
	takes   float64 // s that the plan was made with
	aimed   bool    // there is a target to go to after homing
	ending  Outcome // not None: let go at the target, and that is how it went

	calibrated bool
	unseen     bool
	home       float64 // rad of the joint where the driver's position is 0
	angle      float64
	position   float64 // the driver's
	integ      float64
	duty       float64
	near       float64 // s near the target, or in a person's hand
	blocked    float64 // s of stall

	phase      phase
	phaseFor   float64
	contactFor float64
	touched    float64 // driver's position of the first contact
	tries      int
	events     Event
}

func (j *joint) lo() float64 { return j.cfg.Stops[0] + j.cfg.Margin }
func (j *joint) hi() float64 { return j.cfg.Stops[1] - j.cfg.Margin }

// free takes the power away, with that outcome if it was under way.
func (j *joint) free(o Outcome) {
	if j.state == Moving || j.state == Homing {
		j.outcome = o
	}
	j.state, j.duty, j.integ, j.near, j.blocked, j.aimed, j.ending, j.tries = Free, 0, 0, 0, 0, false, None, 0
	j.guard.rest()
}

// lose forgets the zero.
func (j *joint) lose() {
	if j.calibrated {
		j.calibrated = false
		j.events |= Uncalibrated
	}
}

// moveTo begins to move to a target, or to home first if it must. With an ending other than None it lets go there.
func (j *joint) moveTo(target float64, r Ramp, ending Outcome) {
	j.target, j.ramp, j.ending, j.within = min(max(target, j.lo()), j.hi()), r.within(j.cfg.Most), ending, 0
	j.start()
}

// moveIn is moveTo so that the way takes that many seconds, from the end of homing if it must home
// first. Where that is too short it goes as fast as it may.
func (j *joint) moveIn(target, seconds float64) {
	j.target, j.ramp, j.ending, j.within = min(max(target, j.lo()), j.hi()), j.cfg.Most, None, seconds
	j.start()
}

// start homes if it must, and begins to move.
func (j *joint) start() {
	j.outcome, j.tries, j.aimed = Running, 0, true
	if !j.calibrated {
		if j.state != Homing {
			j.beginHoming()
		}
		return
	}
	j.beginMove()
}

func (j *joint) beginMove() {
	if j.state != Moving && j.state != Holding {
		j.prof.Reset(j.angle)
		j.integ = 0
	}
	if way := math.Copysign(1, j.target-j.prof.X); j.prof.V == 0 && way*j.integ > 0 {
		// At rest the integral may lean against friction the same way: not twice, or it starts with a leap.
		j.integ -= way * min(math.Abs(j.integ), j.cfg.Motor.Friction)
	}
	j.prof.Aim(j.target, j.ramp)
	if j.within > 0 {
		j.takes = j.prof.Pace(j.within)
		j.ramp.Speed = j.prof.ramp.Speed
	}
	j.state, j.near, j.blocked = Moving, 0, 0
}

// calibrate begins to home; it goes nowhere afterwards.
func (j *joint) calibrate() {
	j.outcome, j.tries, j.aimed, j.ending = Running, 0, false, None
	j.beginHoming()
}

func (j *joint) beginHoming() {
	j.lose()
	j.state, j.phase, j.phaseFor, j.contactFor, j.integ, j.blocked = Homing, seek, 0, 0, 0, 0
	j.tries++
	j.guard.rest()
	j.events |= Calibrating
}

// observe takes in a measurement; it is called in every step, also while nothing may move. Where a frame is missing the joint is assumed
// to follow the plan: against an old angle the loop would push harder and harder.
func (j *joint) observe(m body.Motor, at time.Duration, fresh bool, dt float64) {
	if !fresh {
		if j.state == Moving {
			j.est.v += j.prof.A * dt
			j.angle += j.est.v * dt
		}
		return
	}
	j.position = m.Position
	j.angle = j.home + m.Position
	j.est.observe(m.Position, at)
	if m.Unseen && !j.unseen { // the flag may stay up; only its rise counts (VEC-BODY-24)
		j.lose()
		if j.state == Holding {
			j.free(None)
		}
	}
	j.unseen = m.Unseen
	if off := offShare * (j.cfg.Stops[1] - j.cfg.Stops[0]); j.calibrated && (j.angle < j.cfg.Stops[0]-off || j.angle > j.cfg.Stops[1]+off) {
		j.lose()
		if j.state == Holding {
			j.free(None)
		}
	}
}

// restart forgets the facts that the body lost when it restarted.
func (j *joint) restart() {
	j.lose()
	j.est.reset()
	j.unseen = false
	j.free(Stopped)
}

// step returns the duty.
func (j *joint) step(dt float64) float64 {
	if j.state == Moving && !j.calibrated {
		j.again()
	}
	var duty float64
	switch j.state {
	case Free:
		j.guard.cool(dt)
		return 0
	case Homing:
		duty = j.homing(dt)
	case Moving:
		duty = j.moving(dt)
	case Holding:
		duty = j.holding(dt)
	}
	if j.state == Free {
		return 0
	}
	j.duty = j.guard.Limit(duty, j.est.v, dt)
	return j.duty
}

// again homes once more for the same command, or gives it up.
func (j *joint) again() {
	if j.tries >= j.cfg.Tries {
		j.free(Blocked)
		return
	}
	j.beginHoming()
}

func (j *joint) moving(dt float64) float64 {
	behind := j.prof.X - j.angle
	switch {
	case math.Abs(behind) > j.cfg.LagAngle+j.cfg.HandAngle:
		j.free(Released) // it is pulled the other way (VEC-MOT-08)
		return 0
	case math.Abs(behind) > j.cfg.LagAngle && behind*(j.prof.target-j.prof.X) >= 0:
		// The plan waits: a held joint must not jump when the person lets go of it.
		j.prof.Reset(j.prof.X)
		j.prof.Aim(j.target, j.ramp)
	default:
		j.prof.Step(dt)
	}
	if j.guard.Stalled() {
		// Something is where nothing should be. If it stays, the zero may be wrong (VEC-MOT-07, VEC-MCT-11).
		if j.blocked += dt; j.blocked > j.cfg.BlockedTime {
			j.lose()
			j.again()
			return 0
		}
	} else {
		j.blocked = 0
	}
	if j.prof.Done() && j.ending != None { // it only had to slow down
		j.free(j.ending)
		return 0
	}
	if j.prof.Done() && math.Abs(j.prof.X-j.angle) <= j.cfg.Tolerance {
		if j.near += dt; j.near >= 0.05 {
			j.near, j.state, j.outcome = 0, Holding, Done
		}
	} else {
		j.near = 0
	}
	return j.control(dt)
}

func (j *joint) holding(dt float64) float64 {
	if math.Abs(j.prof.X-j.angle) > j.cfg.HandAngle {
		if j.near += dt; j.near >= 0.05 {
			j.free(None)
			j.outcome = Released
			return 0
		}
	} else {
		j.near = 0
	}
	return j.control(dt)
}

// control keeps the joint at the reference. Beyond the ends of travel it only pushes back.
func (j *joint) control(dt float64) float64 {
	c := &j.cfg.Motor
	miss := j.prof.X - j.angle
	if math.Abs(miss) < 1.5*c.Count {
		miss = 0 // what one count hides is not worth a hum
	}
	duty := (j.prof.V+c.Lag*j.prof.A+c.P*miss+c.D*(j.prof.V-j.est.v))/c.FullRate + j.integ
	if j.prof.V != 0 {
		duty += math.Copysign(c.Friction, j.prof.V)
	}
	limited := min(max(duty, -c.MaxDuty), c.MaxDuty)
	if limited == duty && !j.guard.Stalled() {
		j.integ = min(max(j.integ+c.I*miss*dt, -c.MaxI), c.MaxI)
	}
	switch {
	case j.angle > j.cfg.Stops[1]-j.cfg.Margin/5:
		limited = min(limited, 0)
	case j.angle < j.cfg.Stops[0]+j.cfg.Margin/5:
		limited = max(limited, 0)
	}
	if speed := j.est.v; math.Abs(speed) > j.cfg.Most.Speed && speed*limited > 0 {
		return 0
	}
	return limited
}

// homing drives down gently until the joint no longer moves: that is the stop.
func (j *joint) homing(dt float64) float64 {
	j.phaseFor += dt
	travel := j.cfg.Stops[1] - j.cfg.Stops[0]
	if j.phaseFor > 2*travel/j.cfg.HomeSpeed+2 {
		j.again()
		return 0
	}
	want := -j.cfg.HomeSpeed
	if j.phase == backOff {
		want = -want
		if j.position-j.touched >= travel/10 {
			j.phase, j.phaseFor, j.contactFor, j.integ = confirm, 0, 0, 0
			return 0
		}
	}
	// At first the motor needs time to get going.
	if j.phaseFor > 2*j.cfg.Contact && math.Abs(j.est.v) < j.cfg.Motor.Guard.Speed {
		j.contactFor += dt
	} else {
		j.contactFor = 0
	}
	if j.contactFor >= j.cfg.Contact {
		switch j.phase {
		case seek:
			j.touched = j.position
			j.phase, j.phaseFor, j.contactFor, j.integ = backOff, 0, 0, 0
			return 0
		case backOff: // it is stuck
			j.again()
			return 0
		case confirm:
			if math.Abs(j.position-j.touched) > offShare*travel {
				j.again()
				return 0
			}
			j.zero()
			return 0
		}
	}
	c := &j.cfg.Motor
	j.integ = min(max(j.integ+c.I*(want-j.est.v)*dt/10, -j.cfg.HomeDuty), j.cfg.HomeDuty)
	duty := want/c.FullRate + math.Copysign(c.Friction, want) + j.integ
	return min(max(duty, -j.cfg.HomeDuty), j.cfg.HomeDuty)
}

// zero assumes that the joint is at its lower stop.
func (j *joint) zero() {
	j.home = j.cfg.Stops[0] - j.position
	j.angle = j.cfg.Stops[0]
	j.calibrated, j.integ = true, 0
	j.events |= Calibrated
	if j.aimed {
		j.state = Free
		j.beginMove()
		return
	}
	j.free(Done)
}

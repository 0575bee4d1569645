package sense

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/power"
)

// OffTreads is the attitude of the body (VEC-IMU-06). The zero value is not known yet.
type OffTreads uint8

// The published states, after our own zero.
const (
	Unsettled OffTreads = iota
	OnTreads
	InAir
	OnBack // backpack down; upside down is this too, the source has no other word for it
	OnFace
	OnLeftSide
	OnRightSide
	Falling
)

var offTreadsNames = [...]string{"Unsettled", "OnTreads", "InAir", "OnBack", "OnFace", "OnLeftSide", "OnRightSide", "Falling"}

func (o OffTreads) String() string {
	if int(o) < len(offTreadsNames) {
		return offTreadsNames[o]
	}
	return fmt.Sprintf("OffTreads(%d)", uint8(o))
}

// MotionInput is one new sample of the inertial sensors and what helps to read it.
type MotionInput struct {
	Accel, Gyro Vec     // m/s2 and rad/s in the frame of the head they sit in; no number: the sample is dropped
	HeadAngle   float64 // rad, raised is positive (VEC-MOT-01)
	HeadRate    float64 // rad/s
	HeadUnknown bool    // the two above are unknown: only a fall shows
	LiftHeight  float64 // m
	NoFloor     bool    // all cliff sensors see none (Cliffs.All)
	Driven      bool    // a motor is commanded or moves: what shakes may be the motor
}

// Motion is the state from the inertial sensors.
type Motion struct {
	OffTreads  OffTreads
	Falling    bool // VEC-IMU-07
	PickedUp   bool // not on a stable surface with the treads down, in whatever way (VEC-IMU-08)
	Held       bool // by a hand; PickedUp is true as well (VEC-IMU-09)
	HeldInPalm bool // VEC-IMU-10
	Shaken     bool // VEC-IMU-13
	InMotion   bool // driven, or moved by a person (VEC-IMU-14)
	Still      bool

	Gyro    GyroState
	Accel   Vec     // m/s2, in the body's frame
	Rate    Vec     // rad/s, in the body's frame, without the bias as far as it is known
	Bias    Vec     // rad/s, of the gyro, in the head's frame: it moves with the head
	Pitch   float64 // rad, nose down is positive; also on the charger's ramp (VEC-IMU-04)
	Roll    float64 // rad, left side up is positive
	Heading float64 // rad, counter-clockwise since the start, -pi to pi; drifts
	Shake   float64 // g: RobotShaken compares this with its own limit (VEC-IMU-13)
	Tremor  float64 // rad/s, standard deviation; 0 in the first quarter of a second, in which it is not known
}

// Bits of RobotStatus that motion decides.
const (
	statusPickedUp = 0x8     // VEC-IMU-08
	statusFalling  = 0x20    // VEC-IMU-07
	statusHeld     = 0x10000 // VEC-IMU-09
	statusInMotion = 0x20000 // VEC-IMU-14
)

// RobotStatus returns those that hold.
func (m *Motion) RobotStatus() (bits uint32) {
	for _, b := range [...]struct {
		on  bool
		bit uint32
	}{{m.PickedUp, statusPickedUp}, {m.Falling, statusFalling}, {m.Held, statusHeld}, {m.InMotion, statusInMotion}} {
		if b.on {
			bits |= b.bit
		}
	}
	return bits
}

// MotionEvents is a set of what happened in one step.
type MotionEvents uint16

// The events.
const (
	OffTreadsChanged MotionEvents = 1 << iota // robot.offtreadsstatechanged
	FallBegan                                 // imu_filter.falling_event
	FallImpact                                // imu_filter.fall_impact_event
	Delocalized                               // it left the ground: the map has a new origin (VEC-IMU-18)
	TooLongInAir                              // once each time (VEC-IMU-18)
	ShakeBegan                                //
	Poked                                     // VEC-IMU-11
	FistBump                                  // VEC-IMU-12
	GyroReady                                 // imu_filter.gyro_calibrated
	GyroBroken                                // VEC-IMU-16
)

// Mover finds motion states. NewMover makes one.
type Mover struct {
	cfg  MotionConfig
	tilt Tilt
	now  Motion

	accel Vec // low-passed, for what is left without it
	begun bool
	blind bool // the step before did not know the head

	falling   steady
	sinceFall time.Duration // since the last one ended
	fell      bool          // and no impact yet

	candidate OffTreads
	agreed    time.Duration // for how long
	raise     steady
	raised    time.Duration // what is left of the memory of it
	settled   steady        // upright without tremor

	held, palm, shaken steady
	shake              float64 // g2
	airborne           time.Duration
	toldAir            bool

	poke poke
}

// poke follows one shock.
type poke struct {
	phase  uint8 // 0 waiting, 1 in the shock, 2 waiting for the pose to return, 3 not a poke: waiting for quiet
	since  time.Duration
	shock  time.Duration // from the beginning to the last strong sample
	before Vec           // up, before it
	tilt   float64       // the most it tilted
	along  float64       // strongest sample's part along X, 0 to 1
	peak   float64
	bump   bool
}

// slowTau parts the quick changes of the acceleration from gravity and driving.
const slowTau = 250 * time.Millisecond

// NewMover returns one that knows nothing. cfg must be valid.
func NewMover(cfg MotionConfig) *Mover {
	m := &Mover{cfg: cfg}
	m.tilt = newTilt(&m.cfg)
	return m
}

// Motion returns what is known after the last step.
func (m *Mover) Motion() Motion { return m.now }

// Forget drops everything but the gyro's bias and the heading, when there are no samples.
func (m *Mover) Forget() (ev MotionEvents) {
	if !m.begun {
		return 0
	}
	before, tilt := m.now.OffTreads, m.tilt
	*m = Mover{cfg: m.cfg}
	m.tilt = newTilt(&m.cfg)
	m.tilt.state, m.tilt.bias, m.tilt.heading = tilt.state, tilt.bias, tilt.heading
	m.now.Gyro, m.now.Bias, m.now.Heading = tilt.state, tilt.bias, tilt.heading
	if before != Unsettled {
		ev |= OffTreadsChanged
	}
	return ev
}

// Step takes in a sample, dt after the one before.
func (m *Mover) Step(dt time.Duration, in MotionInput) (ev MotionEvents) {
	dt = max(dt, 0)
	if !in.Accel.finite() || !in.Gyro.finite() || math.IsNaN(in.HeadAngle) || math.IsInf(in.HeadAngle, 0) || math.IsNaN(in.HeadRate) ||
		math.IsInf(in.HeadRate, 0) {
		return 0
	}
	if in.HeadUnknown {
		// A fall shows in whatever frame. The rest would take a raised head for a body that lies on its back.
		if !m.blind {
			falling, since, fell := m.falling, m.sinceFall, m.fell
			ev |= m.Forget()
			m.falling, m.sinceFall, m.fell = falling, since, fell
			m.begun, m.blind = true, true
		}
		ev |= m.fall(dt, in.Accel.norm()/Gravity, in.Gyro, in.NoFloor)
		m.now.Falling = m.falling.on
		m.now.InMotion = in.Driven || m.now.Falling
		return ev
	}
	a, w := ToBody(in.Accel, in.Gyro, in.HeadAngle, in.HeadRate, m.cfg.Neck)
	if m.blind {
		m.blind, m.begun = false, false
	}
	if !m.begun {
		m.begun, m.accel = true, a
	}
	gyro := m.tilt.state
	w = m.tilt.step(dt, a, w, in.HeadAngle, in.Driven)
	if m.tilt.state != gyro {
		ev |= GyroReady
		if m.tilt.state == GyroFailed {
			ev = ev&^GyroReady | GyroBroken
		}
	}
	m.accel = m.accel.toward(a, dt, slowTau)
	quick := a.sub(m.accel).scale(1 / Gravity)

	ev |= m.fall(dt, a.norm()/Gravity, w, in.NoFloor)
	ev |= m.stand(dt, a, &in)
	m.hand(dt, &in)
	ev |= m.shaking(dt, quick)
	ev |= m.poking(dt, quick, &in)

	n := &m.now
	n.Falling = m.falling.on
	n.Still = m.tilt.still.on
	n.InMotion = in.Driven || n.Falling || n.PickedUp && !n.Still
	n.Accel, n.Rate, n.Bias = a, w, m.tilt.bias
	n.Gyro, n.Pitch, n.Roll, n.Heading = m.tilt.state, m.tilt.pitch(), m.tilt.roll(), m.tilt.heading
	n.Shake, n.Tremor = math.Sqrt(m.shake), 0
	if !math.IsInf(m.tilt.rateDev, 0) {
		n.Tremor = m.tilt.rateDev
	}
	return ev
}

// fall: next to no weight, or tumbling away from the floor (VEC-IMU-07).
func (m *Mover) fall(dt time.Duration, g float64, w Vec, noFloor bool) (ev MotionEvents) {
	tumble := w.sub(m.tilt.up.scale(w.dot(m.tilt.up))).norm() // turning on the spot is no tumbling
	raw := g < m.cfg.FallG || noFloor && tumble > m.cfg.FallRate
	if m.falling.on {
		raw = g < m.cfg.CaughtG || noFloor && tumble > m.cfg.FallRate
	}
	m.sinceFall += min(dt, maxGap)
	if m.falling.step(raw, dt, m.cfg.FallFor, m.cfg.CaughtFor) {
		m.sinceFall = 0
		if m.falling.on {
			m.fell = true
			ev |= FallBegan
		}
	}
	if m.fell && !m.falling.on && m.sinceFall > m.cfg.ImpactFor {
		m.fell = false // a person caught it
	}
	if m.fell && g > m.cfg.ImpactG {
		m.fell = false
		m.falling.set(false)
		ev |= FallImpact
	}
	return ev
}

// stand finds the off-treads state and publishes it once it is stable (VEC-IMU-06).
func (m *Mover) stand(dt time.Duration, a Vec, in *MotionInput) (ev MotionEvents) {
	up := m.tilt.up
	upright := up[2] > math.Cos(m.cfg.Upright)
	trembles := m.tilt.rateDev >= m.cfg.TremorMin

	// VEC-IMU-08: the pattern of being raised.
	m.raise.step(a.dot(up)-Gravity > m.cfg.RaiseG*Gravity, dt, m.cfg.RaiseFor, 0)
	if m.raised = max(0, m.raised-dt); m.raise.on && !in.Driven {
		m.raised = m.cfg.RaiseLast
	}
	m.settled.step(upright && !trembles && m.raised == 0 && !in.Driven, dt, m.cfg.Settle, 0)
	evidence := m.raised > 0 || !in.Driven && trembles || up[2] < math.Cos(m.cfg.Evidence)

	state := m.now.OffTreads
	c := state
	switch {
	case m.falling.on:
		c = Falling
	case !upright:
		c = InAir
		if side := lying(up, math.Cos(m.cfg.Lying)); side != Unsettled && !(trembles && !in.Driven) {
			c = side
		}
	case state == OnTreads, state == Unsettled:
		if c = OnTreads; in.NoFloor && evidence {
			c = InAir // VEC-IO-21: the cliff sensors alone may stand on black glass
		}
	case in.Driven:
		c = InAir // its own motors hide a hand: put down or not shows when they stop
	case m.settled.on, !trembles && !in.NoFloor:
		c = OnTreads
	default:
		c = InAir
	}

	if c != m.candidate {
		m.candidate, m.agreed = c, 0
	} else {
		m.agreed += min(dt, maxGap)
	}
	if c != state && (m.agreed >= m.cfg.Dwell || c == Falling) {
		m.now.OffTreads = c
		ev |= OffTreadsChanged
		if state == OnTreads {
			ev |= Delocalized
		}
	}
	m.now.PickedUp = m.now.OffTreads != OnTreads && m.now.OffTreads != Unsettled
	if !m.now.PickedUp {
		m.airborne, m.toldAir = 0, false
	} else if m.airborne += min(dt, maxGap); !m.toldAir && m.airborne >= m.cfg.LongInAir {
		m.toldAir = true
		ev |= TooLongInAir
	}
	return ev
}

// lying says which side is down, if one clearly is.
func lying(up Vec, cos float64) OffTreads {
	switch {
	case up[0] > cos, up[2] < -cos:
		return OnBack
	case up[0] < -cos:
		return OnFace
	case up[1] < -cos:
		return OnLeftSide
	case up[1] > cos:
		return OnRightSide
	}
	return Unsettled
}

// hand finds the tremor of one (VEC-IMU-09, VEC-IMU-10). While motors run it knows nothing new.
func (m *Mover) hand(dt time.Duration, in *MotionInput) {
	tremor := m.tilt.rateDev
	up := m.now.PickedUp && !m.falling.on
	if !up {
		m.held.set(false)
	} else if !in.Driven {
		m.held.step(tremor > m.cfg.TremorMin && tremor < m.cfg.TremorMax, dt, m.cfg.HeldFor, m.cfg.HeldFor)
	}
	m.now.Held = m.held.on
	if !m.held.on {
		m.palm.set(false)
	} else {
		level := m.tilt.up[2] > math.Cos(m.cfg.PalmTilt)
		m.palm.step(level && tremor < m.cfg.PalmMax && !in.Driven, dt, m.cfg.PalmFor, m.cfg.HeldFor)
	}
	m.now.HeldInPalm = m.palm.on
}

// shaking is strong change that lasts (VEC-IMU-13).
func (m *Mover) shaking(dt time.Duration, quick Vec) (ev MotionEvents) {
	m.shake = power.Filter(m.shake, quick.dot(quick), dt, m.cfg.ShakeTau)
	limit := m.cfg.ShakeG
	if m.shaken.on {
		limit = m.cfg.ShakeEndG
	}
	if m.shaken.step(m.shake > limit*limit && !m.falling.on, dt, m.cfg.ShakeFor, m.cfg.ShakeOff) && m.shaken.on {
		ev = ShakeBegan
	}
	m.now.Shaken = m.shaken.on
	return ev
}

// poking: a short shock on the ground, after which it rests as before (VEC-IMU-11); with the lift up and along X a fist bump (VEC-IMU-12).
func (m *Mover) poking(dt time.Duration, quick Vec, in *MotionInput) MotionEvents {
	p, strength := &m.poke, quick.norm()
	if m.now.OffTreads != OnTreads || in.Driven || m.shaken.on {
		*p = poke{phase: 3}
		return 0
	}
	p.since += min(dt, maxGap)
	strong := strength > m.cfg.PokeG/2
	switch p.phase {
	case 0:
		if strength <= m.cfg.PokeG {
			if !strong {
				p.before = m.tilt.up
			}
			return 0
		}
		*p = poke{phase: 1, before: p.before, bump: in.LiftHeight > m.cfg.BumpLift}
		if p.before == (Vec{}) {
			p.before = m.tilt.up
		}
		fallthrough
	case 1:
		if strong {
			p.shock = p.since
		}
		if strength > p.peak {
			p.peak, p.along = strength, math.Abs(quick[0])/strength
		}
		p.tilt = max(p.tilt, p.before.angle(m.tilt.up))
		switch {
		case p.shock > m.cfg.PokeShock:
			*p = poke{phase: 3}
		case p.since >= m.cfg.PokeBack:
			back := p.before.angle(m.tilt.up) < m.cfg.PokePose && strength < m.cfg.PokeG/3
			tilted, bump := p.tilt >= m.cfg.PokeTilt, p.bump && p.along > 0.8
			*p = poke{phase: 3}
			switch {
			case back && bump:
				return FistBump
			case back && tilted:
				return Poked
			}
		}
	default:
		if strong {
			p.since = 0
		}
		if p.since >= m.cfg.PokeBack {
			*p = poke{before: m.tilt.up}
		}
	}
	return 0
}

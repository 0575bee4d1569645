package amigobotsim

import (
	"math"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
)

// cycleSeconds is the period of AmigOS's control loop (AMIGO-MOT-14).
const cycleSeconds = 0.010

// axis is one way that the motion server controls: translation or rotation, or in direct mode a wheel. Its unit is the encoder tick of a wheel;
// rotation counts (right-left)/2.
type axis struct {
	pos, vel float64 // set-point, ticks and ticks/s
	goal     float64 // ticks/s; not used while toward
	toward   bool    // the axis travels to target and stops there
	target   float64 // ticks
	braking  bool    // E_STOP, until the next command for the axis (AMIGO-MOT-10)
	sum      float64 // integral of the position error, ticks*s
}

// limits are those of one axis in ticks/s and ticks/s2.
type limits struct{ vel, acc, dec, brake float64 }

// gains are those of one axis as numbers of the protocol.
type gains struct{ kp, kv, ki float64 }

// pidScale divides the sum of the PID terms, so that the default gains settle within 300 ms (AMIGO-OPEN-08). With ticks for positions, ticks
// per cycle for velocities and ticks*s for the integral it makes a pulse width of -255 to 255.
const pidScale = 256

// hold makes the axis stay at pos, ticks.
func (a *axis) hold(pos float64) { *a = axis{pos: pos} }

// run makes the axis keep a speed, ticks/s.
func (a *axis) run(goal float64) { a.goal, a.toward, a.braking = goal, false, false }

// travel makes the axis stop at target, ticks.
func (a *axis) travel(target float64) { a.target, a.toward, a.braking = target, true, false }

// stop makes the axis slow down to a halt.
func (a *axis) stop() { a.goal, a.toward = 0, false }

// halted reports whether the set-point is where the axis was told to go.
func (a *axis) halted() bool { return a.vel == 0 && (!a.toward || a.pos == a.target) }

// plan moves the set-point by one cycle along a trapezoid of speed (AMIGO-MOT-05, AMIGO-MOT-06). still keeps the goal and lets the axis slow
// down to a halt.
func (a *axis) plan(l limits, still bool) {
	const dt = cycleSeconds
	dec := l.dec
	want := min(max(a.goal, -l.vel), l.vel)
	if a.toward {
		rest := a.target - a.pos
		// The speed from which the axis still stops in time, when this cycle is over.
		half, left := dec*dt/2, math.Abs(rest)-math.Copysign(a.vel*dt/2, a.vel*rest)
		want = math.Copysign(min(l.vel, math.Sqrt(float64(half*half)+max(0, float64(2*dec*left)))-half), rest)
		if !still && math.Abs(rest) <= dec*dt*dt && math.Abs(a.vel) <= 2*dec*dt {
			a.pos, a.vel = a.target, 0
			return
		}
	}
	if a.braking {
		dec = l.brake
	}
	if still || a.braking {
		want = 0
	}
	was := a.vel
	switch {
	case a.vel*want < 0: // it turns back through a halt
		a.vel = approach(a.vel, 0, dec*dt)
	case math.Abs(want) > math.Abs(a.vel):
		a.vel = approach(a.vel, want, l.acc*dt)
	default:
		a.vel = approach(a.vel, want, dec*dt)
	}
	a.pos += float64((was + a.vel) / 2 * dt)
}

// approach returns v brought nearer to goal by at most step.
func approach(v, goal, step float64) float64 { return v + min(max(goal-v, -step), step) }

// pwm returns the pulse width that brings the axis from measured, ticks, to its set-point; moved is how far it went in this cycle
// (AMIGO-PID-02, AMIGO-PID-03).
func (a *axis) pwm(g gains, measured, moved float64) float64 {
	e := a.pos - measured
	a.sum += float64(e * cycleSeconds)
	return (float64(g.kp*e) + float64(g.ki*a.sum) - float64(g.kv*moved)) / pidScale
}

// server is AmigOS's motion server. axes are translation and rotation, or the left and the right wheel in direct mode (AMIGO-MOT-01).
type server struct {
	direct bool
	axes   [2]axis
	headed bool    // the rotation has a heading set-point
	head   float64 // rad, that set-point

	measured [2]float64 // ticks, by axis
	pwm      [2]float64 // by wheel, -255 to 255
	cut      int        // cycles without motor power after a stall
	stalled  [2]bool    // by wheel; stays until the wheel turns (AMIGO-SAFE-04)
	pushed   [2]int     // cycles with a pulse width of StallVal or more
	crept    [2]int     // ticks in that time, or since the stall
}

// wheelsOf converts values of the axes into values of the wheels, and axesOf does the reverse.
func wheelsOf(direct bool, a [2]float64) [2]float64 {
	if direct {
		return a
	}
	return [2]float64{a[0] - a[1], a[0] + a[1]} // AMIGO-MOT-04
}

func axesOf(direct bool, w [2]float64) [2]float64 {
	if direct {
		return w
	}
	return [2]float64{(w[0] + w[1]) / 2, (w[1] - w[0]) / 2}
}

// switchTo changes between direct wheel velocity and motion control. Speeds carry over, goals do not (AMIGO-MOT-02, AMIGO-MOT-03).
func (s *server) switchTo(direct bool) {
	if s.direct == direct {
		return
	}
	pos := axesOf(direct, wheelsOf(s.direct, [2]float64{s.axes[0].pos, s.axes[1].pos}))
	vel := axesOf(direct, wheelsOf(s.direct, [2]float64{s.axes[0].vel, s.axes[1].vel}))
	s.measured = axesOf(direct, wheelsOf(s.direct, s.measured))
	s.direct, s.headed = direct, false
	for i := range s.axes {
		s.axes[i] = axis{pos: pos[i], vel: vel[i]}
	}
}

// clear drops all set-points: the robot holds where it is (AMIGO-CMD-04, AMIGO-MOT-11).
func (s *server) clear() {
	s.headed = false
	for i := range s.axes {
		s.axes[i].hold(s.measured[i])
	}
}

// tuning holds the working gains and turn calibration, which last until a reset (AMIGO-PID-05).
type tuning struct{ rotKp, rotKv, rotKi, transKp, transKv, transKi, revCount uint16 }

func (t *tuning) load(v *flash.Values) {
	get := func(k flash.Key) uint16 { return uint16(v.Int(k)) }
	*t = tuning{get(flash.RotKp), get(flash.RotKv), get(flash.RotKi), get(flash.TransKp), get(flash.TransKv), get(flash.TransKi), get(flash.RevCount)}
}

// motorGain is the share of the way to the speed of its pulse width that a wheel gains in a cycle: a motor with a time constant of 40 ms (own
// default).
const motorGain = 0.2212

// Physical limits of speed (AMIGO-MOT-08).
const (
	wheelCeiling = 0.750               // m/s
	turnCeiling  = 300 * math.Pi / 180 // rad/s
)

// track is the distance between the wheels, m, that makes RevCount's default right (AMIGO-POS-04).
const track = 23310 / sip.TicksPerMetre / math.Pi

// deg is one degree in radians.
const deg = math.Pi / 180

// ticksPerRad is how many ticks of rotation a radian is, as the robot believes (AMIGO-POS-05).
func (t *tuning) ticksPerRad() float64 { return float64(t.revCount) / (2 * math.Pi) }

// limits returns those of axis i.
func (r *Robot) limits(i int) limits {
	trans := limits{
		float64(r.limit.transVel) / 1000 * sip.TicksPerMetre, float64(r.limit.transAcc) / 1000 * sip.TicksPerMetre,
		float64(r.limit.transDec) / 1000 * sip.TicksPerMetre, r.flashed(flash.TransAccTop) / 1000 * sip.TicksPerMetre,
	}
	switch {
	case r.motion.direct:
		trans.vel = r.flashed(flash.TransVelTop) / 1000 * sip.TicksPerMetre // AMIGO-MOT-07
		return trans
	case i == 0:
		return trans
	}
	k := r.tune.ticksPerRad() * deg
	return limits{float64(r.limit.rotVel) * k, float64(r.limit.rotAcc) * k, float64(r.limit.rotDec) * k, r.flashed(flash.RotAccTop) * k}
}

// flashed returns the number k of the FLASH.
func (r *Robot) flashed(k flash.Key) float64 { return float64(r.params.Int(k)) }

// drive is one cycle of the motion server: it measures, plans, sets the pulse widths and watches for a stall (AMIGO-MOT-14).
func (r *Robot) drive(moved [2]int) {
	s := &r.motion
	moves := axesOf(s.direct, [2]float64{float64(moved[0]), float64(moved[1])})
	for i := range s.measured {
		s.measured[i] += moves[i]
	}
	s.pwm = [2]float64{}
	defer r.watchStall(moved)
	if !r.motors || s.cut > 0 { // the goals stay while power is cut (AMIGO-OPEN-18)
		for i := range s.axes {
			s.axes[i].pos, s.axes[i].vel, s.axes[i].sum = s.measured[i], 0, 0
		}
		return
	}
	before := s.axes
	gain := [2]gains{
		{float64(r.tune.transKp), float64(r.tune.transKv), float64(r.tune.transKi)},
		{float64(r.tune.rotKp), float64(r.tune.rotKv), float64(r.tune.rotKi)},
	}
	if s.direct {
		gain[1] = gain[0] // AMIGO-PID-04
	}
	var axes [2]float64
	for i := range s.axes {
		a := &s.axes[i]
		a.plan(r.limits(i), r.silent)
		axes[i] = a.pwm(gain[i], s.measured[i], moves[i])
	}
	s.pwm = wheelsOf(s.direct, axes)
	top := r.flashed(flash.PwmMax)
	for i, v := range s.pwm {
		if s.pwm[i] = math.Round(min(max(v, -top), top)); math.Abs(v) > top { // a motor at its limit: no set-point runs away from it
			for j, a := range before {
				way := s.axes[j].pos - a.pos
				s.axes[j].pos, s.axes[j].sum = a.pos+min(max(moves[j], min(way, 0)), max(way, 0)), a.sum
			}
		}
	}
}

// A wheel is stalled that turns by less than stallTicks in stallCycles of full push (AMIGO-OPEN-09).
const (
	stallTicks  = 5
	stallCycles = 10
)

// watchStall cuts the motor power for a while if a wheel that is pushed does not turn (AMIGO-SAFE-03).
func (r *Robot) watchStall(moved [2]int) {
	s := &r.motion
	s.cut = max(0, s.cut-1)
	for i, m := range moved {
		s.crept[i] += max(m, -m)
		switch {
		case s.crept[i] >= stallTicks:
			s.stalled[i], s.pushed[i], s.crept[i] = false, 0, 0
		case math.Abs(s.pwm[i]) < r.flashed(flash.StallVal):
			s.pushed[i] = 0
			if !s.stalled[i] {
				s.crept[i] = 0
			}
		default:
			if s.pushed[i]++; s.pushed[i] < stallCycles {
				continue
			}
			s.stalled[i], s.pushed[i], s.crept[i] = true, 0, 0
			s.cut = r.params.Int(flash.StallCount) / 10
			r.play(soundset.Stall)
		}
	}
}

// wheels lets the motors and the world move the robot by one cycle, and returns the counts of its encoders.
func (r *Robot) wheels() (moved [2]int) {
	for i := range r.speed {
		full := r.motion.pwm[i]/255 - r.drag[i]
		r.speed[i] += float64((float64(full*wheelCeiling) - r.speed[i]) * motorGain)
		if r.faults.Blocked[i] || r.now < r.held {
			r.speed[i] = 0
		}
	}
	if over := math.Abs(r.speed[1]-r.speed[0]) - turnCeiling*track; over > 0 {
		half := math.Copysign(over/2, r.speed[1]-r.speed[0])
		r.speed[0] += half
		r.speed[1] -= half
	}
	way, floor := [2]float64{}, r.speed
	for i, off := range r.faults.Off {
		if off {
			floor[i] = 0
		}
	}
	way[0], way[1] = r.world.Step(cycle, floor[0], floor[1])
	for i := range way {
		if r.faults.Off[i] {
			way[i] = float64(r.speed[i] * cycleSeconds)
		}
		r.speed[i] = way[i] / cycleSeconds
		before := math.Floor(r.way[i] * sip.TicksPerMetre)
		r.way[i] += way[i]
		if !r.faults.DeadEncoder[i] {
			moved[i] = int(math.Floor(r.way[i]*sip.TicksPerMetre) - before)
		}
		r.ticks[i] += int32(moved[i])
	}
	return moved
}

// reckon integrates the encoders' counts of a cycle, along an arc (AMIGO-POS-02).
func (r *Robot) reckon(moved [2]int) {
	turn := float64(moved[1]-moved[0]) / 2 / r.tune.ticksPerRad()
	ahead := float64(moved[0]+moved[1]) / 2 / sip.TicksPerMetre
	sin, cos := math.Sincos(r.pose[2] + turn/2)
	r.pose[0] += float64(ahead * cos)
	r.pose[1] += float64(ahead * sin)
	r.pose[2] = math.Remainder(r.pose[2]+turn, 2*math.Pi)
}

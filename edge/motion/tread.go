package motion

import "math"

// MotorConfig describes a motor to its loops. All values are own defaults until measured.
type MotorConfig struct {
	Index    int     // in body.Sense.Motors
	Count    float64 // one count of the encoder, rad
	FullRate float64 // speed at full duty, rad/s (treads: m/s)
	Lag      float64 // s, how slowly it follows, at least: a guess that is too high speeds it up too hard
	Friction float64 // duty that overcomes it, at least
	MaxDuty  float64 // 0 to 1
	P        float64 // joints: 1/s, speed per error of position. Treads: duty per m/s
	D        float64 // joints: speed per error of speed
	I        float64 // duty per second and error
	MaxI     float64 // duty that the integral may have
	Guard    GuardConfig
}

// tread controls the speed of one tread (VEC-MOT-05).
type tread struct {
	cfg    MotorConfig
	est    estimator
	guard  Guard
	ref    float64 // m/s, within the acceleration
	before float64 // the ref of the step before
	integ  float64
	duty   float64
}

// held is how far the plan of a tread may be ahead of it: enough to push. Own default, m/s.
const held = 0.06

func (t *tread) reset() { t.ref, t.before, t.integ, t.duty = 0, 0, 0, 0; t.guard.rest() }

// step returns the duty for a speed of want, in m/s, that may change by accel. A tread that shall stand has no power: a hand may turn it
// (VEC-MOT-08).
func (t *tread) step(want, accel, dt float64) float64 {
	before := t.ref
	t.before = before
	t.ref = min(max(want, t.ref-accel*dt), t.ref+accel*dt)
	if t.ref == 0 && want == 0 {
		t.reset()
		t.guard.cool(dt)
		return 0
	}
	if t.ref*before < 0 {
		t.integ = 0
	}
	miss := t.ref - t.est.v
	duty := (t.ref+t.cfg.Lag*(t.ref-before)/dt)/t.cfg.FullRate + math.Copysign(t.cfg.Friction, t.ref) + t.cfg.P*miss + t.integ
	asked := min(max(duty, -t.cfg.MaxDuty), t.cfg.MaxDuty)
	t.duty = t.guard.Limit(asked, t.est.v, dt)
	switch {
	case t.duty != asked:
		t.integ = 0 // the guard holds power back
	case miss*duty < 0 && math.Abs(miss) > held/4:
		t.integ = 0 // the obstacle that held it is gone
	case asked == duty || miss*duty < 0: // no winding up against a limit
		t.integ = min(max(t.integ+t.cfg.I*miss*dt, -t.cfg.MaxI), t.cfg.MaxI)
	}
	// The plan stays near what the tread really does, so that nothing leaps when a hand lets go or power returns.
	t.ref = min(max(t.ref, t.est.v-held), t.est.v+held)
	return t.duty
}

// coast assumes, where a frame is missing, that the tread follows its plan.
func (t *tread) coast() { t.est.v += t.ref - t.before }

// load is how much harder it pushes than its speed takes, 0 to 1.
func (t *tread) load() float64 {
	return min(max(math.Abs(t.duty)-math.Abs(t.est.v)/t.cfg.FullRate-t.cfg.Friction, 0), 1)
}

package sense

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/power"
)

// Vec is a vector in X, Y, Z.
type Vec [3]float64

func (a Vec) add(b Vec) Vec       { return Vec{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }
func (a Vec) sub(b Vec) Vec       { return Vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a Vec) scale(k float64) Vec { return Vec{k * a[0], k * a[1], k * a[2]} }
func (a Vec) dot(b Vec) float64   { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a Vec) norm() float64       { return math.Sqrt(a.dot(a)) }
func (a Vec) finite() bool        { return !math.IsNaN(a.dot(a)) && !math.IsInf(a.dot(a), 0) }
func (a Vec) angle(b Vec) float64 { return math.Atan2(a.cross(b).norm(), a.dot(b)) }
func (a Vec) cross(b Vec) Vec {
	return Vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// raised turns a from the frame of a head that is raised by angle into the body's.
func (a Vec) raised(angle float64) Vec {
	sin, cos := math.Sincos(angle)
	return Vec{cos*a[0] - sin*a[2], a[1], sin*a[0] + cos*a[2]}
}

func (a Vec) toward(b Vec, dt, tau time.Duration) Vec {
	return Vec{power.Filter(a[0], b[0], dt, tau), power.Filter(a[1], b[1], dt, tau), power.Filter(a[2], b[2], dt, tau)}
}

// ToBody turns what a sensor in the head feels into the body's frame (VEC-IMU-02). The head is raised by angle and rises at rate, in rad and
// rad/s. neck is the joint from the body's origin: of what turning adds at the joint only the pull towards the axis is taken off, because
// the other part needs the change of the rate, which is mostly noise.
func ToBody(accel, gyro Vec, angle, rate float64, neck Vec) (a, w Vec) {
	w = gyro.raised(angle)
	w[1] += rate // raising the nose is a negative turn about Y
	return accel.raised(angle).sub(w.cross(w.cross(neck))), w
}

// GyroState says whether the gyro's bias is known (VEC-IMU-16).
type GyroState uint8

// The states.
const (
	GyroPending    GyroState = iota // the robot was not still long enough yet
	GyroCalibrated                  //
	GyroFailed                      // the robot rests and its gyro says otherwise: shutdown cause 4, fault 701
)

var gyroNames = [...]string{"pending", "calibrated", "failed"}

func (g GyroState) String() string {
	if int(g) < len(gyroNames) {
		return gyroNames[g]
	}
	return fmt.Sprintf("gyro(%d)", uint8(g))
}

// Tilt blends accelerometer and gyro: the one knows where up is as long as nothing moves, the other follows fast turns and drifts
// (VEC-IMU-01). NewTilt makes one.
type Tilt struct {
	cfg *MotionConfig

	begun   bool
	up      Vec // unit vector in the body's frame
	heading float64
	bias    Vec // in the head's frame, in which the gyro sits
	state   GyroState

	rates, accels spread
	mean          Vec           // rate
	rateDev       float64       // rad/s, standard deviation of all axes together
	still         steady        // by both sensors
	resting       steady        // by the accelerometer alone
	bad           time.Duration // at rest while pending
}

// spread is mean and standard deviation of the last quarter of a second, kept in blocks: what was strong is forgotten all at once, not
// bit by bit.
type spread struct {
	blocks [8]struct {
		n, squares float64
		sum        Vec
	}
	now   int
	age   time.Duration // of the block of the moment
	begun int           // blocks, up to all
}

const spreadBlock = 32 * time.Millisecond

// add takes in v, dt after the value before, and returns mean and deviation; the deviation is endless until the blocks are full.
func (s *spread) add(dt time.Duration, v Vec) (mean Vec, deviation float64) {
	if s.age += dt; s.age >= spreadBlock {
		s.now, s.age = (s.now+1)%len(s.blocks), 0
		s.blocks[s.now].n, s.blocks[s.now].squares, s.blocks[s.now].sum = 0, 0, Vec{}
		s.begun = min(s.begun+1, len(s.blocks))
	}
	b := &s.blocks[s.now]
	b.n, b.squares, b.sum = b.n+1, b.squares+v.dot(v), b.sum.add(v)
	n, squares := 0.0, 0.0
	for i := range s.blocks {
		n, squares, mean = n+s.blocks[i].n, squares+s.blocks[i].squares, mean.add(s.blocks[i].sum)
	}
	mean = mean.scale(1 / n)
	if s.begun < len(s.blocks) {
		return mean, math.Inf(1)
	}
	return mean, math.Sqrt(max(0, squares/n-mean.dot(mean)))
}

func newTilt(cfg *MotionConfig) Tilt { return Tilt{cfg: cfg, up: Vec{0, 0, 1}} }

// step takes in accelerations and rates in the body's frame, while the head is raised by angle, and returns the rates without the bias. driven: motors move, so
// nothing is learnt about the gyro.
func (t *Tilt) step(dt time.Duration, accel, gyro Vec, angle float64, driven bool) (w Vec) {
	if !t.begun {
		t.begun = true
		if n := accel.norm(); n > 0 {
			t.up = accel.scale(1 / n)
		}
	}
	var accelDev float64
	t.mean, t.rateDev = t.rates.add(dt, gyro)
	_, accelDev = t.accels.add(dt, accel)

	quiet := accelDev < t.cfg.StillAccel && !driven
	calm := quiet && t.rateDev < t.cfg.StillRate && t.mean.norm() < t.cfg.MaxBias
	t.still.step(calm, dt, t.cfg.Still, 0)
	t.resting.step(quiet, dt, t.cfg.Still, 0)
	switch {
	case t.still.on && t.state != GyroCalibrated:
		t.bias, t.state = t.mean.raised(-angle), GyroCalibrated
	case t.still.on:
		t.bias = t.bias.toward(t.mean.raised(-angle), dt, t.cfg.BiasTau)
	case t.resting.on && !calm && t.state == GyroPending:
		if t.bad += min(max(dt, 0), maxGap); t.bad >= t.cfg.GyroFail {
			t.state = GyroFailed
		}
	}

	w = gyro.sub(t.bias.raised(angle))
	s := min(max(dt, 0), maxGap).Seconds()
	t.heading = math.Remainder(t.heading+w.dot(t.up)*s, 2*math.Pi)
	t.up = t.up.sub(w.cross(t.up).scale(s)) // the world turns the other way
	if n := accel.norm(); math.Abs(n-Gravity) <= t.cfg.TiltG*Gravity {
		t.up = t.up.toward(accel.scale(1/n), dt, t.cfg.TiltTau)
	}
	if n := t.up.norm(); n > 1e-6 {
		t.up = t.up.scale(1 / n)
	} else {
		t.up = Vec{0, 0, 1} // between two opposite opinions; the next ones decide
	}
	return w
}

// pitch is nose down for positive values, roll left side up; both in rad.
func (t *Tilt) pitch() float64 { return math.Atan2(-t.up[0], math.Hypot(t.up[1], t.up[2])) }
func (t *Tilt) roll() float64  { return math.Atan2(t.up[1], t.up[2]) }

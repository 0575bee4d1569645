package vectorsim

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/sim/plane"
)

// shape is Vector's body as a world takes it: 100 mm long and 60 mm wide, with a range finder low in front and a cliff sensor in each
// corner. The source gives no places: own defaults.
func shape(c *vectordriver.Calibration) plane.Robot {
	const ahead, aside = 0.035, 0.018
	cliffs := make([]plane.Vec, 4)
	cliffs[spine.FrontLeft], cliffs[spine.FrontRight] = plane.Vec{ahead, aside}, plane.Vec{ahead, -aside}
	cliffs[spine.BackLeft], cliffs[spine.BackRight] = plane.Vec{-ahead, aside}, plane.Vec{-ahead, -aside}
	return plane.Robot{
		Track: c.TrackWidth, Nose: 0.045, Tail: 0.055, Width: 0.060,
		Range: plane.Mount{X: 0.045, Z: 0.025}, RangeMin: c.ProxMin, RangeMax: c.ProxMax,
		Cliffs:        cliffs,
		SlipShare:     0.2,                                                    // rubber treads: a wall stalls them more than they slip
		InertialNoise: 0.03, GyroNoise: 0.002, HandRate: 0.15, HandAccel: 0.4, // a tremor of 8 Hz, 5 cm from its axis
	}
}

// forkAt returns where the hooks of the lift are at an angle of its arm: how far ahead of the body's origin, and how high. The arm and its joint are own geometry; low, the hooks reach 4 mm past
// the body's front (own default).
func forkAt(angle float64) (ahead, up float64) {
	const joint, arm, reach = 0.045, 0.066, 0.049
	sin, cos := math.Sincos(angle)
	return reach + float64(arm*(cos-math.Cos(liftStops[0]))), joint + float64(arm*sin)
}

// enter puts the body into a world, which Validate has seen.
func (w *world) enter(m *plane.Map) {
	ground, err := plane.New(m, shape(&w.cfg.Calibration), w.cfg.Seed)
	if err != nil {
		panic(fmt.Errorf("vectorsim: %w", err))
	}
	w.ground, w.cubes = ground, cubesOf(ground, w.cfg.Seed)
	w.ground.MoveFork(forkAt(w.angle[spine.Lift]))
	w.prox = openRange
	w.onCharger = false
	w.setCharger(w.cfg.OnCharger)
}

// roll lets the treads move the body in its world. Whatever blocks the body blocks them too: their encoders count the real turns.
func (w *world) roll(dt time.Duration) {
	radius := w.cfg.Calibration.WheelRadius
	l, r := w.ground.Step(dt, float64(w.rate[spine.LeftTread]*radius), float64(w.rate[spine.RightTread]*radius))
	for i, way := range [2]float64{spine.LeftTread: l, spine.RightTread: r} {
		turned := way / radius
		if told := float64(w.rate[i] * dt.Seconds()); math.Abs(turned-told) > 1e-9 {
			w.rate[i] = turned / dt.Seconds()
		}
		w.shift(i, turned)
	}
	w.feelCubes(dt)
	w.feelCharger()
}

// feelCharger takes over the state of the charger's contacts, if the world has a charger.
func (w *world) feelCharger() {
	if w.ground.HasCharger() {
		w.onCharger = w.ground.Contact()
	}
}

// setCharger is a hand that puts the body on its charger or takes it off. In a world something may be in the way, or the body may be
// falling: it then stays where it is.
func (w *world) setCharger(on bool) {
	switch {
	case w.ground == nil || !w.ground.HasCharger():
		w.onCharger = on
		return
	case on == w.onCharger:
		return
	case on:
		_ = w.ground.PutOnCharger() // as said
	default:
		_ = w.ground.TakeOffCharger()
	}
	w.feelCharger()
}

// ahead returns the range finder's distance in millimetres.
func (w *world) ahead() uint16 {
	if w.ground == nil {
		return w.prox
	}
	if d := w.ground.Range(); d > 0 {
		return min(w.prox, uint16(math.Round(d*1000)))
	}
	return w.prox
}

// below returns the raw reading of a cliff sensor.
func (w *world) below(sensor int) uint16 {
	if w.ground == nil {
		return w.cliffs[sensor]
	}
	return uint16(min(math.Round(float64(w.cliffs[sensor])*w.ground.Shade(sensor)), math.MaxUint16))
}

// World returns what is around the body, and false if it is nowhere.
func (b *Board) World() (plane.State, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.world.ground == nil {
		return plane.State{}, false
	}
	return b.world.ground.State(), true
}

// InWorld runs fn on the body's world between two periods, and returns fn's error. It is an error if the body is
// nowhere.
func (b *Board) InWorld(fn func(*plane.World) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.world.ground == nil {
		return fmt.Errorf("vectorsim: the body has no world, want Config.World")
	}
	return fn(b.world.ground)
}

// neck is the height of the head's joint over the body's origin, and where its inertial sensors are (own default, as the senses').
const neck = 0.045 // m

// feelFlat sets what a body without a world feels: a level floor, on which its treads never slip.
func (w *world) feelFlat(dt time.Duration) {
	radius := w.cfg.Calibration.WheelRadius
	l, r := float64(w.rate[spine.LeftTread]*radius), float64(w.rate[spine.RightTread]*radius)
	ahead, yaw := (l+r)/2, (r-l)/w.cfg.Calibration.TrackWidth
	w.flat.Accel = [3]float64{(ahead - w.flatSpeed) / dt.Seconds(), float64(ahead * yaw), plane.Gravity}
	w.flat.Gyro = [3]float64{0, 0, yaw}
	w.flatSpeed = ahead
}

// Inertial returns the acceleration and turning of the head, in its axes, in m/s2 and rad/s. The sensors are on the head's own processor,
// so the board's wire does not carry them (IMU is their chip). While the world is frozen, because the machine has no time for Run, nothing
// turns.
func (b *Board) Inertial() (accel, gyro [3]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.world
	in := w.flat
	if w.ground != nil {
		in = w.ground.Inertia()
	}
	a, g, nod := in.Accel, in.Gyro, w.rate[spine.Head]
	if b.turned > 0 && monoclock.Now()-b.turned > mostAtOnce*vectordriver.Period {
		g, nod = [3]float64{}, 0
	}
	// Turning pulls on what sits off the axis: g x (g x neck), the neck being straight up.
	a[0] += float64(neck * float64(g[0]*g[2]))
	a[1] += float64(neck * float64(g[1]*g[2]))
	a[2] -= float64(neck * (float64(g[0]*g[0]) + float64(g[1]*g[1])))
	g[1] -= nod // raising the nose is a negative turn about Y
	sin, cos := math.Sincos(w.angle[spine.Head])
	turn := func(v [3]float64) [3]float64 {
		return [3]float64{float64(cos*v[0]) + float64(sin*v[2]), v[1], float64(cos*v[2]) - float64(sin*v[0])}
	}
	return turn(a), turn(g)
}

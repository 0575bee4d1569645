package sense

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// rig is a body with a Mover on it: it turns and is pushed as told, and its sensors are as noisy as real ones.
type rig struct {
	*Mover
	t   *testing.T
	rng *rand.Rand
	up  Vec // in its own frame

	bias               Vec
	accNoise, gyrNoise float64
	noFloor, driven    bool
	lift               float64
	now                time.Duration
	changed            time.Duration // when the off-treads state last did
}

func newRig(t *testing.T, seed uint64) *rig {
	return &rig{Mover: NewMover(Default().Motion), t: t, rng: rand.New(rand.NewPCG(seed, 5)), up: Vec{0, 0, 1}, accNoise: 0.05, gyrNoise: 0.003,
		lift: 0.032, changed: -time.Hour}
}

func (r *rig) noise(sigma float64) Vec {
	return Vec{sigma * r.rng.NormFloat64(), sigma * r.rng.NormFloat64(), sigma * r.rng.NormFloat64()}
}

// step is one frame turning at w, pushed by a (m/s2, own frame), with that part of gravity to be felt.
func (r *rig) step(w, a Vec, g float64) MotionEvents {
	r.t.Helper()
	r.up = r.up.sub(w.cross(r.up).scale(frame.Seconds()))
	r.up = r.up.scale(1 / r.up.norm())
	r.now += frame
	before := r.Motion()
	ev := r.Step(frame, MotionInput{
		Accel: r.up.scale(g * Gravity).add(a).add(r.noise(r.accNoise)), Gyro: w.add(r.bias).add(r.noise(r.gyrNoise)),
		LiftHeight: r.lift, NoFloor: r.noFloor, Driven: r.driven,
	})
	r.check(before, ev)
	return ev
}

// check holds what must always hold.
func (r *rig) check(before Motion, ev MotionEvents) {
	r.t.Helper()
	m := r.Motion()
	off := m.OffTreads != OnTreads && m.OffTreads != Unsettled
	switch {
	case m.Held && !m.PickedUp:
		r.t.Fatalf("%v: held but not picked up (VEC-IMU-09)", r.now)
	case m.HeldInPalm && !m.Held:
		r.t.Fatalf("%v: in a palm but not held (VEC-IMU-10)", r.now)
	case m.PickedUp != off:
		r.t.Fatalf("%v: picked up %v in state %v (VEC-IMU-08)", r.now, m.PickedUp, m.OffTreads)
	case m.Falling && m.OffTreads != Falling:
		r.t.Fatalf("%v: falling, but %v (VEC-IMU-06: no dwell)", r.now, m.OffTreads)
	case (m.OffTreads != before.OffTreads) != (ev&OffTreadsChanged != 0):
		r.t.Fatalf("%v: %v to %v, events %b", r.now, before.OffTreads, m.OffTreads, ev)
	case m.OffTreads == before.OffTreads:
		return
	case m.OffTreads != Falling && r.now-r.changed < 250*ms:
		r.t.Fatalf("%v: %v to %v %v after the last change (VEC-IMU-06: 250 ms)", r.now, before.OffTreads, m.OffTreads, r.now-r.changed)
	}
	r.changed = r.now
}

// rest lets d pass without motion.
func (r *rig) rest(d time.Duration) (all MotionEvents) {
	r.t.Helper()
	return r.move(d, func(time.Duration) (Vec, Vec) { return Vec{}, Vec{} })
}

// move lets d pass as f says.
func (r *rig) move(d time.Duration, f func(at time.Duration) (w, a Vec)) (all MotionEvents) {
	r.t.Helper()
	for at := time.Duration(0); at < d; at += frame {
		w, a := f(at)
		all |= r.step(w, a, 1)
	}
	return all
}

// turn turns it by angle about axis in d.
func (r *rig) turn(axis int, angle float64, d time.Duration) MotionEvents {
	r.t.Helper()
	n := float64((d + frame - 1) / frame)
	return r.move(d, func(time.Duration) (w, a Vec) {
		w[axis] = angle / (n * frame.Seconds())
		return w, a
	})
}

// tremor is a hand's: about 9 Hz.
func tremor(rate float64) func(time.Duration) (Vec, Vec) {
	return func(at time.Duration) (Vec, Vec) {
		s := at.Seconds() * 2 * math.Pi
		return Vec{rate * math.Sin(9*s), rate * math.Sin(8*s+1), rate / 2 * math.Sin(10*s+2)}, Vec{0.2 * math.Sin(9*s), 0.2 * math.Sin(8*s),
			0.3 * math.Sin(7*s)}
	}
}

// raise lifts it off the floor as a hand does.
func (r *rig) raise() (all MotionEvents) {
	r.t.Helper()
	hand := tremor(0.1)
	all = r.move(100*ms, func(at time.Duration) (Vec, Vec) {
		w, a := hand(at)
		return w, a.add(Vec{0, 0, 3})
	})
	r.noFloor = true
	return all | r.move(100*ms, func(at time.Duration) (Vec, Vec) {
		w, a := hand(at)
		return w, a.add(Vec{0, 0, -3})
	}) | r.move(600*ms, hand)
}

func (r *rig) want(what string, s OffTreads) {
	r.t.Helper()
	if got := r.Motion().OffTreads; got != s {
		r.t.Fatalf("%s: %v, want %v", what, got, s)
	}
}

// VEC-IMU-06: a state is published after 250 ms, falling at once.
func TestStateMustBeStable(t *testing.T) {
	r := newRig(t, 1)
	r.rest(250 * ms)
	r.want("just put on the floor", Unsettled)
	r.rest(20 * ms)
	r.want("after 250 ms", OnTreads)
	r.rest(2 * time.Second)
	// Tilted beyond upright for 200 ms only.
	r.turn(0, 50*degree, 100*ms)
	r.rest(100 * ms)
	r.turn(0, -50*degree, 100*ms)
	r.rest(time.Second)
	r.want("tilted for 200 ms", OnTreads)
	r.turn(0, 50*degree, 100*ms)
	if ev := r.rest(500 * ms); ev&(OffTreadsChanged|Delocalized) != OffTreadsChanged|Delocalized {
		t.Errorf("tilted for good: events %b, want a change and delocalized (VEC-IMU-18)", ev)
	}
	r.want("tilted for good", InAir)
}

// VEC-IMU-06: on back, face and sides; X forward, Y left, Z up (VEC-IMU-03).
func TestLyingStates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		axis  int
		angle float64
		want  OffTreads
	}{
		{"nose up", 1, -90, OnBack},
		{"nose down", 1, 90, OnFace},
		{"left side down", 0, -90, OnLeftSide},
		{"right side down", 0, 90, OnRightSide},
		{"upside down", 0, 179, OnBack},
		{"on the charger's ramp (VEC-IMU-04)", 1, -12, OnTreads},
		{"on a slope of 29 degrees", 0, 29, OnTreads},
		{"beyond 30 degrees, on nothing clear", 0, 40, InAir},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, 2)
			r.rest(2 * time.Second)
			r.turn(tc.axis, tc.angle*degree, 500*ms)
			r.rest(3 * time.Second)
			r.want(tc.name, tc.want)
			if m := r.Motion(); m.PickedUp != (tc.want != OnTreads) || m.Held || m.Falling {
				t.Errorf("%+v, want picked up %v and neither held nor falling (VEC-IMU-08)", m, tc.want != OnTreads)
			}
			if tc.axis == 1 && math.Abs(r.Motion().Pitch-tc.angle*degree) > degree {
				t.Errorf("pitch %.1f degrees, want %v: nose down is positive", r.Motion().Pitch/degree, tc.angle)
			}
			if tc.axis == 0 && math.Abs(r.Motion().Roll-tc.angle*degree) > degree {
				t.Errorf("roll %.1f degrees, want %v", r.Motion().Roll/degree, tc.angle)
			}
		})
	}
}

// VEC-IMU-07: below 0.35 g for 80 ms is a fall, and 2.5 g afterwards its impact.
func TestFalling(t *testing.T) {
	for _, tc := range []struct {
		name   string
		g      float64
		frames int
		falls  bool
	}{
		{"0.36 g for half a second", 0.36, 98, false},
		{"0.34 g for 77 ms", 0.34, 16, false},
		{"0.34 g for 87 ms", 0.34, 18, true},
		{"weightless for 200 ms", 0, 40, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, 3)
			r.accNoise = 0
			r.rest(2 * time.Second)
			r.noFloor = true
			var all MotionEvents
			for range tc.frames {
				all |= r.step(Vec{}, Vec{}, tc.g)
			}
			if (all&FallBegan != 0) != tc.falls || r.Motion().Falling != tc.falls {
				t.Errorf("events %b, falling %v, want %v", all, r.Motion().Falling, tc.falls)
			}
			if tc.falls {
				r.want("while it falls", Falling)
			}
			if ev := r.step(Vec{}, Vec{}, 2.4); ev&FallImpact != 0 {
				t.Error("2.4 g is an impact")
			}
			if ev := r.step(Vec{}, Vec{}, 2.6); (ev&FallImpact != 0) != tc.falls || r.Motion().Falling {
				t.Errorf("2.6 g: events %b, falling %v", ev, r.Motion().Falling)
			}
			r.noFloor = false
			if ev := r.rest(3 * time.Second); ev&(FallImpact|FallBegan) != 0 {
				t.Errorf("afterwards: events %b", ev)
			}
			r.want("afterwards", OnTreads)
		})
	}
}

// VEC-IMU-07: tumbling away from the surface is a fall; turning on the spot is none, nor is tumbling with the floor in view.
func TestTumbling(t *testing.T) {
	for _, tc := range []struct {
		name    string
		axis    int
		noFloor bool
		want    bool
	}{{"about X, no floor", 0, true, true}, {"about Y, no floor", 1, true, true}, {"on the spot", 2, true, false},
		{"about X over the floor", 0, false, false}} {
		r := newRig(t, 4)
		r.rest(2 * time.Second)
		r.noFloor = tc.noFloor
		if ev := r.turn(tc.axis, 2.5, 150*ms); (ev&FallBegan != 0) != tc.want {
			t.Errorf("%s: events %b, want a fall %v", tc.name, ev, tc.want)
		}
	}
}

func TestCaughtInTheAir(t *testing.T) {
	r := newRig(t, 5)
	r.rest(2 * time.Second)
	r.noFloor = true
	for range 30 {
		r.step(Vec{}, Vec{}, 0)
	}
	if ev := r.move(time.Second, tremor(0.1)); ev&FallImpact != 0 || r.Motion().Falling {
		t.Errorf("events %b, falling %v", ev, r.Motion().Falling)
	}
	r.want("in a hand", InAir)
	for range 3 {
		if ev := r.step(Vec{}, Vec{}, 3); ev&FallImpact != 0 {
			t.Error("a knock much later is the impact of that fall")
		}
	}
}

// VEC-IMU-08, VEC-IMU-09, VEC-IMU-10: picked up, held after half a second, in a palm after another second; put down again.
func TestPickedUpHeldAndPutDown(t *testing.T) {
	r := newRig(t, 6)
	r.rest(2 * time.Second)
	if ev := r.raise(); ev&Delocalized == 0 {
		t.Errorf("events %b, want delocalized (VEC-IMU-18)", ev)
	}
	r.want("raised", InAir)
	if m := r.Motion(); !m.PickedUp || !m.InMotion {
		t.Errorf("%+v, want picked up and in motion (VEC-IMU-14)", m)
	}
	r.move(300*ms, tremor(0.1))
	if !r.Motion().Held {
		t.Error("not held after more than half a second of tremor (VEC-IMU-09)")
	}
	if r.Motion().HeldInPalm {
		t.Error("in a palm before a second of being held (VEC-IMU-10)")
	}
	r.noFloor = false // the palm is under the cliff sensors
	r.move(1200*ms, tremor(0.1))
	if !r.Motion().HeldInPalm {
		t.Error("not in a palm after a second, upright (VEC-IMU-10)")
	}
	r.turn(0, 25*degree, 200*ms)
	r.move(700*ms, tremor(0.1))
	if m := r.Motion(); m.HeldInPalm || !m.Held {
		t.Errorf("%+v: tilted 25 degrees it is held, not in a palm (VEC-IMU-10: within 20)", m)
	}
	r.turn(0, -25*degree, 200*ms)
	r.rest(2 * time.Second)
	if m := r.Motion(); m.PickedUp || m.Held {
		t.Errorf("put down: %+v", m)
	}
	r.want("put down", OnTreads)
}

// VEC-IMU-09: too little is a table, too much is no tremor.
func TestHeldLimits(t *testing.T) {
	for _, tc := range []struct {
		rate float64
		want bool
	}{{0.005, false}, {0.1, true}, {0.5, true}, {3, false}} {
		r := newRig(t, 7)
		r.rest(2 * time.Second)
		r.turn(1, -90*degree, 300*ms)
		r.move(3*time.Second, tremor(tc.rate))
		if m := r.Motion(); m.Held != tc.want || !m.PickedUp {
			t.Errorf("tremor of %v rad/s: held %v, %v, want %v", tc.rate, m.Held, m.OffTreads, tc.want)
		}
	}
}

// VEC-IO-21: cliff sensors alone do not make it fly: it may stand on black glass. With the tremor of a hand they do.
func TestBlackGlass(t *testing.T) {
	r := newRig(t, 8)
	r.rest(2 * time.Second)
	r.noFloor = true
	r.rest(5 * time.Second)
	r.want("no floor seen, nothing felt", OnTreads)
	r.driven = true
	r.move(2*time.Second, tremor(0.3)) // its own motors
	r.driven = false
	r.want("driving there", OnTreads)
	r.move(time.Second, tremor(0.1))
	r.want("no floor and a hand", InAir)
	r.rest(3 * time.Second)
	r.want("put back on it", OnTreads)
}

// Table tops tremble too: with floor in view that is no hand.
func TestTremblingTable(t *testing.T) {
	r := newRig(t, 9)
	r.rest(2 * time.Second)
	r.move(5*time.Second, tremor(0.1))
	if m := r.Motion(); m.OffTreads != OnTreads || m.Held {
		t.Errorf("%+v", m)
	}
}

// VEC-IMU-18.
func TestTooLongInAir(t *testing.T) {
	r := newRig(t, 10)
	r.rest(2 * time.Second)
	r.raise()
	if ev := r.move(58*time.Second, tremor(0.1)); ev&TooLongInAir != 0 {
		t.Error("too early")
	}
	if ev := r.move(3*time.Second, tremor(0.1)); ev&TooLongInAir == 0 {
		t.Error("not after a minute")
	}
	if ev := r.move(61*time.Second, tremor(0.1)); ev&TooLongInAir != 0 {
		t.Error("told twice")
	}
}

// VEC-IMU-13.
func TestShaken(t *testing.T) {
	r := newRig(t, 11)
	r.rest(2 * time.Second)
	r.raise()
	shake := func(g float64) func(time.Duration) (Vec, Vec) {
		return func(at time.Duration) (Vec, Vec) {
			return Vec{}, Vec{0, g * Gravity * math.Sin(2*math.Pi*5*at.Seconds()), 0}
		}
	}
	if ev := r.move(2*time.Second, shake(0.5)); ev&ShakeBegan != 0 || r.Motion().Shaken {
		t.Errorf("swung gently: shaken, %v g", r.Motion().Shake)
	}
	if ev := r.move(2*time.Second, shake(2)); ev&ShakeBegan == 0 || !r.Motion().Shaken || r.Motion().Shake < 1 {
		t.Errorf("shaken hard: events %b, %v g", ev, r.Motion().Shake)
	}
	if ev := r.move(2*time.Second, tremor(0.1)); ev&ShakeBegan != 0 || r.Motion().Shaken {
		t.Errorf("afterwards: still shaken, %v g", r.Motion().Shake)
	}
	for range 2 { // one hard knock is no shaking
		r.step(Vec{}, Vec{0, 0, 30}, 1)
	}
	if ev := r.rest(time.Second); ev&ShakeBegan != 0 {
		t.Error("a knock is shaking")
	}
}

// knock is a shock along dir and a short tilt that comes back.
func (r *rig) knock(dir Vec, g float64, long time.Duration, keep float64) MotionEvents {
	r.t.Helper()
	all := r.move(long, func(at time.Duration) (Vec, Vec) {
		sign := 1.0
		if at/(2*frame)%2 == 1 {
			sign = -1
		}
		return Vec{}, dir.scale(sign * g * Gravity)
	})
	all |= r.turn(1, 3*degree, 50*ms) | r.turn(1, keep-3*degree, 50*ms)
	return all | r.rest(time.Second)
}

// VEC-IMU-11, VEC-IMU-12.
func TestPokeAndFistBump(t *testing.T) {
	x, z := Vec{1, 0, 0}, Vec{0, 0, 1}
	for _, tc := range []struct {
		name   string
		dir    Vec
		g      float64
		long   time.Duration
		keep   float64
		lift   float64
		driven bool
		want   MotionEvents
	}{
		{"poke", z, 0.6, 40 * ms, 0, 0.032, false, Poked},
		{"from the front, lift down", x, 0.6, 40 * ms, 0, 0.032, false, Poked},
		{"too weak", z, 0.1, 40 * ms, 0, 0.032, false, 0},
		{"too long", z, 0.6, 400 * ms, 0, 0.032, false, 0},
		{"tipped and left so", z, 0.6, 40 * ms, 8 * degree, 0.032, false, 0},
		{"while it drives", z, 0.6, 40 * ms, 0, 0.032, true, 0},
		{"fist bump", x, 0.6, 40 * ms, 0, 0.080, false, FistBump},
		{"lift up, from above", z, 0.6, 40 * ms, 0, 0.080, false, Poked},
	} {
		r := newRig(t, 12)
		r.rest(3 * time.Second)
		r.lift, r.driven = tc.lift, tc.driven
		if got := r.knock(tc.dir, tc.g, tc.long, tc.keep) & (Poked | FistBump); got != tc.want {
			t.Errorf("%s: events %b, want %b", tc.name, got, tc.want)
		}
	}
}

// VEC-IMU-01: no drift at rest, fast turns are followed.
func TestTiltAndHeading(t *testing.T) {
	r := newRig(t, 13)
	r.bias = Vec{0.05, -0.08, 0.1}
	if ev := r.rest(1200 * ms); ev&GyroReady != 0 { // a quarter of a second until it is known to be still, and one of that
		t.Errorf("events %b, gyro %v after less than a second at rest", ev, r.Motion().Gyro)
	}
	if ev := r.rest(300 * ms); ev&GyroReady == 0 || r.Motion().Gyro != GyroCalibrated {
		t.Fatalf("events %b, gyro %v after more than a second at rest", ev, r.Motion().Gyro)
	}
	r.rest(time.Second)
	start := r.Motion().Heading
	r.rest(30 * time.Second)
	if d := math.Abs(r.Motion().Heading - start); d > 0.5*degree {
		t.Errorf("heading drifted %.2f degrees in 30 s at rest", d/degree)
	}
	if p := math.Abs(r.Motion().Pitch); p > 0.5*degree {
		t.Errorf("pitch drifted to %.2f degrees", p/degree)
	}
	start = r.Motion().Heading
	r.driven = true
	r.turn(2, 90*degree, 300*ms)
	if d := r.Motion().Heading - start; math.Abs(d-90*degree) > 2*degree {
		t.Errorf("turned by %.1f degrees, want 90: counter-clockwise is positive", d/degree)
	}
	r.driven = false
	r.rest(time.Second)
	r.turn(1, -40*degree, 200*ms)
	if p := r.Motion().Pitch; math.Abs(p+40*degree) > 3*degree {
		t.Errorf("pitch %.1f right after a fast turn, want -40", p/degree)
	}
}

// TestBiasMovesWithTheHead: the gyro sits in the head, so its bias in the body's frame changes with the head's angle (VEC-IMU-01, VEC-IMU-02).
func TestBiasMovesWithTheHead(t *testing.T) {
	m := NewMover(Default().Motion)
	bias := Vec{0.017, -0.01, 0.012}
	at := func(head float64, driven bool, d time.Duration) {
		for range d / frame {
			m.Step(frame, MotionInput{Accel: Vec{0, 0, Gravity}.raised(-head), Gyro: bias, HeadAngle: head, Driven: driven})
		}
	}
	at(-0.35, false, 2*time.Second)
	start := m.Motion().Heading
	at(0.75, true, 20*time.Second)
	if off := m.Motion().Heading - start; math.Abs(off) > 0.1*degree || m.Motion().Rate.norm() > 1e-4 {
		t.Errorf("with the head raised the heading drifted %.2f degrees in 20 s, rate %v", off/degree, m.Motion().Rate)
	}
}

// VEC-IMU-01: a step at 200 Hz takes 0.98 of what the gyro says and the rest of what the accelerometer does.
func TestBlend(t *testing.T) {
	cfg := Default().Motion
	tilt := newTilt(&cfg)
	tilt.step(5*ms, Vec{0, 0, Gravity}, Vec{}, 0, true)
	const angle = 0.01
	tilt.step(5*ms, Vec{-Gravity * math.Sin(angle), 0, Gravity * math.Cos(angle)}, Vec{}, 0, true)
	if got := tilt.pitch() / angle; math.Abs(got-0.02) > 0.0005 {
		t.Errorf("of a tilt that the accelerometer alone feels %.4f is believed, want 0.02", got)
	}
}

// VEC-IMU-16.
func TestGyroCalibration(t *testing.T) {
	r := newRig(t, 14)
	r.bias = Vec{0, 0, 0.5}
	if ev := r.rest(10 * time.Second); ev&(GyroReady|GyroBroken) != 0 {
		t.Errorf("events %b before its time", ev)
	}
	if ev := r.rest(2 * time.Second); ev&GyroBroken == 0 || r.Motion().Gyro != GyroFailed {
		t.Errorf("bias of 0.5 rad/s: events %b, %v", ev, r.Motion().Gyro)
	}
	r = newRig(t, 15)
	if r.move(30*time.Second, tremor(0.3)); r.Motion().Gyro != GyroPending {
		t.Errorf("carried about from the start: gyro %v, want pending", r.Motion().Gyro)
	}
}

// VEC-IMU-02: the sensor sits in a head that is raised and moves.
func TestHeadToBody(t *testing.T) {
	const up = 30 * degree
	near := func(what string, got, want Vec) {
		t.Helper()
		if got.sub(want).norm() > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	// At rest with the head raised the head's X feels a part of gravity.
	a, w := ToBody(Vec{Gravity * math.Sin(up), 0, Gravity * math.Cos(up)}, Vec{}, up, 0, Vec{})
	near("gravity", a, Vec{0, 0, Gravity})
	near("rates", w, Vec{})
	// Only the head moves: rising is a negative turn about Y.
	_, w = ToBody(Vec{0, 0, Gravity}, Vec{0, -2, 0}, 0, 2, Vec{})
	near("a moving head", w, Vec{})
	// The body turns left with the head raised: head axes share it.
	_, w = ToBody(Vec{}, Vec{math.Sin(up), 0, math.Cos(up)}, up, 0, Vec{})
	near("turning left", w, Vec{0, 0, 1})
	// A body that rolls at 2 rad/s pulls a joint 45 mm above it down by 0.18 m/s2.
	a, _ = ToBody(Vec{0, 0, Gravity - 0.18}, Vec{2, 0, 0}, 0, 0, Vec{0, 0, 0.045})
	near("pull to the axis", a, Vec{0, 0, Gravity})
}

// VEC-IMU-06 and others: noise never makes an event; not even strong one takes it off the floor.
func TestMotionNoise(t *testing.T) {
	for seed := range rounds(3) {
		r := newRig(t, seed)
		r.rest(2 * time.Second)
		r.accNoise, r.gyrNoise = []float64{0.05, 0.2, 0.5}[seed%3], []float64{0.003, 0.01, 0.05}[seed%3]
		if ev := r.rest(20*time.Second) &^ GyroReady; ev != 0 {
			t.Errorf("seed %d, noise %v m/s2: events %b", seed, r.accNoise, ev)
		}
		for range 500 { // broken samples between good ones
			bad := Vec{math.NaN(), 0, 0}
			if seed%2 == 0 {
				bad = Vec{0, math.Inf(-1), 0}
			}
			if ev := r.Step(frame, MotionInput{Accel: bad}) | r.Step(frame, MotionInput{Gyro: bad}); ev != 0 {
				t.Fatalf("seed %d: events %b of a broken sample", seed, ev)
			}
		}
		r.rest(time.Second)
		r.want("after noise", OnTreads)
	}
}

// Random handling: rig.check holds at every step, and put down it always ends on its treads.
func TestRandomHandling(t *testing.T) {
	for seed := range rounds(4) {
		r := newRig(t, seed)
		for range 40 {
			d := time.Duration(r.rng.IntN(800)) * ms
			r.noFloor, r.driven = r.rng.IntN(2) == 0, r.rng.IntN(4) == 0
			switch r.rng.IntN(6) {
			case 0:
				r.rest(d)
			case 1:
				r.move(d, tremor(0.4*r.rng.Float64()))
			case 2:
				r.turn(r.rng.IntN(3), 4*r.rng.NormFloat64(), d+frame)
			case 3:
				for range d / frame / 2 {
					r.step(Vec{}, Vec{}, 0)
				}
			case 4:
				k := 20 * r.rng.Float64()
				r.move(d, func(time.Duration) (Vec, Vec) { return r.noise(k / 4), r.noise(k) })
			case 5:
				for range 1 + r.rng.IntN(3) {
					r.step(r.noise(5), r.noise(40), 1)
				}
			}
			if m := r.Motion(); math.IsNaN(m.Pitch+m.Roll+m.Heading+m.Shake+m.Tremor) || math.Abs(m.Heading) > math.Pi {
				t.Fatalf("seed %d: %+v", seed, m)
			}
		}
		r.noFloor, r.driven, r.up = false, false, Vec{0, 0, 1}
		if r.rest(5 * time.Second); r.Motion().OffTreads != OnTreads || r.Motion().Held {
			t.Fatalf("seed %d: put down and left alone: %+v", seed, r.Motion())
		}
	}
}

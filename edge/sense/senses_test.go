package sense

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/body"
)

// frames feeds whole Senses.
type frames struct {
	*Senses
	now time.Duration

	in Input
}

func newFrames(t testing.TB) *frames {
	s, err := New(Default(), 4)
	if err != nil {
		t.Fatal(err)
	}
	f := &frames{Senses: s, now: time.Hour}
	f.in.Reading.Touch = idle
	for i := range 4 {
		f.in.Reading.Cliffs[i] = 0.6
	}
	f.in = Input{Reading: f.in.Reading, LiftHeight: 0.092, Prox: ProxInput{Metres: 0.4}, Inertial: Inertial{Accel: Vec{0, 0, Gravity}}}
	return f
}

func (f *frames) step() (State, Events) {
	f.now += frame
	f.in.Reading.At, f.in.Reading.TouchAt, f.in.Reading.Fresh = f.now, f.now, true
	f.in.Prox.At, f.in.Inertial.At = f.now, f.now
	return f.Step(f.now, frame, &f.in)
}

// One frame reaches all senses; the cliff sensors reach the motion states, and these tell the cliff sensors of another floor.
func TestSenses(t *testing.T) {
	f := newFrames(t)
	var st State
	for range 600 {
		st, _ = f.step()
	}
	if !st.CliffsKnown || st.Cliffs != 0 || !st.Prox.Valid || st.Touched || st.Motion.OffTreads != OnTreads || st.Motion.Gyro != GyroCalibrated {
		t.Fatalf("at rest: %+v", st)
	}
	f.in.Reading.Touch, f.in.Reading.Button = hand, true
	for range 100 {
		st, _ = f.step()
	}
	if !st.Touched || !st.Button || st.TouchRaw != hand {
		t.Errorf("touched and pressed: %+v", st)
	}
	f.in.Reading.Touch, f.in.Reading.Button = idle, false
	f.in.Reading.Cliffs[2] = 0
	f.step()
	if st, _ = f.step(); st.Cliffs != 1<<2 {
		t.Errorf("cliffs %b in the second frame (VEC-IO-20)", st.Cliffs)
	}
	before := st
	f.in.Reading.Fresh = false
	for range 20 {
		f.now += frame
		if st, ev := f.Step(f.now, frame, &f.in); st.Cliffs != before.Cliffs || ev.Cliff != (CliffEvents{}) {
			t.Fatal("an old frame is counted")
		}
	}
	hand := tremor(0.1)
	for i := range 4 {
		f.in.Reading.Cliffs[i] = 0
	}
	for i := range 200 {
		w, a := hand(time.Duration(i) * frame)
		f.in.Inertial.Gyro, f.in.Inertial.Accel = w, a.add(Vec{0, 0, Gravity})
		st, _ = f.step()
	}
	if !st.Motion.PickedUp || !st.Motion.Held || st.Cliffs != 0xf {
		t.Errorf("in a hand: %+v", st)
	}
	for i := range 4 {
		f.in.Reading.Cliffs[i] = 0.2 // a much darker floor: a third of the first
	}
	f.in.Inertial.Gyro, f.in.Inertial.Accel = Vec{}, Vec{0, 0, Gravity}
	for range 800 {
		st, _ = f.step()
	}
	if st.Motion.PickedUp || st.Cliffs != 0 {
		t.Errorf("put down on a darker floor: %+v", st)
	}
	f.in.Reading.Power |= body.SensorsOff
	if st, _ = f.step(); st.CliffsKnown {
		t.Error("cliff sensors without power are known (VEC-PWR-22)")
	}
}

// The same inputs give the same outputs, bit by bit.
func TestSensesAreDeterministic(t *testing.T) {
	run := func() (last State, sum Events) {
		f, rng := newFrames(t), rand.New(rand.NewPCG(1, 6))
		for range 4000 {
			f.in.Reading.Touch = rng.Float64()
			f.in.Reading.Button = rng.IntN(30) == 0 != f.in.Reading.Button
			for i := range 4 {
				f.in.Reading.Cliffs[i] = rng.Float64()
			}
			f.in.Inertial.Gyro = Vec{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
			f.in.Inertial.Accel = Vec{rng.NormFloat64(), rng.NormFloat64(), Gravity + 5*rng.NormFloat64()}
			st, ev := f.step()
			last = st
			sum.Motion, sum.Touch, sum.Gesture = sum.Motion*3+ev.Motion, sum.Touch*3+ev.Touch, sum.Gesture*3+ev.Gesture
		}
		return last, sum
	}
	a, ea := run()
	if b, eb := run(); a != b || ea != eb {
		t.Errorf("%+v, %+v; then %+v, %+v", a, ea, b, eb)
	}
}

func TestSensesAllocateNothing(t *testing.T) {
	f := newFrames(t)
	if n := testing.AllocsPerRun(500, func() { f.step() }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func BenchmarkSenses(b *testing.B) {
	f := newFrames(b)
	b.ReportAllocs()
	for b.Loop() {
		f.step()
	}
}

// TestUnknownHead: while the head's angle is unknown, a raised one is no body on its back (VEC-IMU-02), and a fall is told all the same (VEC-IMU-07).
func TestUnknownHead(t *testing.T) {
	f := newFrames(t)
	const raised = 0.75
	f.in.HeadUnknown = true
	f.in.Inertial.Accel = Vec{Gravity * math.Sin(raised), 0, Gravity * math.Cos(raised)}
	var st State
	var ev Events
	for range 600 {
		if st, ev = f.step(); st.Motion.OffTreads != Unsettled || st.Motion.PickedUp || ev.Motion != 0 {
			t.Fatalf("%+v, events %b", st.Motion, ev.Motion)
		}
	}
	f.in.HeadUnknown, f.in.HeadAngle = false, raised
	for range 100 {
		st, _ = f.step()
	}
	if st.Motion.OffTreads != OnTreads || math.Abs(st.Motion.Pitch) > 0.01 {
		t.Errorf("calibrated: %+v", st.Motion)
	}
	f.in.HeadUnknown = true // a person moved it
	if st, ev = f.step(); st.Motion.OffTreads != Unsettled || ev.Motion != OffTreadsChanged {
		t.Errorf("moved by hand: %+v, events %b", st.Motion, ev.Motion)
	}
	f.in.Inertial.Accel = Vec{0.2, 0, 0}
	began := f.now
	for range 100 {
		if st, ev = f.step(); st.Motion.Falling {
			break
		}
	}
	if d := f.now - began; !st.Motion.Falling || ev.Motion&FallBegan == 0 || d < 80*ms || d > 80*ms+2*frame {
		t.Errorf("a fall after %v: %+v, events %b", f.now-began, st.Motion, ev.Motion)
	}
	f.in.Inertial.Accel = Vec{0, 0, 4 * Gravity}
	if st, ev = f.step(); st.Motion.Falling || ev.Motion != FallImpact {
		t.Errorf("the impact: %+v, events %b", st.Motion, ev.Motion)
	}
}

// TestSensorsThatFallSilent: what they said is forgotten after a tenth of a second, a fall too; the gyro's bias is not.
func TestSensorsThatFallSilent(t *testing.T) {
	f := newFrames(t)
	f.in.Inertial.Gyro = Vec{0, 0, 0.05}
	var st State
	var ev Events
	for range 600 {
		st, _ = f.step()
	}
	bias := st.Motion.Bias
	f.in.Inertial.Accel = Vec{}
	for range 30 {
		st, _ = f.step()
	}
	if !st.Motion.Falling || math.Abs(bias[2]-0.05) > 1e-6 {
		t.Fatalf("%+v", st.Motion)
	}
	at := f.now
	for f.now < at+100*ms {
		f.now += frame
		if st, ev = f.Step(f.now, frame, &f.in); f.now <= at+100*ms && !st.Motion.Falling {
			t.Fatalf("forgotten after %v", f.now-at)
		}
	}
	f.now += frame
	if st, _ = f.Step(f.now, frame, &f.in); st.Motion.Falling || st.Motion.OffTreads != Unsettled || st.Motion.Gyro != GyroCalibrated ||
		st.Motion.Bias != bias {
		t.Errorf("after %v: %+v", f.now-at, st.Motion)
	}
	f.in.Inertial.Accel = Vec{0, 0, Gravity}
	for range 100 {
		st, ev = f.step()
	}
	if st.Motion.OffTreads != OnTreads || ev.Motion != 0 {
		t.Errorf("back again: %+v, events %b", st.Motion, ev.Motion)
	}
}

// TestStatusBits: VEC-IMU-07, 08, 09, 14.
func TestStatusBits(t *testing.T) {
	for want, m := range map[uint32]Motion{
		0: {OffTreads: OnTreads, Still: true}, 0x8: {PickedUp: true}, 0x20: {Falling: true}, 0x10000: {Held: true}, 0x20000: {InMotion: true},
		0x30008: {PickedUp: true, Held: true, InMotion: true},
	} {
		if got := m.RobotStatus(); got != want {
			t.Errorf("%+v: %#x, want %#x", m, got, want)
		}
	}
}

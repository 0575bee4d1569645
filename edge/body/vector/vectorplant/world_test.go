package vectorplant

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"kennel/edge/body/vector"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/faultcode"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/edge/rt"
	"kennel/edge/sense"
	"kennel/edge/sim/world"
)

// place is a whole robot's head in simulated time: helm, loop, driver and the reader of its inertial sensors, over the bytes of a board and of a chip,
// in a world.
type place struct {
	t     testing.TB
	sim   *vectorsim.Stepped
	chip  *vectorsim.IMU
	h     *Helm
	live  *state.Live
	close func()
	tape  *rt.Tape
	out   bytes.Buffer
	turn  chan struct{} // the next step may begin
	ended chan struct{} // a step of the helm has
	rep   Report
	now   time.Duration

	awaited func() bool   // the loop hands over when it holds
	limit   time.Duration // or then
}

// newPlace is a robot in m, nil: nowhere. Each of set changes what its helm is made of.
func newPlace(t testing.TB, m *world.Map, set ...func(*Model)) *place {
	t.Helper()
	return newPlaceAt(t, imu.Hz200, m, set...)
}

// newPlaceAt is one whose sensors are read so often.
func newPlaceAt(t testing.TB, rate imu.Rate, m *world.Map, set ...func(*Model)) *place {
	t.Helper()
	p := &place{t: t, sim: vectorsim.NewStepped(vectorsim.Config{Seed: 7, Volts: 4, DischargePerMinute: -1, World: m}), tape: rt.NewTape(1 << 20),
		turn: make(chan struct{}), ended: make(chan struct{})}
	p.now = p.sim.Now()
	p.chip = vectorsim.NewIMU(vectorsim.IMUConfig{Seed: 7}, p.sim.Inertial)
	p.chip.PowerOn(p.sim.Now())
	sensors, err := p.sim.Sensors(p.chip, imu.Config{Expected: true, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	model, err := Vector()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set {
		f(&model)
	}
	if p.h, err = New(model, p.tape); err != nil {
		t.Fatal(err)
	}
	p.live = state.NewLive(p.h.Board(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	// The test's goroutine and the loop's take turns: the loop runs until what the test waits for has come.
	turn := rt.Task{Name: "test", Every: 1, Run: func(f *rt.Frame) {
		p.now = f.Now
		p.h.Report(&p.rep)
		p.flush()
		if p.now < p.limit && !p.awaited() {
			return
		}
		select {
		case p.ended <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case <-p.turn:
		case <-ctx.Done():
		}
	}}
	loop, err := rt.New(rt.Config{Tape: p.tape}, p.sim, p.h.Task(), turn)
	if err != nil {
		t.Fatal(err)
	}
	drv, err := vector.Open(ctx, vector.Config{Device: "simulated", Port: p.sim, Sensors: sensors})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		<-p.turn
		done <- loop.Run(ctx, drv)
	}()
	p.close = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, drv.Close()); err != nil {
			t.Error(err)
		}
		p.h.Report(&p.rep) // until it saw the end the loop did more
		p.flush()
	})
	t.Cleanup(p.close)
	p.step()
	return p
}

func (p *place) flush() {
	if _, err := p.tape.Flush(&p.out); err != nil {
		p.t.Error(err)
	}
}

// step lets the loop do one.
func (p *place) step() { p.next(func() bool { return true }, time.Second) }

// next lets the loop step until ok holds after one of them, for so long at most, and reports whether it did. ok is called by the loop.
func (p *place) next(ok func() bool, most time.Duration) bool {
	held := false
	p.awaited = func() bool { held = ok(); return held }
	p.limit = p.now + most
	p.turn <- struct{}{}
	<-p.ended
	return held
}

// until steps until ok holds, for 30 s at most, and returns how long that took.
func (p *place) until(what string, ok func() bool) time.Duration {
	p.t.Helper()
	began := p.now
	if !p.next(ok, 30*time.Second) {
		p.t.Fatalf("%s: not within 30 s; %+v, really %+v, stop %v", what, p.rep.Sense.Motion, p.around(), p.rep.Motion.Stop)
	}
	return p.now - began
}

func (p *place) run(t time.Duration) {
	end := p.now + t
	p.next(func() bool { return p.now >= end }, 2*t+time.Second)
}

func (p *place) around() world.State {
	s, _ := p.sim.World()
	return s
}

func (p *place) hand(what func(*world.World) error) {
	p.t.Helper()
	if err := p.sim.InWorld(what); err != nil {
		p.t.Fatal(err)
	}
}

// calibrated steps until the joints are, and the robot stands and has a calibrated gyro.
func (p *place) calibrated() *place {
	p.t.Helper()
	p.until("calibration", func() bool {
		m := &p.rep.Sense.Motion
		return p.rep.Motion.Joints[0].Calibrated && p.rep.Motion.Joints[1].Calibrated && m.OffTreads == sense.OnTreads && m.Gyro == sense.GyroCalibrated
	})
	return p
}

// order posts o for alice, and expects it to be obeyed.
func (p *place) order(o Order) {
	p.t.Helper()
	o.Owner, o.Request = alice, 1
	if !p.h.Post(o) {
		p.t.Fatal("the mailbox is full")
	}
	for {
		r, ok := p.h.Result()
		if !ok {
			p.step()
			continue
		}
		if r.Code == Ended {
			continue
		}
		if r.Code != OK {
			p.t.Fatalf("%+v: %+v", o, r)
		}
		return
	}
}

// claims gives alice wheels, head and lift.
func (p *place) claims() {
	p.t.Helper()
	f := finder{tree: p.h.model.Tree}
	p.order(Order{Kind: Claim, Set: f.actuators("wheelL", "wheelR", "headPitch", "arm"), Priority: claim.Person})
}

func (p *place) value(name string) float64 {
	p.t.Helper()
	r, err := p.live.Read(name)
	if err != nil {
		p.t.Errorf("%s: %v", name, err)
	}
	return r.Value.Number
}

func (p *place) dark(name string) bool { _, err := p.live.Read(name); return err != nil }

func builtin(t testing.TB, name string) *world.Map {
	t.Helper()
	m, err := world.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edge is a floor that ends at x = 0.2 m.
var edge = world.Map{Cliffs: []world.Cliff{{Corners: []world.Vec{{0.2, -2}, {4, -2}, {4, 2}, {0.2, 2}}, Drop: 0.7}}}

// lies is what the robot has to feel in a posture.
var lies = map[world.Posture]sense.OffTreads{
	world.OnBack: sense.OnBack, world.OnFace: sense.OnFace, world.OnLeftSide: sense.OnLeftSide, world.OnRightSide: sense.OnRightSide,
}

// TestFallStops: pushed off a table, every motor is without power within the 80 ms that tell a fall (VEC-IMU-07), one sample and three frames; nothing
// moves again by itself (VEC-MCT-15). The impact and how it lies are told, and replaying the recording does the same bit by bit. So it is with the
// sensors read as seldom as simulated robots do (edge/sim).
func TestFallStops(t *testing.T) {
	for _, rate := range []imu.Rate{imu.Hz200, imu.Hz50} {
		t.Run(rate.Period().String(), func(t *testing.T) { fallStops(t, rate) })
	}
}

func fallStops(t *testing.T, rate imu.Rate) {
	p := newPlaceAt(t, rate, &edge).calibrated()
	p.claims()
	p.order(Order{Kind: Head, A: -20 * degree})
	p.order(Order{Kind: Wheels, A: 0.05, B: 0.05, For: 20 * time.Second})
	p.run(400 * ms)
	if p.rep.Motion.Twist.V < 0.03 || p.sim.State().Duty[spine.Head] == 0 {
		t.Fatalf("it does not move: %+v, duties %v", p.rep.Motion.Twist, p.sim.State().Duty)
	}
	p.hand(func(w *world.World) error { return w.PutDown(world.Pose{0.25, 0, 0}) })
	if s := p.around(); s.Posture != world.Falling {
		t.Fatalf("it does not fall: %+v", s)
	}
	took := p.until("a fall", func() bool { return p.sim.State().Duty == [4]float64{} })
	if most := 80*ms + rate.Period() + 3*period; took > most {
		t.Errorf("power was on %v after it began to fall, want at most %v", took, most)
	} else {
		t.Logf("without power %v after it began to fall", took)
	}
	p.until("the word of it", func() bool { return p.rep.Sense.Motion.Falling && p.rep.Motion.Stop&motion.Falling != 0 })
	if m := &p.rep.Sense.Motion; m.OffTreads != sense.Falling || p.rep.Felt.Falls != 1 || !m.PickedUp {
		t.Errorf("%+v, %+v", m, p.rep.Felt)
	}
	p.until("the impact", func() bool { return p.rep.Felt.Impacts == 1 })
	for _, d := range []time.Duration{ms, 500 * ms, time.Second} {
		if p.run(d); p.sim.State().Duty != [4]float64{} || p.rep.Motion.Stop&motion.Lifted == 0 {
			t.Errorf("%v later: duties %v, stop %v", d, p.sim.State().Duty, p.rep.Motion.Stop)
		}
	}
	if m := &p.rep.Sense.Motion; m.OffTreads != lies[p.around().Posture] || p.rep.Felt.Falls != 1 || p.rep.Felt.Delocalized != 1 {
		t.Errorf("it lies %v and feels %v, %+v", p.around().Posture, m.OffTreads, p.rep.Felt)
	}
	p.again()
}

// again replays what was recorded.
func (p *place) again() {
	p.t.Helper()
	p.close()
	var rep Report
	var h *Helm
	felt := false
	done, err := rt.Replay(&p.out, rt.Config{}, func(tape *rt.Tape) []rt.Task {
		m, err := Vector()
		if err == nil {
			h, err = New(m, tape)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		return []rt.Task{h.Task()}
	}, func(s *rt.Snapshot) { felt = felt || s.Sense.Inertial.At != 0 })
	if err != nil || done.Cut != nil || done.Steps < 500 || !felt {
		p.t.Fatalf("%+v, %v, felt %v", done, err, felt)
	}
	if h.Report(&rep); rep.Felt != p.rep.Felt || rep.Sense.Motion != p.rep.Sense.Motion {
		p.t.Errorf("replayed: %+v, %+v\nrecorded: %+v, %+v", rep.Felt, rep.Sense.Motion, p.rep.Felt, p.rep.Sense.Motion)
	}
}

// TestHands: picked up, held, laid down on every side and put back (VEC-IMU-06, 08, 09, 18); off the treads the treads do not drive.
func TestHands(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	is := func(want sense.OffTreads) func() bool {
		return func() bool { return p.rep.Sense.Motion.OffTreads == want }
	}
	p.hand((*world.World).PickUp)
	if took := p.until("in the air", is(sense.InAir)); took > 2*time.Second {
		t.Errorf("in the air after %v", took)
	}
	p.until("held", func() bool { return p.rep.Sense.Motion.Held && p.rep.Sense.Motion.PickedUp })
	if p.rep.Motion.Stop&motion.Lifted == 0 || p.rep.Felt.Delocalized != 1 || p.rep.Felt.Falls != 0 {
		t.Errorf("stop %v, %+v", p.rep.Motion.Stop, p.rep.Felt)
	}
	for posture, want := range lies {
		p.hand(func(w *world.World) error { return w.Tip(posture) })
		p.until(string(posture), is(want))
	}
	p.hand((*world.World).PickUp)
	p.run(time.Second)
	p.hand(func(w *world.World) error { return w.PutDown(world.Pose{}) })
	p.until("back on the treads", is(sense.OnTreads))
	p.run(ms)
	if p.rep.Motion.Stop != 0 || p.rep.Felt.Falls+p.rep.Felt.Impacts != 0 || p.rep.Power.Shutdown.Off != power.StayOn {
		t.Errorf("stop %v, %+v, %v", p.rep.Motion.Stop, p.rep.Felt, p.rep.Power.Shutdown)
	}
}

// TestAxesFromEndToEnd: up is +Z whatever the head does, nose down and left turns are positive, in the senses and in the tree (VEC-IMU-02, VEC-IMU-03,
// GOSTAI-MAP-V-22 to 27).
func TestAxesFromEndToEnd(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	level := func(what string) {
		t.Helper()
		m := &p.rep.Sense.Motion
		for name, want := range map[string]float64{"accelX": 0, "accelY": 0, "accelZ": 9.81} {
			if got := p.value(name + ".acceleration"); math.Abs(got-want) > 0.35 {
				t.Errorf("%s: %s is %v, want %v", what, name, got, want)
			}
		}
		if math.Abs(m.Pitch) > 2*degree || math.Abs(m.Roll) > 2*degree || m.OffTreads != sense.OnTreads {
			t.Errorf("%s: %+v", what, m)
		}
	}
	p.claims()
	p.order(Order{Kind: Head, A: 0})
	p.run(2 * time.Second)
	level("head level")
	if a := p.h.sense.Inertial.Accel; math.Abs(a[2]-9.81) > 0.2 || math.Abs(a[0]) > 0.35 {
		t.Errorf("head level: the sensor feels %v, want +9.81 on Z", a)
	}
	p.order(Order{Kind: Head, A: -40 * degree}) // nose up
	p.run(2 * time.Second)
	level("head raised")
	if a := p.h.sense.Inertial.Accel; a[0] < 5.5 || a[2] > 8 {
		t.Errorf("head raised by 40 degrees: the sensor feels %v, want 6.3 ahead and 7.5 up", a)
	}
	began := p.rep.Motion.Pose.Theta
	p.order(Order{Kind: Turn, A: math.Pi / 2, Speed: 1.5, For: 5 * time.Second})
	most := 0.0
	p.until("a turn to the left", func() bool {
		most = max(most, p.value("gyroZ.speed"))
		return p.rep.Motion.Treads != motion.Running
	})
	p.run(200 * ms)
	s := p.around()
	if most < 1.2 || p.rep.Motion.Treads != motion.Done || math.Abs(s.Pose[2]-math.Pi/2) > 4*degree {
		t.Errorf("turned with %v rad/s, %v, to %v; want to the left by a quarter", most, p.rep.Motion.Treads, s.Pose)
	}
	if heading := p.rep.Motion.Pose.Theta - began; math.Abs(heading-s.Pose[2]) > 2*degree || math.Abs(p.rep.Sense.Motion.Heading-s.Pose[2]) > 3*degree {
		t.Errorf("odometry %v, heading %v, really %v", heading, p.rep.Sense.Motion.Heading, s.Pose[2])
	}
	if p.rep.Felt.Unexpected != 0 || p.rep.Motion.Slipping {
		t.Errorf("a turn as ordered: %+v", p.rep.Felt)
	}
	p.hand(func(w *world.World) error { return w.Tip(world.OnFace) })
	p.until("nose down", func() bool { return p.rep.Sense.Motion.Pitch > 80*degree })
	p.hand(func(w *world.World) error { return w.Tip(world.OnLeftSide) })
	p.until("left side down", func() bool { return p.rep.Sense.Motion.Roll < -80*degree })
}

// TestUnexpected: turned by a hand, and treads that turn nothing between two walls (VEC-IMU-15).
func TestUnexpected(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	p.hand(func(w *world.World) error { return w.Turn(-2, time.Second) })
	p.until("a turn by a hand", func() bool { return p.rep.Felt.Unexpected == 1 })
	if want := (sense.Movement{Type: sense.RotatingWithoutMotors}); p.rep.Felt.Last != want {
		t.Errorf("%v %v, want %v", p.rep.Felt.Last.Type, p.rep.Felt.Last.Side, want.Type)
	}
	p.run(2 * time.Second)
	if p.rep.Felt.Unexpected != 1 || p.rep.Sense.Motion.OffTreads != sense.OnTreads || math.Abs(p.around().Pose[2]+2) > 0.01 {
		t.Errorf("after it: %+v, %+v", p.rep.Felt, p.around())
	}
	p.close()

	p = newPlace(t, &world.Map{Walls: []world.Wall{{From: world.Vec{-1, 0.031}, To: world.Vec{1, 0.031}}, {From: world.Vec{-1, -0.031}, To: world.Vec{1, -0.031}}}}).calibrated()
	p.claims()
	p.order(Order{Kind: Wheels, A: -0.06, B: 0.06, For: 20 * time.Second})
	p.until("treads that turn nothing", func() bool { return p.rep.Felt.Unexpected == 1 })
	if want := (sense.Movement{Type: sense.TurnedButStopped, Side: sense.SideLeft}); p.rep.Felt.Last != want {
		t.Errorf("%v %v, want %v %v", p.rep.Felt.Last.Type, p.rep.Felt.Last.Side, want.Type, want.Side)
	}
}

// TestNowhere: a robot in no world feels gravity and how its treads turn it; nothing of that is unexpected.
func TestNowhere(t *testing.T) {
	p := newPlace(t, nil).calibrated()
	p.claims()
	p.order(Order{Kind: Turn, A: -math.Pi / 2, Speed: 1.5, For: 5 * time.Second})
	p.until("a turn", func() bool { return p.rep.Motion.Treads != motion.Running })
	p.order(Order{Kind: Straight, A: 0.1, For: 5 * time.Second})
	p.until("a drive", func() bool { return p.rep.Motion.Treads != motion.Running })
	if p.rep.Motion.Treads != motion.Done || math.Abs(p.rep.Motion.Pose.Theta+math.Pi/2) > 4*degree || p.rep.Felt.Unexpected+p.rep.Felt.Falls != 0 {
		t.Errorf("%v at %+v, %+v", p.rep.Motion.Treads, p.rep.Motion.Pose, p.rep.Felt)
	}
	p.run(2 * time.Second)
	if m := &p.rep.Sense.Motion; m.OffTreads != sense.OnTreads || !m.Still || math.Abs(math.Sqrt(m.Accel[0]*m.Accel[0]+m.Accel[1]*m.Accel[1]+m.Accel[2]*m.Accel[2])-9.81) > 0.1 {
		t.Errorf("at rest: %+v", m)
	}
}

// TestSensorsLost: a chip that dies is fault 960 (VEC-IMU-16) and nothing else: what it said is forgotten, the robot drives on by its encoders, and the
// mended one is believed.
func TestSensorsLost(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	p.chip.SetFault(vectorsim.IMUSilent, p.now)
	p.until("no state", func() bool { return p.rep.Sense.Motion.OffTreads == sense.Unsettled })
	p.until("the fault", func() bool { return p.h.sense.Fault == uint16(faultcode.IMU) })
	if !p.dark("accelZ.acceleration") || !p.dark("gyroX.speed") || p.h.sense.Inertial.At != 0 {
		t.Error("the tree says what nobody measures")
	}
	p.claims()
	p.order(Order{Kind: Straight, A: 0.05, For: 5 * time.Second})
	p.until("a drive", func() bool { return p.rep.Motion.Treads != motion.Running })
	if p.rep.Motion.Treads != motion.Done || p.rep.Power.Shutdown.Off != power.StayOn {
		t.Errorf("%v, %v", p.rep.Motion.Treads, p.rep.Power.Shutdown)
	}
	p.chip.SetFault(vectorsim.IMUSound, p.now)
	p.until("its return", func() bool { return p.h.sense.Fault == 0 && p.rep.Sense.Motion.OffTreads == sense.OnTreads })
}

// TestGyroFails: a gyro that says another thing than the rest that the accelerometer feels ends the run with cause 4 (VEC-IMU-16).
func TestGyroFails(t *testing.T) {
	p := newPlace(t, builtin(t, "empty"), func(m *Model) { m.Sense.Motion.GyroFail = 2 * time.Second })
	p.chip.Bend(vectorsim.IMUConfig{GyroBias: [3]float64{0, 1, 0}})
	p.until("the end", func() bool { return p.rep.Power.Shutdown.Off != power.StayOn })
	if p.rep.Sense.Motion.Gyro != sense.GyroFailed || p.rep.Power.Shutdown.Cause != power.GyroNotCalibrating || p.rep.Power.Shutdown.Cause.Fault() != faultcode.ShutdownGyro {
		t.Errorf("gyro %v, %+v", p.rep.Sense.Motion.Gyro, p.rep.Power.Shutdown)
	}
}

// TestOnInAHand: a robot that is switched on in a hand has no broken gyro: what trembles is the hand, and the accelerometer feels it too (VEC-IMU-16).
func TestOnInAHand(t *testing.T) {
	p := newPlace(t, builtin(t, "empty"), func(m *Model) { m.Sense.Motion.GyroFail = 2 * time.Second })
	p.hand((*world.World).PickUp)
	p.run(8 * time.Second)
	if m := &p.rep.Sense.Motion; m.Gyro != sense.GyroPending || p.rep.Power.Shutdown.Off != power.StayOn {
		t.Errorf("gyro %v, %+v", m.Gyro, p.rep.Power.Shutdown)
	}
	p.hand(func(w *world.World) error { return w.PutDown(world.Pose{}) })
	p.until("a calibrated gyro", func() bool {
		return p.rep.Sense.Motion.Gyro == sense.GyroCalibrated && p.rep.Sense.Motion.OffTreads == sense.OnTreads
	})
}

package vectorplant

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/faultcode"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/edge/sense"
	"kennel/edge/sim/plane"
)

// place is a whole robot's head in simulated time: control loop, real-time loop, driver and the reader of its inertial sensors, over the bytes of a
// board and of a chip, in a world.
type place struct {
	t     testing.TB
	sim   *vectorsim.Stepped
	chip  *vectorsim.IMU
	c     *control.Control
	p     *Plant
	felt  felt
	live  *state.Live
	close func()
	tape  *rt.Tape
	out   bytes.Buffer
	turn  chan struct{} // the next step may begin
	ended chan struct{} // a step has ended
	rep   control.Report
	known sense.State   // after that step, as the plant has it
	moves motion.Report // likewise
	now   time.Duration

	awaited func() bool   // the loop hands over when it holds
	limit   time.Duration // or then

	late func() time.Duration // how long something else takes the processor in each step; nil: it never does
}

// newPlace is a robot in m, nil: nowhere. Each of set changes its settings.
func newPlace(t testing.TB, m *plane.Map, set ...func(*Config)) *place {
	t.Helper()
	return newPlaceAt(t, imu.Hz200, m, set...)
}

// newPlaceAt is one whose sensors are read so often.
func newPlaceAt(t testing.TB, rate imu.Rate, m *plane.Map, set ...func(*Config)) *place {
	t.Helper()
	p := &place{t: t, sim: vectorsim.NewStepped(vectorsim.Config{Seed: 7, Volts: 4, DischargePerMinute: -1, World: m}), tape: rt.NewTape(1 << 20),
		felt: felt{}, turn: make(chan struct{}), ended: make(chan struct{})}
	p.now = p.sim.Now()
	p.chip = vectorsim.NewIMU(vectorsim.IMUConfig{Seed: 7}, p.sim.Inertial)
	p.chip.PowerOn(p.sim.Now())
	sensors, err := p.sim.Sensors(p.chip, imu.Config{Expected: true, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Default()
	for _, f := range set {
		f(&cfg)
	}
	p.c, p.p = newControl(t, cfg, p.tape)
	p.live = state.NewLive(p.c.Board(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	// The test's goroutine and the loop's take turns: the loop runs until what the test waits for has come.
	turn := rt.Task{Name: "test", Every: 1, Run: func(f *rt.Frame) {
		p.now = f.Now
		p.look()
		if p.late != nil {
			p.sim.SleepUntil(p.sim.Now() + p.late())
		}
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
	loop, err := rt.New(rt.Config{Tape: p.tape}, p.sim, p.c.Task(), turn)
	if err != nil {
		t.Fatal(err)
	}
	drv, err := vectordriver.Open(ctx, vectordriver.Config{Device: "simulated", Port: p.sim, Sensors: sensors})
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
		p.look() // the loop continued until it saw the end
	})
	t.Cleanup(p.close)
	p.step()
	return p
}

// look takes in what is known after a step, and what was recorded.
func (p *place) look() {
	p.c.Report(&p.rep)
	p.known, p.moves = p.p.known, p.p.now
	p.felt.take(p.c)
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
		p.t.Fatalf("%s: not within 30 s; %+v, really %+v, stop %v", what, p.known.Motion, p.around(), p.rep.Stop)
	}
	return p.now - began
}

func (p *place) run(t time.Duration) {
	end := p.now + t
	p.next(func() bool { return p.now >= end }, 2*t+time.Second)
}

func (p *place) around() plane.State {
	s, _ := p.sim.World()
	return s
}

func (p *place) hand(what func(*plane.World) error) {
	p.t.Helper()
	if err := p.sim.InWorld(what); err != nil {
		p.t.Fatal(err)
	}
}

// calibrated steps until the joints and the gyro are calibrated and the robot is at rest.
func (p *place) calibrated() *place {
	p.t.Helper()
	p.until("calibration", func() bool {
		m := &p.known.Motion
		return p.rep.Parts[head].Known && p.rep.Parts[lift].Known && m.OffTreads == sense.OnTreads && m.Gyro == sense.GyroCalibrated
	})
	return p
}

// order posts o for alice, and expects it to be obeyed.
func (p *place) order(o control.Order) {
	p.t.Helper()
	o.Owner, o.Request = alice, 1
	if !p.c.Post(o) {
		p.t.Fatal("the mailbox is full")
	}
	for {
		r, ok := p.c.Result()
		if !ok {
			p.step()
			continue
		}
		if r.Code == control.Ended {
			continue
		}
		if r.Code != control.OK {
			p.t.Fatalf("%+v: %+v", o, r)
		}
		return
	}
}

// The names of what a fall is reported as.
const (
	fell        = "imu_filter.falling_event"
	impact      = "imu_filter.fall_impact_event"
	delocalized = "robot.delocalized"
)

// odd returns the unexpected movements so far; nil if there was none.
func (p *place) odd() (out felt) {
	for name, n := range p.felt {
		if strings.HasPrefix(name, "robot.unexpected_movement") {
			if out == nil {
				out = felt{}
			}
			out[name] = n
		}
	}
	return out
}

// claims gives alice wheels, head and lift.
func (p *place) claims() {
	p.t.Helper()
	set, err := p.c.Actuators("wheelL", "wheelR", "headPitch", "arm")
	if err != nil {
		p.t.Fatal(err)
	}
	p.order(control.Order{Kind: control.Claim, Set: set, Priority: claim.Person})
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

func builtin(t testing.TB, name string) *plane.Map {
	t.Helper()
	m, err := plane.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edge is a floor that ends at x = 0.2 m.
var edge = plane.Map{Cliffs: []plane.Cliff{{Corners: []plane.Vec{{0.2, -2}, {4, -2}, {4, 2}, {0.2, 2}}, Drop: 0.7}}}

// lies maps each posture to the state that the robot must sense in it.
var lies = map[plane.Posture]sense.OffTreads{
	plane.OnBack: sense.OnBack, plane.OnFace: sense.OnFace, plane.OnLeftSide: sense.OnLeftSide, plane.OnRightSide: sense.OnRightSide,
}

// TestFallStops: pushed off a table, every motor is without power within the 80 ms that tell a fall (VEC-IMU-07), one sample and three frames;
// nothing moves again by itself (VEC-MCT-15). The impact and how it lies are events, and a replay of the recording has the same ones, bit by bit. So
// it is with the sensors read as seldom as simulated robots do (edge/sim).
func TestFallStops(t *testing.T) {
	for _, rate := range []imu.Rate{imu.Hz200, imu.Hz50} {
		t.Run(rate.Period().String(), func(t *testing.T) { fallStops(t, rate) })
	}
}

func fallStops(t *testing.T, rate imu.Rate) {
	p := newPlaceAt(t, rate, &edge).calibrated()
	p.claims()
	p.order(headTo(alice, -20*degree))
	p.order(wheelsAt(alice, 0.05, 0.05, 20*time.Second))
	p.run(400 * ms)
	if p.rep.Base.Twist.V < 0.03 || p.sim.State().Duty[spine.Head] == 0 {
		t.Fatalf("it does not move: %+v, duties %v", p.rep.Base.Twist, p.sim.State().Duty)
	}
	p.hand(func(w *plane.World) error { return w.PutDown(plane.Pose{0.25, 0, 0}) })
	if s := p.around(); s.Posture != plane.Falling {
		t.Fatalf("it does not fall: %+v", s)
	}
	took := p.until("a fall", func() bool { return p.sim.State().Duty == [4]float64{} })
	if most := 80*ms + rate.Period() + 3*period; took > most {
		t.Errorf("power was on %v after it began to fall, want at most %v", took, most)
	} else {
		t.Logf("without power %v after it began to fall", took)
	}
	p.until("the word of it", func() bool { return p.known.Motion.Falling && p.rep.Stop&motion.Falling != 0 })
	if m := &p.known.Motion; m.OffTreads != sense.Falling || p.felt[fell] != 1 || !m.PickedUp {
		t.Errorf("%+v, %+v", m, p.felt)
	}
	p.until("the impact", func() bool { return p.felt[impact] == 1 })
	for _, d := range []time.Duration{ms, 500 * ms, time.Second} {
		if p.run(d); p.sim.State().Duty != [4]float64{} || p.rep.Stop&motion.Lifted == 0 {
			t.Errorf("%v later: duties %v, stop %v", d, p.sim.State().Duty, p.rep.Stop)
		}
	}
	if m := &p.known.Motion; m.OffTreads != lies[p.around().Posture] || p.felt[fell] != 1 || p.felt[delocalized] != 1 {
		t.Errorf("it lies %v and feels %v, %+v", p.around().Posture, m.OffTreads, p.felt)
	}
	p.again()
}

// again replays what was recorded.
func (p *place) again() {
	p.t.Helper()
	p.close()
	var c *control.Control
	var plant *Plant
	again := felt{}
	inertial := false
	done, err := rt.Replay(&p.out, rt.Config{}, func(tape *rt.Tape, _ body.Description) []rt.Task {
		c, plant = newControl(p.t, Default(), tape)
		return []rt.Task{c.Task()}
	}, func(s *rt.Snapshot) {
		again.take(c)
		var m vectordriver.Sense
		m.Unpack(&s.Sense)
		inertial = inertial || m.Inertial.At != 0
	})
	if err != nil || done.Cut != nil || done.Steps < 500 || !inertial {
		p.t.Fatalf("%+v, %v, inertial sensors %v", done, err, inertial)
	}
	if again.take(c); !maps.Equal(again, p.felt) || plant.known.Motion != p.known.Motion {
		p.t.Errorf("replayed: %v, %+v\nrecorded: %v, %+v", again, plant.known.Motion, p.felt, p.known.Motion)
	}
}

// TestHands: picked up, held, laid down on every side and put back (VEC-IMU-06, 08, 09, 18); off the treads the treads do not drive.
func TestHands(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	is := func(want sense.OffTreads) func() bool {
		return func() bool { return p.known.Motion.OffTreads == want }
	}
	p.hand((*plane.World).PickUp)
	if took := p.until("in the air", is(sense.InAir)); took > 2*time.Second {
		t.Errorf("in the air after %v", took)
	}
	p.until("held", func() bool { return p.known.Motion.Held && p.known.Motion.PickedUp })
	if p.rep.Stop&motion.Lifted == 0 || p.felt[delocalized] != 1 || p.felt[fell] != 0 {
		t.Errorf("stop %v, %+v", p.rep.Stop, p.felt)
	}
	for posture, want := range lies {
		p.hand(func(w *plane.World) error { return w.Tip(posture) })
		p.until(string(posture), is(want))
	}
	p.hand((*plane.World).PickUp)
	p.run(time.Second)
	p.hand(func(w *plane.World) error { return w.PutDown(plane.Pose{}) })
	p.until("back on the treads", is(sense.OnTreads))
	p.run(ms)
	if p.rep.Stop != 0 || p.felt[fell]+p.felt[impact] != 0 || p.rep.Power.Shutdown.Off != power.StayOn {
		t.Errorf("stop %v, %+v, %v", p.rep.Stop, p.felt, p.rep.Power.Shutdown)
	}
}

// TestAxesFromEndToEnd: up is +Z whatever the head does, nose down and left turns are positive, in the senses and in the tree (VEC-IMU-02,
// VEC-IMU-03, GOSTAI-MAP-V-22 to 27).
func TestAxesFromEndToEnd(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	level := func(what string) {
		t.Helper()
		m := &p.known.Motion
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
	p.order(headTo(alice, 0))
	p.run(2 * time.Second)
	level("head level")
	if a := p.p.sense.Inertial.Accel; math.Abs(a[2]-9.81) > 0.2 || math.Abs(a[0]) > 0.35 {
		t.Errorf("head level: the sensor feels %v, want +9.81 on Z", a)
	}
	p.order(headTo(alice, -40*degree)) // nose up
	p.run(2 * time.Second)
	level("head raised")
	if a := p.p.sense.Inertial.Accel; a[0] < 5.5 || a[2] > 8 {
		t.Errorf("head raised by 40 degrees: the sensor feels %v, want 6.3 ahead and 7.5 up", a)
	}
	began := p.rep.Base.Pose.Theta
	p.order(control.Order{Kind: control.Turn, A: math.Pi / 2, Speed: 1.5, For: 5 * time.Second})
	most := 0.0
	p.until("a turn to the left", func() bool {
		most = max(most, p.value("gyroZ.speed"))
		return p.moves.Treads != motion.Running
	})
	p.run(200 * ms)
	s := p.around()
	if most < 1.2 || p.moves.Treads != motion.Done || math.Abs(s.Pose[2]-math.Pi/2) > 4*degree {
		t.Errorf("turned with %v rad/s, %v, to %v; want to the left by a quarter", most, p.moves.Treads, s.Pose)
	}
	if heading := p.rep.Base.Pose.Theta - began; math.Abs(heading-s.Pose[2]) > 2*degree || math.Abs(p.known.Motion.Heading-s.Pose[2]) > 3*degree {
		t.Errorf("odometry %v, heading %v, really %v", heading, p.known.Motion.Heading, s.Pose[2])
	}
	if p.odd() != nil || p.moves.Slipping {
		t.Errorf("a turn as ordered: %+v", p.felt)
	}
	p.hand(func(w *plane.World) error { return w.Tip(plane.OnFace) })
	p.until("nose down", func() bool { return p.known.Motion.Pitch > 80*degree })
	p.hand(func(w *plane.World) error { return w.Tip(plane.OnLeftSide) })
	p.until("left side down", func() bool { return p.known.Motion.Roll < -80*degree })
}

// TestUnexpected: turned by a hand, and treads that turn nothing between two walls (VEC-IMU-15).
func TestUnexpected(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	p.hand(func(w *plane.World) error { return w.Turn(-2, time.Second) })
	p.until("a turn by a hand", func() bool { return p.odd() != nil })
	want := felt{"robot.unexpected_movement ROTATING_WITHOUT_MOTORS UNKNOWN": 1}
	if got := p.odd(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	p.run(2 * time.Second)
	if got := p.odd(); !maps.Equal(got, want) || p.known.Motion.OffTreads != sense.OnTreads || math.Abs(p.around().Pose[2]+2) > 0.01 {
		t.Errorf("after it: %v, %+v", got, p.around())
	}
	p.close()

	p = newPlace(t, &plane.Map{Walls: []plane.Wall{{From: plane.Vec{-1, 0.031}, To: plane.Vec{1, 0.031}},
		{From: plane.Vec{-1, -0.031}, To: plane.Vec{1, -0.031}}}}).calibrated()
	p.claims()
	p.order(wheelsAt(alice, -0.06, 0.06, 20*time.Second))
	p.until("treads that turn nothing", func() bool { return p.odd() != nil })
	if got, want := p.odd(), (felt{"robot.unexpected_movement TURNED_BUT_STOPPED LEFT": 1}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNowhere: a robot in no world feels gravity and how its treads turn it; nothing of that is unexpected.
func TestNowhere(t *testing.T) {
	p := newPlace(t, nil).calibrated()
	p.claims()
	p.order(control.Order{Kind: control.Turn, A: -math.Pi / 2, Speed: 1.5, For: 5 * time.Second})
	p.until("a turn", func() bool { return p.moves.Treads != motion.Running })
	p.order(control.Order{Kind: control.Go, A: 0.1, For: 5 * time.Second})
	p.until("a drive", func() bool { return p.moves.Treads != motion.Running })
	if p.moves.Treads != motion.Done || math.Abs(p.rep.Base.Pose.Theta+math.Pi/2) > 4*degree || len(p.odd())+int(p.felt[fell]) != 0 {
		t.Errorf("%v at %+v, %+v", p.moves.Treads, p.rep.Base.Pose, p.felt)
	}
	p.run(2 * time.Second)
	if m := &p.known.Motion; m.OffTreads != sense.OnTreads || !m.Still ||
		math.Abs(math.Sqrt(m.Accel[0]*m.Accel[0]+m.Accel[1]*m.Accel[1]+m.Accel[2]*m.Accel[2])-9.81) > 0.1 {
		t.Errorf("at rest: %+v", m)
	}
}

// TestLateSamples: inertial samples that are late for a moment are no change of the off-treads state, those that are late for longer are one, and one more
// when they are back (VEC-IMU-06).
func TestLateSamples(t *testing.T) {
	d := newDesk(t).calibrated()
	treads := func() (n int64) {
		for name, times := range d.felt {
			if strings.HasPrefix(name, "robot.offtreadsstatechanged") {
				n += times
			}
		}
		return n
	}
	state := func(want sense.OffTreads) {
		t.Helper()
		d.until(want.String(), func() bool { return d.p.known.Motion.OffTreads == want })
	}
	late, level := [3]float64{}, [3]float64{0, 0, sense.Gravity}
	d.up = level
	state(sense.OnTreads)
	for range 3 {
		d.up = late
		state(sense.Unsettled)
		d.run(unsettledFor / 2)
		d.up = level
		state(sense.OnTreads)
	}
	if n := treads(); n != 1 {
		t.Errorf("%d changes told, %v", n, d.felt)
	}
	d.up = late
	state(sense.Unsettled)
	d.run(unsettledFor * 3 / 2)
	d.up = level
	state(sense.OnTreads)
	if n := treads(); n != 3 || d.felt["robot.offtreadsstatechanged Unsettled OnTreads"] != 1 || d.felt["robot.offtreadsstatechanged OnTreads Unsettled"] != 2 {
		t.Errorf("%d changes told, %v", n, d.felt)
	}
}

// TestSensorsLost: a chip that dies is fault 960 (VEC-IMU-16) and nothing else: what it said is forgotten, the robot drives on by its encoders, and
// the mended one is believed.
func TestSensorsLost(t *testing.T) {
	p := newPlace(t, builtin(t, "empty")).calibrated()
	p.chip.SetFault(vectorsim.IMUSilent, p.now)
	p.until("no state", func() bool { return p.known.Motion.OffTreads == sense.Unsettled })
	p.until("the fault", func() bool { return p.p.sense.Fault == uint16(faultcode.IMU) })
	if !p.dark("accelZ.acceleration") || !p.dark("gyroX.speed") || p.p.sense.Inertial.At != 0 {
		t.Error("the tree has values without a measurement")
	}
	p.claims()
	p.order(control.Order{Kind: control.Go, A: 0.05, For: 5 * time.Second})
	p.until("a drive", func() bool { return p.moves.Treads != motion.Running })
	if p.moves.Treads != motion.Done || p.rep.Power.Shutdown.Off != power.StayOn {
		t.Errorf("%v, %v", p.moves.Treads, p.rep.Power.Shutdown)
	}
	p.chip.SetFault(vectorsim.IMUSound, p.now)
	p.until("its return", func() bool { return p.p.sense.Fault == 0 && p.known.Motion.OffTreads == sense.OnTreads })
}

// TestGyroFails: a gyro that says another thing than the rest that the accelerometer feels ends the run with cause 4 (VEC-IMU-16).
func TestGyroFails(t *testing.T) {
	p := newPlace(t, builtin(t, "empty"), func(c *Config) { c.Sense.Motion.GyroFail = 2 * time.Second })
	p.chip.Bend(vectorsim.IMUConfig{GyroBias: [3]float64{0, 1, 0}})
	p.until("the end", func() bool { return p.rep.Power.Shutdown.Off != power.StayOn })
	if p.known.Motion.Gyro != sense.GyroFailed || p.rep.Power.Shutdown.Cause != power.GyroNotCalibrating ||
		p.rep.Power.Shutdown.Cause.Fault() != faultcode.ShutdownGyro {
		t.Errorf("gyro %v, %+v", p.known.Motion.Gyro, p.rep.Power.Shutdown)
	}
}

// TestOnInAHand: a robot that is switched on in a hand has no broken gyro: what trembles is the hand, and the accelerometer feels it too
// (VEC-IMU-16).
func TestOnInAHand(t *testing.T) {
	p := newPlace(t, builtin(t, "empty"), func(c *Config) { c.Sense.Motion.GyroFail = 2 * time.Second })
	p.hand((*plane.World).PickUp)
	p.run(8 * time.Second)
	if m := &p.known.Motion; m.Gyro != sense.GyroPending || p.rep.Power.Shutdown.Off != power.StayOn {
		t.Errorf("gyro %v, %+v", m.Gyro, p.rep.Power.Shutdown)
	}
	p.hand(func(w *plane.World) error { return w.PutDown(plane.Pose{}) })
	p.until("a calibrated gyro", func() bool {
		return p.known.Motion.Gyro == sense.GyroCalibrated && p.known.Motion.OffTreads == sense.OnTreads
	})
}

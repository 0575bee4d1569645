// Package vectorplant is a Vector at work in the control loop: its senses, its power limits, its treads, joints and lights.
//
//	frame ─► senses ─► power ─► reasons to stop
//	goals ─► motion ─► duties            the tree's slots ◄─ measurements, senses, speeds
//	         lights ─► programs' colours, the robot's state; dark while it saves power
//
// A body without inertial sensors cannot detect a fall; four floor sensors without a floor then count as lifted. The sensors are in the
// head: before its angle is calibrated they detect a fall and nothing else.
package vectorplant

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
	"kennel/edge/sense"
)

// The parts of a Vector.
const (
	wheels = iota
	head
	lift
	lights
	eye
)

var parts = []control.Part{
	wheels: {Name: "wheels", Devices: []string{"robot.body.wheel"}, Timed: true, Base: true},
	head:   {Name: "head", Devices: []string{"robot.body.head.pitch"}, Homes: true},
	lift:   {Name: "lift", Devices: []string{"robot.body.arm"}, Homes: true},
	lights: {Name: "lights", Devices: []string{"robot.body.led"}, Shared: true},
	eye:    {Name: "camera", Shared: true}, // settings, which have no owner
}

// jointOf is the index of a part in motion.Config.Joints; -1: it is no joint.
var jointOf = [...]int{wheels: -1, head: jointHead, lift: jointLift, lights: -1, eye: -1}

// totals are the lifetime statistics that the plant sums up: odometers in mm (VEC-MCT-16), and how long the robot was petted (VEC-IO-14).
var totals = []string{"Odom.LWheel", "Odom.Rwheel", "Odom.Body", "Pet.ms"}

// goal says which set-point a slot represents.
type goal uint8

const (
	_             goal = iota
	headTurn           // in turns
	headPitch          // in rad
	liftHeight         // in m
	wheelLeft          // rad/s of the wheel
	wheelRight         //
	bodySpeed          // m/s forward
	bodyTurn           // rad/s to the left
	bodyYaw            // rad to the left, as the pose counts
	cameraSetting      // this and the ones after it, in the order of camera.all
	_
	_
	_
	_
	colour // of a light: this and the ones after it, three times the light and 0 to 2
)

// goals are the slots that can be set, except those of the lights.
var goals = []struct {
	slot string
	goal goal
	part int
}{
	{"headPitch.turn", headTurn, head}, {"robot.pitch", headPitch, head}, {"arm.position", liftHeight, lift},
	{"wheelL.speed", wheelLeft, wheels}, {"wheelR.speed", wheelRight, wheels},
	{"robot.xSpeed", bodySpeed, wheels}, {"robot.yawSpeed", bodyTurn, wheels}, {"robot.yaw", bodyYaw, wheels},
}

// Config holds the settings of a Vector's plant.
type Config struct {
	Sense  sense.Config
	Motion motion.Config
	// Straight and Turn are the speeds of orders without a speed, m/s and rad/s.
	Straight, Turn motion.Ramp
}

// Default returns the settings of an unmeasured Vector.
func Default() Config {
	return Config{
		Sense: sense.Default(), Motion: motionConfig(),
		// Own defaults: half of the treads' limits.
		Straight: motion.Ramp{Speed: 0.1, Accel: 0.3, Decel: 0.3},
		Turn:     motion.Ramp{Speed: 2, Accel: 6, Decel: 6},
	}
}

// Model returns a Vector as the control loop sees it.
func Model(cfg Config) (control.Model, error) {
	tree, err := vectordriver.Tree()
	if err != nil {
		return control.Model{}, err
	}
	f := robot.Finder{Tree: tree}
	slots, of := map[int]int{}, map[int]goal{}
	for _, g := range goals {
		id := f.Slot(g.slot)
		slots[id], of[id] = g.part, g.goal
	}
	for i := range 4 {
		for c, name := range [...]string{".r", ".g", ".b"} {
			id := f.Slot(fmt.Sprintf("led[%d]%s", i, name))
			slots[id], of[id] = lights, colour+goal(3*i+c)
		}
	}
	c := newCamera(&f)
	for i := range c.all {
		slots[c.all[i].slot], of[c.all[i].slot] = eye, cameraSetting+goal(i)
	}
	if f.Err != nil {
		return control.Model{}, fmt.Errorf("vectorplant: %w", f.Err)
	}
	return control.Model{
		Tree: tree, Parts: parts, Slots: slots, Totals: totals,
		Make: func(board *state.Board, emit func(control.Event), held func(int) bool) (control.Plant, error) {
			return newPlant(cfg, board, of, emit, held)
		},
	}, nil
}

// Plant is one Vector. It belongs to the goroutine of the loop.
type Plant struct {
	cfg    Config
	board  *state.Board
	bind   *vectordriver.Binding
	goals  map[int]goal
	emit   func(control.Event)
	held   func(int) bool
	slots  slots
	wheels []int // actuators
	leds   [4]int
	camera camera

	senses   *sense.Senses
	odd      sense.Unexpected
	compared time.Duration // the newest sample that the treads were compared with
	motion   *motion.Motion
	power    power.Keeper

	sense  vectordriver.Sense
	taken  time.Duration // when the body took it
	in     motion.Input
	duties motion.Duties
	act    vectordriver.Act // its lights are the programs' colours
	known  sense.State
	events sense.Events

	toldTreads sense.OffTreads
	settled    time.Duration // when the off-treads state was last known

	now    motion.Report
	status uint32 // the bits of RobotStatus that the body itself decides
	petted time.Duration
	at     time.Duration // when this step began
	calm   bool
	sleep  power.Sleep

	path   motion.Path
	drive  speeds
	letGo  [2]time.Duration // by joint: when it loses its power, at rest or not; 0: it keeps it
	homing bool

	prox    sense.ProxInput // the distance that counts
	blind   bool            // the cliff sensors have no power because the plant said so, or know no floor since
	blindAt time.Duration   // when it last said so
}

// speeds are the treads' speeds that an owner set, m/s.
type speeds struct {
	owner       uint32
	left, right float64
}

// slots are the slots that the plant itself knows the value of.
type slots struct {
	touch, laser             int
	detected                 [4]int
	accel, gyro              [3]int // by axis
	moving, xSpeed, yawSpeed int
	yaw, pitch               int
	lights                   [4][3]int
}

func newPlant(cfg Config, board *state.Board, of map[int]goal, emit func(control.Event), held func(int) bool) (*Plant, error) {
	p := &Plant{cfg: cfg, board: board, goals: of, emit: emit, held: held, odd: sense.NewUnexpected(sense.DefaultUnexpected)}
	var err error
	if p.bind, err = vectordriver.Bind(board); err != nil {
		return nil, err
	}
	if p.senses, err = sense.New(cfg.Sense, len(p.slots.detected)); err != nil {
		return nil, err
	}
	if p.motion, err = motion.New(cfg.Motion); err != nil {
		return nil, err
	}
	f := robot.Finder{Tree: board.Tree()}
	p.slots = slots{
		touch: f.Slot("touch.pressure"), laser: f.Slot("laser.distance"),
		moving: f.Slot("robot.moving"), xSpeed: f.Slot("robot.xSpeed"), yawSpeed: f.Slot("robot.yawSpeed"),
		yaw: f.Slot("robot.yaw"), pitch: f.Slot("robot.pitch"),
	}
	for i, axis := range [...]string{"X", "Y", "Z"} {
		p.slots.accel[i], p.slots.gyro[i] = f.Slot("accel"+axis+".acceleration"), f.Slot("gyro"+axis+".speed")
	}
	for i, c := range [...]string{spine.FrontLeft: "cliffFL", spine.FrontRight: "cliffFR", spine.BackLeft: "cliffBL", spine.BackRight: "cliffBR"} {
		p.slots.detected[i] = f.Slot(c + ".detected")
	}
	for i := range p.slots.lights {
		led := fmt.Sprintf("led[%d]", i)
		p.slots.lights[i] = [3]int{f.Slot(led + ".r"), f.Slot(led + ".g"), f.Slot(led + ".b")}
		if all := f.Actuators(led); len(all) == 1 {
			p.leds[i] = all[0]
		}
	}
	p.wheels = f.Actuators("robot.body.wheel")
	p.camera = newCamera(&f)
	return p, f.Err
}

// Feel is control.Plant.
func (p *Plant) Feel(m *control.Moment, f *rt.Frame) motion.Reason {
	s := &p.sense
	s.Unpack(f.Sense)
	p.taken = f.Taken
	s.Epoch += m.Run << 20 // a body that was opened again, or another one, starts to count again although its driver's epoch may be the same number
	if m.Opened {
		for i := range p.slots.lights {
			p.light(i, vectordriver.Light{}, m.Now) // opening a body darkens it
		}
		p.showCamera(m.Now)
	}
	p.status = vectordriver.RobotStatus(s)
	p.at, p.calm, p.sleep = m.Now, m.Calm, m.Sleep
	p.thin()
	p.feel(m)
	if s.Fresh {
		p.watchPower(m, f.DT)
	}
	var stop motion.Reason
	if p.power.Shutdown.Off != power.StayOn || p.power.Body.Heat >= power.Hot { // VEC-PWR-10: hot means no activity
		stop |= motion.Halted
	}
	if p.known.Motion.Falling {
		stop |= motion.Falling
	}
	if p.known.CliffsKnown && p.senses.Cliffs.All() || p.known.Motion.OffTreads > sense.OnTreads {
		stop |= motion.Lifted
	}
	return stop
}

// feel runs the senses on the measurements, and reports their findings.
func (p *Plant) feel(m *control.Moment) {
	s := &p.sense
	in := sense.Input{
		Reading: sense.Reading{
			At: s.At, Epoch: s.Epoch, Fresh: s.Fresh, Power: s.Power, Touch: s.Touch, TouchAt: s.TouchAt, Button: s.Button,
		},
		Driven: p.now.Moving, Prox: p.prox,
		Inertial: sense.Inertial{Accel: s.Inertial.Accel, Gyro: s.Inertial.Gyro, At: s.Inertial.At},
	}
	copy(in.Cliffs[:], s.Cliffs[:])
	if j := &p.now.Joints[jointHead]; j.Calibrated {
		in.HeadAngle, in.HeadRate = j.Angle, j.Speed
	} else {
		in.HeadUnknown = true
	}
	if j := &p.now.Joints[jointLift]; j.Calibrated {
		in.LiftHeight = liftHeightOf(j.Angle)
	}
	p.known, p.events = p.senses.Step(m.Now, m.DT, &in)
	p.notice(m)
	p.compare(m, s.Inertial.At)
}

// gyro is the rate about the body's Z as motion takes it; none while the angle of the head is unknown.
func (p *Plant) gyro() motion.Gyro {
	if p.known.Motion.OffTreads == sense.Unsettled {
		return motion.Gyro{}
	}
	return motion.Gyro{Rate: p.known.Motion.Rate[2], At: p.sense.Inertial.At}
}

// compare looks at each sample whether the body turns as its treads do (VEC-IMU-15). It was taken about when motion made its last plan.
func (p *Plant) compare(m *control.Moment, at time.Duration) {
	if at <= p.compared {
		return
	}
	between := at - p.compared
	p.compared = at
	k := &p.known.Motion
	move, odd := p.odd.Step(between, sense.UnexpectedInput{
		Turn: k.Rate[2], WantTurn: p.now.Want.W, WantSpeed: p.now.Want.V,
		OnTreads: k.OffTreads == sense.OnTreads && k.Gyro == sense.GyroCalibrated,
	})
	if odd { // the source has the message and no name of an event: our own
		e := control.Event{At: m.Now, Name: "robot.unexpected_movement", N: 1, Numbers: [4]int64{1}}
		e.Texts[0], e.Texts[1] = move.Type.String(), move.Side.String()
		p.emit(e)
	}
}

// watchPower passes a frame to the power keeper; dt is the time since the frame before.
func (p *Plant) watchPower(m *control.Moment, dt time.Duration) {
	s := &p.sense
	p.power = p.power.Step(power.KeeperInput{
		Volts: s.BatteryVolts, OnCharger: s.Power.Has(body.OnCharger), Charging: s.Power.Has(body.Charging),
		Disconnected: s.Power.Has(body.BatteryDisconnected), BodyCelsius: s.Temperature, CPUCelsius: m.CPU,
		BelowCritical: s.Power.Has(body.BelowCritical), Imminent: s.Power.Has(body.ShutdownImminent),
		Button: p.events.Gesture == sense.PowerOff, GyroFailed: p.known.Motion.Gyro == sense.GyroFailed,
		Calm: m.Calm, Asleep: m.Sleep.Asleep(),
	}, dt)
}

// cliffs returns the sensors that the treads must not pass: sensor i is bit i on both sides (VEC-BODY-20).
func (p *Plant) cliffs() motion.Cliffs {
	if p.blind {
		return motion.FrontLeft | motion.FrontRight | motion.BackLeft | motion.BackRight
	}
	if !p.known.CliffsKnown {
		return 0
	}
	return motion.Cliffs(p.known.Cliffs)
}

// Step is control.Plant.
func (p *Plant) Step(m *control.Moment, stop motion.Reason, act *body.Act) {
	for i, at := range p.letGo {
		if at > 0 && m.Now >= at {
			p.letGo[i] = 0
			_ = p.motion.Release(i) // a joint of ours exists
		}
	}
	s := &p.sense
	p.in = motion.Input{
		Now: m.Now, DT: m.DT, At: p.taken, Epoch: s.Epoch, Fresh: s.Fresh, Motors: s.Motors[:], Gyro: p.gyro(), Stop: stop, Cliffs: p.cliffs(),
	}
	p.now = *p.motion.Step(&p.in, &p.duties)
	out := p.act
	copy(out.Motors[:], p.duties[:])
	p.save(m, &out)
	out.Pack(act)
	p.show()
}

// Outcome is control.Plant.
func (p *Plant) Outcome(part int) motion.Outcome {
	switch part {
	case wheels:
		return p.motion.Treads()
	case head, lift:
		return p.motion.Joint(jointOf[part])
	}
	return motion.None
}

// Rest is control.Plant.
func (p *Plant) Rest(part int, letGo bool) {
	if part == wheels {
		p.drive = speeds{}
		p.motion.StopTreads()
		return
	}
	i := jointOf[part]
	if i < 0 {
		return
	}
	if letGo {
		p.letGo[i] = p.at + control.EaseFor
	}
	if p.motion.MoveAt(i, 0, 0) != nil { // a reason to stop holds: it has no power anyhow
		_ = p.motion.Release(i) // a joint of ours exists
	}
}

// Home is control.Plant.
func (p *Plant) Home(part int) error {
	p.letGo[jointOf[part]] = 0
	return p.motion.Calibrate(jointOf[part])
}

// Homed is control.Plant.
func (p *Plant) Homed(part int) bool { return p.now.Joints[jointOf[part]].Calibrated }

// Report is control.Plant.
func (p *Plant) Report(r *control.Report) {
	n := &p.now
	r.Stop, r.Moving, r.Posture = n.Stop, n.Moving, p.known.Motion.OffTreads.String()
	r.Pitch = p.known.Motion.Pitch
	r.Base = control.Base{Pose: n.Pose, Twist: n.Twist, Way: n.Odometers.Body, Unreliable: n.Unreliable}
	r.Parts[wheels] = control.PartReport{Outcome: n.Treads, Known: true}
	for part, i := range jointOf {
		if i >= 0 {
			j := &n.Joints[i]
			r.Parts[part] = control.PartReport{State: j.State.String(), Outcome: j.Outcome, Known: j.Calibrated}
		}
	}
	r.Totals = [control.MaxTotals]float64{1000 * n.Odometers.Left, 1000 * n.Odometers.Right, 1000 * n.Odometers.Body, float64(p.petted.Milliseconds())}
	r.Supply, r.Volts, r.Fault, r.Power = p.sense.Power, p.sense.ChargerVolts, p.sense.Fault, p.power
	r.Status = p.robotStatus()
}

// robotStatus returns the bits of RobotStatus: those of the body and the senses, "a motor has power" (0x20000, VEC-IMU-14), which a robot
// with dead inertial sensors does not feel, and "position unknown" of the head (0x200000) and the lift (0x400000) (VEC-MOT-07).
func (p *Plant) robotStatus() uint32 {
	status := p.status | p.known.RobotStatus()
	if p.now.Moving {
		status |= 0x20000
	}
	if !p.now.Joints[jointHead].Calibrated {
		status |= 0x200000
	}
	if !p.now.Joints[jointLift].Calibrated {
		status |= 0x400000
	}
	return status
}

// show brings all that is known to the tree's slots.
func (p *Plant) show() {
	s, b := &p.sense, p.board
	for _, j := range [...]struct{ joint, motor int }{{jointHead, spine.Head}, {jointLift, spine.Lift}} {
		if r := &p.now.Joints[j.joint]; r.Calibrated {
			p.bind.Home(j.motor, r.Home)
		}
	}
	p.bind.Sense(s)
	if s.At == 0 {
		return
	}
	if s.TouchAt > 0 && p.senses.Touch.Ready() {
		b.Set(p.slots.touch, number(p.known.Touched), s.TouchAt)
	}
	if p.known.CliffsKnown && !s.Power.Has(body.SensorsOff) {
		for i, id := range p.slots.detected {
			b.Set(id, number(p.known.Cliffs.Has(i)), s.At)
		}
	}
	if p.known.Prox.Unobstructed {
		b.Set(p.slots.laser, math.Inf(1), s.ProxAt)
	}
	p.showInertial()
	b.Set(p.slots.moving, number(p.now.Treads == motion.Running), s.At)
	b.Set(p.slots.xSpeed, p.now.Twist.V, s.At)
	b.Set(p.slots.yawSpeed, p.now.Twist.W, s.At)
	b.Set(p.slots.yaw, p.now.Pose.Theta, s.At)
	if j := &p.now.Joints[jointHead]; j.Calibrated {
		b.Set(p.slots.pitch, -j.Angle, s.At)
	} else {
		b.Forget(p.slots.pitch)
	}
}

// showInertial publishes the inertial measurements in the body's frame (GOSTAI-MAP-V-22 to 27); they are unknown while the angle of the head is.
func (p *Plant) showInertial() {
	m, b := &p.known.Motion, p.board
	for i := range p.slots.accel {
		if m.OffTreads == sense.Unsettled {
			b.Forget(p.slots.accel[i])
			b.Forget(p.slots.gyro[i])
			continue
		}
		b.Set(p.slots.accel[i], m.Accel[i], p.sense.Inertial.At)
		b.Set(p.slots.gyro[i], m.Rate[i], p.sense.Inertial.At)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

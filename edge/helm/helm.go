package helm

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"kennel/edge/body"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/edge/rt"
	"kennel/edge/sense"
)

// calibrateFor is how long the helm's own claim for calibrating lasts at most: three homings of two joints; own default.
const calibrateFor = 15 * time.Second

// easeFor is how long a joint that lost its owner may take to come to rest; own default.
const easeFor = 500 * time.Millisecond

// cpuKeeps is how long a temperature of the processor counts; own default: ten times as long as the next takes.
const cpuKeeps = 5 * time.Second

// selfTries is how often the helm begins to calibrate a body that it opened; own default.
const selfTries = 10

// Owning is who owns an actuator; 0 is nobody.
type Owning struct {
	Owner    claim.Owner
	Priority claim.Priority
}

// Report is what is known after a step.
type Report struct {
	At     time.Duration
	Motion motion.Report
	Sense  sense.State
	Power  power.Keeper
	Calm   bool // somebody asks for calm power mode
	Sleep  power.Sleeper
	Owners [claim.MaxActuators]Owning // by actuator, as many as the tree has
	Lost   uint64                     // results that found the ring full
	Felt   Felt
}

// Felt counts what the senses noticed, since the helm was made, and says what the last unexpected movement was.
type Felt struct {
	OffTreads, Falls, Impacts, Delocalized, LongInAir, Shakes, Pokes, FistBumps, GyroReady uint32

	Unexpected uint32
	Last       sense.Movement // while Unexpected > 0

	Touches, Pettings                                                              uint32
	ChargerChecks, BaselinesLearnt, BaselinesChanged, BaselinesKept, BaselinesHigh uint32 // of the touch sensor (VEC-IO-13)
	Cliffs, Lines                                                                  uint32 // sensors that lost the floor; edges of lines (VEC-IO-23)
	ProxInvalid, ProxSevere                                                        uint32 // VEC-BODY-26
	Petted                                                                         time.Duration
	Gestures                                                                       [sense.Recovery + 1]uint32 // of the button, by sense.Gesture (VEC-IO-02)
}

// count takes in the events of a step, dt after the step before, and what is known after it.
func (f *Felt) count(ev *sense.Events, known *sense.State, dt time.Duration) {
	for _, c := range [...]struct {
		ev sense.MotionEvents
		n  *uint32
	}{
		{sense.OffTreadsChanged, &f.OffTreads}, {sense.FallBegan, &f.Falls}, {sense.FallImpact, &f.Impacts}, {sense.Delocalized, &f.Delocalized},
		{sense.TooLongInAir, &f.LongInAir}, {sense.ShakeBegan, &f.Shakes}, {sense.Poked, &f.Pokes}, {sense.FistBump, &f.FistBumps}, {sense.GyroReady, &f.GyroReady},
	} {
		if ev.Motion&c.ev != 0 {
			*c.n++
		}
	}
	for _, c := range [...]struct {
		ev sense.TouchEvents
		n  *uint32
	}{
		{sense.TouchBegan, &f.Touches}, {sense.Petted, &f.Pettings}, {sense.ChargerModeCheck, &f.ChargerChecks}, {sense.BaselineLearnt, &f.BaselinesLearnt},
		{sense.BaselineChanged, &f.BaselinesChanged}, {sense.BaselineUnchanged, &f.BaselinesKept}, {sense.BaselineTooHigh, &f.BaselinesHigh},
	} {
		if ev.Touch&c.ev != 0 {
			*c.n++
		}
	}
	if ev.Prox&sense.ProxInvalid != 0 {
		f.ProxInvalid++
	}
	if ev.Prox&sense.ProxSevere != 0 {
		f.ProxSevere++
	}
	f.Cliffs += uint32(bits.OnesCount8(uint8(ev.Cliff.Lost)))
	f.Lines += uint32(bits.OnesCount8(uint8(ev.Cliff.Dark | ev.Cliff.Bright)))
	if ev.Gesture != sense.NoGesture {
		f.Gestures[ev.Gesture]++
	}
	if known.Petting {
		f.Petted += dt
	}
}

// Helm is the device model of one body. Step belongs to the goroutine of the loop; all else is safe for concurrent use, with one reader of Result.
type Helm struct {
	model     Model
	board     *state.Board
	bind      Binding
	senses    *sense.Senses
	odd       sense.Unexpected
	felt      Felt
	compared  time.Duration // the newest sample that the treads were compared with
	motion    *motion.Motion
	claims    *claim.Table
	slots     slots
	actuators int
	parts     devices

	box     rt.Mailbox[Order]
	results rt.Ring[Result]
	reports *rt.Latest[Report]

	run    uint32
	epoch  uint32
	last   time.Duration
	begun  bool
	sense  body.Sense
	act    body.Act // its lights
	path   motion.Path
	now    motion.Report
	known  sense.State
	events sense.Events

	cpu   float64       // degrees Celsius of the processor
	cpuAt time.Duration // when that was said; 0: never

	power power.Keeper
	saver power.Saver
	sleep power.Sleeper

	prox    sense.ProxInput // the distance that counts
	blind   bool            // the cliff sensors have no power because the helm said so, or know no floor since
	blindAt time.Duration   // when it last said so

	tape  *rt.Tape // records what comes to orders; nil: nothing does
	input [maxInput]byte

	treads underway
	joints [2]underway
	letGo  [2]time.Duration // when a joint that nobody owns loses its power, at rest or not; 0: it has none
	self   selfTask
	tries  int  // calibrations of this epoch
	ready  bool // motion has taken in a frame of this run
}

// underway is a motion that somebody ordered.
type underway struct {
	owner   claim.Owner // 0: nobody's
	request uint32
	moving  bool // its end was not told yet
	until   time.Duration
	why     motion.Outcome // of an end that the helm decided; None: motion knows
}

// jointOf numbers the joints that orders know.
type jointOf uint8

const (
	theHead jointOf = iota
	theLift
)

// selfTask is the calibration after a body was opened (VEC-MOT-07).
type selfTask uint8

const (
	wanted selfTask = iota
	calibrating
	settled
)

// New returns the helm of a kind of body. What its orders say goes through tape, if there is one (rt.Tape.Input).
func New(m Model, tape *rt.Tape) (*Helm, error) {
	h := &Helm{model: m, tape: tape, actuators: len(m.Tree.Actuators()), board: state.New(m.Tree), reports: rt.NewLatest[Report]()}
	var err error
	if h.bind, err = m.Bind(h.board); err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	if h.senses, err = sense.New(m.Sense, &m.Body); err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	if h.motion, err = motion.New(m.Motion); err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	if h.claims, err = claim.New(h.actuators); err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	f := finder{tree: m.Tree}
	h.parts = devices{wheels: f.actuators(m.Wheels...), joint: [2]claim.Set{theHead: f.actuators(m.Head.Device), theLift: f.actuators(m.Lift.Device)}}
	h.odd = sense.NewUnexpected(sense.DefaultUnexpected)
	h.slots = slots{
		touch: f.slot("touch.pressure"), laser: f.slot("laser.distance"),
		moving: f.slot("robot.moving"), xSpeed: f.slot("robot.xSpeed"), yawSpeed: f.slot("robot.yawSpeed"),
		trackerYaw: f.slot("robot.yaw"), trackerPitch: f.slot("robot.pitch"),
	}
	for i, axis := range [...]string{"X", "Y", "Z"} {
		h.slots.accel[i], h.slots.gyro[i] = f.slot("accel"+axis+".acceleration"), f.slot("gyro"+axis+".speed")
	}
	for _, c := range m.Cliffs {
		h.slots.detected = append(h.slots.detected, f.slot(c+".detected"))
	}
	for _, l := range m.Lights {
		h.slots.lights = append(h.slots.lights, [3]int{f.slot(l + ".r"), f.slot(l + ".g"), f.slot(l + ".b")})
		if set := f.actuators(l); f.err == nil {
			for a := range h.actuators {
				if set.Has(a) {
					h.parts.lights = append(h.parts.lights, a)
				}
			}
		}
	}
	if f.err != nil {
		return nil, fmt.Errorf("helm: %w", f.err)
	}
	return h, nil
}

// RobotStatus returns the bits of RobotStatus that the helm knows after the step of r: what its senses decide, that a motor has power (0x20000,
// VEC-IMU-14), which a robot whose inertial sensors are dead does not feel, calm power mode, and that nobody knows where the head (0x200000) or the lift
// (0x400000) is (VEC-MOT-07).
func (h *Helm) RobotStatus(r *Report) uint32 {
	status := r.Sense.RobotStatus()
	if r.Motion.Moving {
		status |= 0x20000
	}
	if r.Calm {
		status |= power.StatusCalm
	}
	if !r.Motion.Joints[h.model.Head.Index].Calibrated {
		status |= 0x200000
	}
	if !r.Motion.Joints[h.model.Lift.Index].Calibrated {
		status |= 0x400000
	}
	return status
}

// Board returns the tree's values.
func (h *Helm) Board() *state.Board { return h.board }

// Model returns what it was made of.
func (h *Helm) Model() *Model { return &h.model }

// Task is the helm's row in the loop's task table.
func (h *Helm) Task() rt.Task {
	return rt.Task{Name: "helm", Every: 1, Budget: 200 * time.Microsecond, Run: h.Step}
}

// Post leaves o for the next step. False: the mailbox is full and o is refused.
func (h *Helm) Post(o Order) bool { return h.box.Post(o) }

// PostHeat says in the next step what temperature the processor has, in degrees Celsius; it counts for 5 s. A number that cannot be is like none.
func (h *Helm) PostHeat(celsius float64) bool {
	return h.box.Post(Order{Kind: Heat, Owner: Self, A: celsius})
}

// Refused returns how many orders found the mailbox full.
func (h *Helm) Refused() uint64 { return h.box.Refused() }

// Result returns the oldest result nobody took yet; false if there is none. One goroutine asks.
func (h *Helm) Result() (Result, bool) {
	r := h.results.Peek()
	if r == nil {
		return Result{}, false
	}
	out := *r
	h.results.Drop()
	return out, true
}

// Report copies the report of the newest step to r; false if there was none yet.
func (h *Helm) Report(r *Report) bool { return h.reports.Get(r) }

// Step is the helm's task in the loop.
func (h *Helm) Step(f *rt.Frame) {
	// The loop measures DT from the newest frame; what integrates here needs the time since the step before.
	dt := f.Now - h.last
	if !h.begun || dt < 0 {
		dt = 0
	}
	h.begun, h.last = true, f.Now
	anew := f.Run != h.run
	h.take(f)
	h.thin()
	h.feel(f, dt)
	if f.Sense.Fresh {
		h.watchPower(f)
	}
	stop := h.reasons(f)
	h.claims.Step(f.Now)
	h.calibrateSelf(f.Now, stop)
	h.listen(f.Now, anew)
	h.yield(f.Now)
	in := motion.Input{Now: f.Now, DT: dt, Sense: &h.sense, Gyro: h.gyro(), Stop: stop, Cliffs: h.cliffs()}
	r := h.motion.Step(&in, f.Act)
	h.now = *r
	h.ready = h.ready || h.sense.Fresh && r.Stop&motion.Everything == 0
	h.save(f)
	h.settle()
	h.show(f.Now)
	h.tell(f.Now)
}

// take copies the measurement. A body that was opened again, or another one, counts anew although its driver's epoch may be the same number.
func (h *Helm) take(f *rt.Frame) {
	h.sense = *f.Sense
	h.sense.Epoch += f.Run << 20
	if f.Run != h.run || h.sense.Epoch != h.epoch {
		h.epoch, h.self, h.ready, h.tries = h.sense.Epoch, wanted, false, 0
	}
	if f.Run != h.run {
		h.run = f.Run
		for i := range h.slots.lights {
			h.light(i, body.Light{}, f.Now) // opening a body darkens it
		}
	}
}

// feel runs the senses on what was measured.
func (h *Helm) feel(f *rt.Frame, dt time.Duration) {
	s := &h.sense
	in := sense.Input{
		Sense: s, Driven: h.now.Moving, Prox: h.prox,
		Inertial: sense.Inertial{Accel: s.Inertial.Accel, Gyro: s.Inertial.Gyro, At: s.Inertial.At},
	}
	if j := &h.now.Joints[h.model.Head.Index]; j.Calibrated {
		in.HeadAngle, in.HeadRate = j.Angle, j.Speed
	} else {
		in.HeadUnknown = true
	}
	if j := &h.now.Joints[h.model.Lift.Index]; j.Calibrated {
		in.LiftHeight = h.model.Lift.Value(j.Angle)
	}
	h.known, h.events = h.senses.Step(f.Now, dt, &in)
	h.felt.count(&h.events, &h.known, dt)
	h.compare(s.Inertial.At)
}

// gyro is the rate about the body's Z as motion takes it; none while nobody knows how the head stands.
func (h *Helm) gyro() motion.Gyro {
	if h.known.Motion.OffTreads == sense.Unsettled {
		return motion.Gyro{}
	}
	return motion.Gyro{Rate: h.known.Motion.Rate[2], At: h.sense.Inertial.At}
}

// compare looks at each sample whether the body turns as its treads do (VEC-IMU-15). It was taken about when motion made its last plan.
func (h *Helm) compare(at time.Duration) {
	if at <= h.compared {
		return
	}
	between := at - h.compared
	h.compared = at
	m := &h.known.Motion
	move, odd := h.odd.Step(between, sense.UnexpectedInput{
		Turn: m.Rate[2] - m.Bias[2], WantTurn: h.now.Want.W, WantSpeed: h.now.Want.V, OnTreads: m.OffTreads == sense.OnTreads && m.Gyro == sense.GyroCalibrated,
	})
	if odd {
		h.felt.Unexpected++
		h.felt.Last = move
	}
}

// watchPower has the keeper take in a frame: only frames tell, and f.DT is the time since the one before. The processor's own temperature is not
// the body's to say: it comes as an order of Self (PostHeat).
func (h *Helm) watchPower(f *rt.Frame) {
	s, cpu := &h.sense, math.NaN()
	if h.cpuAt > 0 && f.Now-h.cpuAt <= cpuKeeps {
		cpu = h.cpu
	}
	h.power = h.power.Step(power.KeeperInput{
		Volts: s.BatteryVolts, OnCharger: s.Power.Has(body.OnCharger), Charging: s.Power.Has(body.Charging), Disconnected: s.Power.Has(body.BatteryDisconnected),
		BodyCelsius: s.Temperature, CPUCelsius: cpu, BelowCritical: s.Power.Has(body.BelowCritical), Imminent: s.Power.Has(body.ShutdownImminent),
		Button: h.events.Gesture == sense.PowerOff, GyroFailed: h.known.Motion.Gyro == sense.GyroFailed,
		Calm: h.saver.Calm(), Asleep: h.sleep.State.Asleep(),
	}, f.DT)
	f.Battery = h.power.Battery
}

// reasons to stop that motion cannot see by itself.
func (h *Helm) reasons(f *rt.Frame) (stop motion.Reason) {
	if f.Halted || h.power.Shutdown.Off != power.StayOn || h.power.Body.Heat >= power.Hot { // VEC-PWR-10: hot means no activity
		stop |= motion.Halted
	}
	if f.Stale {
		stop |= motion.Watchdog
	}
	m := &h.known.Motion
	if m.Falling {
		stop |= motion.Falling
	}
	if h.known.CliffsKnown && h.senses.Cliffs.All() || m.OffTreads > sense.OnTreads {
		stop |= motion.Lifted
	}
	return stop
}

// cliffs is what the treads must not go over: sensor i is bit i on both sides (VEC-BODY-20).
func (h *Helm) cliffs() motion.Cliffs {
	if h.blind {
		return motion.FrontLeft | motion.FrontRight | motion.BackLeft | motion.BackRight
	}
	if !h.known.CliffsKnown {
		return 0
	}
	return motion.Cliffs(h.known.Cliffs)
}

// calibrateSelf homes the joints once after a body was opened.
func (h *Helm) calibrateSelf(now time.Duration, stop motion.Reason) {
	both := [2]int{h.model.Head.Index, h.model.Lift.Index}
	switch h.self {
	case wanted:
		if stop&motion.Halted != 0 {
			h.self = settled // whoever halted it does not want it to move by itself later
			return
		}
		if !h.ready || stop&motion.Everything != 0 || h.now.Stop&motion.Everything != 0 {
			return
		}
		h.self = settled
		set := h.parts.joint[theHead]
		for i, w := range h.parts.joint[theLift] {
			set[i] |= w
		}
		if a, _, _ := h.inTheWay(Self, &set, claim.Behavior); a >= 0 {
			return
		}
		if _, err := h.claims.Claim(now, Self, set, claim.Behavior, calibrateFor); err != nil {
			return // the table is full of others' claims: their orders home the joints
		}
		h.self, h.tries = calibrating, h.tries+1
		for k, i := range both {
			if h.motion.Calibrate(i) == nil {
				h.joints[k] = underway{owner: Self, moving: true}
			}
		}
	case calibrating:
		if h.joints[theHead].moving || h.joints[theLift].moving {
			return
		}
		// What a late loop or a silent body stopped is begun again (VEC-MOT-07); what a person stopped or took over is not.
		again := h.tries < selfTries
		for _, i := range both {
			if j := &h.now.Joints[i]; !j.Calibrated && j.Outcome != motion.Stopped {
				again = false
			}
		}
		h.self = settled
		if again && (!h.now.Joints[both[0]].Calibrated || !h.now.Joints[both[1]].Calibrated) {
			h.self = wanted
		}
		h.claims.Drop(now, Self)
	}
}

// yield ends what is under way although its owner lost the actuator, or its time is over.
func (h *Helm) yield(now time.Duration) {
	if u := &h.treads; u.owner != 0 {
		switch {
		case !h.holds(u.owner, &h.parts.wheels):
			u.end(motion.Cancelled)
			h.motion.StopTreads()
			h.leave(u)
		case u.moving && now >= u.until:
			u.end(motion.Expired)
			h.motion.StopTreads()
		}
	}
	for k := range h.joints {
		if h.letGo[k] > 0 && now >= h.letGo[k] {
			h.letGo[k] = 0
			if h.joints[k].owner == 0 {
				_ = h.motion.Release(h.index(jointOf(k))) // a joint of ours exists
			}
		}
		if u := &h.joints[k]; u.owner != 0 && !h.holds(u.owner, &h.parts.joint[k]) {
			u.end(motion.Cancelled)
			h.leave(u)
			h.letGo[k] = now + easeFor
			if h.motion.MoveAt(h.index(jointOf(k)), 0, 0) != nil { // a reason to stop holds: it has no power anyhow
				_ = h.motion.Release(h.index(jointOf(k))) // a joint of ours exists
			}
		}
	}
}

// leave makes a motion nobody's, and tells who had it.
func (h *Helm) leave(u *underway) {
	if u.moving {
		h.ended(u, u.why)
	}
	*u = underway{}
}

// end decides how a motion ended that motion itself would call something else.
func (u *underway) end(o motion.Outcome) {
	if u.moving && u.why == motion.None {
		u.why = o
	}
}

func (h *Helm) index(j jointOf) int {
	if j == theHead {
		return h.model.Head.Index
	}
	return h.model.Lift.Index
}

// settle tells the owners of what has ended.
func (h *Helm) settle() {
	h.settleOne(&h.treads, h.now.Treads)
	for k := range h.joints {
		h.settleOne(&h.joints[k], h.now.Joints[h.index(jointOf(k))].Outcome)
	}
}

func (h *Helm) settleOne(u *underway, o motion.Outcome) {
	if !u.moving {
		return
	}
	if u.why != motion.None {
		o = u.why
	}
	if o == motion.Running {
		return
	}
	h.ended(u, o)
}

func (h *Helm) ended(u *underway, o motion.Outcome) {
	u.moving, u.why = false, motion.None
	if u.owner != Self {
		h.results.Put(Result{Owner: u.owner, Request: u.request, Code: Ended, Outcome: o, Pose: h.motion.Pose()})
	}
}

// show brings all that is known to the tree's slots.
func (h *Helm) show(now time.Duration) {
	s, b := &h.sense, h.board
	for _, j := range [...]*Joint{&h.model.Head, &h.model.Lift} {
		if r := &h.now.Joints[j.Index]; r.Calibrated {
			h.bind.Home(j.Motor, r.Home)
		}
	}
	h.bind.Sense(s)
	if s.At > 0 {
		if s.TouchAt > 0 && h.senses.Touch.Ready() {
			b.Set(h.slots.touch, number(h.known.Touched), s.TouchAt)
		}
		if h.known.CliffsKnown && !s.Power.Has(body.SensorsOff) {
			for i, id := range h.slots.detected {
				b.Set(id, number(h.known.Cliffs.Has(i)), s.At)
			}
		}
		if p := &h.known.Prox; p.Unobstructed {
			b.Set(h.slots.laser, math.Inf(1), s.ProxAt)
		}
		h.showInertial()
		b.Set(h.slots.moving, number(h.now.Treads == motion.Running), s.At)
		b.Set(h.slots.xSpeed, h.now.Twist.V, s.At)
		b.Set(h.slots.yawSpeed, h.now.Twist.W, s.At)
		b.Set(h.slots.trackerYaw, h.now.Pose.Theta, s.At)
		if j := &h.now.Joints[h.model.Head.Index]; j.Calibrated {
			b.Set(h.slots.trackerPitch, h.model.Head.Value(j.Angle), s.At)
		} else {
			b.Forget(h.slots.trackerPitch)
		}
	}
	b.Publish(now) // one left out because of slow readers is counted there, and the next has everything
}

// showInertial sets what the inertial sensors measure, in the body's frame (GOSTAI-MAP-V-22 to 27); nobody knows it while nobody knows how the head
// stands.
func (h *Helm) showInertial() {
	m, b := &h.known.Motion, h.board
	for i := range h.slots.accel {
		if m.OffTreads == sense.Unsettled {
			b.Forget(h.slots.accel[i])
			b.Forget(h.slots.gyro[i])
			continue
		}
		b.Set(h.slots.accel[i], m.Accel[i], h.sense.Inertial.At)
		b.Set(h.slots.gyro[i], m.Rate[i]-m.Bias[i], h.sense.Inertial.At)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// tell publishes the report.
func (h *Helm) tell(now time.Duration) {
	r := h.reports.Next()
	r.At, r.Motion, r.Sense = now, h.now, h.known
	r.Power, r.Calm, r.Sleep, r.Lost = h.power, h.saver.Calm(), h.sleep, h.results.Refused()
	r.Felt = h.felt
	for a := range h.actuators {
		r.Owners[a].Owner, r.Owners[a].Priority = h.claims.OwnerOf(a)
	}
	h.reports.Publish()
}

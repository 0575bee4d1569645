package amigobot

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// The parts of an AmigoBot.
const (
	wheels = iota
	outputs
	tuning // of the wheels
	sounds
)

var parts = []control.Part{
	wheels:  {Name: "wheels", Devices: []string{"robot.body.wheel"}, Timed: true, Base: true},
	outputs: {Name: "outputs", Devices: []string{"robot.body.digout"}, Shared: true},
	tuning:  {Name: "tuning", Devices: []string{"robot.body.wheel"}},
	sounds:  {Name: "sounds", Devices: []string{"robot.body.speaker"}, Shared: true},
}

// Own defaults of the motion.
const (
	goSpeed, goAccel     = 0.25, 0.4 // m/s, m/s²: below the driver's limits
	turnSpeed, turnAccel = 1.0, 1.5  // rad/s, rad/s²
	along                = 2.5       // 1/s, how fast a lag behind the plan is made up
	goClose              = 0.010     // m, near enough not to wait longer: own default, below the 2 cm of GOSTAI-OPEN-11
	turnClose            = math.Pi / 180
	goReach              = 0.020 // m or 5 % of the way: farther away the way was missed (GOSTAI-OPEN-11)
	turnReach            = 3 * math.Pi / 180
	standSpeed           = 0.005           // m/s, slower is at rest
	standTurn            = math.Pi / 180   // rad/s, likewise
	settle               = 2 * time.Second // at most, for the end of a way
	motorsTake           = 2 * time.Second // at most, until the motors are on
	motorsKeep           = 5 * time.Second // they stay on after a motion
	empty                = 10.0            // V (AMIGO-SAFE-06)
	full                 = 13.0            // V (GOSTAI-MAP-A-15)
	low                  = 11.0            // V (AMIGO-SAFE-05)
	farthest             = 5.0             // m; beyond it is nothing (AMIGO-SON-04)
)

// goal says which set-point a slot represents.
type goal uint8

const (
	_ goal = iota
	wheelLeft
	wheelRight
	bodySpeed
	bodyTurn
	output // and the five after it
	gain   = output + 6
	play   = gain + 3
	mute   = play + 1
)

// Model returns an AmigoBot as the control loop sees it.
func Model() (control.Model, error) {
	tree, err := Tree()
	if err != nil {
		return control.Model{}, err
	}
	m := control.Model{Tree: tree, Parts: parts, Slots: map[int]int{}, Totals: []string{"Odom.LWheel", "Odom.Rwheel", "Odom.Body"}}
	goals, f := map[int]goal{}, robot.Finder{Tree: tree}
	add := func(name string, g goal, part int) {
		id := f.Slot(name)
		goals[id], m.Slots[id] = g, part
	}
	add("wheelL.speed", wheelLeft, wheels)
	add("wheelR.speed", wheelRight, wheels)
	add("robot.xSpeed", bodySpeed, wheels)
	add("robot.yawSpeed", bodyTurn, wheels)
	for i := range 6 {
		add(fmt.Sprintf("digout[%d].val", i), output+goal(i), outputs)
	}
	for i, g := range gains {
		add("wheelL."+g, gain+goal(i), tuning)
		add("wheelR."+g, gain+goal(i), tuning)
	}
	add("speaker.play", play, sounds)
	add("speaker.mute", mute, sounds)
	m.Make = func(board *state.Board, emit func(control.Event), held func(int) bool) (control.Plant, error) {
		return newPlant(board, goals, emit)
	}
	return m, f.Err
}

// mode is the state of the wheels.
type mode uint8

const (
	resting   mode = iota // no set-point
	driving               // v and w
	wheeling              // left and right
	gliding               // a way ahead
	turning               // an angle on the spot
	switching             // the motors are being switched on; next begins afterwards
)

// plant is one AmigoBot at work. The robot's own controller keeps speeds, heading and acceleration; the plant leads it along ways and turns, notices
// stalls, and knows its power. It belongs to the goroutine of the loop.
type plant struct {
	board *state.Board
	goals map[int]goal
	emit  func(control.Event)
	slots slots
	feed  control.Feed

	sense  *body.Sense
	epoch  uint32
	begun  bool
	now    time.Duration
	report control.Report
	stop   motion.Reason

	mode, next mode
	owner      uint32
	v, w       float64 // driving: m/s, rad/s; wheeling: left and right, m/s
	outcome    motion.Outcome
	since      time.Duration // when the mode began, or the plan of a way ended
	prof       motion.Profile
	target     float64
	motors     bool          // they shall be on
	believe    time.Duration // packets until then may show them on from before they were switched off
	idle       time.Duration // since when nothing moves
	stalled    bool
	follow     [2]follow     // the wheels against their orders
	grip       grip          // the sonars against the odometry
	doubt      time.Duration // until when nothing drives; 0: now
	blind      bool          // because the sonars lost everything at once
	packet     time.Duration // the newest
	pose       motion.Pose
	way        motion.Odometer
	ahead      float64 // m and rad that the base went since the mode began, signed
	turned     float64
	turns      [2]float64 // rad of each wheel, continued over sessions
	lastTurns  [2]float64
	out        [6]level
	tune       tune
	muted      level
	sound      float64       // number of the newest sound, and 256 more for each before it
	sounding   time.Duration // until when the driver is told of it
}

type slots struct {
	turn                [2]int
	sonar               [sip.Sonars]int // by AmigOS's number
	remain              int
	moving, xSpeed, yaw int
}

func newPlant(board *state.Board, goals map[int]goal, emit func(control.Event)) (*plant, error) {
	p := &plant{board: board, goals: goals, emit: emit, feed: control.Bind(&description, board.Tree(), "robot.moving")}
	f := robot.Finder{Tree: board.Tree()}
	for i, side := range [...]string{"L", "R"} {
		p.slots.turn[i] = f.Slot("wheel" + side + ".turn")
	}
	bearings := make([]float64, len(Sonars))
	for i, b := range Sonars {
		bearings[i] = b * math.Pi / 180
	}
	for i, native := range robot.Ring(bearings) {
		p.slots.sonar[native] = f.Slot(fmt.Sprintf("sonar[%d].distance", i))
	}
	p.slots.remain = f.Slot("battery.remain")
	p.slots.moving, p.slots.xSpeed, p.slots.yaw = f.Slot("robot.moving"), f.Slot("robot.xSpeed"), f.Slot("robot.yawSpeed")
	return p, f.Err
}

// Feel is control.Plant.
func (p *plant) Feel(m *control.Moment, f *rt.Frame) motion.Reason {
	s := f.Sense
	p.sense, p.now = s, m.Now
	var stop motion.Reason
	if s.At == 0 || m.Now-s.At > stale {
		return motion.Link
	}
	if epoch := s.Epoch + m.Run<<20; !p.begun || epoch != p.epoch {
		// Another session: the robot counts from its origin again, and nothing moves before it is asked to.
		p.begun, p.epoch, p.motors = true, epoch, false
		p.lastTurns = [2]float64{s.Values[chTurn], s.Values[chTurn+1]}
		p.pose = motion.Pose{X: s.Values[chX], Y: s.Values[chY], Theta: s.Values[chHeading]}
		p.end(motion.Stopped)
	}
	if s.Fresh {
		p.measure(s)
		p.watch(m, s)
	}
	if s.Values[chBattery] > 0 && s.Values[chBattery] < empty {
		stop |= motion.Halted
	}
	if m.Now < p.doubt {
		stop |= motion.Lifted
	}
	return stop
}

// measure follows the pose and publishes the measurements in the tree.
func (p *plant) measure(s *body.Sense) {
	v := &s.Values
	next := motion.Pose{X: v[chX], Y: v[chY], Theta: v[chHeading]}
	turn := math.Remainder(next.Theta-p.pose.Theta, 2*math.Pi)
	sin, cos := math.Sincos(p.pose.Theta + turn/2)
	ahead := (next.X-p.pose.X)*cos + (next.Y-p.pose.Y)*sin
	p.pose, p.ahead, p.turned = next, p.ahead+ahead, p.turned+turn
	p.progress(s, ahead, turn)
	r := &p.report
	p.way.Add(ahead)
	r.Base.Pose, r.Base.Way = next, p.way.Metres()
	r.Base.Twist = motion.Twist{V: (v[chLeft] + v[chLeft+1]) * radius / 2, W: (v[chLeft+1] - v[chLeft]) * radius / track}
	r.Totals[2] = 1000 * r.Base.Way

	b := p.board
	p.feed.Sense(b, s)
	for i := range 2 {
		if at := s.Times[chTurn+i]; at > 0 {
			d := math.Remainder(v[chTurn+i]-p.lastTurns[i], math.MaxUint32/ticksPerTurn*2*math.Pi)
			p.lastTurns[i], p.turns[i] = v[chTurn+i], p.turns[i]+d
			r.Totals[i] += 1000 * radius * math.Abs(d)
			b.Set(p.slots.turn[i], p.turns[i]/(2*math.Pi), at)
		}
	}
	for i, id := range p.slots.sonar {
		if at := s.Times[chSonar+i]; at > 0 {
			metres := v[chSonar+i]
			if metres > farthest {
				metres = math.Inf(1)
			}
			b.Set(id, metres, at)
		}
	}
	p.tune.sense([3]float64(v[chGain:chGain+3]), s.Times[chGain])
	b.Set(p.slots.remain, min(max((v[chBattery]-empty)/(full-empty), 0), 1), s.At)
	b.Set(p.slots.moving, number(p.mode != resting), s.At)
	b.Set(p.slots.xSpeed, r.Base.Twist.V, s.At)
	b.Set(p.slots.yaw, r.Base.Twist.W, s.At)
}

// progress takes what the robot did since the packet before, and concludes whether it gets on.
func (p *plant) progress(s *body.Sense, ahead, turn float64) {
	dt := s.At - p.packet
	p.packet = s.At
	for i, side := range [...]float64{-1, 1} {
		p.follow[i].moved(ahead+side*turn*track/2, dt, s.At)
	}
	g := &p.grip
	g.way, g.turn = g.way+ahead, g.turn+turn
	for i := range sip.Sonars {
		g.add(i, s.Values[chSonar+i], s.Times[chSonar+i])
	}
	if p.now < p.doubt {
		if p.blind && g.hears() >= 2 {
			p.doubt = 0
		}
		return
	}
	switch {
	case g.blind():
		p.doubt, p.blind = p.now+blindFor, true
	case p.follow[0].told != 0 || p.follow[1].told != 0:
		if g.spins(s.At) {
			p.doubt, p.blind = p.now+doubtFor, false
		}
	}
	if p.now < p.doubt {
		g.forget(s.At)
	}
}

// tell notes the speeds of the wheels, m/s, that the robot is told.
func (p *plant) tell(left, right float64) {
	p.follow[0].tell(left, p.now)
	p.follow[1].tell(right, p.now)
}

// watch notices stalls, a low battery and the robot's own motor button.
func (p *plant) watch(m *control.Moment, s *body.Sense) {
	stall := s.Values[chStall]+s.Values[chStall+1] > 0
	if stall && !p.stalled {
		p.emit(control.Event{
			At: m.Now, Name: "robot.stalled", Warning: true, N: 2,
			Numbers: [4]int64{int64(s.Values[chStall]), int64(s.Values[chStall+1])},
		})
	}
	p.stalled = stall
	before := p.report.Power.Battery.Level
	level := power.Nominal
	switch volts := s.Values[chBattery]; {
	case volts < low:
		level = power.Low
	case volts >= full:
		level = power.Full
	}
	p.report.Power.Battery = power.Battery{Volts: s.Values[chBattery], Level: level}
	if level == power.Low && before != power.Low && before != power.Unknown {
		p.emit(control.Event{At: m.Now, Name: "battery.low", Warning: true, N: 1, Numbers: [4]int64{int64(math.Round(1000 * s.Values[chBattery]))}})
	}
}

// Begin is control.Plant.
func (p *plant) Begin(m *control.Moment, part int, o *control.Order, r *control.Result) error {
	switch part {
	case wheels:
	case sounds:
		return p.setSounds(o)
	default:
		return p.setLevels(part, o, r)
	}
	if p.stop&(motion.Everything|motion.Lifted) != 0 {
		return motion.ErrStopped
	}
	switch o.Kind {
	case control.Go:
		return p.lead(gliding, o, goSpeed, goAccel, limits.Speed, r)
	case control.Turn:
		return p.lead(turning, o, turnSpeed, turnAccel, limits.Turn, r)
	}
	if o.Speed != 0 || o.Within != 0 {
		return motion.ErrInvalid // the robot's own controller decides how fast a speed changes
	}
	v, w := 0., 0.
	if p.owner == uint32(o.Owner) && (p.mode == driving || p.mode == switching && p.next == driving) {
		v, w = p.v, p.w // values that are not written stay as the same owner last wrote them
	} else if p.owner == uint32(o.Owner) && (p.mode == wheeling || p.mode == switching && p.next == wheeling) {
		v, w = (p.v+p.w)/2, (p.w-p.v)/track
	}
	next := driving
	for _, g := range o.Goals[:o.N] {
		if math.IsNaN(g.Value) {
			return motion.ErrInvalid
		}
		switch p.goals[g.Slot] {
		case bodySpeed:
			v = g.Value
		case bodyTurn:
			w = g.Value
		case wheelLeft, wheelRight:
			left, right := v-w*track/2, v+w*track/2
			if p.goals[g.Slot] == wheelLeft {
				left = g.Value * radius
			} else {
				right = g.Value * radius
			}
			v, w, next = (left+right)/2, (right-left)/track, wheeling
		}
	}
	v, w = min(max(v, -limits.Speed), limits.Speed), min(max(w, -limits.Turn), limits.Turn)
	left, right := v-w*track/2, v+w*track/2
	for i, g := range o.Goals[:o.N] {
		switch p.goals[g.Slot] {
		case bodySpeed:
			r.Taken[i] = v
		case bodyTurn:
			r.Taken[i] = w
		case wheelLeft:
			r.Taken[i] = left / radius
		case wheelRight:
			r.Taken[i] = right / radius
		}
	}
	if next == wheeling {
		v, w = left, right
	}
	p.begin(next, uint32(o.Owner), v, w)
	return nil
}

// lead begins a way or a turn.
func (p *plant) lead(next mode, o *control.Order, speed, accel, most float64, r *control.Result) error {
	if !(math.Abs(o.A) < 1e3) || o.A == 0 || !(o.Speed >= 0) {
		return motion.ErrInvalid
	}
	if o.Speed > 0 {
		speed = min(o.Speed, most)
		r.Speed = speed
	}
	p.begin(next, uint32(o.Owner), 0, 0)
	p.prof.Reset(0)
	p.prof.Aim(o.A, motion.Ramp{Speed: speed, Accel: accel, Decel: accel})
	if o.Within > 0 {
		r.Takes = time.Duration(p.prof.Pace(o.Within.Seconds()) * float64(time.Second))
	}
	p.target = o.A
	return nil
}

// begin starts a mode, once the motors are on.
func (p *plant) begin(next mode, owner uint32, v, w float64) {
	p.owner, p.v, p.w, p.outcome, p.since, p.next = owner, v, w, motion.Running, p.now, next
	p.mode = switching
	if !p.motors && p.sense.Values[chMotors] > 0 {
		p.believe = p.now + stale
	}
	p.motors = true
	p.start()
}

// start leaves switching when the motors are on.
func (p *plant) start() {
	if p.sense.Values[chMotors] > 0 && p.sense.At >= p.believe {
		p.mode, p.since = p.next, p.now
		p.ahead, p.turned = 0, 0
	}
}

// end ends the motion under way.
func (p *plant) end(o motion.Outcome) {
	if p.mode != resting && p.outcome == motion.Running {
		p.outcome = o
	}
	p.mode, p.owner, p.idle = resting, 0, p.now
}

// Step is control.Plant.
func (p *plant) Step(m *control.Moment, stop motion.Reason, act *body.Act) {
	if m.DT > stale {
		stop |= motion.Watchdog
	}
	p.stop = stop
	if stop&(motion.Everything|motion.Lifted) != 0 {
		p.end(motion.Stopped)
		p.motors = false
	}
	on := p.sense.Values[chMotors] > 0
	switch {
	case p.mode == switching:
		if p.start(); p.mode == switching && m.Now-p.since > motorsTake {
			p.end(motion.Blocked)
			p.motors = false
		}
	case p.mode != resting && !on:
		p.end(motion.Released) // the robot's own button switched the motors off (AMIGO-UI-05)
		p.motors = false
	case p.mode != resting && (p.follow[0].stuck(m.Now) || p.follow[1].stuck(m.Now)):
		p.end(motion.Blocked)
		p.motors = false // it would hold on to where it should be
	}
	if p.mode == resting && m.Now-p.idle > motorsKeep {
		p.motors = false
	}
	act.Set(drMotors, body.Level, number(p.motors))
	switch p.mode {
	case driving:
		p.speeds(act, p.v, p.w)
		p.rest(p.v, p.w)
	case wheeling:
		act.Set(drWheel, body.Speed, p.v/radius)
		act.Set(drWheel+1, body.Speed, p.w/radius)
		p.tell(math.Round(p.v/stepSpeed)*stepSpeed, math.Round(p.w/stepSpeed)*stepSpeed) // AMIGO-CMD-32
		p.rest(p.v, p.w)
	case gliding, turning:
		p.glide(m, act)
	default:
		p.tell(0, 0)
	}
	for i, l := range p.out {
		if l.set {
			act.Set(drDigout+i, body.Level, l.v)
		}
	}
	for i, l := range p.tune.gains {
		if l.set {
			act.Set(drGain+i, body.Level, l.v)
		}
	}
	if p.muted.set {
		act.Set(drMute, body.Level, p.muted.v)
	}
	if m.Now < p.sounding {
		act.Set(drSound, body.Level, p.sound)
	}
	r := &p.report
	r.At, r.Stop, r.Moving = m.Now, stop, on && p.mode != resting
	r.Parts[wheels] = control.PartReport{
		State: [...]string{"resting", "driving", "wheeling", "gliding", "turning", "switching"}[p.mode], Outcome: p.outcome,
		Known: true,
	}
}

func (p *plant) speeds(act *body.Act, v, w float64) {
	act.Set(drX, body.Speed, v)
	act.Set(drYaw, body.Speed, w)
	const deg = math.Pi / 180
	v, w = math.Round(v*1000)/1000, math.Round(w/deg)*deg // AMIGO-CMD-11, AMIGO-CMD-21
	p.tell(v-w*track/2, v+w*track/2)
}

// standing reports whether the robot is at rest, by its own word and by its speeds: AMRISim always says that it is.
func (p *plant) standing() bool {
	t := p.report.Base.Twist
	return p.sense.Values[chMoving] == 0 && math.Abs(t.V) < standSpeed && math.Abs(t.W) < standTurn
}

// rest ends a motion at speed 0 once the robot has stopped.
func (p *plant) rest(v, w float64) {
	if v == 0 && w == 0 && p.standing() && p.now-p.since > 2*stale {
		p.end(motion.Done)
	}
}

// glide leads the robot along its way, or through its turn: the plan's speed, plus a correction for the lag behind it. The newest packet is
// up to 100 ms old, so the robot is assumed to have moved since.
func (p *plant) glide(m *control.Moment, act *body.Act) {
	p.prof.Step(m.DT.Seconds())
	age := (m.Now - p.sense.At).Seconds()
	turn := p.turned + p.report.Base.Twist.W*age
	at, near, reach, most := p.ahead+p.report.Base.Twist.V*age, goClose, max(goReach, 0.05*math.Abs(p.target)), limits.Speed
	if p.mode == turning {
		at, near, reach, most = turn, turnClose, max(turnReach, 0.05*math.Abs(p.target)), limits.Turn
	}
	if !p.prof.Done() {
		p.since = m.Now
	} else {
		miss := math.Abs(p.target - at)
		switch {
		case miss <= near && p.standing():
			p.end(motion.Done)
		case m.Now-p.since > settle && miss <= reach:
			p.end(motion.Done)
		case m.Now-p.since > settle:
			p.end(motion.Missed)
		}
		if p.mode == resting || miss <= near { // near enough, if it stays there
			p.speeds(act, 0, 0)
			return
		}
	}
	speed := min(max(p.prof.V+along*(p.prof.X-at), -most), most)
	if p.mode == turning {
		p.speeds(act, 0, speed)
		return
	}
	p.speeds(act, speed, -along*turn)
}

// Outcome is control.Plant.
func (p *plant) Outcome(part int) motion.Outcome {
	if part == wheels {
		return p.outcome
	}
	return motion.None
}

// Rest is control.Plant: the robot slows down by itself when nothing is asked of it.
func (p *plant) Rest(part int, letGo bool) {
	if part == tuning && letGo {
		p.tune.end(p.now)
	}
	if part != wheels {
		return
	}
	p.end(motion.Cancelled)
	if letGo {
		p.idle = p.now - motorsKeep + control.EaseFor
	}
}

// Home is control.Plant.
func (p *plant) Home(int) error { return control.ErrUnable }

// Homed is control.Plant.
func (p *plant) Homed(int) bool { return true }

// Report is control.Plant.
func (p *plant) Report(r *control.Report) { *r = p.report }

package motion

import (
	"errors"
	"fmt"
	"math"
	"time"

	"kennel/edge/body"
)

// MaxJoints is how many joints under duty a body may have, and MaxMotors how many motors with its two treads.
const (
	MaxJoints = 8
	MaxMotors = MaxJoints + 2
)

// Duties are what a step asks of the motors, -1 to 1, by MotorConfig.Index.
type Duties [MaxMotors]float64

// Errors of commands.
var (
	ErrInvalid = errors.New("motion: invalid number: want finite ones, and limits above 0")
	ErrNoJoint = errors.New("motion: no such joint")
	ErrStopped = errors.New("motion: refused while the robot must stop")
	ErrUnknown = errors.New("motion: joint not homed: want an angle")
	ErrPath    = errors.New("motion: path refused")
	ErrStart   = errors.New("motion: path does not start at the body")
)

// Reason is a set of reasons to stop.
type Reason uint16

// Reasons. Cliff and Lifted stop the treads, the others everything.
const (
	Halted   Reason = 1 << iota // a stop was ordered
	Falling                     // VEC-MCT-15, VEC-IMU-07
	Watchdog                    // the loop missed more than Config.Stale, or its watchdog says that it is not healthy
	Link                        // the newest measurement is older than Config.Stale, or no number (VEC-BODY-33)
	Cliff                       // no floor where the treads would go (VEC-IO-22)
	Lifted                      // the body is not on its treads (VEC-IMU-08), or its wheels have no grip
)

// Everything are the reasons that stop all motors.
const Everything = Halted | Falling | Watchdog | Link

// reasonWords are in the order of the bits.
var reasonWords = [...]string{"halted", "falling", "its loop was late", "its body is not heard", "it sees a cliff", "it is lifted or has no grip"}

// Words says the reasons to people; it is not for the loop.
func (r Reason) Words() []string {
	var words []string
	for i, w := range reasonWords {
		if r>>i&1 == 1 {
			words = append(words, w)
		}
	}
	return words
}

// Remedy says to people what lets the robot move again, for the reason that has to end first; "" for none.
func (r Reason) Remedy() string {
	for _, x := range remedies {
		if r&x.reason != 0 {
			return x.words
		}
	}
	return ""
}

// remedies are in the order in which reasons have to end.
var remedies = [...]struct {
	reason Reason
	words  string
}{
	{Halted, "release it first"}, {Link, "try again when its body answers"}, {Falling, "wait until it lies still"}, {Lifted, "put it on the floor"},
	{Cliff, "drive it away from the edge"}, {Watchdog, "try again"},
}

// Cliffs is the set of sensors that see no floor.
type Cliffs uint8

// The cliff sensors in the order of the wire (VEC-BODY-20).
const (
	FrontLeft Cliffs = 1 << iota
	FrontRight
	BackLeft
	BackRight

	front = FrontLeft | FrontRight
	back  = BackLeft | BackRight
)

// Event is a set of things to report, under the names the original gives them ("calibrate_motors", "head_motor_calibrated", ...).
type Event uint8

// Events of a joint.
const (
	Calibrating Event = 1 << iota
	Calibrated
	Uncalibrated // its zero is lost or doubtful
)

// Outcome is how a command went. The zero value is None.
type Outcome uint8

// Outcomes.
const (
	None Outcome = iota
	Running
	Done
	Cancelled // by another command, or on request
	Expired   // it was not renewed in time
	Released  // a person moved it (VEC-MOT-08)
	Blocked   // something is in the way
	Missed    // the path was driven and ended too far from its end
	Astray    // the body left the path
	Stopped   // a Reason
)

var outcomes = [...]string{"none", "running", "done", "cancelled", "expired", "released", "blocked", "missed", "astray", "stopped"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Config describes a body to a Motion. VectorConfig returns the values of a Vector.
type Config struct {
	Drive       Drive
	Tread       Ramp // limits of each tread, m/s and m/s²
	Left, Right MotorConfig
	Joints      []JointConfig
	Headroom    Headroom
	Segments    int           // longest path, at most MaxSegments
	Stale       time.Duration // see Link and Watchdog
	Follow      FollowConfig
	Odometry    OdometryConfig
}

// Headroom is the share of the limits that is planned with, 0 to 1; the rest is for what motors do beside the plan.
type Headroom struct{ Speed, Accel float64 }

func (h Headroom) of(r Ramp) Ramp {
	return Ramp{r.Speed * h.Speed, r.Accel * h.Accel, r.Decel * h.Accel}
}

// Validate names the first setting that cannot be.
func (c *Config) Validate() error {
	motor := func(name string, m MotorConfig) error {
		if m.Index < 0 || m.Index >= MaxMotors {
			return fmt.Errorf("motion: %s: motor index %d, want 0 to %d", name, m.Index, MaxMotors-1)
		}
		if !finite(m.Count, m.FullRate, m.Lag, m.Friction, m.MaxDuty, m.P, m.I, m.MaxI) || m.Count <= 0 || m.FullRate <= 0 || m.Lag < 0 || m.Friction < 0 ||
			m.MaxDuty <= 0 || m.MaxDuty > 1 || m.P < 0 || m.I < 0 || m.MaxI < 0 {
			return fmt.Errorf("motion: %s: %+v, want finite numbers, a count and a full rate above 0, a duty of 0 to 1, no negative gain", name, m)
		}
		if !m.Guard.valid() {
			return fmt.Errorf("motion: %s: guard %+v, want times above 0, a safe duty above 0 (VEC-MOT-06) and less than 15 s of heat", name, m.Guard)
		}
		return nil
	}
	switch {
	case !finite(c.Drive.Radius, c.Drive.Track) || c.Drive.Radius <= 0 || c.Drive.Track <= 0:
		return fmt.Errorf("motion: drive %+v, want radius and track above 0", c.Drive)
	case !c.Tread.valid():
		return fmt.Errorf("motion: tread limits %+v, want them above 0", c.Tread)
	case !(c.Headroom.Speed > 0 && c.Headroom.Speed <= 1 && c.Headroom.Accel > 0 && c.Headroom.Accel <= 1):
		return fmt.Errorf("motion: headroom %+v, want above 0, at most 1", c.Headroom)
	case c.Segments < 1 || c.Segments > MaxSegments:
		return fmt.Errorf("motion: %d segments, want 1 to %d", c.Segments, MaxSegments)
	case c.Stale <= 0:
		return fmt.Errorf("motion: stale after %v, want more than 0", c.Stale)
	case len(c.Joints) > MaxJoints:
		return fmt.Errorf("motion: %d joints, want at most %d", len(c.Joints), MaxJoints)
	}
	f, o := c.Follow, c.Odometry
	for name, v := range map[string]float64{
		"Follow.Along": f.Along, "Follow.Across": f.Across, "Follow.Heading": f.Heading, "Follow.Turn": f.Turn, "Follow.Blend": f.Blend,
		"Follow.Astray":      f.Astray,
		"Follow.AstrayAngle": f.AstrayAngle, "Follow.Settle": f.Settle, "Follow.Close": f.Close, "Follow.CloseAngle": f.CloseAngle,
		"Follow.Tolerance": f.Tolerance, "Follow.TurnTolerance": f.TurnTolerance, "Odometry.SlipRate": o.SlipRate,
		"Odometry.GyroSpan": o.GyroSpan.Seconds(),
	} {
		if !finite(v) || v <= 0 {
			return fmt.Errorf("motion: %s is %v, want above 0", name, v)
		}
	}
	if !(o.Slip >= 0 && o.Slip < 1) || !(o.PushSlip >= 0 && o.PushSlip < 1) || !(o.GyroShare >= 0 && o.GyroShare <= 1) {
		return fmt.Errorf("motion: slip %v, slip of pushing %v, gyro's share %v, want 0 to 1", o.Slip, o.PushSlip, o.GyroShare)
	}
	used := map[int]string{}
	claim := func(name string, m MotorConfig) error {
		if other, taken := used[m.Index]; taken {
			return fmt.Errorf("motion: %s and %s are both motor %d", other, name, m.Index)
		}
		used[m.Index] = name
		return motor(name, m)
	}
	if err := errors.Join(claim("left tread", c.Left), claim("right tread", c.Right)); err != nil {
		return err
	}
	for i, j := range c.Joints {
		name := fmt.Sprintf("joint %d", i)
		if err := claim(name, j.Motor); err != nil {
			return err
		}
		if !finite(j.Stops[0], j.Stops[1], j.Margin) || j.Margin < 0 || j.Stops[1]-j.Stops[0] <= 4*j.Margin {
			return fmt.Errorf("motion: %s: stops %v with a margin of %v, want the upper one well above the lower", name, j.Stops, j.Margin)
		}
		if !j.Most.valid() {
			return fmt.Errorf("motion: %s: limits %+v, want them above 0", name, j.Most)
		}
		if !finite(j.Tolerance, j.HandAngle, j.LagAngle, j.BlockedTime, j.HomeDuty, j.HomeSpeed, j.Contact) || j.Tolerance <= 0 ||
			j.HandAngle <= 0 || j.LagAngle <= 0 ||
			j.BlockedTime <= 0 || j.HomeDuty <= 0 || j.HomeDuty > 1 || j.HomeSpeed <= j.Motor.Guard.Speed || j.Contact <= 0 || j.Tries < 1 {
			return fmt.Errorf("motion: %s: %+v, want angles, times, tries and the duty of homing above 0, and its speed above the guard's", name, j)
		}
	}
	return nil
}

// Input is the input of one step.
type Input struct {
	Now    time.Duration // the clock of body.Sense.At
	DT     time.Duration // since the step before; 0 in the first
	At     time.Duration // when the motors were measured; 0: never
	Epoch  uint32        // as body.Sense.Epoch
	Fresh  bool          // they were measured since the step before
	Motors []body.Motor  // by MotorConfig.Index
	Gyro   Gyro          // with the bias still in it; rate about Z of the body
	Stop   Reason        // what others know: Halted, Falling, Lifted, their watchdog, their link
	Cliffs Cliffs        // filtered (VEC-IO-20)
}

// JointReport describes a joint after a step.
type JointReport struct {
	State      State
	Outcome    Outcome // of the newest command
	Calibrated bool
	Home       float64 // rad of the joint where the driver's position is 0; meaningless unless Calibrated
	Angle      float64 // rad; meaningless unless Calibrated
	Speed      float64 // rad/s
	Stalled    bool    // its power is held back
	Events     Event   // of this step
}

// Report describes the body after a step.
type Report struct {
	Stop       Reason
	Pose       Pose
	Twist      Twist
	Want       Twist // as the treads are commanded in this step
	Odometers  Odometers
	Unreliable bool // the body was pushed: the pose is wrong from here on, until SetPose (VEC-MOT-11)
	Slipping   bool // treads and gyro disagree
	Treads     Outcome
	Segment    int // of the path that is driven
	Blocked    bool
	Joints     [MaxJoints]JointReport
	NJoints    int
	Moving     bool // a motor has power
}

type mode uint8

const (
	idle mode = iota
	driving
	following
)

// Motion moves one body. It belongs to one goroutine; it reads no clock and allocates nothing after New.
type Motion struct {
	cfg         Config
	most        Ramp // of a tread, with headroom
	left, right tread
	joints      [MaxJoints]joint
	until       [MaxJoints]time.Duration // movements by speed end then
	n           int
	odo         Odometry
	fol         follower

	mode         mode
	want         [2]float64
	accel        float64
	expires      time.Duration
	treads       Outcome
	blocked      float64
	stop         Reason
	cliffs       Cliffs
	epoch        uint32
	begun        bool
	offset, last [2]float64 // m, so that positions continue when the body counts from zero again
	report       Report
}

// New returns a Motion at rest. It refuses commands until its first step with a fresh measurement.
func New(c Config) (*Motion, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &Motion{cfg: c, most: c.Headroom.of(c.Tread), n: len(c.Joints), stop: Link}
	m.cfg.Joints = nil
	m.left = tread{cfg: c.Left, guard: newGuard(c.Left.Guard), est: estimator{count: c.Left.Count * c.Drive.Radius}}
	m.right = tread{cfg: c.Right, guard: newGuard(c.Right.Guard), est: estimator{count: c.Right.Count * c.Drive.Radius}}
	for i, j := range c.Joints {
		j.Most = c.Headroom.of(j.Most)
		m.joints[i] = joint{cfg: j, guard: newGuard(j.Motor.Guard), est: estimator{count: j.Motor.Count}}
	}
	c.Follow.TurnTolerance = max(c.Follow.TurnTolerance, minTolerance)
	m.odo = Odometry{cfg: c.Odometry, drive: c.Drive}
	m.fol = follower{cfg: c.Follow, drive: c.Drive, most: m.most}
	return m, nil
}

// minTolerance of a turn (VEC-MOT-03).
const minTolerance = 2 * math.Pi / 180

// SetPose puts the body where something that sees says that it is (part of VEC-MCT-03). A path under way is followed from there.
func (m *Motion) SetPose(p Pose) error {
	if !finite(p.X, p.Y, p.Theta) {
		return ErrInvalid
	}
	p.Theta = wrap(p.Theta)
	m.odo.set(p)
	return nil
}

// Pose returns where the body is.
func (m *Motion) Pose() Pose { return m.odo.pose }

// Treads returns how the newest command of the treads went; Running while it lasts.
func (m *Motion) Treads() Outcome { return m.treads }

// Joint returns how the newest command of joint i went.
func (m *Motion) Joint(i int) Outcome { return m.joints[i].outcome }

// Drive runs the treads at these speeds, m/s, reached with accel, m/s² (0: as fast as allowed), until the time until; 0: for ever. Speeds are
// clamped (VEC-MOT-04). Both 0 stops and unlocks them (VEC-MCT-08).
func (m *Motion) Drive(left, right, accel float64, until time.Duration) error {
	if !finite(left, right, accel) || accel < 0 {
		return ErrInvalid
	}
	if m.stop&(Everything|Lifted) != 0 {
		return ErrStopped
	}
	clamp := func(v float64) float64 { return min(max(v, -m.most.Speed), m.most.Speed) }
	left, right = clamp(left), clamp(right)
	if m.towards(left, right) {
		return ErrStopped
	}
	if accel == 0 {
		accel = m.most.Accel
	}
	m.mode, m.want, m.accel, m.expires = driving, [2]float64{left, right}, min(accel, m.most.Accel), until
	m.treads = Running
	return nil
}

// Follow drives a path from where the body is (VEC-MCT-01). Speeds are lowered to what the treads can do. After a refusal the command under way
// continues.
func (m *Motion) Follow(p *Path) error {
	if _, why := p.check(m.cfg.Segments); why != "" {
		return ErrPath
	}
	if m.stop&(Everything|Lifted) != 0 {
		return ErrStopped
	}
	if m.cliffs != 0 && (p.Segments[0].Kind != Line || m.towards(p.Segments[0].Length, p.Segments[0].Length)) {
		return ErrStopped
	}
	pose, start := m.odo.pose, p.Segments[0].Start
	if math.Hypot(start.X-pose.X, start.Y-pose.Y) > m.fol.cfg.Astray/2 || math.Abs(wrap(start.Theta-pose.Theta)) > m.fol.cfg.AstrayAngle/2 {
		return ErrStart
	}
	m.fol.start(p)
	m.mode, m.treads, m.accel = following, Running, m.most.Accel
	return nil
}

// StopTreads slows the treads down and unlocks them.
func (m *Motion) StopTreads() {
	if m.mode != idle {
		m.end(Cancelled)
	}
}

// end slows the treads down: their command is over.
func (m *Motion) end(o Outcome) {
	m.mode, m.want, m.accel, m.treads = idle, [2]float64{}, m.most.Accel, o
}

func (m *Motion) joint(i int) (*joint, error) {
	if i < 0 || i >= m.n {
		return nil, ErrNoJoint
	}
	if m.stop&Everything != 0 {
		return nil, ErrStopped
	}
	return &m.joints[i], nil
}

// MoveTo brings joint i to an angle, clamped to its travel (VEC-MOT-01, VEC-MOT-02), and holds it there. Zero speeds of r mean the
// recommended ones. A joint that has not found its stop homes first (VEC-MOT-07).
func (m *Motion) MoveTo(i int, angle float64, r Ramp) error {
	j, err := m.joint(i)
	if err != nil {
		return err
	}
	if !finite(angle, r.Speed, r.Accel, r.Decel) || min(r.Speed, r.Accel, r.Decel) < 0 {
		return ErrInvalid
	}
	m.until[i] = 0
	j.moveTo(angle, r.or(j.cfg.Most), None)
	return nil
}

// MoveIn is MoveTo at the pace that brings joint i to the angle in that time, and returns what its plan takes: more where the limits of speed and
// acceleration do not let it be there in time (GOSTAI-OPEN-03); 0 where it homes first, which the time does not count.
func (m *Motion) MoveIn(i int, angle float64, in time.Duration) (takes time.Duration, err error) {
	j, err := m.joint(i)
	if err != nil {
		return 0, err
	}
	if !finite(angle) || in <= 0 {
		return 0, ErrInvalid
	}
	m.until[i] = 0
	j.moveIn(angle, in.Seconds())
	if j.state == Homing {
		return 0, nil
	}
	return time.Duration(j.takes * float64(time.Second)), nil
}

// or fills in what is 0.
func (r Ramp) or(d Ramp) Ramp {
	if r.Speed == 0 {
		r.Speed = d.Speed
	}
	if r.Accel == 0 {
		r.Accel = d.Accel
	}
	if r.Decel == 0 {
		r.Decel = max(d.Decel, r.Accel)
	}
	return r
}

// MoveAt moves joint i at a speed, rad/s, until it reaches an end of its travel or the time until has passed (0: no limit). Speed 0 slows it
// down and unlocks it (VEC-MCT-08).
func (m *Motion) MoveAt(i int, speed float64, until time.Duration) error {
	j, err := m.joint(i)
	if err != nil {
		return err
	}
	if !finite(speed) {
		return ErrInvalid
	}
	if speed == 0 {
		m.ease(i, Cancelled)
		return nil
	}
	if !j.calibrated {
		return ErrUnknown
	}
	m.until[i] = until
	target := j.lo()
	if speed > 0 {
		target = j.hi()
	}
	j.moveTo(target, Ramp{Speed: math.Abs(speed)}.or(j.cfg.Most), None)
	return nil
}

// ease slows a joint down within its ramp and then lets go.
func (m *Motion) ease(i int, o Outcome) {
	j := &m.joints[i]
	m.until[i] = 0
	if j.state != Moving || !j.calibrated {
		j.free(o)
		return
	}
	rest := j.prof.X + math.Copysign(j.prof.V*j.prof.V/(2*j.prof.brake), j.prof.V)
	if j.prof.V == 0 {
		rest = j.prof.X
	}
	j.moveTo(rest, j.ramp, o)
}

// Calibrate homes joint i, and unlocks it.
func (m *Motion) Calibrate(i int) error {
	j, err := m.joint(i)
	if err != nil {
		return err
	}
	m.until[i] = 0
	j.calibrate()
	return nil
}

// Release takes the power of joint i away at once, so that a person can move it (VEC-MOT-08). It is never refused.
func (m *Motion) Release(i int) error {
	if i < 0 || i >= m.n {
		return ErrNoJoint
	}
	m.until[i] = 0
	m.joints[i].free(Cancelled)
	return nil
}

// StopAll slows everything down and unlocks it (Stop All Motors, part of VEC-MCT-14). To stop at once is Halted.
func (m *Motion) StopAll() {
	m.StopTreads()
	for i := range m.n {
		if m.joints[i].state != Free {
			m.ease(i, Cancelled)
		}
	}
}

// towards reports whether treads that run so would go over a cliff that is seen.
func (m *Motion) towards(left, right float64) bool {
	return m.cliffs&front != 0 && max(left, right) > 0 || m.cliffs&back != 0 && min(left, right) < 0
}

// Step takes in one measurement and sets the duties of its motors. The report is valid until the next step.
func (m *Motion) Step(in *Input, out *Duties) *Report {
	m.stop = m.reasons(in)
	m.cliffs = in.Cliffs & (front | back)
	if m.stop&Link == 0 {
		m.measure(in)
	}
	if m.stop&Everything != 0 {
		m.drop()
		for i := range m.n {
			j := &m.joints[i]
			j.free(Stopped)
			j.guard.cool(in.DT.Seconds())
			m.until[i] = 0
		}
	} else if m.stop&Lifted != 0 {
		m.drop()
	}
	dt := in.DT.Seconds()
	var duty [2]float64
	if m.stop&Everything == 0 && dt > 0 {
		duty = m.stepTreads(in.Now, dt)
		for i := range m.n {
			j := &m.joints[i]
			if m.until[i] > 0 && in.Now >= m.until[i] {
				m.ease(i, Expired)
			}
			out[j.cfg.Motor.Index] = j.step(dt)
		}
	} else {
		for i := range m.n {
			out[m.joints[i].cfg.Motor.Index] = 0
		}
	}
	out[m.left.cfg.Index], out[m.right.cfg.Index] = duty[0], duty[1]
	return m.tell(out)
}

// reasons to stop in this step.
func (m *Motion) reasons(in *Input) Reason {
	stop := in.Stop & (Everything | Lifted)
	if in.DT > m.cfg.Stale || in.DT < 0 {
		stop |= Watchdog
	}
	if in.At == 0 || in.Now-in.At > m.cfg.Stale {
		return stop | Link
	}
	sound := finite(in.Motors[m.left.cfg.Index].Position, in.Motors[m.right.cfg.Index].Position)
	for i := range m.n {
		sound = sound && finite(in.Motors[m.joints[i].cfg.Motor.Index].Position)
	}
	if !sound {
		stop |= Link
	}
	return stop
}

// measure takes in what the body measured.
func (m *Motion) measure(in *Input) {
	if m.begun && in.Epoch != m.epoch {
		// The body restarted and counts from zero: earlier commands no longer hold (VEC-BODY-33).
		m.offset = m.last
		m.left.est.reset()
		m.right.est.reset()
		m.odo.rebase()
		m.drop()
		for i := range m.n {
			m.joints[i].restart()
		}
	}
	m.begun, m.epoch = true, in.Epoch
	for i := range m.n {
		j := &m.joints[i]
		j.observe(in.Motors[j.cfg.Motor.Index], in.At, in.Fresh, in.DT.Seconds())
	}
	if !in.Fresh {
		m.left.coast()
		m.right.coast()
		return
	}
	r := m.cfg.Drive.Radius
	m.last = [2]float64{m.offset[0] + in.Motors[m.left.cfg.Index].Position*r, m.offset[1] + in.Motors[m.right.cfg.Index].Position*r}
	m.left.est.observe(m.last[0], in.At)
	m.right.est.observe(m.last[1], in.At)
	load := (m.left.load() + m.right.load()) / 2
	m.odo.observe(m.last[0], m.last[1], in.At, in.Gyro, load, m.left.duty != 0 || m.right.duty != 0)
}

// drop ends what the treads do, at once.
func (m *Motion) drop() {
	if m.mode != idle {
		m.treads = Stopped
	}
	m.mode, m.want, m.blocked = idle, [2]float64{}, 0
	m.left.reset()
	m.right.reset()
}

// blockedAfter is how long treads may be stalled until the command is given up; own default, like a joint's.
const blockedAfter = 3.0

func (m *Motion) stepTreads(now time.Duration, dt float64) (duty [2]float64) {
	switch m.mode {
	case driving:
		if m.expires > 0 && now >= m.expires {
			m.end(Expired)
		} else if m.want == [2]float64{} && m.left.ref == 0 && m.right.ref == 0 {
			m.mode, m.treads = idle, Done
		}
	case following:
		t, outcome := m.fol.step(dt, m.odo.pose)
		m.want[0], m.want[1] = m.cfg.Drive.Treads(t)
		if outcome != Running {
			m.end(outcome)
		}
	}
	if m.left.guard.Stalled() || m.right.guard.Stalled() {
		if m.blocked += dt; m.blocked > blockedAfter && m.mode != idle {
			m.end(Blocked)
		}
	} else {
		m.blocked = 0
	}
	duty[0], duty[1] = m.left.step(m.want[0], m.accel, dt), m.right.step(m.want[1], m.accel, dt)
	if m.cliffs == 0 {
		return duty
	}
	if m.towards(m.want[0], m.want[1]) || m.towards(m.left.ref, m.right.ref) {
		m.stop |= Cliff
		m.drop()
		return [2]float64{}
	}
	// Away from the cliff is allowed, and even braking pushes only that way.
	for i := range duty {
		if m.cliffs&front != 0 {
			duty[i] = min(duty[i], 0)
		}
		if m.cliffs&back != 0 {
			duty[i] = max(duty[i], 0)
		}
	}
	return duty
}

func (m *Motion) tell(out *Duties) *Report {
	r := &m.report
	if m.cliffs != 0 {
		m.stop |= Cliff
	}
	r.Stop, r.Pose, r.Twist, r.Odometers = m.stop, m.odo.pose, m.odo.twist, m.odo.meters
	r.Want = Twist{V: (m.left.ref + m.right.ref) / 2, W: (m.right.ref - m.left.ref) / m.cfg.Drive.Track}
	r.Unreliable, r.Slipping, r.Treads, r.Segment = m.odo.lost, m.odo.slipping, m.treads, m.fol.i
	r.Blocked = m.blocked > 0
	r.NJoints = m.n
	r.Moving = out[m.left.cfg.Index] != 0 || out[m.right.cfg.Index] != 0
	for i := range m.n {
		j := &m.joints[i]
		r.Joints[i] = JointReport{State: j.state, Outcome: j.outcome, Calibrated: j.calibrated, Home: j.home, Angle: j.angle, Speed: j.est.v,
			Stalled: j.guard.Stalled(), Events: j.events}
		j.events = 0
		r.Moving = r.Moving || out[j.cfg.Motor.Index] != 0
	}
	return r
}

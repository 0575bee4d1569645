package robotapp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"kennel/edge/corelink"
	"kennel/edge/helm"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

// unavailable is the code of what nobody knows or nothing can do at the moment (GOSTAI-OPEN-13); the others are the helm's.
const unavailable = "unavailable"

// errDevice: the body has it in its tree, but nothing on this robot does what is asked.
var errDevice = errors.New("nothing on this robot does that")

// part is what of the body a slot moves or lights.
type part uint8

const (
	_          part = iota
	headTurn        // in turns
	headPitch       // in rad
	liftHeight      // in m
	wheelLeft       // rad/s of the wheel
	wheelRight      //
	bodySpeed       // m/s forward
	bodyTurn        // rad/s to the left
	bodyYaw         // rad to the left, as the pose counts
	colour          // of a light: this and the ones after it, three times the light and 0 to 2
)

// partsOf returns the slots that an order can be made of, by their ID.
func partsOf(m *helm.Model) (map[int]part, error) {
	parts := map[int]part{}
	var err error
	add := func(p part, name string) {
		target, e := m.Tree.Lookup(name)
		if e != nil || len(target.Refs) != 1 {
			err = errors.Join(err, fmt.Errorf("%s: want one slot: %w", name, e))
			return
		}
		parts[target.Refs[0].ID] = p
	}
	add(headTurn, m.Head.Device+".turn")
	add(liftHeight, m.Lift.Device+".position")
	add(wheelLeft, m.Wheels[0]+".speed")
	add(wheelRight, m.Wheels[1]+".speed")
	for name, p := range map[string]part{"robot.xSpeed": bodySpeed, "robot.yawSpeed": bodyTurn, "robot.yaw": bodyYaw, "robot.pitch": headPitch} {
		add(p, name)
	}
	for i, l := range m.Lights {
		for c, name := range []string{".r", ".g", ".b"} {
			add(colour+part(3*i+c), l+name)
		}
	}
	return parts, err
}

// sink makes one order of what one line writes or calls.
type sink struct {
	d      *deck
	speed  float64       // of the line, in m/s or rad/s; 0: it gives none
	within time.Duration // that the line gives; 0: none
	o      helm.Order
	takes  time.Duration // of treads with a time: what they need to be at their speeds
}

// Set is state.Sink.
func (s *sink) Set(writes []state.Write) error {
	for i := range writes {
		w := &writes[i]
		p := s.d.parts[w.Ref.ID]
		var err error
		switch {
		case p == 0 && w.Ref.Node.Endless() && w.Ref.Slot.Name == "turn":
			return fmt.Errorf("%w: %s: a wheel takes a speed; robot.go(metres) and robot.turn(radians) go a way", errDevice, w.Ref)
		case p == 0:
			return fmt.Errorf("%w: %s", errDevice, w.Ref)
		case p >= colour:
			w.Value.Number, err = s.light(int(p-colour), w.Value.Number)
		case p == headTurn:
			err = s.joint(helm.Head, w.Value.Number*2*math.Pi)
		case p == headPitch:
			err = s.joint(helm.Head, w.Value.Number)
		case p == liftHeight:
			err = s.joint(helm.Lift, w.Value.Number)
		case s.speed != 0 || s.within != 0 && p == bodyYaw:
			err = s.unmodified()
		case p == bodyYaw:
			err = s.face(w.Value.Number)
		default:
			err = s.drive(p, w.Value.Number)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.Ref, err)
		}
	}
	// What each tread does is known when all that is written to them is.
	if s.o.Kind == helm.Wheels {
		for i := range writes {
			writes[i].Value.Number = s.taken(s.d.parts[writes[i].Ref.ID])
		}
		s.pace()
	}
	return nil
}

var (
	errNoSpeed = fmt.Errorf("%w: speed: is for a motor that moves to a position", robot.ErrRange)
	errNoTime  = fmt.Errorf("%w: time: and adaptive: are for a motor", robot.ErrRange)
	errTwo     = fmt.Errorf("%w: one line moves the head, or the lift, or the treads, or the lights; write them one after the other", robot.ErrName)
)

// unmodified refuses what says how to move (GOSTAI-OPEN-03).
func (s *sink) unmodified() error {
	switch {
	case s.speed != 0:
		return errNoSpeed
	case s.within != 0:
		return errNoTime
	}
	return nil
}

// make begins the order, or goes on with one of several writes.
func (s *sink) make(k helm.Kind, again bool) error {
	if s.o.Kind != 0 && (s.o.Kind != k || !again) {
		return errTwo
	}
	s.o.Kind = k
	return nil
}

func (s *sink) light(at int, v float64) (taken float64, err error) {
	if err := s.unmodified(); err != nil {
		return 0, err
	}
	l := &s.o.Lights[at/3]
	level := uint8(math.Round(v * math.MaxUint8)) // v is 0 to 1 by its slot's range
	*[...]*uint8{&l.R, &l.G, &l.B}[at%3] = level
	for i, w := range claim.SetOf(at) {
		s.o.Set[i] |= w
	}
	return float64(level) / math.MaxUint8, s.make(helm.SetLights, true)
}

func (s *sink) joint(k helm.Kind, to float64) error {
	s.o.A, s.o.Speed, s.o.For = to, s.speed, s.within
	return s.make(k, false)
}

// face turns the body to a heading, by the shorter way.
func (s *sink) face(yaw float64) error {
	var r helm.Report
	if !s.d.helm.Report(&r) {
		return state.ErrUnknown
	}
	s.o.A = robot.WrapPi(yaw - r.Motion.Pose.Theta)
	if math.Abs(s.o.A) < s.d.helm.Model().Motion.Follow.TurnTolerance {
		return nil // it is there
	}
	return s.make(helm.Turn, false)
}

// drive changes the speed of a tread, or how both go together. What is not written stays as the same program wrote it last.
func (s *sink) drive(p part, v float64) error {
	if s.o.Kind == 0 {
		s.o.A, s.o.B = s.d.treadsOf(s.o.Owner)
	}
	drive := s.d.helm.Model().Motion.Drive
	speed, turn := (s.o.A+s.o.B)/2, (s.o.B-s.o.A)/drive.Track
	switch p {
	case wheelLeft:
		s.o.A = v * drive.Radius
	case wheelRight:
		s.o.B = v * drive.Radius
	case bodySpeed:
		s.o.A, s.o.B = v-turn*drive.Track/2, v+turn*drive.Track/2
	default:
		s.o.A, s.o.B = speed-v*drive.Track/2, speed+v*drive.Track/2
	}
	most := s.d.helm.Model().Motion.Tread.Speed * s.d.helm.Model().Motion.Headroom.Speed
	s.o.A, s.o.B = min(max(s.o.A, -most), most), min(max(s.o.B, -most), most)
	return s.make(helm.Wheels, true)
}

// pace has the treads change their speeds evenly over the time of the line, or as fast as they may (GOSTAI-OPEN-03).
func (s *sink) pace() {
	if s.within == 0 {
		return
	}
	var r helm.Report // before the first step they stand
	s.d.helm.Report(&r)
	s.paceFrom(r.Motion.Want)
}

// paceFrom is pace of treads that are told to go so.
func (s *sink) paceFrom(now motion.Twist) {
	model := s.d.helm.Model().Motion
	left, right := model.Drive.Treads(now)
	change := max(math.Abs(s.o.A-left), math.Abs(s.o.B-right))
	most := model.Tread.Accel * model.Headroom.Accel
	s.o.Accel = min(change/s.within.Seconds(), most) // 0, where nothing changes, is no matter
	s.takes = max(time.Duration(change/most*float64(time.Second)), s.within)
}

// taken is what the slot of p reads as when the treads go as the order says.
func (s *sink) taken(p part) float64 {
	drive := s.d.helm.Model().Motion.Drive
	switch p {
	case wheelLeft:
		return s.o.A / drive.Radius
	case wheelRight:
		return s.o.B / drive.Radius
	case bodySpeed:
		return (s.o.A + s.o.B) / 2
	}
	return (s.o.B - s.o.A) / drive.Track
}

// Call is state.Sink. What takes its time ends when the peer hears Ended.
func (s *sink) Call(_ context.Context, r *robot.Ref, args []robot.Value) (robot.Value, error) {
	if !r.Node.Is("Mobile") || r.Interface.Name != "Mobile" {
		return robot.Value{}, errDevice
	}
	switch r.Slot.Name {
	case "go":
		s.o.A = args[0].Number
		return robot.Value{}, s.make(helm.Straight, false)
	case "turn":
		s.o.A = -args[0].Number // positive is to the right (GOSTAI-IF-15.2)
		return robot.Value{}, s.make(helm.Turn, false)
	case "stop":
		return robot.Value{}, s.make(helm.Stop, false)
	}
	return robot.Value{}, errDevice
}

// modify takes from a line how its motor shall move, and returns how many of the body's unit are one of the slot's: a motor that is told in turns has its
// speed in turns a second.
func (s *sink) modify(l *robot.Line) (unit float64) {
	unit = 1
	if r := s.d.slotOf(l); r != nil && r.Slot.Name == "turn" {
		unit = 2 * math.Pi
	}
	s.speed = l.Speed * unit
	s.within, _ = l.Within()
	return unit
}

// slotOf returns the one slot that l names, a device by its val; nil if it names none, or several.
func (d *deck) slotOf(l *robot.Line) *robot.Ref {
	tree := d.helm.Model().Tree
	target, err := tree.Lookup(l.Name)
	if err == nil && len(target.Refs) == 0 {
		target, err = tree.Lookup(l.Name + ".val")
	}
	if err != nil || len(target.Refs) != 1 {
		return nil
	}
	return target.Refs[0]
}

// punctual is how much later than told is still in time: two periods of the loop; own default.
const punctual = 10 * time.Millisecond

// short says what of how l wants its motor to move the body's limits do not let be; "" if nothing (GOSTAI-OPEN-03).
func (d *deck) short(l *robot.Line, r *helm.Result) string {
	within, exactly := l.Within()
	late, word := within+punctual, "time:"
	if !exactly {
		late, word = within*3/2+punctual, "adaptive:" // which is about
	}
	switch {
	case within > 0 && r.Homing:
		return fmt.Sprintf("%s%v counts from when the motor has found its zero, which it looks for first", word, within)
	case within > 0 && r.Takes > late:
		return fmt.Sprintf("%s%v is too short: at most speed and acceleration it takes %v", word, within, r.Takes.Round(time.Millisecond))
	case l.Speed == 0:
		return ""
	}
	s := sink{d: d}
	if unit := s.modify(l); r.Speed < s.speed {
		return fmt.Sprintf("speed:%v is too fast: it moves at most at %.3g %s/s", l.Speed, r.Speed/unit, d.slotOf(l).Unit())
	}
	return ""
}

// told is a line, and what answers it if it is ok, with its name as Detail.
type told struct {
	did   *corelink.Did
	line  robot.Line
	takes time.Duration // as a sink's
}

// do takes a line: what it reads is answered at once, what it moves goes to the helm as any order does.
func (d *deck) do(ctx context.Context, p corelink.Peer, m *corelink.Do) {
	s := &sink{d: d, o: helm.Order{Owner: owner(p), Request: m.Request, For: millis(m.ForMS)}}
	if m.ForMS == 0 {
		s.o.For = helm.MaxFor
	}
	line, err := robot.ParseLine(m.Line)
	var got state.Reading
	if err == nil {
		s.modify(&line)
		got, err = state.NewLive(d.helm.Board(), s).Do(ctx, line)
	}
	did := &corelink.Did{Request: m.Request, Code: helm.OK.String()}
	if got.Value.Type != robot.None {
		did.Value = got.Value.String()
	}
	switch {
	case errors.Is(err, state.ErrUnknown), errors.Is(err, state.ErrUnavailable):
		did.Code, did.Detail, did.Value = unavailable, err.Error(), ""
	case err != nil:
		did.Code, did.Detail, did.Value = helm.Invalid.String(), err.Error(), ""
	case s.o.Kind != 0:
		did.Detail = line.Name
		d.post(ctx, p, s.o, &told{did, line, s.takes})
		return
	case d.stale(got.Value, got.At):
		did.Code, did.Detail, did.Value = unavailable, line.Name+": "+noBody, "" // what was measured is old
	}
	d.tell(ctx, p.ID, did)
}

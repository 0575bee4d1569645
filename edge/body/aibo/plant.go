package aibo

import (
	"fmt"
	"math"

	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/core/control/limbs"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// Own defaults of the motion.
const (
	swiftEar = 20.0 // rad/s, of an ear
	nearGoal = 0.03 // rad, near enough to be there
	flicked  = 0.1  // rad, beyond which an ear is flicked (MTN-U03)
)

// ModelOf returns a model of AIBO as the control loop sees it: each joint is a part of its own, so that several programs can share a body.
func ModelOf(m Model) (control.Model, error) {
	tree, err := Tree(m)
	if err != nil {
		return control.Model{}, err
	}
	about, err := describe(m)
	if err != nil {
		return control.Model{}, err
	}
	joints := Joints(m)
	out, slots, f := control.Model{Tree: tree, Slots: map[int]int{}}, make([]int, len(joints)), robot.Finder{Tree: tree}
	for i, j := range joints {
		slot := ".turn"
		if j.plain() {
			slot = ".val"
		}
		slots[i] = f.Slot(about.Drives[i].Device + slot)
		out.Slots[slots[i]] = i
		out.Parts = append(out.Parts, control.Part{Name: about.Drives[i].Device, Devices: []string{j.Path}})
	}
	out.Make = func(board *state.Board, emit func(control.Event), _ func(int) bool) (control.Plant, error) {
		return newPlant(m, &about, slots, board, emit)
	}
	return out, f.Err
}

// plant leads the joints of one AIBO, each by a servo of its own. It belongs to the goroutine of the loop.
type plant struct {
	model  Model
	board  *state.Board
	emit   func(control.Event)
	feed   control.Feed
	remain int // slots
	moving int
	joints []*limbs.Joint
	report control.Report
	fell   bool
	stop   motion.Reason
}

func newPlant(m Model, about *body.Description, slots []int, board *state.Board, emit func(control.Event)) (*plant, error) {
	p := &plant{model: m, board: board, emit: emit, feed: control.Bind(about, board.Tree())}
	f := robot.Finder{Tree: board.Tree()}
	p.remain, p.moving = f.Slot("battery.remain"), f.Slot("robot.moving")
	for i, j := range Joints(m) {
		c := limbs.Config{Slot: slots[i], Unit: 2 * math.Pi, Speed: j.Speed, Tolerance: nearGoal}
		if j.plain() {
			c.Unit = 1
		}
		if j.ear() {
			c.Speed, c.Snap = swiftEar, flick
		}
		lo, hi := j.Span()
		if j.Sign < 0 {
			lo, hi = -hi, -lo
		}
		c.Range = [2]float64{lo, hi}
		l, err := limbs.New(c)
		if err != nil {
			return nil, fmt.Errorf("%v, %s: %w", m, j.Native, err)
		}
		p.joints = append(p.joints, l)
	}
	return p, f.Err
}

// flick returns the position of an ear that is nearest to a target.
func flick(target float64) float64 {
	switch {
	case math.IsNaN(target):
		return target
	case math.Abs(target) > flicked:
		return math.Copysign(EarTurn, target)
	}
	return 0
}

// Feel is control.Plant.
func (p *plant) Feel(m *control.Moment, f *rt.Frame) motion.Reason {
	s := f.Sense
	if s.At == 0 || m.Now-s.At > stale || Model(s.Values[chModel]) != p.model {
		return motion.Link // nothing that this plant could lead
	}
	if m.Opened {
		for i := range p.joints {
			p.joints[i].Release(motion.Stopped)
		}
	}
	var stop motion.Reason
	if s.Fresh {
		p.measure(m, s)
	}
	if v := s.Values[chVolts]; v > 0 && v < empty {
		stop |= motion.Halted
	}
	return stop
}

// measure publishes the measurements in the tree, and says what they mean.
func (p *plant) measure(m *control.Moment, s *body.Sense) {
	p.feed.Sense(p.board, s)
	for i := range p.joints {
		l := p.joints[i]
		l.Angle, l.Heard = s.Values[chJoint+2*i], true
		p.board.Set(l.Slot(), l.Angle/l.Unit(), s.Times[chJoint+2*i])
	}
	p.board.Set(p.moving, number(p.report.Moving), s.At)
	volts := s.Values[chVolts]
	p.board.Set(p.remain, min(max((volts-empty)/(full-empty), 0), 1), s.At)
	level, before := power.Nominal, p.report.Power.Battery.Level
	switch {
	case volts < low:
		level = power.Low
	case volts >= full:
		level = power.Full
	}
	p.report.Power.Battery = power.Battery{Volts: volts, Level: level}
	if level == power.Low && before != power.Low && before != power.Unknown {
		p.emit(control.Event{At: m.Now, Name: "battery.low", Warning: true, N: 1, Numbers: [4]int64{int64(math.Round(1000 * volts))}})
	}
	p.report.Supply, p.report.Volts = 0, 0
	if s.Values[chCharger] > 0 {
		p.report.Supply, p.report.Volts = body.OnCharger|body.Charging, full
	}
	fell := s.Values[chFell] > 0
	if fell && !p.fell {
		p.emit(control.Event{At: m.Now, Name: "robot.fell", Warning: true, N: 2,
			Numbers: [4]int64{int64(math.Round(1000 * s.Values[chPitch])), int64(math.Round(1000 * s.Values[chRoll]))}})
	}
	p.fell = fell
	p.report.Posture = posture(s)
}

// posture returns how the body is, by its paws and by the way it leans.
func posture(s *body.Sense) string {
	paws := 0.0
	for _, v := range s.Values[chPaw : chPaw+4] {
		paws += v
	}
	pitch, roll := s.Values[chPitch], math.Abs(s.Values[chRoll])
	switch {
	case paws == 0 && roll < math.Pi/4 && math.Abs(pitch) < math.Pi/4:
		return "off the floor"
	case roll > 3*math.Pi/4:
		return "on its back"
	case roll > math.Pi/4:
		return "on its side"
	case s.Values[chFell] > 0:
		return "fallen"
	}
	return "on its paws"
}

// Begin is control.Plant.
func (p *plant) Begin(_ *control.Moment, part int, o *control.Order, r *control.Result) error {
	if p.stop&motion.Everything != 0 {
		return motion.ErrStopped
	}
	return p.joints[part].Begin(o, r)
}

// Step is control.Plant.
func (p *plant) Step(m *control.Moment, stop motion.Reason, act *body.Act) {
	if m.DT > stale {
		stop |= motion.Watchdog
	}
	p.stop = stop
	r := &p.report
	r.At, r.Stop, r.Moving = m.Now, stop, false
	for i := range p.joints {
		state, moving := p.joints[i].Step(m.DT, stop, act, i)
		r.Parts[i], r.Moving = state, r.Moving || moving
	}
}

// Outcome is control.Plant.
func (p *plant) Outcome(part int) motion.Outcome { return p.joints[part].Outcome() }

// Rest is control.Plant: a joint whose owner lost it keeps its position, for the body's weight may be on it.
func (p *plant) Rest(part int, _ bool) { p.joints[part].Stop() }

// Home is control.Plant: the joints always know where they are.
func (p *plant) Home(int) error { return control.ErrUnable }

// Homed is control.Plant.
func (p *plant) Homed(int) bool { return true }

// Report is control.Plant.
func (p *plant) Report(r *control.Report) { *r = p.report }

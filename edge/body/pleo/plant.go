package pleo

import (
	"fmt"
	"math"
	"slices"

	"kennel/edge/body"
	"kennel/edge/body/pleo/walk"
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
	near  = 0.02  // rad, near enough to be there
	moves = 0.002 // rad in a step, of a joint that moves
	full  = 0.95  // of the battery
)

// low is the charge below which Pleo's own personality goes to sleep (part of PLEO-SEN-02).
const low = 0.23

// walks is the part that goes and turns; the parts before it are the joints.
const walks = len(joints)

// Model returns a Pleo as the control loop sees it: each joint is a part of its own, and its legs together are another one. A joint that no program claims belongs to the Pleo's application.
func Model() (control.Model, error) {
	tree, err := Tree()
	if err != nil {
		return control.Model{}, err
	}
	about, err := describe()
	if err != nil {
		return control.Model{}, err
	}
	out, slots, f := control.Model{Tree: tree, Slots: map[int]int{}}, make([]int, len(joints)), robot.Finder{Tree: tree}
	for i := range joints {
		slot := ".turn"
		if joints[i].plain() {
			slot = ".val"
		}
		slots[i] = f.Slot(about.Drives[i].Device + slot)
		out.Slots[slots[i]] = i
		out.Parts = append(out.Parts, control.Part{Name: about.Drives[i].Device, Devices: []string{"robot." + joints[i].path}})
	}
	walking := control.Part{Name: "legs", Timed: true, Base: true}
	for _, j := range walkJoints {
		walking.Devices = append(walking.Devices, "robot."+joints[j].path)
	}
	out.Parts = append(out.Parts, walking)
	out.Make = func(board *state.Board, emit func(control.Event), _ func(int) bool) (control.Plant, error) {
		return newPlant(&about, slots, board, emit)
	}
	return out, f.Err
}

// plant leads the joints of one Pleo. It belongs to the goroutine of the loop.
type plant struct {
	board  *state.Board
	emit   func(control.Event)
	feed   control.Feed
	moving int // slot
	joints []*limbs.Joint
	walker walker
	at     [len(joints)]float64 // rad, measured
	wrong  motion.Reason        // it is not on its feet
	names  [len(pads)]string    // of the pads
	report control.Report
	stop   motion.Reason
	heard  bool
	before [chJoint]float64 // the frame before, as far as it makes events
	own    bool             // the Pleo moves by itself
}

func newPlant(about *body.Description, slots []int, board *state.Board, emit func(control.Event)) (*plant, error) {
	p := &plant{board: board, emit: emit, feed: control.Bind(about, board.Tree())}
	f := robot.Finder{Tree: board.Tree()}
	p.moving = f.Slot("robot.moving")
	var err error
	if p.walker.legs, err = walk.New(); err != nil {
		return nil, err
	}
	for i := range joints {
		j := &joints[i]
		c := limbs.Config{Slot: slots[i], Unit: 2 * math.Pi, Speed: j.speed * math.Pi / 180, Tolerance: near}
		if j.plain() {
			c.Unit = 1
		}
		c.Range = [2]float64{j.span().Min, j.span().Max}
		l, err := limbs.New(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.native, err)
		}
		p.joints = append(p.joints, l)
	}
	for i := range pads {
		target, err := board.Tree().Lookup("robot." + pads[i].path)
		if err != nil {
			return nil, err
		}
		p.names[i] = target.Nodes[0].Compact()
	}
	return p, f.Err
}

// Feel is control.Plant.
func (p *plant) Feel(m *control.Moment, f *rt.Frame) motion.Reason {
	s := f.Sense
	if s.At == 0 || m.Now-s.At > stale {
		return motion.Link
	}
	if m.Opened {
		p.heard = false
		for _, j := range p.joints {
			j.Release(motion.Stopped)
		}
		p.walker.off(motion.Stopped)
		p.walker.known = false
	}
	if s.Fresh {
		p.measure(m, s)
	}
	return p.wrong
}

// measure publishes the measurements in the tree, and says what they mean.
func (p *plant) measure(m *control.Moment, s *body.Sense) {
	p.feed.Sense(p.board, s)
	p.own = false
	for i, j := range p.joints {
		angle := s.Values[chJoint+i]
		p.own = p.own || j.Heard && math.Abs(angle-j.Angle) > moves
		j.Angle, j.Heard = angle, true
		p.at[i] = angle
		p.board.Set(j.Slot(), angle/j.Unit(), s.Times[chJoint+i])
	}
	p.board.Set(p.moving, number(p.report.Moving), s.At)
	p.wrong = 0
	if s.Values[chPicked] > 0 || tilt(s) != upright {
		p.wrong = motion.Lifted
	}
	p.walker.feel(&s.Values, s.At, p.wrong == 0)
	p.report.Base = p.walker.base
	if p.heard {
		p.tell(m, s)
	}
	p.heard = true
	copy(p.before[:], s.Values[:])

	remain := s.Values[chSense] // the battery is the first of senses
	level := power.Nominal
	switch {
	case remain < low:
		level = power.Low
	case remain >= full:
		level = power.Full
	}
	if before := p.report.Power.Battery.Level; level == power.Low && before != power.Low && before != power.Unknown {
		p.emit(control.Event{At: m.Now, Name: "battery.low", Warning: true, N: 1, Numbers: [4]int64{int64(math.Round(100 * remain))}})
	}
	p.report.Power.Battery = power.Battery{Level: level} // it measures no voltage
	p.report.Supply = 0
	if s.Values[chOn] > 0 {
		p.report.Supply |= body.OnCharger
	}
	if s.Values[chCharging] > 0 {
		p.report.Supply |= body.Charging
	}
	p.report.Posture = posture(s)
}

// tell emits the events between two frames.
func (p *plant) tell(m *control.Moment, s *body.Sense) {
	began := func(ch int) bool { return s.Values[ch] > 0 && p.before[ch] == 0 }
	ended := func(ch int) bool { return s.Values[ch] == 0 && p.before[ch] > 0 }
	for i := range pads {
		if pads[i].sensor <= 13 && began(chPad+i) { // a pad, not a foot or the mouth
			e := control.Event{At: m.Now, Name: "robot.touched", N: 1, Numbers: [4]int64{int64(pads[i].sensor)}}
			e.Texts[0] = p.names[i]
			p.emit(e)
		}
	}
	if n := s.Values[chSounds] - p.before[chSounds]; n > 0 {
		p.emit(control.Event{At: m.Now, Name: "sound.began", N: 1, Numbers: [4]int64{int64(n)}})
	}
	for _, happened := range [...]struct {
		is   bool
		name string
	}{
		{began(chCard), "card.inserted"}, {ended(chCard), "card.removed"}, {began(chApp), "application.began"}, {ended(chApp), "application.ended"},
		{began(chPicked), "robot.lifted"}, {ended(chPicked), "robot.put_down"},
	} {
		if happened.is {
			p.emit(control.Event{At: m.Now, Name: happened.name, N: 1, Numbers: [4]int64{1}})
		}
	}
	if now := tilt(s); now > upright && p.before[chTilt] == upright {
		p.emit(control.Event{At: m.Now, Name: "robot.fell", Warning: true, N: 1, Numbers: [4]int64{int64(now)}})
	}
	if now, before := uint16(s.Values[chStalled]), uint16(p.before[chStalled]); now&^before != 0 {
		p.emit(control.Event{At: m.Now, Name: "joint.stuck", Warning: true, N: 1, Numbers: [4]int64{int64(now)}})
	}
}

// posture returns how the body is, by the way it leans (PLEO-SEN-29).
func posture(s *body.Sense) string {
	if s.Values[chPicked] > 0 {
		return "off the floor"
	}
	switch tilt(s) {
	case upright:
		return "on its feet"
	case 2, 3:
		return "on its side"
	case 4:
		return "on its nose"
	case 5:
		return "on its tail"
	case 6:
		return "on its back"
	}
	return ""
}

// tilt returns the reading of the tilt sensor; 0: unknown.
func tilt(s *body.Sense) float64 { return s.Values[chTilt] }

// chTilt is the channel of the tilt sensor.
var chTilt = func() int {
	for i := range senses {
		if senses[i].sensor == sensorTilt {
			return chSense + i
		}
	}
	panic("pleo: no channel of the tilt sensor") // the table is a constant
}()

// Begin is control.Plant.
func (p *plant) Begin(_ *control.Moment, part int, o *control.Order, r *control.Result) error {
	if p.stop&motion.Everything != 0 {
		return motion.ErrStopped
	}
	if part == walks {
		switch heard := p.joints[0].Heard; {
		case o.Kind != control.Go && o.Kind != control.Turn:
			return control.ErrUnable
		case !heard:
			return control.ErrUnmeasured
		case p.stop&motion.Lifted != 0:
			return motion.ErrStopped
		}
		if err := p.walker.begin(o, &p.at, r); err != nil {
			return err
		}
		for _, j := range walkJoints {
			p.joints[j].Release(motion.Cancelled)
		}
		return nil
	}
	if slices.Contains(walkJoints[:], part) {
		p.walker.off(motion.Cancelled)
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
	r.At, r.Stop, r.Moving = m.Now, stop, p.own
	for i := range p.joints {
		state, moving := p.joints[i].Step(m.DT, stop, act, i)
		r.Parts[i], r.Moving = state, r.Moving || moving
	}
	if stop&(motion.Everything|motion.Lifted) != 0 {
		p.walker.off(motion.Stopped)
	}
	p.walker.step(m.DT, &p.at, act)
	r.Parts[walks] = control.PartReport{State: "free", Outcome: p.walker.outcome, Known: true}
	switch {
	case p.walker.running():
		r.Parts[walks].State, r.Moving = "walking", true
	case p.walker.legs.On():
		r.Parts[walks].State = "standing"
	}
}

// Outcome is control.Plant.
func (p *plant) Outcome(part int) motion.Outcome {
	if part == walks {
		return p.walker.outcome
	}
	return p.joints[part].Outcome()
}

// Rest is control.Plant: a joint whose owner let it go or lost it is given back to the Pleo's application.
func (p *plant) Rest(part int, letGo bool) {
	if part == walks {
		p.walker.end(motion.Cancelled, letGo)
		return
	}
	if letGo {
		p.joints[part].Release(motion.Cancelled)
		return
	}
	p.joints[part].Stop()
}

// Home is control.Plant: the joints always know where they are.
func (p *plant) Home(int) error { return control.ErrUnable }

// Homed is control.Plant.
func (p *plant) Homed(int) bool { return true }

// Report is control.Plant.
func (p *plant) Report(r *control.Report) { *r = p.report }

// Package coreservertest is a control loop and a real-time loop without time: a small robot with two wheels, a head, two lights and a range finder,
// which obeys at once. robot.go, robot.turn and speeds of the wheels last until End, a Stop or the end of their claim.
package coreservertest

import (
	"math"
	"sync"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

// Body is both loops. Safe for concurrent use.
type Body struct {
	mu      sync.Mutex
	model   control.Model
	board   *state.Board
	claims  *claim.Table
	wheels  claim.Set
	orders  []control.Order
	results []control.Result
	events  []control.Event
	moving  *control.Order // the motion under way
	halted  bool
	stop    motion.Reason // beside it
	off     int
	deaf    bool
	refused uint64
	report  control.Report
	place   *robot.Place // nil: as in report
}

// New returns a body that rests, with more parts than its own. Slots of a camera and the position of an arm among them can be set.
func New(more ...robot.Part) (*Body, error) {
	tree, err := robot.Build("toy", robot.Frame{}, append([]robot.Part{
		{Path: "robot", Is: []string{"Identity", "Network", "Mobile"}, Fixed: map[string]robot.Value{"type": robot.S("wheeled")}, Has: []string{"xSpeed",
			"stop"},
			Uses: map[string][]string{"Mobile": {"body.wheel"}}},
		{Path: "body.wheel[left]", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}, Endless: true},
		{Path: "body.wheel[right]", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}, Endless: true},
		{Path: "body.head.pitch", Is: []string{"RotationalMotor"}, Ranges: map[string]robot.Range{"angle": {Min: -1, Max: 1}}},
		{Path: "body.led[0]", Is: []string{"RGBLed"}}, {Path: "body.led[1]", Is: []string{"RGBLed"}},
		{Path: "body.laser", Is: []string{"DistanceSensor"}},
		{Path: "body.battery", Is: []string{"Battery"}, Fixed: map[string]robot.Value{"capacity": robot.F(0.32)}},
		{Path: "body.battery.temperature", Is: []string{"TemperatureSensor"}},
		{Path: "body.speaker", Is: []string{"AudioOut", "SoundBank"}, Has: []string{"volume"}},
	}, more...))
	if err != nil {
		return nil, err
	}
	b := &Body{board: state.New(tree), model: control.Model{Tree: tree, Slots: map[int]int{}, Totals: []string{"Odom.Body"}, Parts: []control.Part{
		{Name: "wheels", Devices: []string{"wheelL", "wheelR"}, Timed: true, Base: true}, {Name: "head", Devices: []string{"headPitch"}},
		{Name: "lights", Devices: []string{"led[0]", "led[1]"}, Shared: true},
	}}}
	for name, part := range map[string]int{"wheel.speed": 0, "robot.xSpeed": 0, "headPitch.turn": 1, "led.r": 2, "led.g": 2, "led.b": 2, "speaker.play": 2} {
		target, err := tree.Lookup(name)
		if err != nil {
			return nil, err
		}
		for _, r := range target.Refs {
			b.model.Slots[r.ID] = part
		}
	}
	if arm, err := tree.Lookup("arm.position"); err == nil {
		b.model.Slots[arm.Refs[0].ID] = 1
	}
	for _, n := range tree.Nodes() {
		for _, setting := range []string{"exposure", "gain", "resolution"} {
			if r := n.Slot(setting); r != nil {
				b.model.Slots[r.ID] = 2
			}
		}
	}
	if b.claims, err = claim.New(len(tree.Actuators())); err != nil {
		return nil, err
	}
	wheels, err := tree.Lookup("robot.body.wheel")
	if err != nil {
		return nil, err
	}
	b.wheels = claim.SetOf(tree.ActuatorsOf(wheels)...)
	for name, v := range map[string]float64{"laser.distance": 0.4, "battery.voltage": 3.9, "battery.temperature.temperature": 31} {
		b.Measure(name, v)
	}
	return b, nil
}

// Measure gives the slot of that name a value.
func (b *Body) Measure(name string, v float64) {
	target, err := b.model.Tree.Lookup(name)
	if err != nil {
		panic(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.board.Set(target.Refs[0].ID, v, monoclock.Now())
	b.publish()
}

// SetPlace sets the loop's current pose; what robotd reports five times a second stays as it is.
func (b *Body) SetPlace(p robot.Place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.place = &p
	b.publish()
}

// publish ends a step; mu is held.
func (b *Body) publish() {
	p := robot.Place{X: b.report.Base.Pose.X, Y: b.report.Base.Pose.Y, Theta: b.report.Base.Pose.Theta, Moving: b.moving != nil}
	if b.place != nil {
		p = *b.place
	}
	b.board.SetPlace(p)
	b.board.Publish(monoclock.Now())
}

// Post implements control.Control's Post: it executes o.
func (b *Body) Post(o control.Order) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deaf && o.Kind != control.Drop {
		b.refused++
		return false
	}
	b.orders = append(b.orders, o)
	now := monoclock.Now()
	r := control.Result{Owner: o.Owner, Request: o.Request, Actuator: -1}
	switch o.Kind {
	case control.Claim:
		l, err := b.claims.Claim(now, o.Owner, o.Set, o.Priority, o.TTL)
		if busy, ok := err.(claim.Busy); ok {
			r.Code, r.Actuator, r.By, r.Priority = control.Busy, busy.Actuator, busy.Owner, busy.Priority
		}
		r.Lease = l.Number()
	case control.Release, control.Renew:
		l, err := b.claims.LeaseOf(o.Owner, o.Lease)
		switch {
		case err != nil:
			r.Code = control.Gone
		case o.Kind == control.Release:
			b.claims.Release(now, l)
		case b.claims.Renew(now, l, o.TTL) != nil:
			r.Code = control.Gone
		}
	case control.Drop:
		b.claims.Drop(now, o.Owner)
		if b.moving != nil && b.moving.Owner == o.Owner {
			b.end(motion.Cancelled, 0)
		}
		return true
	case control.Stop:
		b.results = append(b.results, r)
		b.end(motion.Cancelled, 0)
		return true
	case control.Set, control.Go, control.Turn:
		b.move(now, &o, &r)
		return true
	}
	b.results = append(b.results, r)
	b.lapse(now)
	return true
}

// lapse ends the motion under way once its claim has ended.
func (b *Body) lapse(now time.Duration) {
	b.claims.Step(now)
	if b.moving == nil {
		return
	}
	for a := range b.model.Tree.Actuators() {
		if b.wheels.Has(a) && !b.claims.Holds(b.moving.Owner, a) {
			b.end(motion.Released, 0)
			return
		}
	}
}

func (b *Body) move(now time.Duration, o *control.Order, r *control.Result) {
	lasts, lights := o.Kind != control.Set, false
	for i, g := range o.Goals[:o.N] {
		part := b.model.Slots[g.Slot]
		lasts, lights = lasts || part == 0, lights || part == 2
		r.Taken[i] = g.Value
		if part == 0 {
			r.Taken[i] = min(max(g.Value, -10), 10)
		}
		b.board.Set(g.Slot, r.Taken[i], now)
	}
	defer b.publish()
	for a := range b.model.Tree.Actuators() {
		if lasts && b.wheels.Has(a) && !b.claims.Holds(o.Owner, a) && r.Code == control.OK {
			r.Code, r.Actuator = control.NotHeld, a
			r.By, r.Priority = b.claims.OwnerOf(a)
		}
	}
	if b.halted {
		r.Stop |= motion.Halted
	}
	if r.Stop |= b.stop; r.Stop != 0 && !lights {
		r.Code = control.Refused
	}
	r.Underway = r.Code == control.OK && !lights
	b.results = append(b.results, *r)
	switch {
	case !r.Underway:
	case lasts:
		b.end(motion.Cancelled, 0)
		b.moving = o
	default:
		b.results = append(b.results, control.Result{Owner: o.Owner, Request: o.Request, Code: control.Ended, Outcome: motion.Done, Actuator: -1})
	}
}

// End ends the motion under way after moved metres or radians counter-clockwise.
func (b *Body) End(o motion.Outcome, moved float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(o, moved)
}

func (b *Body) end(o motion.Outcome, moved float64) {
	if b.moving == nil {
		return
	}
	r := control.Result{Owner: b.moving.Owner, Request: b.moving.Request, Code: control.Ended, Outcome: o, Moved: moved, Actuator: -1}
	if o == motion.Stopped {
		if r.Stop = motion.Watchdog; b.halted {
			r.Stop = motion.Halted
		}
	}
	b.results, b.moving = append(b.results, r), nil
	b.publish()
}

// Emit makes the body name an event.
func (b *Body) Emit(e control.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// SetReport changes the report after a step.
func (b *Body) SetReport(change func(*control.Report)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.report)
	b.publish()
}

// SetDeaf makes the mailbox full, for all but a Drop.
func (b *Body) SetDeaf(deaf bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf = deaf
}

// Orders returns the posted orders, oldest first.
func (b *Body) Orders() []control.Order {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]control.Order(nil), b.orders...)
}

// Moving reports whether a motion is under way.
func (b *Body) Moving() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moving != nil
}

// Offs returns how often the power was cut.
func (b *Body) Offs() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.off
}

func pop[T any](b *Body, list *[]T) (v T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(*list) == 0 {
		return v, false
	}
	v, *list = (*list)[0], (*list)[1:]
	return v, true
}

// Result is control.Control's.
func (b *Body) Result() (control.Result, bool) { return pop(b, &b.results) }

// Event is control.Control's.
func (b *Body) Event() (control.Event, bool) { return pop(b, &b.events) }

// Report is control.Control's.
func (b *Body) Report(r *control.Report) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lapse(monoclock.Now())
	*r = b.report
	r.At, r.Moving = monoclock.Now(), b.moving != nil
	for a := range b.model.Tree.Actuators() {
		r.Owners[a].Owner, r.Owners[a].Priority = b.claims.OwnerOf(a)
	}
	if b.halted {
		r.Stop |= motion.Halted
	}
	return true
}

// Refused is control.Control's.
func (b *Body) Refused() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// Board is control.Control's.
func (b *Body) Board() *state.Board { return b.board }

// Model is control.Control's.
func (b *Body) Model() *control.Model { return &b.model }

// Halt is rt.Loop's.
func (b *Body) Halt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.halted = true
	b.end(motion.Stopped, math.NaN())
}

// Forbid lets reasons, such as a cliff, forbid all motion from now on.
func (b *Body) Forbid(stop motion.Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stop = stop
}

// Loop is the real-time loop of a Body.
type Loop struct{ *Body }

// Post is rt.Loop's.
func (l Loop) Post(c rt.Command) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = l.halted && c.Kind != rt.Resume
	return true
}

// Snapshot is rt.Loop's.
func (l Loop) Snapshot(s *rt.Snapshot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	*s = rt.Snapshot{Halted: l.halted, Sense: body.Sense{At: monoclock.Now(), Seq: 7, Epoch: 2}}
	return true
}

// Stats is rt.Loop's.
func (l Loop) Stats(s *rt.Stats) bool {
	*s = rt.Stats{Steps: 5, Refused: 1, Linked: true, Link: body.Link{Frames: 3}}
	for _, us := range []time.Duration{3, 3, 97} {
		s.Lateness.Add(us * time.Microsecond)
	}
	return true
}

// Shutdown is rt.Loop's.
func (l Loop) Shutdown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off++
}

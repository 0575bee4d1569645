package control

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

const (
	ms = time.Millisecond

	alice claim.Owner = 2
	bob   claim.Owner = 3
)

// The parts of a toy.
const (
	wheels = iota
	neck
	arm
	light
	toyParts
)

var toySlots = [toyParts]string{wheels: "wheelL.speed", neck: "headPitch.angle", arm: "arm.position", light: "led.val"}

// toy is the plant of a body of no species. It does what it is told and writes that down; the test decides how its motions end.
type toy struct {
	outcome [toyParts]motion.Outcome
	refuse  [toyParts]error // of Begin
	homed   [toyParts]bool
	stop    motion.Reason // of Feel
	base    Base
	pitch   float64
	moment  Moment // of the newest step
	log     []call
	emit    func(Event)
	held    func(int) bool
}

// call is a call of a toy's methods that changes something.
type call struct {
	what string
	part int
	goal float64
}

func (t *toy) Feel(m *Moment, _ *rt.Frame) motion.Reason {
	t.moment = *m
	return t.stop
}

func (t *toy) Begin(_ *Moment, p int, o *Order, _ *Result) error {
	if t.refuse[p] != nil {
		return t.refuse[p]
	}
	goal := o.A
	for _, g := range o.Goals[:o.N] {
		goal = g.Value
	}
	t.log = append(t.log, call{"begin", p, goal})
	if p != light {
		t.outcome[p] = motion.Running
	}
	return nil
}

func (t *toy) Step(_ *Moment, stop motion.Reason, _ *body.Act) {
	t.stop = stop
	for p := range t.outcome {
		if stop&motion.Everything != 0 && t.outcome[p] == motion.Running {
			t.outcome[p] = motion.Stopped
		}
	}
}

func (t *toy) Outcome(p int) motion.Outcome { return t.outcome[p] }

func (t *toy) Rest(p int, letGo bool) {
	t.log = append(t.log, call{map[bool]string{false: "rest", true: "let go"}[letGo], p, 0})
	if t.outcome[p] == motion.Running {
		t.outcome[p] = motion.Done // the loop knows why it ended
	}
}

func (t *toy) Home(p int) error {
	t.log = append(t.log, call{"home", p, 0})
	t.outcome[p] = motion.Running
	return nil
}

func (t *toy) Homed(p int) bool { return t.homed[p] }

func (t *toy) Report(r *Report) {
	r.Stop, r.Base, r.Pitch, t.stop = t.stop, t.base, t.pitch, 0
}

func toyModel(t testing.TB) (Model, *toy) {
	t.Helper()
	motor := []string{"RotationalMotor", "RotationalSpeedMotor"}
	tree, err := robot.Build("toy", robot.Frame{}, []robot.Part{
		{Path: "robot", Is: []string{"Mobile"}, Uses: map[string][]string{"Mobile": {"robot.body.wheel"}}},
		{Path: "body.wheel[left]", Is: motor}, {Path: "body.wheel[right]", Is: motor}, {Path: "body.head.pitch", Is: motor},
		{Path: "body.arm.z", Is: []string{"LinearMotor"}}, {Path: "body.led", Is: []string{"Led"}}, {Path: "body.laser", Is: []string{"DistanceSensor"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &toy{}
	m := Model{
		Tree: tree, Slots: map[int]int{}, Totals: []string{"Odom.Body"},
		Parts: []Part{
			wheels: {Name: "wheels", Devices: []string{"robot.body.wheel"}, Timed: true, Base: true},
			neck:   {Name: "neck", Devices: []string{"headPitch"}, Homes: true},
			arm:    {Name: "arm", Devices: []string{"arm"}, Homes: true},
			light:  {Name: "light", Devices: []string{"led"}, Shared: true},
		},
		Make: func(_ *state.Board, emit func(Event), held func(int) bool) (Plant, error) {
			p.emit, p.held = emit, held
			return p, nil
		},
	}
	for part, name := range toySlots {
		m.Slots[slotOf(t, tree, name)] = part
	}
	return m, p
}

func slotOf(t testing.TB, tree *robot.Tree, name string) int {
	t.Helper()
	target, err := tree.Lookup(name)
	if err != nil || len(target.Refs) != 1 {
		t.Fatalf("%s: %d slots, %v", name, len(target.Refs), err)
	}
	return target.Refs[0].ID
}

// rig is the control loop of a toy, stepped by the test every 10 ms.
type rig struct {
	t       testing.TB
	c       *Control
	p       *toy
	f       rt.Frame
	in      body.Sense
	act     body.Act
	rep     Report
	results []Result
	request uint32
}

func newRig(t testing.TB) *rig {
	t.Helper()
	m, p := toyModel(t)
	c, err := New(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, c: c, p: p, f: rt.Frame{Now: time.Hour, Run: 1}, in: body.Sense{Epoch: 1}}
}

// homed steps until the toy has homed, and forgets how.
func (r *rig) homed() *rig {
	r.t.Helper()
	r.step(2)
	for _, p := range []int{neck, arm} {
		r.p.homed[p], r.p.outcome[p] = true, motion.Done
	}
	if r.step(2); r.c.homing != settled || len(r.results) > 0 || r.rep.Owners != [claim.MaxActuators]Owning{} {
		r.t.Fatalf("homing %d, results %+v", r.c.homing, r.results)
	}
	r.p.log = nil
	return r
}

func (r *rig) step(n int) {
	for range n {
		r.f.Now += 10 * ms
		r.f.DT = 10 * ms
		r.in.At, r.in.Fresh = r.f.Now, true
		r.f.Sense, r.f.Act = &r.in, &r.act
		r.c.Step(&r.f)
		r.c.Report(&r.rep)
		for {
			got, ok := r.c.Result()
			if !ok {
				break
			}
			r.results = append(r.results, got)
		}
	}
}

// ask posts o and returns the answer; what else has come is in results then.
func (r *rig) ask(o Order) Result {
	r.t.Helper()
	r.request++
	o.Request = cmp.Or(o.Request, r.request)
	if !r.c.Post(o) {
		r.t.Fatal("the mailbox is full")
	}
	r.step(1)
	i := slices.IndexFunc(r.results, func(got Result) bool { return got.Owner == o.Owner && got.Request == o.Request && got.Code != Ended })
	if i < 0 {
		r.t.Fatalf("no answer to %+v", o)
	}
	got := r.results[i]
	r.results = slices.Delete(r.results, i, i+1)
	return got
}

// take returns the calls so far and forgets them.
func (r *rig) take() []call {
	got := r.p.log
	r.p.log = nil
	return got
}

// ends returns the results that came beside answers, and forgets them.
func (r *rig) ends() []Result {
	got := r.results
	r.results = nil
	return got
}

func (r *rig) claims(o claim.Owner, names ...string) uint64 {
	r.t.Helper()
	set, err := r.c.Actuators(names...)
	if err != nil {
		r.t.Fatal(err)
	}
	got := r.ask(Order{Kind: Claim, Owner: o, Set: set, Priority: claim.Person})
	if got.Code != OK {
		r.t.Fatalf("claim of %v: %+v", names, got)
	}
	return got.Lease
}

// set returns an order of o for the given parts, each to the given value.
func (r *rig) set(o claim.Owner, v float64, parts ...int) Order {
	out := Order{Kind: Set, Owner: o, For: time.Second}
	for _, p := range parts {
		out.Goals[out.N] = Goal{Slot: slotOf(r.t, r.c.model.Tree, toySlots[p]), Value: v}
		out.N++
	}
	return out
}

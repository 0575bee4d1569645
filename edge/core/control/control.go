// Package control is the device model of one body at work: who may move what, how a motion ends, and the values of the tree. Bodies differ by their
// Model (a table of parts) and their Plant (detectors, power limits, motors); claims, deadlines, homing and sleep are the same for all.
//
//	programs, agent                      one step of the loop (rt)                             programs, agent
//
//	 Order ──► mailbox ──┐   frame ──► Plant.Feel ──► reasons to stop ─┐                  ┌──► Result, of each order
//	                     │                  │                          ▼                  │
//	                     └──► claims ◄── home, obey ──► Plant.Begin ──► yield ──► Plant.Step ──► Act, to the body
//	                            │  who holds which       a motion        ends what lost    │
//	                            │  actuator, until when  of a part       its owner or      ├──► Report, Event
//	                            │                                        its time          └──► board: values of the slots
//	                            └── an owner that is gone (Drop), late (TTL) or outranked (Priority) loses the part: Plant.Rest
//
// Nothing in a step allocates or waits. All that enters from outside the frame passes the tape, so a recording replays bit by bit.
package control

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

// Own defaults.
const (
	homeFor   = 15 * time.Second // how long the loop's own claim for homing lasts at most: three homings of two joints
	homeTries = 10               // how often homing begins for a body that was opened
	homeRest  = 2 * time.Second  // how long a part rests that lost its zero before it is searched again
	cpuKeeps  = 5 * time.Second  // how long a temperature of the processor counts: ten times as long as the next takes
)

// part is a Part with its present motion.
type part struct {
	Part
	set  claim.Set // the actuators of its devices
	now  underway
	knew bool // it knew its zero since the last search
}

// underway is a motion that an owner ordered.
type underway struct {
	owner   claim.Owner // 0: none
	request uint32
	kind    Kind
	moving  bool // its end was not reported yet
	until   time.Duration
	why     motion.Outcome // of an end that the loop decided; None: the plant knows
	rest    motion.Outcome // the worst end of the other parts of the same order; None: all went well so far
	began   travel
	asked   float64 // of Go and Turn: m or rad, signed
}

// A way or a turn that a late loop stopped counts as done if what is left of it is below what a body may miss anyway: own defaults, below GOSTAI-OPEN-11.
const (
	nearWay   = 0.01          // m
	nearTurn  = math.Pi / 180 // rad
	nearShare = 0.01          // of what was asked for
)

// travel is how far the base went: m ahead and rad counter-clockwise, both signed, since the loop was made.
type travel struct{ ahead, turned float64 }

// homing is the search for zeros after a body was opened (VEC-MOT-07).
type homing uint8

const (
	wanted homing = iota
	running
	settled
)

// Control is the device model of one body at work. Step belongs to the goroutine of the loop; all else is safe for concurrent use, with one
// reader each of Result and Event.
type Control struct {
	model     Model
	board     *state.Board
	plant     Plant
	claims    *claim.Table
	actuators int
	of        map[int]int // the actuator that a slot belongs to, by its ID
	parts     []part

	box     rt.Mailbox[Order]
	results rt.Ring[Result]
	events  rt.Ring[Event]
	reports *rt.Latest[Report]

	run, epoch uint32
	last       time.Duration
	begun      bool
	moment     Moment
	stop       motion.Reason // of the step before, as the plant knows it
	pose       motion.Pose   // newest
	way        travel

	cpu   float64       // degrees Celsius of the processor
	cpuAt time.Duration // when that was said; 0: never
	saver power.Saver
	sleep power.Sleeper

	tape  *rt.Tape // records the orders; nil: no recording
	input [maxInput]byte

	order  Order // of the moment, and its answer: the plant gets pointers to them, so that they are not the stack's
	result Result

	homing homing
	lost   time.Duration // how long a part has been at rest without the zero that it knew
	tries  int           // homings of this epoch
	ready  bool          // the plant took in a frame of this epoch and nothing stopped it
}

// New returns the control loop of a kind of body. Its orders pass through tape, if there is one (rt.Tape.Input).
func New(m Model, tape *rt.Tape) (*Control, error) {
	c := &Control{
		model: m, tape: tape, actuators: len(m.Tree.Actuators()), board: state.New(m.Tree), reports: rt.NewLatest[Report](), of: map[int]int{},
	}
	if len(m.Parts) > MaxParts || len(m.Totals) > MaxTotals {
		return nil, fmt.Errorf("control: %d parts and %d totals, want at most %d and %d", len(m.Parts), len(m.Totals), MaxParts, MaxTotals)
	}
	for _, n := range m.Tree.Nodes() {
		for _, r := range n.Slots() {
			c.of[r.ID] = n.Actuator()
		}
	}
	for _, p := range m.Parts {
		set, err := c.Actuators(p.Devices...)
		if err != nil {
			return nil, fmt.Errorf("control: part %s: %w", p.Name, err)
		}
		c.parts = append(c.parts, part{Part: p, set: set})
	}
	for slot, p := range m.Slots {
		if _, ok := c.of[slot]; !ok || p < 0 || p >= len(m.Parts) {
			return nil, fmt.Errorf("control: slot %d of part %d: want slots of the tree and parts of the list", slot, p)
		}
	}
	var err error
	if c.claims, err = claim.New(c.actuators); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	held := func(a int) bool {
		owner, _ := c.claims.OwnerOf(a)
		return owner != 0
	}
	if c.plant, err = m.Make(c.board, func(e Event) { c.events.Put(e) }, held); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return c, nil
}

// Actuators returns the actuators that the named parts of the tree are or use.
func (c *Control) Actuators(names ...string) (claim.Set, error) {
	var all []int
	for _, name := range names {
		target, err := c.model.Tree.Lookup(name)
		if err != nil {
			return claim.Set{}, err
		}
		found := c.model.Tree.ActuatorsOf(target)
		if len(found) == 0 {
			return claim.Set{}, fmt.Errorf("%s has no actuator: want none claimed", name)
		}
		all = append(all, found...)
	}
	return claim.SetOf(all...), nil
}

// Board returns the tree's values.
func (c *Control) Board() *state.Board { return c.board }

// Model returns the loop's model; it must not be changed.
func (c *Control) Model() *Model { return &c.model }

// Task is the control loop's row in the task table of the real-time loop.
func (c *Control) Task() rt.Task {
	return rt.Task{Name: "control", Every: 1, Budget: 200 * time.Microsecond, Run: c.Step}
}

// Post leaves o for the next step. It returns false if the mailbox is full: o is refused.
func (c *Control) Post(o Order) bool { return c.box.Post(o) }

// PostHeat reports the temperature of the processor to the next step, in degrees Celsius; it counts for 5 s. An impossible number counts as none.
func (c *Control) PostHeat(celsius float64) bool {
	return c.box.Post(Order{Kind: Heat, Owner: Self, A: celsius})
}

// Refused returns how many orders found the mailbox full.
func (c *Control) Refused() uint64 { return c.box.Refused() }

// Result returns the oldest result that was not taken yet; false if there is none. Only one goroutine may call it.
func (c *Control) Result() (Result, bool) { return take(&c.results) }

// Event returns the oldest event that was not taken yet; false if there is none. Only one goroutine may call it.
func (c *Control) Event() (Event, bool) { return take(&c.events) }

func take[T any](ring *rt.Ring[T]) (out T, ok bool) {
	if v := ring.Peek(); v != nil {
		out, ok = *v, true
		ring.Drop()
	}
	return out, ok
}

// Report copies the report of the newest step to r; false if there was none yet.
func (c *Control) Report(r *Report) bool { return c.reports.Get(r) }

// Step is the control loop's task.
func (c *Control) Step(f *rt.Frame) {
	// The loop measures DT from the newest frame; what integrates here needs the time since the step before.
	m := &c.moment
	*m = Moment{
		Now: f.Now, DT: f.Now - c.last, Opened: f.Run != c.run, Run: f.Run, Calm: c.saver.Calm(), Sleep: c.sleep.State, CPU: math.NaN(),
	}
	if !c.begun || m.DT < 0 {
		m.DT = 0
	}
	if c.cpuAt > 0 && f.Now-c.cpuAt <= cpuKeeps {
		m.CPU = c.cpu
	}
	c.begun, c.last = true, f.Now
	if m.Opened || f.Sense.Epoch != c.epoch {
		c.run, c.epoch, c.homing, c.ready, c.tries = f.Run, f.Sense.Epoch, wanted, false, 0
	}
	stop := c.plant.Feel(m, f)
	if f.Halted {
		stop |= motion.Halted
	}
	if f.Stale {
		stop |= motion.Watchdog
	}
	c.claims.Step(f.Now)
	c.home(stop)
	c.listen()
	c.yield()
	c.plant.Step(m, stop, f.Act)
	c.tell(f)
}

// home searches the zeros of a body's parts once after it was opened.
func (c *Control) home(stop motion.Reason) {
	switch c.homing {
	case wanted:
		if stop&motion.Halted != 0 {
			c.homing = settled // a robot that is held must not move by itself later
			return
		}
		if !c.ready || (stop|c.stop)&motion.Everything != 0 {
			return
		}
		c.homing = settled
		var set claim.Set
		for p := range c.parts {
			if c.parts[p].Homes && !c.plant.Homed(p) {
				for i, w := range c.parts[p].set {
					set[i] |= w
				}
			}
		}
		if set == (claim.Set{}) {
			return
		}
		if a, _, _ := c.inTheWay(Self, &set, claim.Behavior); a >= 0 {
			return
		}
		if _, err := c.claims.Claim(c.moment.Now, Self, set, claim.Behavior, homeFor); err != nil {
			return // the table is full of claims by others: their orders home the parts
		}
		c.homing, c.tries = running, c.tries+1
		for p := range c.parts {
			if c.parts[p].Homes && !c.plant.Homed(p) && c.plant.Home(p) == nil {
				c.parts[p].now = underway{owner: Self, moving: true}
			}
		}
	case running:
		again, known := c.tries < homeTries, true
		for p := range c.parts {
			q := &c.parts[p]
			if !q.Homes {
				continue
			}
			if q.now.moving {
				return
			}
			// A motion that a late loop or a silent body stopped begins again (VEC-MOT-07); one that a person stopped or took over does not.
			if !c.plant.Homed(p) {
				known = false
				again = again && c.plant.Outcome(p) == motion.Stopped
			}
		}
		c.homing = settled
		if again && !known {
			c.homing = wanted
		}
		c.claims.Drop(c.moment.Now, Self)
	case settled:
		c.homeAgain(stop)
	}
}

// homeAgain searches the zero of a part that lost it while it rested, as when a hand moved it unseen (VEC-BODY-24): until then the body does not know
// its position. A search that a person stopped, or that failed, is not repeated.
func (c *Control) homeAgain(stop motion.Reason) {
	lost := false
	for p := range c.parts {
		q := &c.parts[p]
		if !q.Homes {
			continue
		}
		if c.plant.Homed(p) {
			q.knew = true
			continue
		}
		if a, _, _ := c.inTheWay(Self, &q.set, claim.Idle); a >= 0 {
			c.lost = 0 // its owner decides
			return
		}
		lost = lost || q.knew
	}
	if !lost || stop != 0 || c.moment.Calm || c.moment.Sleep.Asleep() {
		c.lost = 0
		return
	}
	if c.lost += c.moment.DT; c.lost < homeRest {
		return
	}
	c.homing, c.tries, c.lost = wanted, 0, 0
	for p := range c.parts {
		c.parts[p].knew = false
	}
}

// yield ends motions whose owner has lost an actuator, or whose time is over.
func (c *Control) yield() {
	for p := range c.parts {
		q := &c.parts[p]
		u := &q.now
		switch {
		case u.owner == 0 || q.Shared:
		case !c.holds(u.owner, &q.set):
			u.end(motion.Cancelled)
			c.plant.Rest(p, true)
			if u.moving {
				c.ended(p, u.why)
			}
			*u = underway{}
		case q.Timed && u.moving && u.until > 0 && c.moment.Now >= u.until:
			u.end(motion.Expired)
			c.plant.Rest(p, false)
		}
	}
}

// end decides how a motion ended that the plant would call something else.
func (u *underway) end(o motion.Outcome) {
	if u.moving && u.why == motion.None {
		u.why = o
	}
}

// settle reports the end of part p's motion to its owner.
func (c *Control) settle(p int) {
	u := &c.parts[p].now
	if !u.moving {
		return
	}
	o := c.plant.Outcome(p)
	if u.why != motion.None {
		o = u.why
	}
	if o != motion.Running {
		c.ended(p, o)
	}
}

// ended notes the end of part p's motion. The owner gets the result when the last part of the same order has ended, with the worst outcome.
func (c *Control) ended(p int, o motion.Outcome) {
	u := &c.parts[p].now
	u.moving, u.why = false, motion.None
	if u.rest != motion.None && o == motion.Done {
		o = u.rest
	}
	if u.owner == Self {
		return
	}
	for q := range c.parts {
		if v := &c.parts[q].now; v.moving && v.owner == u.owner && v.request == u.request {
			if o != motion.Done {
				v.rest = o
			}
			return
		}
	}
	r := Result{Owner: u.owner, Request: u.request, Code: Ended, Actuator: -1, Outcome: o, Pose: c.pose}
	nearly := 0.0
	switch u.kind {
	case Go:
		r.Moved, nearly = c.way.ahead-u.began.ahead, nearWay
	case Turn:
		r.Moved, nearly = c.way.turned-u.began.turned, nearTurn
	}
	if o == motion.Stopped {
		if r.Stop = c.stop; r.Stop == motion.Watchdog && nearly > 0 && math.Abs(r.Moved-u.asked) <= min(nearly, nearShare*math.Abs(u.asked)) {
			r.Outcome, r.Stop = motion.Done, 0
		}
	}
	c.results.Put(r)
}

// tell reports ended motions, and publishes the report and the tree's values.
func (c *Control) tell(f *rt.Frame) {
	r := c.reports.Next()
	*r = Report{}
	c.plant.Report(r)
	if step := r.Base.Pose; c.ready {
		turn := math.Remainder(step.Theta-c.pose.Theta, 2*math.Pi)
		sin, cos := math.Sincos(c.pose.Theta + turn/2)
		c.way.ahead += (step.X-c.pose.X)*cos + (step.Y-c.pose.Y)*sin
		c.way.turned += turn
	}
	c.pose, c.stop = r.Base.Pose, r.Stop
	c.ready = c.ready || f.Sense.Fresh && r.Stop&motion.Everything == 0
	for p := range c.parts {
		c.settle(p)
	}
	r.At, r.Calm, r.Sleep, r.Lost = f.Now, c.saver.Calm(), c.sleep, c.results.Refused()+c.events.Refused()
	if r.Calm {
		r.Status |= power.StatusCalm
	}
	for a := range c.actuators {
		r.Owners[a].Owner, r.Owners[a].Priority = c.claims.OwnerOf(a)
	}
	c.reports.Publish()
	c.board.SetPlace(robot.Place{X: r.Base.Pose.X, Y: r.Base.Pose.Y, Theta: r.Base.Pose.Theta, Pitch: r.Pitch, Moving: r.Moving})
	c.board.Publish(f.Now) // one left out because of slow readers is counted there, and the next has everything
}

// Package pilot is the robot's structure tree for people elsewhere: it drives for the cloud, and shows the tree to who looks.
//
//	robot_drive, robot_do, robot_stop ─► claim, motion, release ─► robotd
//	down/live ─► GetTree, GetValues twice a second while somebody looks ─► up/live
//	             of a simulated robot also where it really is (edge/agent/simulator)
//	robot_poke ─► the simulator of its body
//
// A drive, and a line that moves something, holds what it moves for as long as it may last, and no longer: robotd ends it by itself, and frees it if agentd dies.
package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	wire "kennel/cloud/api/commands"
	"kennel/cloud/api/live"
	"kennel/cloud/api/poke"
	"kennel/cloud/api/topics"
	"kennel/edge/agent/commands"
	"kennel/edge/corelink"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/infra/logging"
)

// Our own limits.
const (
	patience   = 2 * time.Second  // for an answer of robotd, which gives it within a frame
	spare      = 2 * time.Second  // that a claim outlives its drive
	treeEvery  = 10 * time.Second // while somebody looks: the first may be lost
	sendTime   = 5 * time.Second
	maxWaiters = 64
)

var (
	errNoCore = errors.New("the real-time core (robotd) is not connected")
	errNoBody = errors.New("this robot has no body")
)

// Core is robotd as the pilot sees it (corelink.Client).
type Core interface {
	Hello() (corelink.Hello, bool)
	Send(corelink.Message) error
}

// Publish sends on up/<name>.
type Publish func(ctx context.Context, name string, payload []byte) error

// Simulator is that of the robot's body (simulator.Client).
type Simulator interface {
	// Ask returns where the robot really is; nil without an error for one that is not simulated. The pilot does not change it.
	Ask(ctx context.Context) (*live.World, error)
	// Poke does to the body what a person beside it would. It returns an error for a robot that is not simulated.
	Poke(ctx context.Context, p poke.Poke) error
}

// Pilot is safe for concurrent use.
type Pilot struct {
	core    Core
	sim     Simulator
	publish Publish
	log     *slog.Logger
	looked  chan struct{} // one slot: somebody looks

	mu      sync.Mutex
	stops   uint64                           // asked for so far
	last    uint32                           // number of the newest request
	waiting map[uint32]chan corelink.Message // who waits for the answer
	leases  map[uint32]uint64                // of motions under way, by their request
	motion  *corelink.Motion                 // newest
	absent  *corelink.Absent                 // newest
	until   time.Time                        // when nobody looks any more
}

// New returns a pilot that shows nothing until Run. sim is nil for a robot that cannot have one.
func New(core Core, sim Simulator, publish Publish, log *slog.Logger) *Pilot {
	return &Pilot{core: core, sim: sim, publish: publish, log: log, looked: make(chan struct{}, 1), waiting: map[uint32]chan corelink.Message{}, leases: map[uint32]uint64{}}
}

// Handle takes every message of robotd. It does not block.
func (p *Pilot) Handle(m corelink.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := func(request uint32) {
		if c, ok := p.waiting[request]; ok {
			delete(p.waiting, request)
			c <- m // it has room for one
		}
	}
	switch m := m.(type) {
	case *corelink.Hello: // robotd is another one, or its body: what was under way is over
		p.motion, p.absent = nil, nil
		clear(p.leases)
	case *corelink.Motion:
		p.motion = m
	case *corelink.Absent:
		p.absent = m
	case *corelink.Reply:
		answer(m.Request)
	case *corelink.Did:
		answer(m.Request)
	case *corelink.Tree:
		answer(m.Request)
	case *corelink.Values:
		answer(m.Request)
	case *corelink.Ended:
		if lease, ok := p.leases[m.Request]; ok {
			delete(p.leases, m.Request)
			p.last++
			_ = p.core.Send(&corelink.Release{Request: p.last, Lease: lease}) // a robotd that is gone holds nothing, and a claim ends by itself
		}
	}
}

// ask sends what message makes of a number and returns the answer.
func ask[A corelink.Message](ctx context.Context, p *Pilot, message func(request uint32) corelink.Message) (answer A, err error) {
	got := make(chan corelink.Message, 1)
	p.mu.Lock()
	if len(p.waiting) >= maxWaiters {
		p.mu.Unlock()
		return answer, errors.New("too many questions wait for the real-time core (robotd)")
	}
	p.last++
	request := p.last
	p.waiting[request] = got
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, request)
		p.mu.Unlock()
	}()
	if err := p.core.Send(message(request)); err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case m := <-got:
		a, ok := m.(A)
		if !ok {
			return answer, fmt.Errorf("the real-time core (robotd) answered with %v", m.Type())
		}
		return a, nil
	case <-ctx.Done():
		return answer, errors.New("the real-time core (robotd) does not answer")
	}
}

// do is ask for what is answered by a Reply; one that is not ok is an error.
func (p *Pilot) do(ctx context.Context, message func(request uint32) corelink.Message) (*corelink.Reply, error) {
	r, err := ask[*corelink.Reply](ctx, p, message)
	if err == nil {
		err = refused(r.Code, r.Detail)
	}
	return r, err
}

// refused is the error of an answer of robotd that is not ok.
func refused(code, detail string) error {
	if code == "ok" {
		return nil
	}
	return fmt.Errorf("%s: %s", code, detail)
}

// Executors is what the cloud may ask of it.
func (p *Pilot) Executors() map[string]commands.Executor {
	return map[string]commands.Executor{wire.RobotDrive: p.drive, wire.RobotDo: p.line, wire.RobotStop: p.stop, wire.RobotPoke: p.poke}
}

// poke does to a simulated body what a person beside it would.
func (p *Pilot) poke(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	x, err := poke.Parse(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	if p.sim == nil {
		return commands.Outcome{}, errNoBody
	}
	return commands.Outcome{Detail: "done: " + x.String()}, p.sim.Poke(ctx, x)
}

// order is the devices that a drive takes, and what moves them.
func order(d wire.Drive, request uint32) (device string, m corelink.Message, what string) {
	ms := uint32(d.For().Milliseconds())
	switch {
	case d.Left != nil:
		return "robot.body.wheel", &corelink.Wheels{Request: request, Left: *d.Left, Right: *d.Right, ForMS: ms}, fmt.Sprintf("wheels at %.3g and %.3g m/s", *d.Left, *d.Right)
	case d.Straight != nil:
		return "robot.body.wheel", &corelink.Straight{Request: request, Metres: *d.Straight, Speed: d.Speed, ForMS: ms}, fmt.Sprintf("%.3g m ahead", *d.Straight)
	case d.Turn != nil:
		return "robot.body.wheel", &corelink.Turn{Request: request, Radians: *d.Turn, Speed: d.Speed, ForMS: ms}, fmt.Sprintf("turning by %.3g rad", *d.Turn)
	case d.Head != nil:
		return "robot.body.head.pitch", &corelink.Head{Request: request, Radians: *d.Head, Speed: d.Speed}, fmt.Sprintf("head to %.3g rad", *d.Head)
	}
	return "robot.body.arm", &corelink.Lift{Request: request, Metres: *d.Lift, Speed: d.Speed}, fmt.Sprintf("lift to %.3g m", *d.Lift)
}

// drive begins a drive and returns: how it goes shows in the tree, and a stop must not wait for it.
func (p *Pilot) drive(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	d, err := wire.ParseDrive(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	if _, ok := p.core.Hello(); !ok {
		return commands.Outcome{}, errNoCore
	}
	device, _, what := order(d, 0)
	stops := p.stopped()
	lease, err := p.claim(ctx, device, d.For())
	if err != nil {
		return commands.Outcome{}, err
	}
	_, err = p.do(ctx, func(n uint32) corelink.Message {
		p.leased(n, lease)
		_, m, _ := order(d, n)
		return m
	})
	if err != nil {
		p.free(lease)
		return commands.Outcome{}, err
	}
	if err := p.late(ctx, stops); err != nil {
		return commands.Outcome{}, err
	}
	return commands.Outcome{Detail: fmt.Sprintf("begun: %s, for at most %v", what, d.For())}, nil
}

// line does a line. What moves has begun when it returns, as a drive.
func (p *Pilot) line(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	d, err := wire.ParseDo(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	if _, ok := p.core.Hello(); !ok {
		return commands.Outcome{}, errNoCore
	}
	l, err := robot.ParseLine(d.Line)
	if err != nil {
		return commands.Outcome{}, err
	}
	most := d.For()
	if within, _ := l.Within(); within > 0 {
		// What it moves must not be taken from it before it is there; spare is for a motor that has to find its zero first.
		if most = max(most, within); most > wire.MaxDrive {
			return commands.Outcome{}, fmt.Errorf("%s: %v to move in, want at most %v", l.Name, within, wire.MaxDrive)
		}
	}
	stops := p.stopped()
	// What is written and called has a claim of its own: that of an older line ends with what that began. Where there is none to be had the line
	// still goes: a stop needs none, and robotd says what is wrong with the others.
	var lease uint64
	var unclaimed error
	if l.Verb != robot.Get {
		lease, unclaimed = p.claim(ctx, l.Name, most)
	}
	did, err := ask[*corelink.Did](ctx, p, func(n uint32) corelink.Message {
		p.leased(n, lease)
		return &corelink.Do{Request: n, Line: d.Line, ForMS: uint32(most.Milliseconds())}
	})
	switch {
	case err != nil:
	case did.Code == "not_held" && unclaimed != nil:
		err = unclaimed
	default:
		err = refused(did.Code, did.Detail)
	}
	if lease != 0 && (err != nil || !did.Underway) {
		p.free(lease)
	}
	if err == nil && did.Underway {
		err = p.late(ctx, stops)
	}
	if err != nil {
		return commands.Outcome{}, err
	}
	out := commands.Outcome{Detail: "done: " + d.Line}
	if did.Underway {
		out.Detail = fmt.Sprintf("begun: %s, for at most %v", d.Line, most)
	}
	if did.Value != "" {
		out.Detail = l.Name + " = " + did.Value
	}
	if did.Detail != "" {
		out.Detail += "; " + did.Detail
	}
	return out, nil
}

// claim takes device for as long as a motion may last. Handle frees it when the motion has ended.
func (p *Pilot) claim(ctx context.Context, device string, most time.Duration) (lease uint64, err error) {
	r, err := p.do(ctx, func(n uint32) corelink.Message {
		return &corelink.Claim{Request: n, Devices: []string{device}, Priority: uint8(claim.Person), TTLMS: uint32((most + spare).Milliseconds())}
	})
	if err != nil {
		return 0, err
	}
	return r.Lease, nil
}

// leased notes that the motion of that request has a lease, before its end can come; 0: none.
func (p *Pilot) leased(request uint32, lease uint64) {
	if lease == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases[request] = lease
}

func (p *Pilot) stopped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stops
}

// late stops what began while a stop came: robotd may have heard of the stop before it heard of this.
func (p *Pilot) late(ctx context.Context, stops uint64) error {
	if p.stopped() == stops {
		return nil
	}
	_, err := p.stop(ctx, nil)
	return errors.Join(errors.New("it was stopped while it began"), err)
}

// free gives a claim back whose drive did not begin.
func (p *Pilot) free(lease uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for request, l := range p.leases {
		if l == lease {
			delete(p.leases, request)
		}
	}
	p.last++
	_ = p.core.Send(&corelink.Release{Request: p.last, Lease: lease}) // as in Handle
}

// stop brings everything to rest. It may run beside a drive that is about to begin, which then sees it.
func (p *Pilot) stop(ctx context.Context, _ json.RawMessage) (commands.Outcome, error) {
	p.mu.Lock()
	p.stops++
	p.mu.Unlock()
	_, err := p.do(ctx, func(n uint32) corelink.Message { return &corelink.Stop{Request: n} })
	return commands.Outcome{Detail: "everything comes to rest"}, err
}

// Introduce tells robotd who the robot is.
func (p *Pilot) Introduce(name, serial, ip string) {
	_ = p.core.Send(&corelink.Introduce{Name: name, Serial: serial, IP: ip}) // a robotd that is not there says hello when it is, and is told then
}

// Look takes a message of down/live: somebody looks from now on, for a while. It does not block.
func (p *Pilot) Look(payload []byte) {
	l, err := live.ParseLook(payload)
	if err != nil {
		p.log.Warn("look cannot be read", logging.Err, err)
		return
	}
	p.mu.Lock()
	if until := time.Now().Add(l.For()); until.After(p.until) {
		p.until = until
	}
	p.mu.Unlock()
	select {
	case p.looked <- struct{}{}:
	default: // said already
	}
}

// Run shows the tree to who looks, until ctx ends.
func (p *Pilot) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.looked:
		}
		p.show(ctx)
	}
}

// show sends frames until nobody looks any more.
func (p *Pilot) show(ctx context.Context) {
	tick := time.NewTicker(live.Every)
	defer tick.Stop()
	var treeAt time.Time
	shown := "" // revision of the map that was sent last
	for {
		p.mu.Lock()
		over := !time.Now().Before(p.until)
		p.mu.Unlock()
		if over {
			return
		}
		withTree := time.Since(treeAt) >= treeEvery
		switch err := p.send(ctx, withTree, &shown); {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.DebugContext(ctx, "the tree was not shown", logging.Err, err) // the next frame is soon, and who looks sees how old the last one is
		case withTree:
			treeAt = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// send sends a frame. shown is the revision of the world's map that was sent last, and becomes this one's.
func (p *Pilot) send(ctx context.Context, withTree bool, shown *string) error {
	f, err := p.frame(ctx, withTree)
	if err != nil {
		return err
	}
	if f.World = p.world(ctx); f.World != nil && !withTree && f.World.Rev == *shown {
		f.World.Map = nil
	}
	b, err := f.Encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := p.publish(ctx, topics.Live, b); err != nil {
		return err
	}
	if f.World != nil {
		*shown = f.World.Rev
	}
	return nil
}

// world is where the robot really is, to be changed by the caller; nil where nobody says so.
func (p *Pilot) world(ctx context.Context) *live.World {
	if p.sim == nil {
		return nil
	}
	w, err := p.sim.Ask(ctx)
	if err != nil {
		p.log.DebugContext(ctx, "where the robot really is was not told", logging.Err, err) // what it believes is shown
	}
	if w == nil {
		return nil
	}
	own := *w
	return &own
}

// frame is how the robot is now.
func (p *Pilot) frame(ctx context.Context, withTree bool) (f live.Frame, err error) {
	if withTree {
		t, err := ask[*corelink.Tree](ctx, p, func(n uint32) corelink.Message { return &corelink.GetTree{Request: n} })
		if err != nil {
			return f, err
		}
		f.Tree = tree(t)
	}
	v, err := ask[*corelink.Values](ctx, p, func(n uint32) corelink.Message { return &corelink.GetValues{Request: n} })
	if err != nil {
		return f, err
	}
	for _, x := range v.Values {
		f.Values = append(f.Values, value(&x, v.AtUS))
	}
	p.mu.Lock()
	m, absent := p.motion, p.absent
	p.mu.Unlock()
	if absent != nil {
		for _, a := range absent.Devices {
			f.Gone = append(f.Gone, live.Gone{Full: a.Full, ForMS: max(v.AtUS-a.SinceUS, 0) / 1000, Why: a.Why})
		}
	}
	if m != nil {
		f.Motion = &live.Motion{X: m.X, Y: m.Y, Theta: m.Theta, Speed: m.Speed, Turning: m.Turning, Moving: m.Moving, Way: m.OdoBody, Treads: m.Treads,
			Stop: motion.Reason(m.Stop).Words()}
		for _, o := range m.Owners {
			f.Motion.Owners = append(f.Motion.Owners, live.Owner{Device: o.Device, Program: o.Program, Priority: int(o.Priority)})
		}
	}
	return f, nil
}

func value(v *corelink.Value, nowUS int64) live.Value {
	out := live.Value{Slot: int(v.Slot), AgeMS: -1}
	if v.AtUS > 0 {
		out.AgeMS = max(nowUS-v.AtUS, 0) / 1000
	}
	switch v.Form {
	case corelink.Infinite:
		out.Infinite = 1
	case corelink.NegativeInfinite:
		out.Infinite = -1
	case corelink.Words:
		out.Text = &v.Text
	default:
		out.Number = &v.Number
	}
	return out
}

func tree(t *corelink.Tree) *live.Tree {
	out := &live.Tree{Body: t.Body}
	for _, n := range t.Nodes {
		node := live.Node{Full: n.Full, Compact: n.Compact, Kind: n.Kind, Interface: n.Interfaces, Actuator: n.Actuator, Aliases: n.Aliases}
		for _, s := range n.Slots {
			slot := live.Slot{ID: int(s.ID), Name: s.Name, Type: s.Type, Unit: s.Unit}
			if s.Bounds&corelink.HasMin != 0 {
				slot.Min = &s.Min
			}
			if s.Bounds&corelink.HasMax != 0 {
				slot.Max = &s.Max
			}
			node.Slots = append(node.Slots, slot)
		}
		out.Nodes = append(out.Nodes, node)
	}
	return out
}

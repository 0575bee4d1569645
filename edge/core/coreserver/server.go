package coreserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/rt"
	"kennel/edge/core/sharedmem"
	"kennel/edge/env"
	"kennel/edge/faultcode"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/infra/api/live"
	"kennel/infra/logging"
)

// Own defaults.
const (
	resultEvery = 5 * time.Millisecond // how often results are looked for while some are due: a frame
	resultsDue  = control.MaxFor + 5*time.Second
	watchEvery  = 50 * time.Millisecond  // how often a peer that owns an actuator is asked whether it listens
	silentAfter = 400 * time.Millisecond // without an answer: the peer is frozen, and loses its claims
	stopFor     = time.Second            // how long a stop tries to reach a loop whose mailbox is full; in the patience of its sender

	noBody = "there is no body at the moment"
)

// Control is the control loop as its server sees it.
type Control interface {
	Post(control.Order) bool
	Result() (control.Result, bool)
	Event() (control.Event, bool)
	Report(*control.Report) bool
	Board() *state.Board
	Model() *control.Model
	Refused() uint64
}

// Loop is the real-time loop below it (rt.Loop).
type Loop interface {
	Snapshot(*rt.Snapshot) bool
	Stats(*rt.Stats) bool
	Halt()
	Post(rt.Command) bool
	Shutdown()
}

// Config holds the parts that a Server connects.
type Config struct {
	Root     string // the robot's root folder
	Hardware env.Hardware
	Log      *slog.Logger
	Link     *corelink.Server
	Control  Control
	Loop     Loop
	First    func(context.Context, *corelink.State) // called once, with the first measurement of the body; nil: nothing is
}

// Server is robotd's end towards its peers. Its methods are safe for concurrent use; Report and Run are called once.
type Server struct {
	cfg     Config
	started time.Duration
	model   *control.Model
	live    *state.Live // for reading
	tree    corelink.Tree
	refs    []*robot.Ref // the slots of tree, by its order
	body    *robot.Node  // robot.body, which is gone without one
	board   *os.File     // the numbers of live in memory, for peers; nil: there is no such memory here
	warm    *robot.Ref   // the temperature of the body; nil: it measures none

	wake     chan struct{} // one slot: an order was posted
	fed      chan struct{} // one slot: there is another subscription
	there    atomic.Bool   // there is a body
	opened   atomic.Int64  // bodies
	fault    atomic.Uint32 // faultcode.Code of robotd's own, 0: none
	fifo     atomic.Bool
	locked   atomic.Bool
	mhz      atomic.Uint32
	pictures atomic.Uint32 // in 1000 seconds
	marked   atomic.Bool   // that the end of the power is meant

	lastOff  lastoff.Last // how the run before ended; set before the services run, as is recovery
	recovery bool

	mu    sync.Mutex
	peers map[claim.Owner]string // the program of each
	due   map[due]*ask           // requests without an answer yet
	stops uint64                 // asked for so far
	subs  map[due]*subscription

	events sync.Mutex // orders them
	seq    uint64     // of the newest event

	halts halts
	now   func() time.Time
	step  func(string) error // called before each change on disk of what halts: tests end there, as a kill does, or make it fail
}

// due is one order, the motion that it began, or a subscription.
type due struct {
	owner   claim.Owner
	request uint32
}

// owner is a peer as the control loop knows it. IDs count from 1; control.Self is 1.
func owner(p corelink.Peer) claim.Owner { return claim.Owner(p.ID) + control.Self }

// peerOf returns the ID of the peer that is o.
func peerOf(o claim.Owner) uint32 { return uint32(o - control.Self) }

// New returns a server for the body of the model, which is not there yet.
func New(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, started: monoclock.Now(), model: cfg.Control.Model(), live: state.NewLive(cfg.Control.Board(), nil),
		wake: make(chan struct{}, 1), fed: make(chan struct{}, 1), peers: map[claim.Owner]string{}, due: map[due]*ask{}, subs: map[due]*subscription{}, halts: halts{saves: make(chan func(), maxSaves)}, now: time.Now,
		step: func(string) error { return nil }}
	s.allowed(power.Allow(false, false, power.Cool, power.ShedNothing)) // until more is known
	tree := s.model.Tree
	s.tree.Body = tree.Name
	i := slices.IndexFunc(tree.Root().Children(), func(n *robot.Node) bool { return n.Name() == "body" })
	if i < 0 {
		return nil, fmt.Errorf("tree of %s: want robot.body", tree.Name)
	}
	s.body = tree.Root().Children()[i]
	for _, n := range tree.Nodes() {
		node := live.Node{Full: n.Full(), Compact: n.Compact(), Kind: n.Kind().String(),
			Interface: robot.JoinInterfaces(n.Interfaces()), Actuator: n.Actuator() >= 0, Aliases: tree.AliasesOf(n)}
		if b, ok := n.Bearing(); ok {
			node.Bearing = &b
		}
		if s.warm == nil && n.Is("TemperatureSensor") {
			s.warm = n.Slot("temperature")
		}
		for _, r := range n.Slots() {
			// val is a name for another slot, and bytes and lists do not fit a message.
			if !r.Present || !r.Property && !r.Slot.Access.Holds() || r.Slot.Points != "" || r.Slot.Type == robot.Bytes || r.Slot.Type == robot.List {
				continue
			}
			node.Slots = append(node.Slots, slot(r))
			s.refs = append(s.refs, r)
		}
		s.tree.Nodes = append(s.tree.Nodes, node)
	}
	var since []string
	for _, m := range []corelink.Message{&corelink.Order{}, &corelink.Subscribe{}, &corelink.GetLateness{}} {
		since = append(since, corelink.Name(m))
	}
	var err error
	if s.board, err = share(cfg.Control.Board()); err == nil {
		since = append(since, corelink.Name(&corelink.GetBoard{}))
	} else {
		cfg.Log.Warn("no shared memory for the robot's values: programs get them over the socket, which costs more", logging.Err, err)
	}
	return s, cfg.Link.Publish(&corelink.Speaks{Messages: since})
}

// share shows a board's numbers in memory, and returns the file that peers map.
func share(b *state.Board) (*os.File, error) {
	mem, f, err := sharedmem.Make("kennel board", b.SharedSize())
	if err == nil {
		err = b.Share(mem)
	}
	return f, err
}

func slot(r *robot.Ref) live.Slot {
	s := live.Slot{ID: r.ID, Name: r.Slot.Name, Type: r.Slot.Type.String(), Unit: string(r.Unit())}
	if !math.IsInf(r.Range.Min, 0) {
		s.Min = &r.Range.Min
	}
	if !math.IsInf(r.Range.Max, 0) {
		s.Max = &r.Range.Max
	}
	return s
}

// Opened says that there is a body, and Closed that there is none any longer. What it measures is available or not, and every peer is told
// (GOSTAI-OPEN-13).
func (s *Server) Opened(ctx context.Context, b corelink.BodyInfo) error {
	if err := s.cfg.Link.SetBody(b); err != nil {
		return err
	}
	s.opened.Add(1)
	s.fault.Store(0)
	s.there.Store(true)
	s.cfg.Control.Board().SetMeasuring(true)
	if now := monoclock.Now(); s.cfg.Control.Board().SetBack(s.body, now) {
		s.sayGone(ctx, now)
	}
	return nil
}

// Closed is described at Opened.
func (s *Server) Closed(ctx context.Context) {
	s.there.Store(false)
	s.cfg.Control.Board().SetMeasuring(false)
	if now := monoclock.Now(); s.cfg.Control.Board().SetGone(s.body, noBody, now) {
		s.sayGone(ctx, now)
	}
}

func (s *Server) sayGone(ctx context.Context, now time.Duration) {
	m := &corelink.Absent{AtUS: now.Microseconds()}
	for _, p := range s.cfg.Control.Board().Gone() {
		m.Devices = append(m.Devices, corelink.Absentee{Full: p.Node.Full(), SinceUS: p.At.Microseconds(), Why: p.Why})
	}
	s.say(ctx, m)
}

// SetFault says which numbered fault robotd itself has; 0: none. Opened ends it.
func (s *Server) SetFault(code faultcode.Code) { s.fault.Store(uint32(code)) }

// SetThread sets which rights the loop's thread got.
func (s *Server) SetThread(fifo, locked bool) {
	s.fifo.Store(fifo)
	s.locked.Store(locked)
}

// CPUMHz returns the highest clock that the processor may have (edge/power.Allowance).
func (s *Server) CPUMHz() uint32 { return s.mhz.Load() }

// CameraHz returns how many pictures a second the camera may take, as CPUMHz; 0: it is off.
func (s *Server) CameraHz() float64 { return float64(s.pictures.Load()) / 1000 }

func (s *Server) allowed(a power.Allowance) {
	s.mhz.Store(uint32(a.CPUMHz))
	s.pictures.Store(uint32(a.CameraHz * 1000))
}

// Handlers returns the handlers of peers' requests.
func (s *Server) Handlers(ctx context.Context) corelink.Handlers {
	log := s.cfg.Log
	return corelink.Handlers{
		Joined: func(p corelink.Peer) {
			s.mu.Lock()
			s.peers[owner(p)] = p.Program
			s.mu.Unlock()
			log.InfoContext(ctx, "peer joined", "peer", p.Program, "version", p.Version, "pid", p.PID)
		},
		Left: func(p corelink.Peer, err error) {
			s.left(ctx, p)
			if err != nil {
				log.WarnContext(ctx, "peer dropped", "peer", p.Program, "pid", p.PID, logging.Err, err)
				return
			}
			log.InfoContext(ctx, "peer left", "peer", p.Program, "pid", p.PID)
		},
		Message: func(p corelink.Peer, m corelink.Message) { s.handle(ctx, p, m) },
	}
}

// left frees p's claims, regardless of other orders in the mailbox. Without a body the loop does not empty it, and nothing moves either.
func (s *Server) left(ctx context.Context, p corelink.Peer) {
	o := owner(p)
	s.mu.Lock()
	delete(s.peers, o)
	for k := range s.due {
		if k.owner == o {
			delete(s.due, k)
		}
	}
	maps.DeleteFunc(s.subs, func(k due, _ *subscription) bool { return k.owner == o })
	s.mu.Unlock()
	for !s.cfg.Control.Post(control.Order{Kind: control.Drop, Owner: o}) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(resultEvery):
		}
	}
}

func (s *Server) handle(ctx context.Context, p corelink.Peer, m corelink.Message) {
	o := control.Order{Owner: owner(p)}
	log := s.cfg.Log
	switch m := m.(type) {
	case *corelink.GetTree:
		t := s.tree
		t.Request = m.Request
		s.tell(ctx, p.ID, &t)
		return
	case *corelink.GetValues:
		v := &corelink.Values{Request: m.Request}
		v.AtUS, v.Values = s.values(s.refs)
		s.tell(ctx, p.ID, v)
		return
	case *corelink.GetLateness:
		s.tell(ctx, p.ID, s.lateness(m.Request))
		return
	case *corelink.Introduce:
		s.cfg.Control.Board().Introduce(state.Identity{Name: m.Name, Serial: m.Serial, IP: m.IP}, monoclock.Now())
		return
	case *corelink.Order:
		s.do(ctx, p, m.Request, m.Order, check(m.Order))
		return
	case *corelink.Do:
		o, err := core.Parse(m.Line)
		s.do(ctx, p, m.Request, o.For(millis(m.ForMS)), err)
		return
	case *corelink.GetBoard:
		if s.board == nil {
			s.answer(ctx, p.ID, m.Request, errors.New("values are not shared here"))
		} else if err := s.cfg.Link.TellFile(p.ID, &corelink.Board{Request: m.Request}, s.board); err != nil {
			log.ErrorContext(ctx, "board not sent", logging.Err, err) // a bug of ours
		}
		return
	case *corelink.Subscribe:
		s.answer(ctx, p.ID, m.Request, s.subscribe(p, m))
		return
	case *corelink.Unsubscribe:
		s.unsubscribe(p, m.Request)
		return
	case *corelink.Hold:
		save, err := s.hold(ctx, m.By, m.Reason)
		if err != nil {
			s.answer(ctx, p.ID, m.Request, err)
			return
		}
		s.saveLater(ctx, p.ID, m.Request, save)
		return
	case *corelink.Unhold:
		s.saveLater(ctx, p.ID, m.Request, s.unhold(ctx))
		return
	case *corelink.Halt:
		log.InfoContext(ctx, "halted by a peer", "peer", p.Program, "reason", m.Reason)
		s.peerHalts(ctx, true)
		return
	case *corelink.Resume:
		log.InfoContext(ctx, "halt lifted by a peer", "peer", p.Program)
		s.peerHalts(ctx, false)
		return
	case *corelink.Shutdown:
		log.WarnContext(ctx, "power-off requested by a peer", "peer", p.Program, "reason", m.Reason)
		s.PowerOff()
		return
	case *corelink.Claim:
		set, err := s.actuators(m.Devices)
		if err == nil && claim.Priority(m.Priority) > claim.Person {
			err = fmt.Errorf("priority %d, want at most %d", m.Priority, claim.Person)
		}
		if err != nil {
			s.answer(ctx, p.ID, m.Request, err)
			return
		}
		o.Kind, o.Request, o.Set, o.Priority, o.TTL = control.Claim, m.Request, set, claim.Priority(m.Priority), millis(m.TTLMS)
	case *corelink.Renew:
		o.Kind, o.Request, o.Lease, o.TTL = control.Renew, m.Request, m.Lease, millis(m.TTLMS)
	case *corelink.Release:
		o.Kind, o.Request, o.Lease = control.Release, m.Request, m.Lease
	case *corelink.Calm:
		o.Kind, o.Request, o.On = control.Calm, m.Request, m.On
	case *corelink.Sleep:
		o.Kind, o.Request, o.Sleep, o.Why = control.Sleep, m.Request, power.Sleep(m.State), m.Why
	case *corelink.Stop:
		o.Kind, o.Request = control.Stop, m.Request
	default:
		log.DebugContext(ctx, "unexpected message ignored", "peer", p.Program, "type", corelink.Name(m))
		return
	}
	s.post(ctx, p.ID, &ask{s: s, order: o})
}

func millis(ms uint32) time.Duration { return time.Duration(ms) * time.Millisecond }

// post leaves the order of a for the control loop, and answers at once if nothing reads its mailbox. A stop that finds the mailbox full, which the loop
// empties in each step, does not give up as soon.
func (s *Server) post(ctx context.Context, id uint32, a *ask) {
	a.at = monoclock.Now()
	code := s.tryPost(a)
	for ; code == control.Full && a.order.Kind == control.Stop && monoclock.Now()-a.at < stopFor; code = s.tryPost(a) {
		time.Sleep(resultEvery)
	}
	switch code {
	case control.OK:
		select {
		case s.wake <- struct{}{}:
		default: // awake
		}
	case control.Full:
		s.refuse(ctx, a, code, a.named("too many waiting orders"))
	case control.Ended:
		s.tell(ctx, id, &corelink.Ended{Request: a.order.Request, Outcome: motion.Cancelled.String()})
	default:
		s.refuse(ctx, a, code, a.named(noBody))
	}
}

// tryPost posts the order of a: OK, Full, Unmeasured without a body, or Ended if it is a later step of an order and a stop came in between.
func (s *Server) tryPost(a *ask) control.Code {
	k := due{a.order.Owner, a.order.Request}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.order.Kind == control.Stop {
		s.stops++
	}
	switch {
	case !a.began:
		a.stops = s.stops
	case a.stops != s.stops:
		return control.Ended
	}
	if !s.there.Load() {
		return control.Unmeasured
	}
	s.due[k] = a // before the order is there, so that its answer does not come first
	if !s.cfg.Control.Post(a.order) {
		delete(s.due, k)
		return control.Full
	}
	return control.OK
}

// answer tells a peer that its request was done, or why it is invalid.
func (s *Server) answer(ctx context.Context, id, request uint32, err error) {
	r := &corelink.Reply{Request: request, Code: control.OK.String()}
	if err != nil {
		r.Code, r.Detail = control.Invalid.String(), err.Error()
	}
	s.tell(ctx, id, r)
}

// actuators returns those of the devices that names name, and of whatever they use.
func (s *Server) actuators(names []string) (claim.Set, error) {
	tree := s.model.Tree
	var all []int
	for _, name := range names {
		target, err := tree.Lookup(name)
		if err != nil {
			return claim.Set{}, err
		}
		found := tree.ActuatorsOf(target)
		if len(found) == 0 {
			return claim.Set{}, fmt.Errorf("%s has no actuator: want a part that can be claimed", name)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return claim.Set{}, errors.New("want at least one device")
	}
	return claim.SetOf(all...), nil
}

func (s *Server) tell(ctx context.Context, id uint32, m corelink.Message) {
	if err := s.cfg.Link.Tell(id, m); err != nil {
		s.cfg.Log.ErrorContext(ctx, "answer to a peer not sent", logging.Err, err) // a bug of ours: values are made to fit
	}
}

func (s *Server) say(ctx context.Context, m corelink.Message) {
	if err := s.cfg.Link.Publish(m); err != nil {
		s.cfg.Log.ErrorContext(ctx, "message not published", logging.Err, err) // a bug of ours: values are made to fit
	}
}

// program returns the name of the program that is o.
func (s *Server) program(o claim.Owner) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case o == control.Self:
		return "robotd"
	case s.peers[o] != "":
		return s.peers[o]
	}
	return fmt.Sprintf("program %d", o)
}

// stale reports whether a value was measured by a body that is gone. Words are no measurement.
func (s *Server) stale(v robot.Value, at time.Duration) bool {
	return at > 0 && v.Type != robot.String && !s.there.Load()
}

// values returns the present values of slots, all of one moment (CLOCK_MONOTONIC, in microseconds).
func (s *Server) values(refs []*robot.Ref) (atUS int64, out []live.Value) {
	now := monoclock.Now()
	if len(refs) == 0 {
		return now.Microseconds(), nil
	}
	got, err := s.live.ReadTarget(robot.Target{Refs: refs})
	if len(refs) == 1 { // then an error says that it has no value
		got.Value, got.Times = robot.L(got.Value), []time.Duration{got.At}
	} else if err != nil {
		s.cfg.Log.Error("tree not read", logging.Err, err) // a bug of ours: every slot of refs can be read
		return now.Microseconds(), nil
	}
	out = make([]live.Value, 0, len(refs))
	for i, r := range refs {
		v := live.Value{Slot: r.ID, AgeMS: -1}
		if at := got.Times[i]; at > 0 {
			v.AgeMS = max(now-at, 0).Milliseconds()
		}
		switch x := &got.Value.Items[i]; {
		case x.Type == robot.None, math.IsNaN(x.Number), s.stale(*x, got.Times[i]):
			continue
		case x.Type == robot.String:
			text := strings.ToValidUTF8(x.Text, "?")
			v.Text = &text
		case math.IsInf(x.Number, 0):
			v.Infinite = 1
			if x.Number < 0 {
				v.Infinite = -1
			}
		default:
			v.Number = &x.Number
		}
		out = append(out, v)
	}
	return now.Microseconds(), out
}

// Run sends results and updates to the peers that asked, frees the claims of frozen peers, and saves what halts the robot, until ctx ends. It sleeps while no
// answer is due and no peer owns anything.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.keep(ctx) })
	wg.Go(func() { s.feed(ctx) })
	var looked time.Duration // when owners were last asked
	owned := false
	var r control.Report
	var timer <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-timer:
		}
		now := monoclock.Now()
		answered, waiting := s.deliver(ctx, now)
		if now-looked >= watchEvery {
			looked, owned = now, s.dropSilent(ctx, &r)
		}
		switch {
		case waiting:
			timer = time.After(resultEvery)
		case owned, answered: // a claim that was granted just now is in the next report
			timer = time.After(watchEvery)
		default:
			timer = nil
		}
	}
}

// dropSilent frees the claims of peers that do not answer, and reports whether any peer owns an actuator.
func (s *Server) dropSilent(ctx context.Context, r *control.Report) (owned bool) {
	if !s.there.Load() || !s.cfg.Control.Report(r) {
		return false
	}
	var last claim.Owner
	for _, o := range r.Owners[:len(s.model.Tree.Actuators())] {
		if o.Owner <= control.Self || o.Owner == last {
			continue
		}
		owned, last = true, o.Owner
		if silent := s.cfg.Link.Unanswered(peerOf(o.Owner)); silent >= silentAfter {
			s.cfg.Log.WarnContext(ctx, "claims of a silent peer released", "peer", s.program(o.Owner), "silent", silent.Round(time.Millisecond))
			s.cfg.Control.Post(control.Order{Kind: control.Drop, Owner: o.Owner}) // one that finds the mailbox full is posted again soon
		}
	}
	return owned
}

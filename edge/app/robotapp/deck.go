package robotapp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/body/mono"
	"kennel/edge/corelink"
	"kennel/edge/helm"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/infra/logging"
)

// Own defaults of the deck.
const (
	resultEvery = 5 * time.Millisecond // how often results are looked for while some are due: a frame
	resultsDue  = time.Minute + 5*time.Second

	noBody = "there is no body at the moment"
)

// deck stands between the robot's other programs and the helm: it turns their messages into orders, and results into answers. It runs outside
// the loop.
type deck struct {
	c    *core
	helm *helm.Helm
	live *state.Live
	tree corelink.Tree
	refs robot.Target // the slots of tree, by its order

	body  *robot.Node  // robot.body, which is gone without one
	parts map[int]part // what a line may move or light, by its slot

	wake chan struct{} // one slot: an order was posted

	mu    sync.Mutex
	peers map[claim.Owner]string // the program of each
	due   map[due]asked          // what has no answer yet
	drive treads                 // what the treads were told last
}

// due is one order, or the motion that it began.
type due struct {
	owner   claim.Owner
	request uint32
}

type asked struct {
	at   time.Duration
	told *told // nil: it was no line
}

// treads is the speeds that an order gave them, m/s.
type treads struct {
	due
	left, right float64
}

// owner is a peer as the helm knows it. IDs count from 1; helm.Self is 1.
func owner(p corelink.Peer) claim.Owner { return claim.Owner(p.ID) + helm.Self }

func newDeck(c *core, h *helm.Helm) (*deck, error) {
	parts, err := partsOf(h.Model())
	if err != nil {
		return nil, err
	}
	d := &deck{parts: parts, c: c, helm: h, live: state.NewLive(h.Board(), nil), wake: make(chan struct{}, 1), peers: map[claim.Owner]string{}, due: map[due]asked{}}
	tree := h.Model().Tree
	d.tree.Body = tree.Name
	i := slices.IndexFunc(tree.Root().Children(), func(n *robot.Node) bool { return n.Name() == "body" })
	if i < 0 {
		return nil, fmt.Errorf("tree of a %s: no robot.body", tree.Name)
	}
	d.body = tree.Root().Children()[i]
	for _, n := range tree.Nodes() {
		node := corelink.Node{Full: n.Full(), Compact: n.Compact(), Kind: n.Kind().String(), Interfaces: robot.JoinInterfaces(n.Interfaces()), Actuator: n.Actuator() >= 0,
			Aliases: tree.AliasesOf(n)}
		for _, r := range n.Slots() {
			// val stands for another slot, and bytes are not for this.
			if !r.Present || !r.Property && !r.Slot.Access.Holds() || r.Slot.Points != "" || r.Slot.Type == robot.Bytes || r.Slot.Type == robot.List {
				continue
			}
			node.Slots = append(node.Slots, slot(r))
			d.refs.Refs = append(d.refs.Refs, r)
		}
		d.tree.Nodes = append(d.tree.Nodes, node)
	}
	return d, nil
}

func slot(r *robot.Ref) corelink.Slot {
	s := corelink.Slot{ID: uint16(r.ID), Name: r.Slot.Name, Type: r.Slot.Type.String(), Unit: string(r.Unit())}
	if !math.IsInf(r.Range.Min, 0) {
		s.Bounds, s.Min = s.Bounds|corelink.HasMin, r.Range.Min
	}
	if !math.IsInf(r.Range.Max, 0) {
		s.Bounds, s.Max = s.Bounds|corelink.HasMax, r.Range.Max
	}
	return s
}

// bodyIs says that there is a body, or none any more: what it measures is available or not, and everybody is told (GOSTAI-OPEN-13).
func (d *deck) bodyIs(ctx context.Context, there bool) {
	now, board := mono.Now(), d.helm.Board()
	news := false
	if there {
		news = board.SetBack(d.body, now)
	} else {
		news = board.SetGone(d.body, noBody, now)
	}
	if !news {
		return
	}
	m := &corelink.Absent{AtUS: now.Microseconds()}
	for _, p := range board.Gone() {
		m.Devices = append(m.Devices, corelink.Absentee{Full: p.Node.Full(), SinceUS: p.At.Microseconds(), Why: p.Why})
	}
	if err := d.c.srv.Publish(m); err != nil {
		d.c.log.ErrorContext(ctx, "publish", logging.Err, err) // a bug of ours: names fit
	}
}

// stale reports whether a value is what a body measured that is gone. Of what it measures some is the robot's own, as its speed; words are nobody's measurement.
func (d *deck) stale(v robot.Value, at time.Duration) bool {
	return at > 0 && v.Type != robot.String && !d.c.running.Load()
}

// values is what the tree reads as now.
func (d *deck) values() (*corelink.Values, error) {
	m := &corelink.Values{AtUS: mono.Now().Microseconds()}
	if len(d.refs.Refs) == 0 {
		return m, nil
	}
	got, err := d.live.ReadTarget(d.refs)
	if err != nil {
		return nil, err
	}
	for i, r := range d.refs.Refs {
		v := corelink.Value{Slot: uint16(r.ID), AtUS: got.Times[i].Microseconds()}
		switch x := got.Value.Items[i]; {
		case x.Type == robot.None, math.IsNaN(x.Number), d.stale(x, got.Times[i]):
			continue
		case x.Type == robot.String:
			v.Form, v.Text = corelink.Words, strings.ToValidUTF8(x.Text, "?")
		case math.IsInf(x.Number, 1):
			v.Form = corelink.Infinite
		case math.IsInf(x.Number, -1):
			v.Form = corelink.NegativeInfinite
		default:
			v.Number = x.Number
		}
		m.Values = append(m.Values, v)
	}
	return m, nil
}

// joined and left keep who is there.
func (d *deck) joined(p corelink.Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[owner(p)] = p.Program
}

func (d *deck) left(ctx context.Context, p corelink.Peer) {
	o := owner(p)
	d.mu.Lock()
	delete(d.peers, o)
	for k := range d.due {
		if k.owner == o {
			delete(d.due, k)
		}
	}
	d.mu.Unlock()
	// What it held must become free, whatever waits in the mailbox: without a body the loop does not empty it, and then nothing moves either.
	for !d.helm.Post(helm.Order{Kind: helm.Drop, Owner: o}) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(resultEvery):
		}
	}
}

func (d *deck) program(o claim.Owner) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case o == helm.Self:
		return "robotd"
	case d.peers[o] != "":
		return d.peers[o]
	}
	return fmt.Sprintf("program %d", o)
}

// handle takes a message that is about the tree; false: it is not.
func (d *deck) handle(ctx context.Context, p corelink.Peer, m corelink.Message) bool {
	o := helm.Order{Owner: owner(p)}
	switch m := m.(type) {
	case *corelink.GetTree:
		t := d.tree
		t.Request = m.Request
		d.tell(ctx, p.ID, &t)
		return true
	case *corelink.GetValues:
		v, err := d.values()
		if err != nil {
			d.c.log.ErrorContext(ctx, "read the tree", logging.Err, err) // a bug of ours: every slot of refs can be read
			return true
		}
		v.Request = m.Request
		d.tell(ctx, p.ID, v)
		return true
	case *corelink.Introduce:
		d.helm.Board().Introduce(state.Identity{Name: m.Name, Serial: m.Serial, IP: m.IP}, mono.Now())
		return true
	case *corelink.Do:
		d.do(ctx, p, m)
		return true
	case *corelink.SetLights:
		o.Kind = helm.SetLights
		for i, l := range m.Lights[:min(len(m.Lights), len(o.Lights))] {
			o.Lights[i].R, o.Lights[i].G, o.Lights[i].B = l.R, l.G, l.B
		}
		d.helm.Post(o) // it asks for no answer; one that finds the mailbox full is counted, and reported in LoopStats
		return true
	case *corelink.Claim:
		set, err := d.actuators(m.Devices)
		if err == nil && claim.Priority(m.Priority) > claim.Person {
			err = fmt.Errorf("priority %d, want at most %d", m.Priority, claim.Person)
		}
		if err != nil {
			d.tell(ctx, p.ID, &corelink.Reply{Request: m.Request, Code: helm.Invalid.String(), Detail: err.Error()})
			return true
		}
		o.Kind, o.Request, o.Set, o.Priority, o.TTL = helm.Claim, m.Request, set, claim.Priority(m.Priority), millis(m.TTLMS)
	case *corelink.Renew:
		o.Kind, o.Request, o.Lease, o.TTL = helm.Renew, m.Request, m.Lease, millis(m.TTLMS)
	case *corelink.Release:
		o.Kind, o.Request, o.Lease = helm.Release, m.Request, m.Lease
	case *corelink.Wheels:
		o.Kind, o.Request, o.A, o.B, o.Accel, o.For = helm.Wheels, m.Request, m.Left, m.Right, m.Accel, millis(m.ForMS)
	case *corelink.Straight:
		o.Kind, o.Request, o.A, o.Speed, o.Accel, o.For = helm.Straight, m.Request, m.Metres, m.Speed, m.Accel, millis(m.ForMS)
	case *corelink.Turn:
		o.Kind, o.Request, o.A, o.Speed, o.Accel, o.For = helm.Turn, m.Request, m.Radians, m.Speed, m.Accel, millis(m.ForMS)
	case *corelink.Head:
		o.Kind, o.Request, o.A, o.Speed, o.Accel = helm.Head, m.Request, m.Radians, m.Speed, m.Accel
	case *corelink.Lift:
		o.Kind, o.Request, o.A, o.Speed, o.Accel = helm.Lift, m.Request, m.Metres, m.Speed, m.Accel
	case *corelink.Calm:
		o.Kind, o.Request, o.On = helm.Calm, m.Request, m.On
	case *corelink.Sleep:
		o.Kind, o.Request, o.Sleep, o.Why = helm.Sleep, m.Request, power.Sleep(m.State), m.Why
	case *corelink.Stop:
		o.Kind, o.Request = helm.Stop, m.Request
	default:
		return false
	}
	d.post(ctx, p, o, nil)
	return true
}

func millis(ms uint32) time.Duration { return time.Duration(ms) * time.Millisecond }

// post leaves o for the helm and sees that it is answered, as a line if it comes from one. A core without a body has nobody who reads its mailbox.
func (d *deck) post(ctx context.Context, p corelink.Peer, o helm.Order, t *told) {
	k := due{o.Owner, o.Request}
	d.mu.Lock()
	// Before the order is there, so that neither its answer nor what another peer posts comes first.
	posted := d.c.running.Load() && d.helm.Post(o)
	if posted {
		d.due[k] = asked{mono.Now(), t}
		switch o.Kind {
		case helm.Wheels:
			d.drive = treads{k, o.A, o.B}
		case helm.Straight, helm.Turn, helm.Stop:
			d.drive = treads{}
		}
	}
	d.mu.Unlock()
	if posted {
		select {
		case d.wake <- struct{}{}:
		default: // awake
		}
		return
	}
	r := &corelink.Reply{Request: o.Request, Code: helm.Full.String(), Detail: "too many orders wait"}
	if !d.c.running.Load() {
		r.Detail = noBody
	}
	d.answer(ctx, p.ID, r, t)
}

// answer tells r to who asked, of a line as a Did.
func (d *deck) answer(ctx context.Context, id uint32, r *corelink.Reply, t *told) {
	if t == nil {
		d.tell(ctx, id, r)
		return
	}
	out := *t.did
	if out.Code, out.Underway = r.Code, r.Underway; r.Code != helm.OK.String() {
		out.Detail, out.Value = out.Detail+": "+r.Detail, ""
	} else {
		out.Detail = r.Detail
	}
	if r.Detail == noBody {
		out.Code = unavailable
	}
	d.tell(ctx, id, &out)
}

// treadsOf returns the speeds that o told the treads, m/s; 0 if they stand, or somebody else drives.
func (d *deck) treadsOf(o claim.Owner) (left, right float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.drive.owner != o {
		return 0, 0
	}
	return d.drive.left, d.drive.right
}

// actuators returns what names name, and whatever those use.
func (d *deck) actuators(names []string) (claim.Set, error) {
	tree := d.helm.Model().Tree
	var all []int
	for _, name := range names {
		target, err := tree.Lookup(name)
		if err != nil {
			return claim.Set{}, err
		}
		found := tree.ActuatorsOf(target)
		if len(found) == 0 {
			return claim.Set{}, fmt.Errorf("%s moves, lights and sounds nothing: it needs no claim", name)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return claim.Set{}, errors.New("no device is named")
	}
	return claim.SetOf(all...), nil
}

func (d *deck) tell(ctx context.Context, id uint32, m corelink.Message) {
	if err := d.c.srv.Tell(id, m); err != nil {
		d.c.log.ErrorContext(ctx, "answer a peer", logging.Err, err) // a bug of ours: values are made to fit
	}
}

// run brings results to those who asked, until ctx ends. It sleeps while nobody waits for one.
func (d *deck) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		}
		tick := time.NewTicker(resultEvery)
		for d.deliver(ctx) {
			select {
			case <-ctx.Done():
				tick.Stop()
				return nil
			case <-tick.C:
			}
		}
		tick.Stop()
	}
}

// deliver tells all results there are, and reports whether more are due.
func (d *deck) deliver(ctx context.Context) bool {
	for {
		r, ok := d.helm.Result()
		if !ok {
			break
		}
		id, k := uint32(r.Owner-helm.Self), due{r.Owner, r.Request}
		d.mu.Lock()
		t := d.due[k].told
		if !r.Underway {
			delete(d.due, k)
			if d.drive.due == k {
				d.drive = treads{}
			}
		}
		d.mu.Unlock()
		if r.Code == helm.Ended {
			d.tell(ctx, id, &corelink.Ended{Request: r.Request, Outcome: r.Outcome.String(), X: finite(r.Pose.X), Y: finite(r.Pose.Y), Theta: finite(r.Pose.Theta)})
		} else {
			detail := d.detail(&r)
			if t != nil && r.Code == helm.OK {
				r.Takes = max(r.Takes, t.takes)
				detail = d.short(&t.line, &r)
			}
			d.answer(ctx, id, &corelink.Reply{Request: r.Request, Code: r.Code.String(), Detail: detail, Underway: r.Underway, Lease: r.Lease}, t)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := mono.Now()
	for k, a := range d.due {
		if now-a.at > resultsDue { // a ring that was full lost it; a joint that never arrives is told when it does
			delete(d.due, k)
		}
	}
	return len(d.due) > 0
}

// detail says in words what is not ok.
func (d *deck) detail(r *helm.Result) string {
	device := ""
	if all := d.helm.Model().Tree.Actuators(); r.Actuator >= 0 && r.Actuator < len(all) {
		device = all[r.Actuator].Compact()
	}
	switch r.Code {
	case helm.OK:
		return ""
	case helm.Busy:
		return fmt.Sprintf("%s belongs to %s with priority %d", device, d.program(r.By), r.Priority)
	case helm.NotHeld:
		if r.By == 0 {
			return device + " was not claimed"
		}
		return fmt.Sprintf("%s belongs to %s with priority %d", device, d.program(r.By), r.Priority)
	case helm.Refused:
		if words := r.Stop.Words(); len(words) > 0 {
			return "the robot may not move: " + strings.Join(words, ", ")
		}
		return "the robot may not move"
	case helm.Full:
		return "too many claims at once, or too many programs that ask for calm"
	case helm.Gone:
		return "there is no such claim of yours, or no more"
	}
	return fmt.Sprintf("want a legal change of sleep with its reason, or finite numbers, a way that is not 0, and for the treads a time of up to %v", helm.MaxFor)
}

// motion is the helm's report as a message; false before the first step.
func (d *deck) motion(r *helm.Report) (*corelink.Motion, bool) {
	if !d.helm.Report(r) {
		return nil, false
	}
	m := &r.Motion
	out := &corelink.Motion{
		AtUS: r.At.Microseconds(), Stop: uint16(m.Stop), Moving: m.Moving, X: finite(m.Pose.X), Y: finite(m.Pose.Y), Theta: finite(m.Pose.Theta),
		Speed: finite(m.Twist.V), Turning: finite(m.Twist.W), OdoLeft: finite(m.Odometers.Left), OdoRight: finite(m.Odometers.Right),
		OdoBody: finite(m.Odometers.Body), Unreliable: m.Unreliable, OffTreads: r.Sense.Motion.OffTreads.String(), Treads: m.Treads.String(),
	}
	model := d.helm.Model()
	for _, j := range []*helm.Joint{&model.Head, &model.Lift} {
		s := &m.Joints[j.Index]
		out.Joints = append(out.Joints, corelink.JointState{Device: j.Device, State: s.State.String(), Outcome: s.Outcome.String(), Calibrated: s.Calibrated})
	}
	for a, n := range model.Tree.Actuators() {
		if o := r.Owners[a]; o.Owner != 0 {
			out.Owners = append(out.Owners, corelink.Ownership{Device: n.Compact(), Program: d.program(o.Owner), Priority: uint8(o.Priority)})
		}
	}
	return out, true
}

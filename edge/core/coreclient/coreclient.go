// Package coreclient gives programs the services of the real-time core (edge/core/corelink): the robot's tree, its values, and orders with a
// claim, a beginning and an end. Programs that share one connection share one Client.
//
//	link := corelink.NewClient(root)
//	c := coreclient.New(link)
//	go link.Run(ctx, c.Handle)
//	err := c.Run(ctx, claim.Program, core.Go(0.1))                              // claims, drives, waits, releases
//	err = c.Subscribe(ctx, 50, see, "robot.body.laser.distance", "headPitch")   // see hears what they read as, up to 50 times a second
//
// A program that keeps devices for several orders uses Claim and Do.
//
// When robotd ends or restarts, its claims and motions have ended: a call that waits for them returns ErrLost.
package coreclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/corelink"
	"kennel/edge/robot/claim"
)

// Our own limits.
const (
	Patience   = 2 * time.Second // for an answer of robotd, which gives it within a frame
	maxWaiters = 64
	maxUrgent  = 16              // more, for stops and holds alone
	spare      = 2 * time.Second // that a claim outlives what it is for
)

// Errors that callers tell apart.
var (
	ErrNotConnected = errors.New("the real-time core (robotd) is not connected")
	ErrLost         = errors.New("connection to the real-time core (robotd) lost")
	errOther        = errors.New("the real-time core (robotd) answered")
)

// Refused is an answer that is not ok.
type Refused struct {
	Code   string // of a corelink.Reply
	Detail string
}

func (r *Refused) Error() string { return r.Code + ": " + r.Detail }

// Unfinished says that a motion did not end as it was ordered, and how it ended.
type Unfinished struct{ corelink.Ended }

func (u *Unfinished) Error() string { return u.Words() }

// Core is the connection to robotd (corelink.Client).
type Core interface {
	Hello() (corelink.Hello, bool)
	Send(corelink.Message) error
}

// Client is safe for concurrent use.
type Client struct {
	// Began, if not nil, is called with each order that robotd accepted, before Do returns. It must not block. Set it before the client is used.
	Began func(core.Order, *Motion)

	core Core

	mu        sync.Mutex
	last      uint32                           // number of the newest request
	waiting   map[uint32]chan corelink.Message // for the answers that are awaited; closed when robotd is lost
	motions   map[uint32]*Motion               // under way, by their request
	subs      map[uint32]*flow                 // by their request
	flows     map[string]*flow                 // by what they are of
	tree      *corelink.Tree                   // of this robotd; nil: not asked for yet
	board     *board                           // of this robotd; nil: not asked for yet, or it shares none
	boardless bool                             // it was asked, and shares none that this program can read
	speaks    []string                         // what this robotd takes beyond its version
	met       chan struct{}                    // closed while robotd is connected
	why       string                           // robotd was lost
}

// New returns a client of core, whose messages are to go to Handle.
func New(core Core) *Client {
	return &Client{core: core, waiting: map[uint32]chan corelink.Message{}, motions: map[uint32]*Motion{}, subs: map[uint32]*flow{},
		flows: map[string]*flow{}, met: make(chan struct{})}
}

// Handle takes every message of robotd. It does not block.
func (c *Client) Handle(m corelink.Message) {
	c.mu.Lock()
	var then []func()
	switch m := m.(type) {
	case *corelink.Hello:
		select {
		case <-c.met: // its body is another
		default:
			close(c.met)
		}
	case *corelink.Bye:
		then = c.lost(m.Reason)
	case *corelink.Speaks:
		c.speaks = m.Messages
	case *corelink.Reply:
		if !c.answer(m.Request, m) && m.Lease != 0 { // who asked has gone
			then = append(then, (&Lease{c, m.Lease}).Release)
		}
	case *corelink.Update:
		if f := c.subs[m.Request]; f != nil {
			for x := range f.takers {
				x.put(m)
			}
		}
	case *corelink.Board:
		c.keepBoard(m)
		c.answer(m.Request, m)
	case *corelink.Tree:
		c.answer(m.Request, m)
	case *corelink.Values:
		c.answer(m.Request, m)
	case *corelink.Lateness:
		c.answer(m.Request, m)
	case *corelink.Ended:
		if x := c.motions[m.Request]; x != nil {
			then = c.end(m.Request, x, m)
		}
	}
	c.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// answer hands m to the call that waits for it, if one does; mu is held.
func (c *Client) answer(request uint32, m corelink.Message) bool {
	w, ok := c.waiting[request]
	if ok {
		delete(c.waiting, request)
		w <- m // it has room for one
	}
	return ok
}

// end notes how a motion ended (nil: unknown) and returns the callbacks to call; mu is held.
func (c *Client) end(request uint32, x *Motion, m *corelink.Ended) []func() {
	delete(c.motions, request)
	x.ended = m
	close(x.done)
	return x.then
}

// lost ends all that waits; mu is held.
func (c *Client) lost(why string) (then []func()) {
	c.why, c.tree, c.speaks = why, nil, nil
	if c.board != nil {
		close(c.board.lost)
	}
	c.board, c.boardless = nil, false
	select {
	case <-c.met:
		c.met = make(chan struct{})
	default: // it was lost before
	}
	for request, w := range c.waiting {
		delete(c.waiting, request)
		close(w)
	}
	for request, x := range c.motions {
		x.err = c.errLost()
		then = append(then, c.end(request, x, nil)...)
	}
	clear(c.subs)
	for key, f := range c.flows {
		delete(c.flows, key)
		for x := range f.takers {
			close(x.lost)
		}
	}
	return then
}

// errLost is ErrLost with its reason; mu is held.
func (c *Client) errLost() error { return fmt.Errorf("%w: %s", ErrLost, c.why) }

// Ready blocks until robotd is connected.
func (c *Client) Ready(ctx context.Context) error {
	c.mu.Lock()
	met := c.met
	c.mu.Unlock()
	select {
	case <-met:
		return nil
	case <-ctx.Done():
		return ErrNotConnected
	}
}

// ask sends the message that message makes of a request number, and returns the answer. begun, if not nil, is called with the number before.
func ask[A corelink.Message](
	ctx context.Context, c *Client, begun func(request uint32), message func(request uint32) corelink.Message,
) (answer A, err error) {
	if _, ok := c.core.Hello(); !ok {
		return answer, ErrNotConnected
	}
	got := make(chan corelink.Message, 1)
	most := maxWaiters
	switch message(0).(type) {
	case *corelink.Stop, *corelink.Hold:
		most += maxUrgent
	}
	c.mu.Lock()
	if len(c.waiting) >= most {
		c.mu.Unlock()
		return answer, errors.New("too many requests waiting for the real-time core (robotd)")
	}
	c.last++
	request := c.last
	c.waiting[request] = got
	if begun != nil {
		begun(request)
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, request)
		c.mu.Unlock()
	}()
	if err := c.core.Send(message(request)); err != nil {
		return answer, err
	}
	patient, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var m corelink.Message
	ok := true
	select {
	case m, ok = <-got:
	case <-patient.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, request)
		select {
		case m = <-got: // it came at that moment
		default:
			if err := ctx.Err(); err != nil { // the caller gave up
				return answer, fmt.Errorf("wait for the real-time core (robotd): %w", err)
			}
			return answer, errors.New("the real-time core (robotd) does not answer")
		}
	}
	if !ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		return answer, c.errLost()
	}
	a, ok := m.(A)
	if !ok {
		return answer, fmt.Errorf("%w with %v", errOther, corelink.Name(m))
	}
	return a, nil
}

// Ask sends the message that message makes of a request number, and returns the answer; one that is not ok is a Refused.
func (c *Client) Ask(ctx context.Context, message func(request uint32) corelink.Message) (*corelink.Reply, error) {
	return c.request(ctx, nil, message)
}

func (c *Client) request(ctx context.Context, begun func(request uint32), message func(request uint32) corelink.Message) (*corelink.Reply, error) {
	r, err := ask[*corelink.Reply](ctx, c, begun, message)
	if err == nil && r.Code != "ok" {
		err = &Refused{r.Code, r.Detail}
	}
	return r, err
}

// Lease is a claim.
type Lease struct {
	c      *Client
	number uint64
}

// Claim takes the devices, by any name of the tree, for ttl; 0: until Release, or until this program ends or freezes. It gets all or none.
func (c *Client) Claim(ctx context.Context, ttl time.Duration, p claim.Priority, devices ...string) (*Lease, error) {
	r, err := c.Ask(ctx, func(n uint32) corelink.Message {
		return &corelink.Claim{Request: n, Devices: devices, Priority: uint8(p), TTLMS: uint32(ttl.Milliseconds())}
	})
	if err != nil {
		return nil, err
	}
	return &Lease{c, r.Lease}, nil
}

// Renew makes the claim last for ttl from now.
func (l *Lease) Renew(ctx context.Context, ttl time.Duration) error {
	_, err := l.c.Ask(ctx, func(n uint32) corelink.Message {
		return &corelink.Renew{Request: n, Lease: l.number, TTLMS: uint32(ttl.Milliseconds())}
	})
	return err
}

// Release ends the claim, if there is one. It does not wait: a robotd that is gone holds nothing.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.c.mu.Lock()
	l.c.last++
	n := l.c.last
	l.c.mu.Unlock()
	_ = l.c.core.Send(&corelink.Release{Request: n, Lease: l.number}) // a robotd that is gone holds nothing
}

// End is Release that returns when robotd has freed the devices, so that another program can have them.
func (l *Lease) End(ctx context.Context) error {
	if l == nil {
		return nil
	}
	_, err := l.c.Ask(ctx, func(n uint32) corelink.Message { return &corelink.Release{Request: n, Lease: l.number} })
	return err
}

// Motion follows an order that robotd accepted.
type Motion struct {
	Value    string // the values read or written, as people write them (corelink.Reply)
	Note     string // deviations from the request
	Underway bool   // it lasts; otherwise all is done

	c     *Client
	done  chan struct{}
	then  []func()
	ended *corelink.Ended
	err   error
}

// Do begins o and returns when robotd has accepted it. What moves needs a Claim. To a robotd that takes no typed orders it is sent as text.
func (c *Client) Do(ctx context.Context, o core.Order) (*Motion, error) {
	if len(o.Steps) > 1 && !c.can(ctx, &corelink.Order{}) {
		return nil, &Refused{"unable", "this robotd takes one step at a time"}
	}
	x := &Motion{c: c, done: make(chan struct{})}
	var request uint32
	r, err := c.request(ctx, func(n uint32) { request, c.motions[n] = n, x }, func(n uint32) corelink.Message {
		if c.takes(&corelink.Order{}) {
			return &corelink.Order{Request: n, Order: o}
		}
		return &corelink.Do{Request: n, Line: o.String(), ForMS: o.ForMS}
	})
	c.mu.Lock()
	if err != nil {
		delete(c.motions, request)
		c.mu.Unlock()
		return nil, err
	}
	x.Value, x.Note, x.Underway = r.Value, r.Detail, r.Underway
	if !r.Underway && c.motions[request] == x { // otherwise robotd was lost in between
		c.end(request, x, &corelink.Ended{Request: request, Outcome: corelink.Done})
	}
	c.mu.Unlock()
	if c.Began != nil {
		c.Began(o, x)
	}
	return x, nil
}

// takes reports whether robotd said that it takes messages such as m. It says so right after its Hello.
func (c *Client) takes(m corelink.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.speaks, corelink.Name(m))
}

// can is takes once robotd had the time to say so: its tree comes later.
func (c *Client) can(ctx context.Context, m corelink.Message) bool {
	_, err := c.Tree(ctx)
	return err == nil && c.takes(m)
}

// Start claims what o moves, with the given priority, and begins o. The claim ends when o has ended. If it is not granted o is sent nevertheless: a
// stop needs no claim, and robotd says best what is wrong with an order that makes no sense.
func (c *Client) Start(ctx context.Context, p claim.Priority, o core.Order) (*Motion, error) {
	lease, unclaimed := c.claimFor(ctx, p, o)
	m, err := c.begin(ctx, lease, o)
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == "not_held" && unclaimed != nil {
		err = unclaimed
	}
	return m, err
}

// Run claims what o moves, with the given priority, does o, waits for its end and releases the claim. The error says why it was refused (Refused), how
// else it ended (Unfinished), or that ctx or robotd ended; in each case nothing of o lasts, but for lights that were set.
func (c *Client) Run(ctx context.Context, p claim.Priority, o core.Order) error {
	lease, err := c.claimFor(ctx, p, o)
	if err != nil {
		return err
	}
	m, err := c.begin(ctx, lease, o)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, o.Longest()+spare)
	defer cancel()
	end, err := m.Wait(limit)
	if err != nil {
		lease.Release() // which ends the motion
		return err
	}
	if end.Outcome != corelink.Done {
		return &Unfinished{end}
	}
	return nil
}

// claimFor claims what o moves for as long as it may last; nil if it moves nothing.
func (c *Client) claimFor(ctx context.Context, p claim.Priority, o core.Order) (*Lease, error) {
	if names := o.Moves(); len(names) > 0 {
		return c.Claim(ctx, o.Longest()+spare, p, names...)
	}
	return nil, nil
}

// begin does o and releases lease when o has ended or was refused.
func (c *Client) begin(ctx context.Context, lease *Lease, o core.Order) (*Motion, error) {
	m, err := c.Do(ctx, o)
	if err != nil {
		lease.Release()
		return nil, err
	}
	m.Then(lease.Release)
	return m, nil
}

// Wait waits until the motion has ended and returns how.
func (m *Motion) Wait(ctx context.Context) (corelink.Ended, error) {
	select {
	case <-m.done:
	case <-ctx.Done():
		return corelink.Ended{}, fmt.Errorf("the motion has not ended: %w", ctx.Err())
	}
	if m.err != nil {
		return corelink.Ended{}, m.err
	}
	return *m.ended, nil
}

// Then calls f, which must not block, when the motion has ended.
func (m *Motion) Then(f func()) {
	m.c.mu.Lock()
	select {
	case <-m.done:
		m.c.mu.Unlock()
		f()
	default:
		m.then = append(m.then, f)
		m.c.mu.Unlock()
	}
}

// Stop stops all motors, whichever program moves them.
func (c *Client) Stop(ctx context.Context) error {
	_, err := c.Ask(ctx, func(n uint32) corelink.Message { return &corelink.Stop{Request: n} })
	return err
}

// Introduce sends robotd the robot's identity. It does not wait.
func (c *Client) Introduce(name, serial, ip string) {
	_ = c.core.Send(&corelink.Introduce{Name: name, Serial: serial, IP: ip}) // if robotd is not connected, its next Hello triggers this again
}

// Tree returns the structure tree, which is not to be changed. It is asked for once a robotd.
func (c *Client) Tree(ctx context.Context) (*corelink.Tree, error) {
	c.mu.Lock()
	t := c.tree
	c.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := ask[*corelink.Tree](ctx, c, nil, func(n uint32) corelink.Message { return &corelink.GetTree{Request: n} })
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.met:
		c.tree = t
	default: // its robotd is gone
	}
	return t, nil
}

// Values returns the present values of all slots.
func (c *Client) Values(ctx context.Context) (*corelink.Values, error) {
	return ask[*corelink.Values](ctx, c, nil, func(n uint32) corelink.Message { return &corelink.GetValues{Request: n} })
}

// Lateness returns how late the loop's steps began since robotd started. A robotd that is too old to tell is an error, too.
func (c *Client) Lateness(ctx context.Context) (*corelink.Lateness, error) {
	if !c.takes(&corelink.GetLateness{}) {
		return nil, errors.New("this robotd does not tell how late its steps were")
	}
	return ask[*corelink.Lateness](ctx, c, nil, func(n uint32) corelink.Message { return &corelink.GetLateness{Request: n} })
}

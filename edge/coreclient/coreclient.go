// Package coreclient gives programs the services of the real-time core (edge/corelink): the robot's tree, its values, and motions with a
// claim, a beginning and an end. Programs that share one connection share one Client.
//
//	link := corelink.NewClient(root)
//	c := coreclient.New(link)
//	go link.Run(ctx, c.Handle)
//	lease, err := c.Claim(ctx, 0, claim.Program, "robot.go")
//	m, err := c.Do(ctx, "robot.go(0.1)", 5*time.Second)
//	end, err := m.Wait(ctx)
//
// When robotd ends or restarts, its claims and motions have ended: a call that waits for them returns ErrLost.
package coreclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kennel/edge/corelink"
	"kennel/edge/robot/claim"
)

// Our own limits.
const (
	Patience   = 2 * time.Second // for an answer of robotd, which gives it within a frame
	maxWaiters = 64
	maxUrgent  = 16 // more, for stops and holds alone
)

// Errors that callers tell apart.
var (
	ErrNotConnected = errors.New("the real-time core (robotd) is not connected")
	ErrLost         = errors.New("the real-time core (robotd) was lost")
)

// Refused is an answer that is not ok.
type Refused struct {
	Code   string // of a corelink.Reply
	Detail string
}

func (r *Refused) Error() string { return r.Code + ": " + r.Detail }

// Core is the connection to robotd (corelink.Client).
type Core interface {
	Hello() (corelink.Hello, bool)
	Send(corelink.Message) error
}

// Client is safe for concurrent use.
type Client struct {
	core Core

	mu      sync.Mutex
	last    uint32                           // number of the newest request
	waiting map[uint32]chan corelink.Message // for the answers that are awaited; closed when robotd is lost
	motions map[uint32]*Motion               // under way, by their request
	tree    *corelink.Tree                   // of this robotd; nil: not asked for yet
	met     chan struct{}                    // closed while robotd is connected
	why     string                           // robotd was lost
}

// New returns a client of core, whose messages are to go to Handle.
func New(core Core) *Client {
	return &Client{core: core, waiting: map[uint32]chan corelink.Message{}, motions: map[uint32]*Motion{}, met: make(chan struct{})}
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
	case *corelink.Reply:
		c.answer(m.Request, m)
	case *corelink.Tree:
		c.answer(m.Request, m)
	case *corelink.Values:
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

// answer hands m to the call that waits for it; mu is held.
func (c *Client) answer(request uint32, m corelink.Message) {
	if w, ok := c.waiting[request]; ok {
		delete(c.waiting, request)
		w <- m // it has room for one
	}
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
	c.why, c.tree = why, nil
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
		return answer, errors.New("too many questions wait for the real-time core (robotd)")
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
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	select {
	case m, ok := <-got:
		if !ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			return answer, c.errLost()
		}
		a, ok := m.(A)
		if !ok {
			return answer, fmt.Errorf("the real-time core (robotd) answered with %v", corelink.Name(m))
		}
		return a, nil
	case <-ctx.Done():
		return answer, errors.New("the real-time core (robotd) does not answer")
	}
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

// Release ends the claim. It does not wait: a robotd that is gone holds nothing.
func (l *Lease) Release() {
	l.c.mu.Lock()
	l.c.last++
	n := l.c.last
	l.c.mu.Unlock()
	_ = l.c.core.Send(&corelink.Release{Request: n, Lease: l.number}) // a robotd that is gone holds nothing
}

// Motion is the motion that a line began.
type Motion struct {
	Value    string // the value read or written (corelink.Reply)
	Note     string // deviations from the request
	Underway bool   // it lasts; otherwise all is done

	c     *Client
	done  chan struct{}
	then  []func()
	ended *corelink.Ended
	err   error
}

// Do runs line, which reads, writes or calls (robot.ParseLines), and returns when robotd has accepted it; actions that need a deadline end
// after most. A motion needs a Claim.
func (c *Client) Do(ctx context.Context, line string, most time.Duration) (*Motion, error) {
	x := &Motion{c: c, done: make(chan struct{})}
	var request uint32
	r, err := c.request(ctx, func(n uint32) { request, c.motions[n] = n, x }, func(n uint32) corelink.Message {
		return &corelink.Do{Request: n, Line: line, ForMS: uint32(most.Milliseconds())}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.motions, request)
		return nil, err
	}
	x.Value, x.Note, x.Underway = r.Value, r.Detail, r.Underway
	if !r.Underway && c.motions[request] == x { // otherwise robotd was lost in between
		c.end(request, x, &corelink.Ended{Request: request, Outcome: corelink.Done})
	}
	return x, nil
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

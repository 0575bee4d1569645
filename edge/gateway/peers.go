package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
)

// maxLeases is how many leases and orders of clients there may be at once: each is a connection to robotd, which has a place for 16.
const maxLeases = 8

// idleTime is how long a connection waits for the next order of its client.
const idleTime = 10 * time.Second

// peer is a connection to robotd.
type peer struct {
	*coreclient.Client
	name  string
	link  *corelink.Client
	hear  func(corelink.Message)
	stop  context.CancelFunc
	timer *time.Timer // of its retirement
	mu    sync.Mutex
	pose  corelink.Motion
}

func newPeer(dir, name string, hear func(corelink.Message)) *peer {
	p := &peer{name: name, hear: hear, stop: func() {}}
	p.link = corelink.NewClient(dir, corelink.WithHello(corelink.Hello{Program: name, Version: version.String(), PID: uint32(os.Getpid())}))
	p.Client = coreclient.New(p.link)
	return p
}

func (p *peer) run(ctx context.Context) error {
	return p.link.Run(ctx, func(m corelink.Message) {
		if at, ok := m.(*corelink.Motion); ok {
			p.mu.Lock()
			p.pose = *at
			p.mu.Unlock()
		}
		p.Handle(m)
		if p.hear != nil {
			p.hear(m)
		}
	})
}

// place is where the robot is, as robotd reported last.
func (p *peer) place() robot.Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return robot.Place{X: p.pose.X, Y: p.pose.Y, Theta: p.pose.Theta}
}

// peers are the connections on which clients move the body: one for each lease, named after its client, for robotd names it to those it refuses.
// A few that are free stay connected, so that an order need not wait for a new one.
type peers struct {
	dir   string
	began func(client string, o core.Order, m *coreclient.Motion) // with each order
	free  chan struct{}                                           // one for each that is in use

	mu   sync.Mutex
	idle []*peer // oldest first
}

// take returns a connection with the client's name, for put.
func (ps *peers) take(ctx context.Context, client string) (*peer, error) {
	select {
	case ps.free <- struct{}{}:
	default:
		return nil, &errs.Error{Kind: errs.Exhausted, Code: "too_many_leases", Retry: time.Second,
			Msg: fmt.Sprintf("all %d places for leases and orders of programs are in use; try again once one has ended", maxLeases)}
	}
	name := programName(client)
	ps.mu.Lock()
	for i, p := range slices.Backward(ps.idle) {
		if _, connected := p.link.Hello(); p.name == name && connected {
			ps.idle = slices.Delete(ps.idle, i, i+1)
			p.timer.Stop()
			ps.mu.Unlock()
			return p, nil
		}
	}
	if len(ps.idle) > 0 && len(ps.idle)+len(ps.free) > maxLeases { // its place is needed
		ps.idle[0].stop()
		ps.idle = ps.idle[1:]
	}
	ps.mu.Unlock()
	p := newPeer(ps.dir, name, nil)
	p.Began = func(o core.Order, m *coreclient.Motion) { ps.began(client, o, m) }
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	go func() { _ = p.run(run) }() // nil by contract
	wait, cancel := context.WithTimeout(ctx, coreclient.Patience)
	defer cancel()
	if err := p.Ready(wait); err != nil {
		stop()
		<-ps.free
		return nil, err
	}
	return p, nil
}

// put takes back a connection that claims nothing any longer.
func (ps *peers) put(p *peer) {
	ps.mu.Lock()
	ps.idle = append(ps.idle, p)
	p.timer = time.AfterFunc(idleTime, func() { ps.retire(p) })
	ps.mu.Unlock()
	<-ps.free
}

// retire ends a connection that nothing has needed for a while: robotd tells each of them all that happens.
func (ps *peers) retire(p *peer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if i := slices.Index(ps.idle, p); i >= 0 {
		ps.idle = slices.Delete(ps.idle, i, i+1)
		p.stop()
	}
}

// end ends those that are free.
func (ps *peers) end() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.idle {
		p.stop()
	}
	ps.idle = nil
}

// programName returns a client's name as robotd tells it to others.
func programName(client string) string { return "gateway: " + clip(client) }

// clip returns a client's name as a program's.
func clip(name string) string {
	name = strings.ToValidUTF8(name, "?")
	for len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "")
	}
	return name
}

// known returns err with a kind and a code for programs.
func known(err error) error {
	var own *errs.Error
	var refused *coreclient.Refused
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.As(err, &refused):
		kind := errs.Conflict
		switch refused.Code {
		case "invalid", "unable":
			kind = errs.Invalid
		case "full":
			kind = errs.Exhausted
		case "unavailable":
			kind = errs.Unavailable
		}
		return errs.Coded(kind, refused.Code, "%s", refused.Detail)
	case errors.Is(err, coreclient.ErrLost), errors.Is(err, coreclient.ErrNotConnected):
		return errs.Coded(errs.Unavailable, "core_lost", "%s", err)
	case errors.Is(err, robot.ErrNotFound):
		return errs.Coded(errs.NotFound, "not_found", "%s", err)
	case errors.Is(err, robot.ErrName), errors.Is(err, robot.ErrType), errors.Is(err, robot.ErrRange):
		return errs.Coded(errs.Invalid, "invalid", "%s", err)
	}
	return err
}

package gateway

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/core/coreclient"
	"kennel/edge/robot/claim"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
)

// Bounds of a lease.
const (
	minLease     = 100 * time.Millisecond
	defaultLease = 5 * time.Second
	maxLease     = time.Minute
	maxNames     = 64 // of a claim or a reading
	maxReason    = 100
)

// lease holds the claim of a client.
type lease struct {
	id     string
	bearer string // whose it is
	reason string
	parts  []string
	ttl    time.Duration
	peer   *peer

	newest atomic.Uint64 // number of the newest order

	mu    sync.Mutex
	held  *coreclient.Lease
	timer *time.Timer
}

// leases are those of all clients, by id.
type leases struct {
	mu  sync.Mutex
	all map[string]*lease
}

func errGone() error {
	return errs.Coded(errs.Conflict, "lease_gone", "the lease has ended: released, its time is over, or the real-time core was restarted; claim the parts again")
}

// get returns a lease of the caller's.
func (ls *leases) get(c caller, id string) (*lease, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[id]
	if l == nil || l.bearer != c.bearer {
		return nil, errGone()
	}
	return l, nil
}

// has reports whether a lease has not ended.
func (ls *leases) has(l *lease) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.all[l.id] == l
}

// remove takes a lease out; false if another was first.
func (ls *leases) remove(l *lease) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all[l.id] != l {
		return false
	}
	delete(ls.all, l.id)
	return true
}

// end ends all, and with them all that moves.
func (ls *leases) end() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		l.timer.Stop()
		l.peer.stop()
	}
	clear(ls.all)
}

func (g *Gateway) claim(ctx context.Context, c caller, req *robotpb.ClaimRequest) (*robotpb.Lease, error) {
	ttl := time.Duration(req.ForMs) * time.Millisecond
	if req.ForMs == 0 {
		ttl = defaultLease
	}
	switch {
	case len(req.Parts) == 0 || len(req.Parts) > maxNames:
		return nil, invalid("parts: %d names, want 1 to %d, such as robot.go or headPitch", len(req.Parts), maxNames)
	case ttl < minLease || ttl > maxLease:
		return nil, invalid("for_ms: %d, want %d to %d", req.ForMs, minLease.Milliseconds(), maxLease.Milliseconds())
	case len(req.Reason) > maxReason:
		return nil, invalid("reason: %d bytes, want at most %d", len(req.Reason), maxReason)
	}
	p, err := g.peers.take(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	held, err := p.Claim(ctx, ttl, claim.Program, req.Parts...)
	if err != nil {
		g.peers.put(p)
		return nil, err
	}
	l := &lease{id: rand.Text(), bearer: c.bearer, parts: req.Parts, ttl: ttl, peer: p, held: held}
	l.timer = time.AfterFunc(ttl, func() { g.drop(l) })
	g.leases.mu.Lock()
	g.leases.all[l.id] = l
	g.leases.mu.Unlock()
	return &robotpb.Lease{Id: l.id, ForMs: uint32(ttl.Milliseconds())}, nil
}

// drop ends a lease.
func (g *Gateway) drop(l *lease) {
	if !g.leases.remove(l) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	end(context.Background(), l.held)
	g.peers.put(l.peer)
}

func (g *Gateway) renew(ctx context.Context, c caller, req *robotpb.RenewRequest) (*robotpb.Lease, error) {
	l, err := g.leases.get(c, req.Lease)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.held.Renew(ctx, l.ttl); err != nil {
		go g.drop(l)
		return nil, gone(err)
	}
	l.timer.Reset(l.ttl)
	return &robotpb.Lease{Id: l.id, ForMs: uint32(l.ttl.Milliseconds())}, nil
}

func (g *Gateway) release(_ context.Context, c caller, req *robotpb.ReleaseRequest) (*robotpb.ReleaseResponse, error) {
	l, err := g.leases.get(c, req.Lease)
	if err != nil {
		return nil, err
	}
	g.drop(l)
	return &robotpb.ReleaseResponse{}, nil
}

// rest ends what moves under a lease if its newest order is the n-th, m, and keeps the lease unless another program is faster: the claim is given back
// and taken again.
func (g *Gateway) rest(l *lease, n uint64, m *coreclient.Motion) {
	if l.newest.Load() != n {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), coreclient.Patience)
	defer cancel()
	l.mu.Lock()
	if !g.leases.has(l) { // it was released meanwhile, and its connection may be another order's
		l.mu.Unlock()
		return
	}
	l.held.Release()
	_, _ = m.Wait(ctx) // who wanted to know has gone
	held, err := l.peer.Claim(ctx, l.ttl, claim.Program, l.parts...)
	if err == nil {
		l.held = held
	}
	l.mu.Unlock()
	if err != nil {
		g.drop(l)
	}
}

// gone returns err, or that the lease has ended if robotd says so.
func gone(err error) error {
	if code := errs.CodeOf(known(err)); code == "gone" || code == "core_lost" {
		return errGone()
	}
	return err
}

func invalid(format string, args ...any) error {
	return errs.Coded(errs.Invalid, "invalid", format, args...)
}

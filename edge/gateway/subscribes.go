package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kennel/edge/core"
	"kennel/infra/api/robotpb"
	"kennel/infra/kit/kitgrpc"
)

// Rates of a subscription, in messages a second.
const (
	defaultRate = 10
	maxRate     = 50
)

// flows are the subscriptions of all clients. Those who ask for the same names as often share one, whose messages are made and encoded once. The zero value
// has none. Safe for concurrent use.
type flows struct {
	mu  sync.Mutex
	all map[string]*flow // by rate and names
}

// flow is a subscription at robotd. It lasts while a client follows it.
type flow struct {
	followers []*follower   // flows.mu
	begun     chan struct{} // closed with the first moment
	stop      context.CancelFunc
}

// follower is a client of a flow.
type follower struct {
	newest chan *moment // one slot: a newer one replaces one that was not taken
	lost   chan error   // one slot: why the flow ended
}

// moment is an update as all followers see it. It is not changed.
type moment struct {
	core.Update
	after, seq uint64                           // numbers of the moment before, and of this one: what is between them was missed by all
	told       func() (*kitgrpc.Encoded, error) // the message for those who took the one before
}

// follow gives a client the moments of a flow until left is called; subscribe begins one if there is none. begun is closed with the flow's first moment, which
// clients that come later do not get.
func (x *flows) follow(key string, subscribe func(context.Context, func(core.Update) error) error) (f *follower, begun <-chan struct{}, left func()) {
	f = &follower{make(chan *moment, 1), make(chan error, 1)}
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.all[key]
	if w == nil {
		ctx, cancel := context.WithCancel(context.Background()) // ended by the last follower
		w = &flow{begun: make(chan struct{}), stop: cancel}
		if x.all == nil {
			x.all = map[string]*flow{}
		}
		x.all[key] = w
		go x.run(ctx, key, w, subscribe)
	}
	w.followers = append(w.followers, f)
	return f, w.begun, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		w.followers = slices.DeleteFunc(w.followers, func(o *follower) bool { return o == f })
		if len(w.followers) == 0 {
			x.end(key, w)
		}
	}
}

// end ends a flow; mu is held.
func (x *flows) end(key string, w *flow) {
	w.stop()
	if x.all[key] == w {
		delete(x.all, key)
	}
}

// run hands moments to the followers until the flow ends, and then tells those that are left why.
func (x *flows) run(ctx context.Context, key string, w *flow, subscribe func(context.Context, func(core.Update) error) error) {
	last := uint64(0)
	err := subscribe(ctx, func(u core.Update) error {
		m := &moment{Update: u, after: last, seq: last + 1 + u.Missed}
		m.told = sync.OnceValues(func() (*kitgrpc.Encoded, error) { return kitgrpc.Encode(readings(m.Update, true)) })
		last = m.seq
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, f := range w.followers {
			select {
			case <-f.newest:
			default:
			}
			f.newest <- m // its only writer holds mu
		}
		if m.after == 0 {
			close(w.begun)
		}
		return nil
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range w.followers {
		f.lost <- err
	}
	x.end(key, w)
}

// message returns m for a client that took before last; nil: for one that was told nothing yet.
func (m *moment) message(before *moment) (proto.Message, error) {
	u := core.Update{At: m.At, Values: slices.Clone(m.Values)}
	if before != nil && before.seq > 0 { // of the flow
		if before.seq == m.after {
			return m.told()
		}
		u.Missed = m.seq - before.seq - 1
	}
	for i := range u.Values {
		v := &u.Values[i]
		v.Changed = before == nil || !v.Same(&before.Values[i])
	}
	return readings(u, true), nil
}

func (g *Gateway) subscribe(ctx context.Context, c caller, req *robotpb.SubscribeRequest, tell func(proto.Message) error) error {
	rate := cmp.Or(req.RateHz, defaultRate)
	if err := checkNames(req.Names); err != nil {
		return err
	}
	if !(rate > 0 && rate <= maxRate) {
		return invalid("rate_hz: %v, want above 0 to %d", req.RateHz, maxRate)
	}
	f, begun, left := g.flows.follow(fmt.Sprint(rate, " ", strings.Join(req.Names, "\x00")), func(ctx context.Context, put func(core.Update) error) error {
		return g.core.Subscribe(ctx, rate, put, req.Names...)
	})
	defer left()
	before, err := g.first(ctx, f, begun, req.Names)
	if err != nil {
		return err
	}
	first, err := before.message(nil)
	if err == nil {
		err = tell(first)
	}
	if err != nil {
		return err
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		var m proto.Message
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-f.lost:
			return err
		case next := <-f.newest:
			if next.At <= before.At { // older than the first
				continue
			}
			if m, err = next.message(before); err != nil {
				return err
			}
			before = next
		case <-tick.C:
			if err := g.still(ctx, c, Look); err != nil {
				return err
			}
			m = &robotpb.Values{}
		}
		if err := tell(m); err != nil {
			return err
		}
	}
}

// first returns what a client is told first: the first moment of the flow, or what the slots read as now if the flow has told that to others.
func (g *Gateway) first(ctx context.Context, f *follower, begun <-chan struct{}, names []string) (*moment, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-f.lost:
		return nil, err
	case <-begun:
	}
	select {
	case m := <-f.newest:
		return m, nil
	default:
	}
	values, err := g.lookup.slots(ctx, g.core.Client, names)
	if err != nil {
		return nil, err
	}
	all, err := g.now.get(ctx)
	if err != nil {
		return nil, err
	}
	for i := range values {
		values[i].Take(all.Values, true)
	}
	return &moment{Update: core.Update{At: time.Duration(all.AtUS) * time.Microsecond, Values: values}}, nil
}

package coreserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/infra/api/live"
	"kennel/infra/logging"
)

// Bounds of subscriptions; own defaults. They bound the work beside the loop, which shares its processors.
const (
	maxSubscriptions = 32   // of a peer
	maxFlow          = 1e4  // slots a second of all peers: 200 at 50 Hz
	slowest          = 3600 // seconds between two updates
)

// subscription is a peer's. The board is read for it outside the loop, which publishes each step whether anyone reads or not.
type subscription struct {
	refs  []*robot.Ref
	every time.Duration
	next  time.Duration // when it is looked at again; s.mu

	seq  uint64       // of the newest update; feed's, as is last
	last []live.Value // of the newest update
}

// flow is how many slots a second are read for it.
func (x *subscription) flow() float64 { return float64(len(x.refs)) / x.every.Seconds() }

// subscribe begins a subscription, in place of the one of the same request.
func (s *Server) subscribe(p corelink.Peer, m *corelink.Subscribe) error {
	x := &subscription{every: millis(m.EveryMS), next: monoclock.Now()}
	if m.EveryMS < corelink.MinEveryMS || x.every > slowest*time.Second || len(m.Slots) == 0 {
		return fmt.Errorf("%d slots every %v, want at least one, every %d ms to %d s", len(m.Slots), x.every, corelink.MinEveryMS, slowest)
	}
	for _, id := range m.Slots {
		i := slices.IndexFunc(s.refs, func(r *robot.Ref) bool { return r.ID == id })
		if i < 0 {
			return fmt.Errorf("slot %d is not in the tree", id)
		}
		x.refs = append(x.refs, s.refs[i])
	}
	key := due{owner(p), m.Request}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, key)
	own, flow := 0, x.flow()
	for k, other := range s.subs {
		if flow += other.flow(); k.owner == key.owner {
			own++
		}
	}
	if own == maxSubscriptions || flow > maxFlow {
		return fmt.Errorf("%d subscriptions, and %.0f slots a second for all programs: want at most %d and %.0f", own+1, flow, maxSubscriptions, maxFlow)
	}
	s.subs[key] = x
	select {
	case s.fed <- struct{}{}:
	default: // it looks soon
	}
	return nil
}

func (s *Server) unsubscribe(p corelink.Peer, request uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, due{owner(p), request})
}

// feed sends updates until ctx ends. It sleeps while there is no subscription.
func (s *Server) feed(ctx context.Context) {
	var timer <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.fed:
		case <-timer:
		}
		if timer = nil; s.update(ctx) {
			timer = time.After(s.untilNext())
		}
	}
}

// untilNext is how long no subscription is due.
func (s *Server) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	soonest := slowest * time.Second
	for _, x := range s.subs {
		soonest = min(soonest, x.next-monoclock.Now())
	}
	return soonest
}

// update looks at each subscription that is due and sends what changed. It reports whether there is any subscription.
func (s *Server) update(ctx context.Context) bool {
	ready := map[due]*subscription{}
	s.mu.Lock()
	now, all := monoclock.Now(), len(s.subs)
	for k, x := range s.subs {
		if x.next > now {
			continue
		}
		x.next = (now/x.every + 2) * x.every // subscriptions that are as fast, or twice as fast, are due at the same moments: one wake serves them
		if x.seq > 0 {
			x.next -= x.every
		}
		ready[k] = x
	}
	s.mu.Unlock()
	for k, x := range ready {
		at, values := s.values(x.refs)
		if x.seq > 0 && slices.EqualFunc(values, x.last, live.Value.Same) {
			continue
		}
		x.seq, x.last = x.seq+1, values
		if err := s.cfg.Link.Update(peerOf(k.owner), &corelink.Update{Request: k.request, Seq: x.seq, AtUS: at, Values: values}); err != nil {
			s.cfg.Log.ErrorContext(ctx, "update not sent", logging.Err, err) // a bug of ours: values are made to fit
		}
	}
	return all > 0
}

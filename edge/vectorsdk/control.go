package vectorsdk

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"kennel/edge/gateway"
	"kennel/edge/robot/claim"
	"kennel/infra/api/vectorpb"
)

// control says which connection may move the robot through this interface: one at a time (VEC-CTL-11). What it holds it has claimed from robotd, so that
// programs of the gateway, persons and the robot's reflexes are told apart there.
type control struct {
	f *Facade

	mu      sync.Mutex // held while robotd answers; it gives each answer within a frame, or is lost
	holder  *seat
	waiting []*seat // oldest first

	granted atomic.Pointer[seat] // holder, for calls that must not wait
}

// seat is a control stream.
type seat struct {
	client
	tell chan *vectorpb.BehaviorControlResponse // has room: between two answers that are sent, at most three arise

	priority vectorpb.ControlRequest_Priority // of the request that is granted or waits
	hold     atomic.Pointer[hold]             // nil: not granted
}

// claimPriority returns the rank of a priority at robotd. RESERVE is above what the character does on its own account and below all programs (part of VEC-CTL-10);
// OVERRIDE is above other programs (part of VEC-CTL-08). A person who drives by hand, and the reflexes, are above all of them.
func claimPriority(p vectorpb.ControlRequest_Priority) claim.Priority {
	switch p {
	case vectorpb.ControlRequest_OVERRIDE_BEHAVIORS:
		return claim.Program + 5
	case vectorpb.ControlRequest_RESERVE_CONTROL:
		return claim.Animation + 5
	}
	return claim.Program
}

// answers of a control stream.
func granted() *vectorpb.BehaviorControlResponse {
	return &vectorpb.BehaviorControlResponse{ResponseType: &vectorpb.BehaviorControlResponse_ControlGrantedResponse{ControlGrantedResponse: &vectorpb.ControlGrantedResponse{}}}
}

func lost(p vectorpb.ControlRequest_Priority) *vectorpb.BehaviorControlResponse {
	if p == vectorpb.ControlRequest_RESERVE_CONTROL {
		return &vectorpb.BehaviorControlResponse{ResponseType: &vectorpb.BehaviorControlResponse_ReservedControlLostEvent{ReservedControlLostEvent: &vectorpb.ReservedControlLostResponse{}}}
	}
	return &vectorpb.BehaviorControlResponse{ResponseType: &vectorpb.BehaviorControlResponse_ControlLostEvent{ControlLostEvent: &vectorpb.ControlLostResponse{}}}
}

func alive() *vectorpb.BehaviorControlResponse {
	return &vectorpb.BehaviorControlResponse{ResponseType: &vectorpb.BehaviorControlResponse_KeepAlive{KeepAlive: &vectorpb.KeepAlivePing{}}}
}

// behaviorControl serves BehaviorControl and AssumeBehaviorControl until the client ends the stream, which gives control back (VEC-CTL-02).
func (f *Facade) behaviorControl(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error {
	s := &seat{client: c, tell: make(chan *vectorpb.BehaviorControlResponse, maxRequests)}
	defer f.control.leave(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests, failed := make(chan *vectorpb.BehaviorControlRequest), make(chan error, 1)
	go func() {
		for {
			q, err := receive()
			if err != nil {
				failed <- err
				return
			}
			select {
			case requests <- q.(*vectorpb.BehaviorControlRequest):
			case <-ctx.Done():
				return
			}
		}
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		var answer *vectorpb.BehaviorControlResponse
		select {
		case answer = <-s.tell: // before the next request, so that there is always room
			if err := send(answer); err != nil {
				return err
			}
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			if !errors.Is(err, io.EOF) {
				return err
			}
			failed = nil // the client asks for nothing any longer, and keeps the stream
			continue
		case q := <-requests:
			if err := f.control.take(ctx, s, q); err != nil {
				return err
			}
			continue
		case answer = <-s.tell:
		case <-tick.C:
			if err := f.cfg.Gateway.Still(ctx, c.Caller, gateway.Move); err != nil {
				return err
			}
			f.control.beat(ctx, s)
			answer = alive()
		}
		if err := send(answer); err != nil {
			return err
		}
	}
}

// take does a request of a stream: exactly one of a release and a request of control (VEC-CTL-03).
func (x *control) take(ctx context.Context, s *seat, q *vectorpb.BehaviorControlRequest) error {
	switch kind := q.GetRequestType().(type) {
	case *vectorpb.BehaviorControlRequest_ControlRelease:
		x.release(ctx, s)
		return nil
	case *vectorpb.BehaviorControlRequest_ControlRequest:
		p := kind.ControlRequest.GetPriority()
		switch p {
		case vectorpb.ControlRequest_UNKNOWN: // VEC-CTL-01
			p = vectorpb.ControlRequest_DEFAULT
		case vectorpb.ControlRequest_OVERRIDE_BEHAVIORS, vectorpb.ControlRequest_DEFAULT, vectorpb.ControlRequest_RESERVE_CONTROL:
		default:
			return errInvalid("priority: %d, want 10, 20 or 30", int32(p))
		}
		return x.request(ctx, s, p)
	}
	return errInvalid("BehaviorControlRequest: want control_request or control_release")
}

// request grants control to s, or lets it wait until a holder of a higher priority, or another program that has the robot's motors, has ended. The newest
// of two with the same priority wins (VEC-CTL-11).
func (x *control) request(ctx context.Context, s *seat, p vectorpb.ControlRequest_Priority) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(s)
	if x.holder == s {
		before := s.priority
		s.priority = p
		if p <= before { // a higher priority, or the same: what the client has begun continues
			if h := s.hold.Load(); h.raise(ctx, claimPriority(p)) == nil {
				s.tell <- granted()
				return nil
			}
		}
		x.end(s) // a lower one cancels it (VEC-CTL-12)
	}
	s.priority = p
	if x.holder != nil && x.holder.priority < p {
		x.waiting = append(x.waiting, s)
		return nil
	}
	if before := x.holder; before != nil {
		x.end(before)
		before.tell <- lost(before.priority)
	}
	if !x.grant(ctx, s) {
		x.waiting = append(x.waiting, s)
	}
	return nil
}

// grant claims the motors for s and tells it. While another program has them, all places at robotd are taken or robotd is not there, it is false.
func (x *control) grant(ctx context.Context, s *seat) bool {
	h, err := x.f.newHold(ctx, s.client, claimPriority(s.priority))
	if err != nil {
		return false
	}
	s.hold.Store(h)
	x.holder = s
	x.granted.Store(s)
	s.tell <- granted()
	return true
}

// end takes control from the holder: its actions end interrupted (part of VEC-CTL-06).
func (x *control) end(s *seat) {
	x.holder = nil
	x.granted.Store(nil)
	if h := s.hold.Swap(nil); h != nil {
		h.end()
	}
}

func (x *control) forget(s *seat) {
	x.waiting = slices.DeleteFunc(x.waiting, func(w *seat) bool { return w == s })
}

// next grants control to the waiting stream with the highest priority, of several to the oldest. Those that it cannot be granted to wait on.
func (x *control) next(ctx context.Context) {
	if len(x.waiting) == 0 || x.holder != nil {
		return
	}
	first := slices.MinFunc(x.waiting, func(a, b *seat) int { return int(a.priority - b.priority) })
	if x.grant(ctx, first) {
		x.forget(first)
	}
}

// release gives control back and tells s so, as the original does.
func (x *control) release(ctx context.Context, s *seat) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(s)
	if x.holder == s {
		x.end(s)
	}
	s.tell <- lost(s.priority)
	x.next(ctx)
}

// leave is release for a stream that has ended.
func (x *control) leave(s *seat) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(s)
	if x.holder == s {
		x.end(s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), beat)
	defer cancel()
	x.next(ctx)
}

// beat renews the claims of a holder, tells it when another has taken the robot, and looks whether a waiting stream can be granted control.
func (x *control) beat(ctx context.Context, s *seat) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.holder == s && !s.hold.Load().renew(ctx) {
		x.end(s)
		s.tell <- lost(s.priority)
	}
	x.next(ctx)
}

// reacted ends the control of a program with DEFAULT priority that drove the robot to a cliff: the robot's reaction to it, which stops the wheels, ranks above
// (part of VEC-CTL-06, part of VEC-CTL-09). A program that was not driving keeps control, and so does OVERRIDE (part of VEC-CTL-08).
func (x *control) reacted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.holder
	if s == nil || s.priority != vectorpb.ControlRequest_DEFAULT || !s.hold.Load().driving() {
		return
	}
	x.end(s)
	s.tell <- lost(s.priority)
}

// held reports whether a connection has control.
func (x *control) held() bool { return x.granted.Load() != nil }

// of returns what the connection of a call holds; nil without control. RESERVE keeps the robot still, and moves nothing.
func (x *control) of(c client) *hold {
	s := x.granted.Load()
	if s == nil || s.key != c.key {
		return nil
	}
	if h := s.hold.Load(); h != nil && !h.reserves() {
		return h
	}
	return nil
}

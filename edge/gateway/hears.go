package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/infra/api/robotpb"
)

const (
	maxUnheard = 64  // messages that wait for one reader
	keptEvents = 256 // for readers that come back
)

// readers are those who listen to messages of one kind. A reader that is slow misses some, which it sees by a gap in their numbers.
type readers[T any] struct {
	all []chan T // closed when robotd is lost
}

func (r *readers[T]) give(m T) {
	for _, c := range r.all {
		select {
		case c <- m:
		default:
		}
	}
}

func (r *readers[T]) add() chan T {
	c := make(chan T, maxUnheard)
	r.all = append(r.all, c)
	return c
}

func (r *readers[T]) remove(c chan T) {
	r.all = slices.DeleteFunc(r.all, func(x chan T) bool { return x == c })
}

// hub passes the events of robotd to those who listen.
type hub struct {
	mu   sync.Mutex
	to   readers[*corelink.Event]
	kept []*corelink.Event // the newest, oldest first
}

func (h *hub) hear(m corelink.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m := m.(type) {
	case *corelink.Event:
		if m.Replayed || m.Quiet {
			return
		}
		if n := len(h.kept); n > 0 && m.Seq <= h.kept[n-1].Seq { // robotd began again
			h.kept = nil
		}
		if len(h.kept) == keptEvents {
			h.kept = slices.Delete(h.kept, 0, 1)
		}
		h.kept = append(h.kept, m)
		h.to.give(m)
	case *corelink.Bye:
		for _, c := range h.to.all {
			close(c)
		}
		h.to.all = nil
	}
}

// add returns what happens from now on, and remove, which ends that.
func (h *hub) add() (events chan *corelink.Event, remove func()) {
	events, _, remove = h.since(nil)
	return events, remove
}

// since is add with what happened after the event of a number, as far as it is kept.
func (h *hub) since(cursor *uint64) (events chan *corelink.Event, before []*corelink.Event, remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.kept); cursor != nil && n > 0 {
		before = slices.Clone(h.kept)
		if *cursor <= h.kept[n-1].Seq {
			before = slices.DeleteFunc(before, func(e *corelink.Event) bool { return e.Seq <= *cursor })
		}
	}
	c := h.to.add()
	return c, before, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.to.remove(c)
	}
}

func (g *Gateway) follows(ctx context.Context, c caller, req *robotpb.EventsRequest, tell func(*robotpb.Event) error) error {
	if len(req.Names) > maxNames {
		return invalid("names: %d, want at most %d", len(req.Names), maxNames)
	}
	if !g.Connected() {
		return coreclient.ErrNotConnected
	}
	events, before, remove := g.events.since(req.Since)
	defer remove()
	report := func(e *corelink.Event) error {
		if len(req.Names) > 0 && !slices.ContainsFunc(req.Names, func(p string) bool { return strings.HasPrefix(e.Name, p) }) {
			return nil
		}
		return tell(&robotpb.Event{Seq: e.Seq, AtUs: e.AtUS, Name: e.Name, Warning: e.Warning, Numbers: e.Numbers, Texts: e.Texts})
	}
	for _, e := range before {
		if err := report(e); err != nil {
			return err
		}
	}
	return follow(ctx, g, c, events, report, func() error { return tell(&robotpb.Event{}) })
}

// follow gives report each message, and says each second that the robot is there, until the client, its token or robotd is gone.
func follow[T any](ctx context.Context, g *Gateway, c caller, messages <-chan T, report func(T) error, alive func() error) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, ok := <-messages:
			if !ok {
				return coreclient.ErrLost
			}
			err = report(m)
		case <-tick.C:
			if err = g.still(ctx, c, Look); err == nil {
				err = alive()
			}
		}
		if err != nil {
			return err
		}
	}
}

// orders passes the orders of all programs to those who listen.
type orders struct {
	mu        sync.Mutex
	to        readers[*robotpb.OrderReport]
	seq, last uint64 // numbers of messages and of orders
}

func (x *orders) began(client string, o core.Order, m *coreclient.Motion) {
	x.mu.Lock()
	x.last++
	n := x.last
	x.give(&robotpb.OrderReport{Order: n, Program: clip(client), ForMs: o.ForMS}, o)
	x.mu.Unlock()
	m.Then(func() {
		end, err := m.Wait(context.Background()) // it has ended
		if err != nil {
			end = corelink.Ended{Outcome: "stopped", Reasons: []string{err.Error()}}
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.give(&robotpb.OrderReport{Order: n, Program: clip(client),
			Ended: &robotpb.Ended{Outcome: end.Outcome, Reasons: end.Reasons, Words: end.Words(), Moved: end.Moved, Of: end.Of, Unit: end.Unit, Note: m.Note}}, core.Order{})
	})
}

// give numbers m and passes it on; mu is held. Steps are described only if someone listens.
func (x *orders) give(m *robotpb.OrderReport, o core.Order) {
	x.seq++
	if len(x.to.all) == 0 {
		return
	}
	m.Seq, m.AtUs, m.Steps = x.seq, monoclock.Now().Microseconds(), steps(o)
	x.to.give(m)
}

func (g *Gateway) followOrders(ctx context.Context, c caller, _ *robotpb.OrdersRequest, tell func(*robotpb.OrderReport) error) error {
	g.orders.mu.Lock()
	reports := g.orders.to.add()
	g.orders.mu.Unlock()
	defer func() {
		g.orders.mu.Lock()
		defer g.orders.mu.Unlock()
		g.orders.to.remove(reports)
	}()
	return follow(ctx, g, c, reports, tell, func() error { return tell(&robotpb.OrderReport{}) })
}

// steps returns an order as a program sends it.
func steps(o core.Order) (out []*robotpb.Step) {
	for _, lines := range o.Steps {
		step := &robotpb.Step{}
		for _, l := range lines {
			s := &robotpb.Statement{Name: l.Name}
			switch l.Verb {
			case robot.Put:
				s.What = &robotpb.Statement_Set{Set: wire(l.Value)}
			case robot.Call:
				s.What = &robotpb.Statement_Call{Call: list(l.Args)}
			default: // what is only read moves nothing
				continue
			}
			switch {
			case l.Speed > 0:
				s.Manner = &robotpb.Statement_Speed{Speed: l.Speed}
			case l.Time > 0:
				s.Manner = &robotpb.Statement_TimeS{TimeS: l.Time.Seconds()}
			case l.Adaptive > 0:
				s.Manner = &robotpb.Statement_AdaptiveS{AdaptiveS: l.Adaptive.Seconds()}
			}
			step.Statements = append(step.Statements, s)
		}
		out = append(out, step)
	}
	return out
}

// wire returns a value as a program sends it; what another program has is its name there.
func wire(v robot.Value) *robotpb.Value {
	switch v.Type {
	case robot.Float, robot.Int, robot.Bool:
		return &robotpb.Value{Kind: &robotpb.Value_Number{Number: v.Number}}
	case robot.List:
		return &robotpb.Value{Kind: &robotpb.Value_List{List: list(v.Items)}}
	case robot.Bytes:
		return &robotpb.Value{Kind: &robotpb.Value_Text{Text: v.Handle}}
	}
	return &robotpb.Value{Kind: &robotpb.Value_Text{Text: v.Text}}
}

func list(values []robot.Value) *robotpb.List {
	l := &robotpb.List{}
	for _, v := range values {
		l.Items = append(l.Items, wire(v))
	}
	return l
}

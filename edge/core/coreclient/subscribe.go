package coreclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/infra/api/live"
)

// minRate is the lowest rate of a subscription, in updates a second.
const minRate = 0.001

// pollEvery is how often a robotd that takes no subscriptions is asked at most: each look is one of the messages that it reads of this program.
const pollEvery = 50 * time.Millisecond

// subscription passes updates from Handle to Subscribe: the newest replaces one that was not taken.
type subscription struct {
	newest chan *corelink.Update // one slot
	lost   chan struct{}         // closed when robotd is lost
}

// put leaves m for Subscribe. One goroutine at a time puts.
func (x *subscription) put(m *corelink.Update) {
	select {
	case <-x.newest:
	default:
	}
	x.newest <- m
}

// flow is a subscription at robotd. All who ask for the same slots as often share it, so that what robotd does for them does not grow with their number.
type flow struct {
	key     string
	request uint32                     // of corelink.Subscribe; Client.mu, as is takers
	takers  map[*subscription]struct{} // none: it ends
	begun   chan struct{}              // closed when robotd has answered
	err     error                      // of the answer; read after begun
}

// Subscribe calls tell with what the named slots read as: first at once, then each time that one of them changed, at most rate times a second, up to 50
// (GOSTAI-OPEN-02). A name names a slot or, for all its slots, a device, a group or a component. The values of an update are of one moment. While tell
// works, or the program is slow, newer updates replace older ones and are counted (core.Update.Missed). Subscribe ends with ctx, with an error of tell,
// or when robotd is lost.
func (c *Client) Subscribe(ctx context.Context, rate float64, tell func(core.Update) error, names ...string) error {
	if !(rate >= minRate) {
		return fmt.Errorf("%v updates a second, want at least %v", rate, minRate)
	}
	values, err := c.Slots(ctx, names...)
	if err != nil {
		return err
	}
	every := time.Duration(float64(time.Second) / rate)
	if b, ids := c.boardOf(ctx, values); b != nil {
		return c.follow(ctx, b, ids, values, max(every, corelink.MinEveryMS*time.Millisecond), tell)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x := &subscription{make(chan *corelink.Update, 1), make(chan struct{})}
	failed := make(chan error, 1)
	var first *corelink.Update // of a flow whose own went to others
	if c.takes(&corelink.Subscribe{}) {
		f, others := c.join(ctx, x, values, max(corelink.MinEveryMS, uint32(every.Milliseconds())))
		defer c.leave(f, x)
		if first, err = c.awaitFlow(ctx, f, others); err != nil {
			return err
		}
	} else {
		go func() { failed <- c.poll(ctx, max(every, pollEvery), x) }()
	}
	var last corelink.Update
	take := func(m *corelink.Update) error {
		u := core.Update{At: time.Duration(m.AtUS) * time.Microsecond, Values: slices.Clone(values)}
		if last.Seq > 0 || first == nil {
			u.Missed = m.Seq - last.Seq - 1
		}
		for i := range u.Values {
			u.Values[i].Take(m.Values, last.AtUS == 0)
		}
		values, last = u.Values, *m
		return tell(u)
	}
	if first != nil {
		if err := take(first); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-x.lost:
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.errLost()
		case err := <-failed:
			return err
		case m := <-x.newest:
			if m.AtUS < last.AtUS { // older than first
				continue
			}
			if err := take(m); err != nil {
				return err
			}
		}
	}
}

// join adds x to the flow of these slots, with or without others; it begins one if there is none.
func (c *Client) join(ctx context.Context, x *subscription, values []core.Value, everyMS uint32) (f *flow, others bool) {
	ids := make([]int, len(values))
	for i, v := range values {
		ids[i] = v.Slot.ID
	}
	key := fmt.Sprint(everyMS, ids)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, others = c.flows[key]; !others {
		f = &flow{key: key, takers: map[*subscription]struct{}{}, begun: make(chan struct{})}
		c.flows[key] = f
		go func() { // it is not this caller's alone
			_, f.err = c.request(context.WithoutCancel(ctx), func(n uint32) { f.request, c.subs[n] = n, f }, func(n uint32) corelink.Message {
				return &corelink.Subscribe{Request: n, Slots: ids, EveryMS: everyMS}
			})
			close(f.begun)
			c.leave(f, nil)
		}()
	}
	f.takers[x] = struct{}{}
	return f, others
}

// awaitFlow waits until f has begun, and returns what its slots read as if its first update went to others.
func (c *Client) awaitFlow(ctx context.Context, f *flow, others bool) (*corelink.Update, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.begun:
	}
	if f.err != nil || !others {
		return nil, f.err
	}
	now, err := c.Values(ctx)
	if err != nil {
		return nil, err
	}
	return &corelink.Update{AtUS: now.AtUS, Values: now.Values}, nil
}

// leave takes x out of f, which ends if it has begun and nothing takes it, or if it failed.
func (c *Client) leave(f *flow, x *subscription) {
	c.mu.Lock()
	delete(f.takers, x)
	select {
	case <-f.begun:
	default: // its own goroutine looks then
		c.mu.Unlock()
		return
	}
	ends := len(f.takers) == 0 || f.err != nil
	if ends && c.flows[f.key] == f {
		delete(c.flows, f.key)
	}
	ends = ends && c.subs[f.request] == f
	if ends {
		delete(c.subs, f.request)
	}
	c.mu.Unlock()
	if ends {
		_ = c.core.Send(&corelink.Unsubscribe{Request: f.request}) // a robotd that is gone sends nothing
	}
}

// poll makes updates of a robotd that takes no subscriptions, until ctx ends.
func (c *Client) poll(ctx context.Context, every time.Duration, x *subscription) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last []live.Value
	for seq := uint64(0); ; {
		v, err := c.Values(ctx)
		if err != nil {
			return err
		}
		if seq == 0 || !slices.EqualFunc(v.Values, last, live.Value.Same) {
			seq, last = seq+1, v.Values
			x.put(&corelink.Update{Seq: seq, AtUS: v.AtUS, Values: v.Values})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Read returns what the named slots read as now; the names are those of Subscribe.
func (c *Client) Read(ctx context.Context, names ...string) ([]core.Value, error) {
	values, err := c.Slots(ctx, names...)
	if err != nil {
		return nil, err
	}
	now, err := c.Values(ctx)
	if err != nil {
		return nil, err
	}
	for i := range values {
		values[i].Take(now.Values, true)
	}
	return values, nil
}

// Slots returns the slots that names mean, full, compact or an alias, without a value; of a full name "robot." may be left out (GOSTAI-TREE-02).
func (c *Client) Slots(ctx context.Context, names ...string) (out []core.Value, err error) {
	t, err := c.Tree(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		before := len(out)
		for _, n := range t.Nodes {
			for _, s := range n.Slots {
				if slices.ContainsFunc(slices.Concat(n.Aliases, []string{n.Full, n.Compact, strings.TrimPrefix(n.Full, "robot.")}), func(own string) bool {
					rest, ok := strings.CutPrefix(own+"."+s.Name, name)
					return own != "" && ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
				}) {
					out = append(out, core.Value{Device: n.Full, Slot: s})
				}
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("%w: %.80s", robot.ErrNotFound, name)
		}
	}
	return out, nil
}

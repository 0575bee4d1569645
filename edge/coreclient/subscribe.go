package coreclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/edge/core"
	"kennel/edge/corelink"
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x := &subscription{make(chan *corelink.Update, 1), make(chan struct{})}
	failed := make(chan error, 1)
	if c.takes(&corelink.Subscribe{}) {
		ids := make([]int, len(values))
		for i, v := range values {
			ids[i] = v.Slot.ID
		}
		var request uint32
		_, err := c.request(ctx, func(n uint32) { request, c.subs[n] = n, x }, func(n uint32) corelink.Message {
			return &corelink.Subscribe{Request: n, Slots: ids, EveryMS: max(corelink.MinEveryMS, uint32(every.Milliseconds()))}
		})
		defer func() {
			c.mu.Lock()
			delete(c.subs, request)
			c.mu.Unlock()
			_ = c.core.Send(&corelink.Unsubscribe{Request: request}) // a robotd that is gone sends nothing
		}()
		if err != nil {
			return err
		}
	} else {
		go func() { failed <- c.poll(ctx, max(every, pollEvery), x) }()
	}
	for seq := uint64(0); ; {
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
			u := core.Update{At: time.Duration(m.AtUS) * time.Microsecond, Missed: m.Seq - seq - 1, Values: slices.Clone(values)}
			for i := range u.Values {
				u.Values[i].Take(m.Values, seq == 0)
			}
			values, seq = u.Values, m.Seq
			if err := tell(u); err != nil {
				return err
			}
		}
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

package coreclient

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core"
	"kennel/edge/core/corelink"
	"kennel/edge/core/sharedmem"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
	"kennel/infra/api/live"
)

// board is the shared memory in which robotd shows all numbers. Programs read it at no cost to robotd.
type board struct {
	*state.Shared
	memory *sharedmem.Memory // holds the board
	lost   chan struct{}     // closed when robotd is lost
}

// Place returns the robot's pose at the loop's last step; false if this robotd does not share it.
func (c *Client) Place(ctx context.Context) (p robot.Place, ok bool) {
	b := c.shared(ctx)
	if b == nil {
		return p, false
	}
	p = b.Read(nil, nil)
	runtime.KeepAlive(b.memory)
	return p, p.At > 0
}

// shared returns robotd's board; nil: it shares none.
func (c *Client) shared(ctx context.Context) *board {
	if !c.takes(&corelink.GetBoard{}) {
		return nil
	}
	c.mu.Lock()
	b, none := c.board, c.boardless
	c.mu.Unlock()
	if b != nil || none {
		return b
	}
	_, err := ask[*corelink.Board](ctx, c, nil, func(n uint32) corelink.Message { return &corelink.GetBoard{Request: n} })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boardless = c.board == nil && (err == nil || errors.Is(err, errOther)) // a robotd that was lost has not said so
	return c.board
}

// boardOf returns the board and the IDs of those slots on it, or nil if it lacks one of them.
func (c *Client) boardOf(ctx context.Context, values []core.Value) (*board, []int) {
	b := c.shared(ctx)
	if b == nil {
		return nil, nil
	}
	ids := make([]int, len(values))
	for i := range values {
		ids[i] = values[i].Slot.ID
	}
	if !b.Has(ids) {
		return nil, nil
	}
	return b, ids
}

// keepBoard keeps the board that came with m; mu is held.
func (c *Client) keepBoard(m *corelink.Board) {
	if c.board != nil {
		_ = m.File.Close() // the board is mapped already
		return
	}
	memory, err := sharedmem.Map(m.File, state.MaxShared)
	if err != nil {
		return // robotd sends the values then
	}
	if shared, err := state.ReadShared(memory.Bytes); err == nil { // robotd sends the values then
		c.board = &board{shared, memory, make(chan struct{})}
	}
}

// follow implements Subscribe. It looks at multiples of every, so that subscribers whose intervals divide each other look at the same moment: the processor wakes once for all.
func (c *Client) follow(ctx context.Context, b *board, ids []int, values []core.Value, every time.Duration, tell func(core.Update) error) error {
	defer runtime.KeepAlive(b.memory)
	now, before := make([]state.Sample, len(ids)), make([]state.Sample, len(ids))
	wait := time.NewTimer(0)
	defer wait.Stop()
	missed, due := uint64(0), time.Duration(0)
	for first := true; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.lost:
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.errLost()
		case <-wait.C:
		}
		at := monoclock.Now()
		place := b.Read(ids, now)
		if first || !slices.EqualFunc(now, before, sameNumber) {
			u := core.Update{At: at, Missed: missed, Values: slices.Clone(values)}
			if place.At > 0 {
				u.Place = &place
			}
			for i, v := range valuesOf(ids, now, at) {
				u.Values[i].Value, u.Values[i].Changed = v, first || !sameNumber(now[i], before[i])
			}
			if err := tell(u); err != nil {
				return err
			}
		}
		if due = (at/every + 1) * every; first {
			due += every
		}
		first, missed = false, 0
		if late := monoclock.Now() - due; late > 0 {
			missed = uint64(late / every)
		}
		now, before = before, now
		wait.Reset(due - monoclock.Now())
	}
}

func sameNumber(a, b state.Sample) bool {
	return a.Value == b.Value || math.IsNaN(a.Value) && math.IsNaN(b.Value)
}

// valuesOf returns what the slots read as at a moment; nil for those that are not known.
func valuesOf(ids []int, samples []state.Sample, at time.Duration) []*live.Value {
	out, all := make([]*live.Value, len(ids)), make([]live.Value, len(ids))
	numbers := make([]float64, len(ids))
	for i, s := range samples {
		if math.IsNaN(s.Value) {
			continue
		}
		v := &all[i]
		v.Slot, v.AgeMS = ids[i], -1
		if s.Known() {
			v.AgeMS = max(s.Age(at), 0).Milliseconds()
		}
		switch {
		case math.IsInf(s.Value, 1):
			v.Infinite = 1
		case math.IsInf(s.Value, -1):
			v.Infinite = -1
		default:
			numbers[i] = s.Value
			v.Number = &numbers[i]
		}
		out[i] = v
	}
	return out
}

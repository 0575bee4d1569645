package registry

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"kennel/cloud/fleet/registry/filter"
)

const (
	// countsAge is how old counts may be that are given out again; countsShare keeps dear ones longer, so that counting one selection takes
	// at most one part in countsShare of a processor however many people look at it.
	countsAge   = time.Second
	countsShare = 10
	maxCounts   = 128 // selections kept
)

// counter counts selections, each once for all who ask at about the same time.
type counter struct {
	mu   sync.Mutex
	kept map[string]*counted
}

type counted struct {
	done  chan struct{} // closed when n and err are there
	n     Counts
	err   error
	until time.Time // asked again after that
}

// Counts returns a selection in numbers, by value of each facet. They may be a second old, or ten times as long as counting takes.
func (s *Service) Counts(ctx context.Context, f filter.Filter) (Counts, error) {
	f, err := f.Resolve(ctx, s.src.Filter)
	if err != nil {
		return Counts{}, err
	}
	key, same := signature(f)
	if !same {
		return s.table.Counts(ctx, f)
	}
	return s.counter.get(ctx, key, func(ctx context.Context) (Counts, error) { return s.table.Counts(ctx, f) })
}

// signature tells selections apart; same is false for one that depends on what others know of persons.
func signature(f filter.Filter) (key string, same bool) {
	var b strings.Builder
	for _, t := range f.Terms {
		if len(t.Things) > 0 {
			return "", false
		}
		b.WriteString(t.String() + " ")
		for _, sub := range t.Subs {
			k, same := signature(sub)
			if !same {
				return "", false
			}
			fmt.Fprintf(&b, "(%s) ", k)
		}
	}
	return b.String(), true
}

func (c *counter) get(ctx context.Context, key string, count func(context.Context) (Counts, error)) (Counts, error) {
	for {
		now := time.Now()
		c.mu.Lock()
		e := c.kept[key]
		if e == nil || !e.until.IsZero() && now.After(e.until) {
			e = &counted{done: make(chan struct{})}
			if len(c.kept) >= maxCounts {
				maps.DeleteFunc(c.kept, func(_ string, e *counted) bool { return !e.until.IsZero() && now.After(e.until) })
			}
			mine := len(c.kept) < maxCounts // else it is not shared
			if mine {
				c.kept[key] = e
			}
			c.mu.Unlock()
			n, err := count(ctx)
			c.mu.Lock()
			e.n, e.err = n, err
			e.until = time.Now().Add(max(countsAge, countsShare*time.Since(now)))
			if err != nil && mine {
				delete(c.kept, key)
			}
			c.mu.Unlock()
			close(e.done)
			return n, err
		}
		c.mu.Unlock()
		select {
		case <-e.done:
		case <-ctx.Done():
			return Counts{}, ctx.Err()
		}
		if e.err == nil {
			return e.n, nil
		}
		// The counting caller gave up, perhaps because its request ended: count here.
		if err := ctx.Err(); err != nil {
			return Counts{}, err
		}
	}
}

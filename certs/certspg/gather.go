package certspg

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Our own limits of gathered queries.
const (
	gatherMax     = 128              // requests of one query
	gatherRunning = 2                // queries at once: one waits for the disk while the next fills
	gatherTimeout = 10 * time.Second // of one query, which belongs to no single request
)

// gather joins requests that arrive while earlier queries run into one query. A request that arrives alone runs at once. gather has no
// goroutine of its own: the request whose turn it is runs the query for all that wait. Safe for concurrent use.
type gather[Q, A any] struct {
	run   func(ctx context.Context, all []Q) ([]A, error) // one answer for each, in order
	turns chan struct{}                                   // holds one for each query that runs

	mu      sync.Mutex
	waiting []*call[Q, A]
}

type call[Q, A any] struct {
	q    Q
	done chan struct{} // closed: a and err are set
	a    A
	err  error
}

func newGather[Q, A any](run func(ctx context.Context, all []Q) ([]A, error)) *gather[Q, A] {
	return &gather[Q, A]{run: run, turns: make(chan struct{}, gatherRunning)}
}

var errGatherPanicked = errors.New("the query panicked")

// do returns the answer for q. After a context that ended first, q may have been done all the same.
func (g *gather[Q, A]) do(ctx context.Context, q Q) (A, error) {
	c := &call[Q, A]{q: q, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	turns := g.turns
	for {
		select {
		case <-c.done:
			return c.a, c.err
		case turns <- struct{}{}:
			if g.lead(ctx); !g.queued(c) { // it was in that query, or is in another
				turns = nil
			}
		case <-ctx.Done():
			g.drop(c)
			var none A
			return none, ctx.Err()
		}
	}
}

func (g *gather[Q, A]) queued(c *call[Q, A]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.waiting, c)
}

// drop removes a request from the queue, if it is queued.
func (g *gather[Q, A]) drop(c *call[Q, A]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, c); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
}

// lead runs one query for all waiting requests, and passes the turn on.
func (g *gather[Q, A]) lead(ctx context.Context) {
	defer func() { <-g.turns }()
	g.mu.Lock()
	n := min(len(g.waiting), gatherMax)
	batch := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.mu.Unlock()
	if n == 0 {
		return
	}
	var answers []A
	err := errGatherPanicked
	defer func() {
		for i, c := range batch {
			if c.err = err; err == nil {
				c.a = answers[i]
			}
			close(c.done)
		}
	}()
	all := make([]Q, n)
	for i, c := range batch {
		all[i] = c.q
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherTimeout)
	defer cancel()
	answers, err = g.run(ctx, all)
	if err == nil && len(answers) != n {
		err = errors.New("the query lacks a result for a request")
	}
}

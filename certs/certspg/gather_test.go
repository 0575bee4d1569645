package certspg

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// doubling answers twice what it is asked, after a second, and notes how many it was asked at once.
func doubling(sizes *[]int, mu *sync.Mutex) func(context.Context, []int) ([]int, error) {
	return func(ctx context.Context, all []int) ([]int, error) {
		mu.Lock()
		*sizes = append(*sizes, len(all))
		mu.Unlock()
		time.Sleep(time.Second) // simulated
		out := make([]int, len(all))
		for i, q := range all {
			if out[i] = 2 * q; q < 0 {
				return nil, errors.New("below zero")
			}
		}
		return out, ctx.Err()
	}
}

func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		g := newGather(doubling(&sizes, &mu))
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				if got, err := g.do(t.Context(), i); got != 2*i || err != nil {
					t.Errorf("%d: %d, %v", i, got, err)
				}
			})
		}
		wg.Wait()
		// Two alone at once, then two queries at a time of what waits, at most 128 each.
		if n := len(sizes); n > 6 || time.Since(began) > 4*time.Second {
			t.Errorf("%d queries of %v took %v", n, sizes, time.Since(began))
		}
		for _, n := range sizes {
			if n > gatherMax {
				t.Errorf("a query of %d", n)
			}
		}
		if len(g.turns) != 0 || len(g.waiting) != 0 {
			t.Errorf("afterwards %d run and %d wait", len(g.turns), len(g.waiting))
		}
	})
}

// TestGatherGivenUp: a cancelled request delays no other request, whether it is still queued or already running.
func TestGatherGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		g := newGather(doubling(&sizes, &mu))
		var wg sync.WaitGroup
		for range gatherRunning { // all turns are taken for a second, one after the other: one query would answer two requests at once
			wg.Go(func() { _, _ = g.do(t.Context(), 1) })
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		for range 5 {
			wg.Go(func() {
				if _, err := g.do(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("given up while it waited: %v", err)
				}
			})
		}
		exact, cancelExact := context.WithTimeout(t.Context(), time.Second) // ends as its turn comes
		defer cancelExact()
		for range 5 {
			wg.Go(func() {
				if _, err := g.do(exact, 1); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("given up at its turn: %v", err)
				}
			})
		}
		for range 5 {
			wg.Go(func() {
				if got, err := g.do(t.Context(), 4); got != 8 || err != nil {
					t.Errorf("behind those: %d, %v", got, err)
				}
			})
		}
		wg.Wait()
		if len(g.turns) != 0 || len(g.waiting) != 0 {
			t.Errorf("afterwards %d run and %d wait", len(g.turns), len(g.waiting))
		}
	})
}

// An error is everybody's in that query; a panic goes to who ran it, and the others get an error.
func TestGatherTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		g := newGather(doubling(&sizes, &mu))
		if _, err := g.do(t.Context(), -1); err == nil {
			t.Error("no error")
		}
		g.run = func(context.Context, []int) ([]int, error) {
			time.Sleep(time.Second) // simulated
			panic("oops")
		}
		panicked := make(chan any, 10)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				defer func() { panicked <- recover() }()
				if _, err := g.do(t.Context(), 1); err == nil {
					t.Error("no error beside a panic")
				}
			})
		}
		wg.Wait()
		close(panicked)
		n := 0
		for p := range panicked {
			if p != nil {
				n++
			}
		}
		if n == 0 || n == 10 || len(g.turns) != 0 {
			t.Errorf("%d of 10 panicked, %d still run", n, len(g.turns))
		}
		g.run = func(context.Context, []int) ([]int, error) { return nil, nil }
		if _, err := g.do(t.Context(), 1); err == nil {
			t.Error("no answer, and no error")
		}
	})
}

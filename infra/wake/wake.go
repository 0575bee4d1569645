// Package wake has a signal with one slot: something changed, look again. It counts nothing, so that a burst of changes is one look.
package wake

import (
	"context"
	"time"
)

// Signal is a wake-up for the goroutine that receives from it. Make it with New. Safe for concurrent use.
type Signal chan struct{}

// New returns a signal that is not set.
func New() Signal { return make(Signal, 1) }

// Set wakes the receiver, now or at its next look. It never waits.
func (s Signal) Set() {
	select {
	case s <- struct{}{}:
	default: // set already
	}
}

// Each calls look at once, whenever s is set, and after every so often, until ctx ends.
func (s Signal) Each(ctx context.Context, every time.Duration, look func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		look()
		select {
		case <-ctx.Done():
		case <-s:
		case <-tick.C:
		}
	}
}

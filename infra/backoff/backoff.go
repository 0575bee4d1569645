// Package backoff spaces attempts out: pauses that double, with jitter, so that many who failed together do not try again together.
package backoff

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"kennel/infra/errs"
)

// Pause is the time between attempts, which doubles from Min to Max, give or take a half. Not safe for concurrent use.
type Pause struct {
	Min, Max time.Duration

	next time.Duration // 0: Min
}

// Next returns how long to wait after an attempt that ended with err: at least as long as err asks for (errs.RetryOf).
func (p *Pause) Next(err error) time.Duration {
	d := min(cmp.Or(p.next, p.Min), p.Max) // Max may have become less
	p.next = min(2*d, p.Max)
	return max(Jitter(d), errs.RetryOf(err))
}

// Reset makes the next pause the shortest: an attempt succeeded.
func (p *Pause) Reset() { p.next = 0 }

// Lasted shortens the next pause by the time that a successful attempt lasted, but never below Min.
func (p *Pause) Lasted(d time.Duration) { p.next = max(p.next-d, p.Min) }

// Jitter spreads d over half to one and a half of it.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }

// Sleep returns after d, or earlier with the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

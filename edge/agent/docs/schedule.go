package docs

import (
	"context"
	"math/rand/v2"
	"time"

	"kennel/infra/errs"
)

// at is when a document is due for an exchange with the cloud; the zero time: not as long as nothing happens. The caller holds mu.
func (a *Agent) at(d *document) time.Time {
	if !a.online {
		return time.Time{}
	}
	at := d.getAt
	if d.want || d.getAt.IsZero() {
		at = time.Unix(0, 1) // long ago
	}
	if d.dirty(d.local) {
		push := d.dirtySince.Add(d.saveAfter)
		if d.urgent || d.dirtySince.IsZero() {
			push = time.Unix(0, 1)
		}
		if push.Before(at) {
			at = push
		}
	}
	if at.Before(d.notBefore) {
		at = d.notBefore
	}
	return at
}

// due reports whether it is time for an exchange, after a look at the local copy.
func (a *Agent) due(d *document, now time.Time) bool {
	var changes []Change
	var at time.Time
	a.locked(func() {
		changes = a.refresh(d, false)
		at = a.at(d)
	})
	a.tell(changes)
	return !at.IsZero() && !now.Before(at)
}

// next is when something is due at the latest.
func (a *Agent) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.flushAt
	for _, d := range a.owners {
		if t := a.at(d); !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	for _, d := range a.docs {
		if t := a.at(d); !t.IsZero() && t.Before(next) {
			next = t
		}
		if t := d.spoiled.Add(spoiledFor); !d.spoiled.IsZero() && t.Before(next) {
			next = t
		}
	}
	return next
}

// exchange brings one document in step and keeps the time of the next try.
func (a *Agent) exchange(ctx context.Context, d *document) {
	err := a.sync(ctx, d)
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		d.failures, d.notBefore, d.problem = 0, time.Time{}, ""
		return
	}
	if ctx.Err() != nil {
		return
	}
	pause := min(retryFirst<<min(d.failures, 10), retryMost)
	switch errs.KindOf(err) {
	case errs.Invalid, errs.Denied, errs.Unauthenticated, errs.Corrupt:
		pause = retryNever
	case errs.Exhausted, errs.Unavailable:
		pause = max(pause, errs.RetryOf(err))
	}
	d.failures++
	d.notBefore = now.Add(pause/2 + rand.N(pause/2+1))
	if d.problem != err.Error() {
		a.cfg.Log.WarnContext(ctx, "document out of sync with the cloud", "doc", d.name, "err", err, "pause", pause)
	}
	d.problem = err.Error()
}

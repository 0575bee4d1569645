// Package consent says for whom data of robots may be stored, and keeps the answer true while they are (VEC-FLE-06, VEC-DAS-08).
//
// Each wire that brings a robot's data asks twice: before a body, to refuse early, and with a Hold when the whole body is there. While a Hold lasts, a
// change of owner or of an owner's settings waits. What is stored under it is therefore stored before the change is acknowledged, or not at all.
package consent

import (
	"context"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Codes of refusals that are final: the sender drops what it has sent.
const (
	CodeOptedOut     = "opted_out"     // the owner allows no data collection
	CodeOwnerChanged = "owner_changed" // the data began to arrive under another owner
)

// Permit is the state of one robot.
type Permit struct {
	Account string // the owner's; "": it has none
	Allowed bool   // data may be stored
	// Owned is for how long it has had this owner, or none; Settled for how long neither the owner nor the owner's settings have changed. Both go by the
	// database's clock.
	Owned, Settled time.Duration
}

// Hold is the state of robots that stays as it is until Release.
type Hold struct {
	At      time.Time           // by the database's clock: after every change before the Hold, before every change after it
	Permits map[thing.ID]Permit // without robots that are being changed
	Asked   time.Time           // by this process's clock, just after
	Took    time.Duration       // what the question took: At was no longer before Asked
	Release func()              // may be called more than once
}

// Ask holds the state of robots. Safe for concurrent use.
type Ask func(ctx context.Context, ids ...thing.ID) (Hold, error)

// Check returns whose data of a robot are that began to arrive at begun; "": it has no owner. Denied with a code above if they may not be stored. Unavailable if the robot is
// being changed, or the owner's settings or perhaps the owner changed since begun: the data may come again.
func (h Hold) Check(id thing.ID, begun time.Time) (account string, err error) {
	p, known := h.Permits[id]
	since := h.Asked.Sub(begun)
	switch {
	case !known, p.Owned < 0, p.Settled < 0: // below 0: the database's clock was put back
		return "", errs.RetryLater(time.Second, "the owner of "+string(id)+" or the owner's settings are being changed", nil)
	case p.Owned < since-h.Took:
		return "", errs.Coded(errs.Denied, CodeOwnerChanged, "the owner of %s changed while this arrived", id)
	case p.Owned < since: // or just before: the database's clock and this process's are compared as exactly as the answer was quick
		return "", errs.RetryLater(time.Second, "the owner of "+string(id)+" may have changed while this arrived", nil)
	case !p.Allowed:
		return "", OptedOut(id)
	case p.Settled < since:
		return "", errs.RetryLater(time.Second, "the settings of the owner of "+string(id)+" changed while this arrived", nil)
	}
	return p.Account, nil
}

// OptedOut is the refusal of a robot whose owner allows no data collection.
func OptedOut(id thing.ID) error {
	return errs.Coded(errs.Denied, CodeOptedOut, "the owner of %s does not allow data collection", id)
}

// AtOnce bounds the Holds of ask: each keeps a connection to the database while what it covers is stored over others. Further callers wait.
func AtOnce(ask Ask, n int) Ask {
	places := make(chan struct{}, n) // one for each Hold
	return func(ctx context.Context, ids ...thing.ID) (Hold, error) {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return Hold{}, ctx.Err()
		}
		h, err := ask(ctx, ids...)
		if err != nil {
			<-places
			return Hold{}, err
		}
		stop := h.Release
		once := sync.OnceFunc(func() { stop(); <-places })
		h.Release = once
		return h, nil
	}
}

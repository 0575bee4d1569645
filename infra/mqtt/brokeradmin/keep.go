package brokeradmin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Keep makes a broker refuse the things that blocked returns, until ctx ends; then it returns nil. It sends all orders at the start and new
// ones at each change, and repeats those that fail. Several processes may do so for one broker.
//
// changed returns a channel that is closed at the next change, such as certs.Revocations.Changed.
func Keep(ctx context.Context, b Blocker, blocked func(context.Context) (map[thing.ID]string, error), changed func() <-chan struct{},
	log *slog.Logger) error {
	k := keeper{b: b, blocked: blocked, told: map[thing.ID]bool{}}
	said := false
	for {
		next := changed()
		var again <-chan time.Time
		err := k.step(ctx)
		if err != nil && ctx.Err() == nil {
			if !said {
				log.WarnContext(ctx, "deny list not sent to the broker; retrying", logging.Err, err, "retry_in", retry)
			}
			again = time.After(retry)
		} else if len(k.told) > 0 {
			again = time.After(look)
		}
		said = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		case <-again:
		}
	}
}

type keeper struct {
	b       Blocker
	blocked func(context.Context) (map[thing.ID]string, error)
	told    map[thing.ID]bool
}

// step makes up for the difference. One thing's trouble does not keep the others waiting.
func (k keeper) step(ctx context.Context) error {
	now, err := k.blocked(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for id, reason := range now {
		if k.told[id] {
			continue
		}
		if err := k.b.Block(ctx, id, reason); err != nil {
			failed = append(failed, err)
			continue
		}
		k.told[id] = true
	}
	for id := range k.told {
		if _, still := now[id]; still {
			continue
		}
		if err := k.b.Allow(ctx, id); err != nil {
			failed = append(failed, err)
			continue
		}
		delete(k.told, id)
	}
	if len(failed) > 3 { // a fleet's worth of one trouble
		failed = failed[:3]
	}
	return errors.Join(failed...)
}

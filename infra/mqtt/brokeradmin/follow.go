package brokeradmin

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
)

// Our own limits (the source gives none).
const (
	retry = time.Second     // after a failure an order is given again
	look  = 2 * time.Second // between checks whether a blocked thing has enrolled again, which no event announces
)

// List is the cloud's deny list as a broker's Admin follows it. Ready and Forgot may be nil: always, never.
type List struct {
	// Denied and Changed are those of EmbeddedConfig.
	Denied  func(ctx context.Context, after int64) (d brokerapi.Deny, last int64, err error)
	Changed func() <-chan struct{}
	Ready   func() bool     // whether the broker can be told now; Forgot tells when that begins
	Forgot  <-chan struct{} // the broker may know nothing and is told everything
	Log     *slog.Logger
}

// Follow gives deny the whole list, then what changes in it, until ctx ends. What deny refuses is given again. first is called after each order
// that deny took: from the first call on, the broker has the list.
func Follow(ctx context.Context, l List, deny func(context.Context, brokerapi.Deny) error, first func()) {
	t := told{}
	failed := 0 // times in a row
	for {
		changed := l.Changed()
		var again <-chan time.Time
		if l.Ready == nil || l.Ready() {
			switch err := l.tell(ctx, &t, deny); {
			case err != nil:
				if failed++; failed == 2 && ctx.Err() == nil { // once is how a cloud starts: the list is not read yet
					l.Log.WarnContext(ctx, "deny list not sent to the broker; retrying", logging.Err, err, "retry_in", retry)
				}
				again = time.After(retry)
			default:
				first()
				failed = 0
				if len(t.block) > 0 {
					again = time.After(look)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-l.Forgot:
			t = told{}
		case <-changed:
		case <-again:
		}
	}
}

// told records what this connection has told the broker.
type told struct {
	last  int64 // position of the certificates
	once  bool
	block map[thing.ID]string
}

func (l List) tell(ctx context.Context, t *told, deny func(context.Context, brokerapi.Deny) error) error {
	d, last, err := l.Denied(ctx, t.last)
	if err != nil {
		return err
	}
	block := d.Block
	if d.Reset = !t.once || !maps.Equal(block, t.block); !d.Reset {
		d.Block = nil
	}
	if err := deny(ctx, d); err != nil {
		return err
	}
	*t = told{last, true, block}
	return nil
}

package owner

import (
	"context"
	"time"

	"kennel/infra/notice"
	"kennel/infra/thing"
)

// Ends are told of each ownership that ends.
type Ends struct{ notice.Of[Tenure] }

// OnEnd has f done whenever the ownership of an account ends, with the time when it did. It may be done again, and late. Hearers are added while the process is wired.
func (e *Ends) OnEnd(f func(ctx context.Context, id thing.ID, account string, then time.Time) error) {
	e.Hear(func(ctx context.Context, t Tenure) error {
		return f(ctx, t.Thing, t.Account, t.Stretch(time.Now()).Until)
	})
}

package ownership

import (
	"context"
	"sync/atomic"

	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
)

// freshRequester asks the cloud who the owner is. An answer to a question that was asked before the present connection, or before the cloud gave reason to doubt it,
// is refused: the owner may have said no since. Safe for concurrent use.
type freshRequester struct {
	ask             kitmqtt.Requester
	epoch, answered atomic.Uint64 // how often answers were invalidated: now, and when the last answer was asked for
}

// invalidate refuses the answers that have not come yet.
func (f *freshRequester) invalidate() { f.epoch.Add(1) }

// current reports whether the last answer is still valid.
func (f *freshRequester) current() bool { return f.answered.Load() == f.epoch.Load() }

// Do asks. The error of an answer that is refused is Unavailable; the caller asks again.
func (f *freshRequester) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	asked := f.epoch.Load()
	b, err := f.ask.Do(ctx, service, method, body)
	if err == nil && f.epoch.Load() != asked {
		return nil, errs.New(errs.Unavailable, "connection replaced before the answer arrived")
	}
	f.answered.Store(asked)
	return b, err
}

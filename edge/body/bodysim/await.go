package bodysim

import (
	"context"
	"sync"
)

// Await blocks until ok holds of a body's state, looking whenever changed is broadcast, and returns the state in which it did; or the last one, and ctx's error.
// state is called with changed.L held.
func Await[S any](ctx context.Context, changed *sync.Cond, state func() S, ok func(S) bool) (S, error) {
	defer context.AfterFunc(ctx, func() {
		changed.L.Lock()
		defer changed.L.Unlock()
		changed.Broadcast()
	})()
	changed.L.Lock()
	defer changed.L.Unlock()
	for {
		s := state()
		if ok(s) {
			return s, nil
		}
		if err := ctx.Err(); err != nil {
			return s, err
		}
		changed.Wait()
	}
}

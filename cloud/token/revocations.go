package token

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"kennel/infra/logging"
)

// Revoked is one token that was revoked before it expired.
type Revoked struct {
	ID      string
	At      time.Time // by the store's clock
	Expires time.Time
}

// RevocationStore tells of revoked tokens.
type RevocationStore interface {
	// RevokedSince returns the tokens in force that were revoked at or after a time (zero: all).
	RevokedSince(ctx context.Context, since time.Time) ([]Revoked, error)
	// ListenRevoked calls fn whenever one may have been revoked, also after every connect, until ctx ends; it then returns nil.
	ListenRevoked(ctx context.Context, log *slog.Logger, fn func()) error
}

// A revocation is seen by other processes at once when they are told, else after rereadRevoked; overlap is how far a reading looks back
// behind the latest one known: longer than a transaction takes.
const (
	rereadRevoked  = time.Second
	overlapRevoked = time.Minute
	sweepRevoked   = time.Minute // how often expired ones are forgotten
)

// Revocations is the tokens that are revoked and not expired, in memory. While the database is away it keeps what it knows. Safe for
// concurrent use.
type Revocations struct {
	store RevocationStore
	log   *slog.Logger
	now   func() time.Time

	mu    sync.RWMutex
	ids   map[string]time.Time // token id to its expiry
	swept time.Time

	reading sync.Mutex // one reading at a time
	latest  time.Time  // guarded by reading
	fresh   atomic.Int64
}

// NewRevocations reads what is revoked.
func NewRevocations(ctx context.Context, store RevocationStore, log *slog.Logger, now func() time.Time) (*Revocations, error) {
	if now == nil {
		now = time.Now
	}
	r := &Revocations{store: store, log: log, now: now, ids: map[string]time.Time{}}
	return r, r.read(ctx)
}

// Has reports whether a token is revoked, as far as this process knows.
func (r *Revocations) Has(id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.ids[id]
	return ok
}

// Len returns how many are known.
func (r *Revocations) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.ids)
}

func (r *Revocations) read(ctx context.Context) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	since := r.latest
	if !since.IsZero() {
		since = since.Add(-overlapRevoked)
	}
	started := time.Now()
	list, err := r.store.RevokedSince(ctx, since)
	if err != nil {
		return fmt.Errorf("read revoked tokens: %w", err)
	}
	r.fresh.Store(started.UnixNano())
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range list {
		r.ids[one.ID] = one.Expires
		if one.At.After(r.latest) {
			r.latest = one.At
		}
	}
	if now.Sub(r.swept) > sweepRevoked {
		r.swept = now
		maps.DeleteFunc(r.ids, func(_ string, expires time.Time) bool { return now.After(expires.Add(skew)) })
	}
	return nil
}

// Run keeps the set fresh until ctx ends, and returns nil.
func (r *Revocations) Run(ctx context.Context) error {
	told := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- r.store.ListenRevoked(ctx, r.log, func() {
			select {
			case told <- struct{}{}:
			default: // one is waiting already
			}
		})
	}()
	tick := time.NewTicker(rereadRevoked)
	defer tick.Stop()
	failed := false
	for {
		select {
		case err := <-ended:
			return err
		case <-told:
		case <-tick.C:
		}
		err := r.read(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			r.log.WarnContext(ctx, "revoked tokens not reloaded; keeping the last known", logging.Err, err)
		}
		failed = err != nil
	}
}

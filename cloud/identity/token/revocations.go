package token

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"
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
	// FollowRevoked calls read whenever one may have been revoked, and after every so often, until ctx ends; it then returns nil (pg.Follow).
	FollowRevoked(ctx context.Context, log *slog.Logger, every time.Duration, read func(context.Context) error) error
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
	return r.store.FollowRevoked(ctx, r.log, rereadRevoked, r.read)
}

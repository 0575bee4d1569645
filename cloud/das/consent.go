package das

import (
	"context"
	"sync"
	"time"

	"kennel/infra/thing"
)

// maxConsents bounds the cache of answers; a full cache is emptied.
const maxConsents = 100_000

// consentCache remembers owners' answers, so that not every batch asks the database.
type consentCache struct {
	mu    sync.Mutex
	known map[thing.ID]consentEntry
}

type consentEntry struct {
	allowed bool
	until   time.Time
}

func (in *Ingester) allowed(ctx context.Context, id thing.ID) (bool, error) {
	if in.Consent == nil {
		return true, nil
	}
	now := in.Now()
	c := &in.consent
	c.mu.Lock()
	e, ok := c.known[id]
	c.mu.Unlock()
	if ok && now.Before(e.until) {
		return e.allowed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, in.CommitTimeout)
	defer cancel()
	allowed, err := in.Consent.Allowed(ctx, id)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxConsents {
		clear(c.known)
	}
	c.known[id] = consentEntry{allowed, now.Add(in.ConsentFor)}
	return allowed, nil
}

func (c *consentCache) forget(id thing.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
}

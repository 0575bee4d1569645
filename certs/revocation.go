package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Our own limits (the source gives none).
const (
	rereadEvery = time.Second      // a notification is a hint; this interval makes "within 2 s" hold without one
	rereadTime  = 5 * time.Second  // bounds one reading
	staleAfter  = 15 * time.Second // a set that was not read for this long is no longer Ready
	feedPage    = 1000
)

// Revocation is one certificate that is refused although it has not ended.
type Revocation struct {
	Seq      int64    // position in the feed
	Serial   string   // of one of our certificates, hex; "": every certificate of the key
	Key      Key      // nothing with this key is accepted
	Thing    thing.ID // whose it was
	NotAfter time.Time
	At       time.Time
	Reason   string
}

// Feed is the storage that Revocations needs.
type Feed interface {
	// Revocations returns the revocations after position after whose certificates have not expired at now, in order, at most limit.
	Revocations(ctx context.Context, after int64, now time.Time, limit int) ([]Revocation, error)
	// Follow calls read whenever the feed may have grown, and after every so often, until ctx ends; it then returns nil (pg.Follow).
	Follow(ctx context.Context, every time.Duration, read func(context.Context) error) error
}

// Revocations is the set of revoked certificates in the memory of one process, as new as the last second. Make it with NewRevocations, run
// Run. Safe for concurrent use.
type Revocations struct {
	feed Feed
	now  func() time.Time

	reading sync.Mutex // one reader at a time; taken before mu

	mu      sync.RWMutex
	serials map[string]Revocation
	keys    map[Key]Revocation
	list    []Revocation // in the order of the feed
	last    int64
	read    time.Time     // when the feed was read to its end; zero: never
	changed chan struct{} // closed at the next change
}

// NewRevocations returns an empty set, which is not Ready until it was read.
func NewRevocations(feed Feed) *Revocations {
	return &Revocations{feed: feed, now: time.Now, serials: map[string]Revocation{}, keys: map[Key]Revocation{}, changed: make(chan struct{})}
}

// Run keeps the set until ctx ends; then it returns nil. A database that is away leaves the set as it was.
func (r *Revocations) Run(ctx context.Context) error {
	return r.feed.Follow(ctx, rereadEvery, r.Read)
}

// Read reads the new entries of the feed. Run calls it regularly; a caller that must not act on an older state calls it too.
func (r *Revocations) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rereadTime)
	defer cancel()
	r.reading.Lock()
	defer r.reading.Unlock()
	for {
		r.mu.RLock()
		after := r.last
		r.mu.RUnlock()
		began := r.now()
		page, err := r.feed.Revocations(ctx, after, began, feedPage)
		if err != nil {
			return fmt.Errorf("read revocations: %w", err)
		}
		r.take(page, began, len(page) < feedPage)
		if len(page) < feedPage {
			return nil
		}
	}
}

func (r *Revocations) take(page []Revocation, now time.Time, end bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range page {
		if x.Serial != "" {
			r.serials[x.Serial] = x
		}
		if old, ok := r.keys[x.Key]; !ok || old.NotAfter.Before(x.NotAfter) {
			r.keys[x.Key] = x
		}
		r.list = append(r.list, x)
		r.last = max(r.last, x.Seq)
	}
	if !end {
		return
	}
	first := r.read.IsZero()
	r.read = now
	if len(page) > 0 || first {
		r.forget(now)
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

// forget drops expired certificates: a verifier refuses them anyway. The caller holds mu.
func (r *Revocations) forget(now time.Time) {
	kept := r.list[:0:0] // a new array: List gave the old one away
	for _, x := range r.list {
		if x.NotAfter.After(now) {
			kept = append(kept, x)
			continue
		}
		delete(r.serials, x.Serial)
		if k, ok := r.keys[x.Key]; ok && !k.NotAfter.After(now) {
			delete(r.keys, x.Key)
		}
	}
	r.list = kept
}

// Revoked reports whether leaf is in the set.
func (r *Revocations) Revoked(leaf *x509.Certificate) bool {
	_, ok := r.find(leaf)
	return ok
}

func (r *Revocations) find(leaf *x509.Certificate) (Revocation, bool) {
	key := KeyOf(leaf.RawSubjectPublicKeyInfo)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if x, ok := r.keys[key]; ok {
		return x, true
	}
	x, ok := r.serials[leaf.SerialNumber.Text(16)]
	return x, ok
}

// Check serves Trust.Check: nil, or why leaf is refused. Before the set was read for the first time every leaf is refused (Unavailable): a
// process that has just started must not be the door that is still open.
func (r *Revocations) Check(leaf *x509.Certificate) error {
	if x, ok := r.find(leaf); ok {
		return errs.Coded(errs.Denied, "revoked", "certificate %.40s of %.60s was revoked at %s: %.200s", leaf.SerialNumber.Text(16),
			leaf.Subject.CommonName,
			x.At.UTC().Format(time.RFC3339), x.Reason)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.read.IsZero() {
		return errs.Coded(errs.Unavailable, "revocations_unknown", "list of revoked certificates not loaded yet; try again")
	}
	return nil
}

// Ready returns nil if the set is as new as it should be.
func (r *Revocations) Ready(context.Context) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch age := r.now().Sub(r.read); {
	case r.read.IsZero():
		return errs.New(errs.Unavailable, "revocations: not yet read")
	case age > staleAfter:
		return errs.New(errs.Unavailable, "revocations: last read %v ago, want at most %v", age.Round(time.Second), staleAfter)
	}
	return nil
}

// List returns the revocations in force that came after position after, in order, with the position to continue from. The slice is the
// caller's to read, not to write.
func (r *Revocations) List(after int64) (list []Revocation, last int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i := len(r.list)
	for i > 0 && r.list[i-1].Seq > after {
		i--
	}
	return r.list[i:len(r.list):len(r.list)], r.last
}

// Changed returns a channel that is closed at the next change. Ask for it before List, and nothing is missed.
func (r *Revocations) Changed() <-chan struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.changed
}

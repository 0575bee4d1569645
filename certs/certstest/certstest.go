// Package certstest says how every certs.Store behaves, and has one in memory for tests of rules.
package certstest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/thing"
)

// Store is a certs.Store in memory. The zero value is ready; safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	claims  map[thing.ID]certs.Claim
	records []certs.Record
}

// SetClaim implements certs.Store.
func (s *Store) SetClaim(_ context.Context, id thing.ID, secret certs.Hash, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims[id].Key != (certs.Key{}) {
		return certs.ErrBound
	}
	if s.claims == nil {
		s.claims = map[thing.ID]certs.Claim{}
	}
	s.claims[id] = certs.Claim{Thing: id, Secret: secret}
	return nil
}

// Claim implements certs.Store.
func (s *Store) Claim(_ context.Context, id thing.ID) (certs.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.claims[id]
	if !ok {
		return c, certs.ErrUnknown
	}
	return c, nil
}

// ClaimOf implements certs.Store.
func (s *Store) ClaimOf(_ context.Context, secret certs.Hash) (thing.ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if c.Secret == secret {
			return c.Thing, nil
		}
	}
	return "", certs.ErrUnknown
}

// Bind implements certs.Store.
func (s *Store) Bind(_ context.Context, id thing.ID, key certs.Key, _ time.Time) (certs.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.claims[id]
	if !ok {
		return certs.Key{}, certs.ErrUnknown
	}
	if c.Key == (certs.Key{}) {
		c.Key = key
		s.claims[id] = c
	}
	return c.Key, nil
}

// Revoked implements certs.Store.
func (s *Store) Revoked(_ context.Context, key certs.Key) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.records, func(r certs.Record) bool { return r.Key == key && !r.Revoked.IsZero() }), nil
}

// AddCertificate implements certs.Store.
func (s *Store) AddCertificate(_ context.Context, r certs.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, r)
	return nil
}

// Certificates implements certs.Store.
func (s *Store) Certificates(_ context.Context, id thing.ID) ([]certs.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []certs.Record
	for _, r := range slices.Backward(s.records) {
		if r.Thing == id && len(out) < 100 {
			out = append(out, r)
		}
	}
	return out, nil
}

// Revoke implements certs.Store.
func (s *Store) Revoke(_ context.Context, id thing.ID, reason string, at time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i := range s.records {
		if r := &s.records[i]; r.Thing == id && r.Revoked.IsZero() {
			r.Revoked, r.Reason = at, reason
			n++
		}
	}
	return n, nil
}

// RunStore checks the behaviour every Store must show, on an empty one.
func RunStore(t *testing.T, s certs.Store) {
	ctx := t.Context()
	now := time.Now().Truncate(time.Second).UTC()
	a, b := thing.MustParse("vic:00e20100"), thing.MustParse("pleo:7")
	keyA, keyB := certs.Key{1}, certs.Key{2}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}

	_, err := s.Claim(ctx, a)
	want("claim of an unknown thing", err, certs.ErrUnknown)
	_, err = s.ClaimOf(ctx, certs.Hash{9})
	want("owner of an unknown secret", err, certs.ErrUnknown)
	_, err = s.Bind(ctx, a, keyA, now)
	want("bind for an unknown thing", err, certs.ErrUnknown)

	must(s.SetClaim(ctx, a, certs.Hash{1}, now))
	must(s.SetClaim(ctx, a, certs.Hash{2}, now)) // never used: replaced
	must(s.SetClaim(ctx, b, certs.Hash{3}, now))
	got, err := s.Claim(ctx, a)
	must(err)
	want("claim", got, certs.Claim{Thing: a, Secret: certs.Hash{2}})
	_, err = s.ClaimOf(ctx, certs.Hash{1})
	want("owner of a replaced secret", err, certs.ErrUnknown)
	id, err := s.ClaimOf(ctx, certs.Hash{3})
	must(err)
	want("owner of a secret", id, b)

	// Many keys at once: one wins, and all are told which.
	var wg sync.WaitGroup
	bound := make([]certs.Key, 8)
	for i := range bound {
		wg.Go(func() { bound[i], _ = s.Bind(ctx, b, certs.Key{byte(10 + i)}, now) })
	}
	wg.Wait()
	for _, k := range bound {
		want("key bound in a race", k, bound[0])
	}
	k, err := s.Bind(ctx, a, keyA, now)
	must(err)
	want("first key", k, keyA)
	k, err = s.Bind(ctx, a, keyB, now)
	must(err)
	want("second key", k, keyA)
	got, err = s.Claim(ctx, a)
	must(err)
	want("bound claim", got, certs.Claim{Thing: a, Secret: certs.Hash{2}, Key: keyA})
	want("register after use", s.SetClaim(ctx, a, certs.Hash{5}, now), certs.ErrBound)

	one := certs.Record{Serial: "a1", Thing: a, Key: keyA, NotBefore: now, NotAfter: now.Add(time.Hour), Method: certs.StepEnroll}
	two := certs.Record{Serial: "a2", Thing: a, Key: keyA, NotBefore: now.Add(time.Minute), NotAfter: now.Add(2 * time.Hour), Method: certs.StepRenew}
	must(s.AddCertificate(ctx, one))
	must(s.AddCertificate(ctx, two))
	rows, err := s.Certificates(ctx, a)
	must(err)
	if !slices.Equal(rows, []certs.Record{two, one}) {
		t.Errorf("inventory: got %v, want newest first", rows)
	}
	rows, err = s.Certificates(ctx, b)
	must(err)
	want("rows of another thing", len(rows), 0)

	revoked, err := s.Revoked(ctx, keyA)
	must(err)
	want("revoked before", revoked, false)
	n, err := s.Revoke(ctx, a, "stolen", now)
	must(err)
	want("certificates revoked", n, 2)
	n, err = s.Revoke(ctx, a, "again", now)
	must(err)
	want("revoked twice", n, 0)
	revoked, err = s.Revoked(ctx, keyA)
	must(err)
	want("revoked after", revoked, true)
	rows, err = s.Certificates(ctx, a)
	must(err)
	if len(rows) == 2 {
		want("time of revocation", rows[0].Revoked, now)
		want("reason", rows[1].Reason, "stolen")
	}
}

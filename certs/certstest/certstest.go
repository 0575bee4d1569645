// Package certstest says how every certs.Store behaves, and has one in memory for tests of rules.
package certstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"kennel/certs"
	"kennel/infra/thing"
)

// Store is a certs.Store in memory. The zero value is ready; safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	claims  map[thing.ID]certs.Claim
	records []certs.Record
	factory certs.FactoryState
	waiting []waiting
}

type waiting struct {
	certs.Waiting
	network string
}

func (s *Store) set(c certs.Claim) {
	if s.claims == nil {
		s.claims = map[thing.ID]certs.Claim{}
	}
	s.claims[c.Thing] = c
}

// open reports whether a new secret may be given to the thing.
func (s *Store) open(id thing.ID) bool {
	c := s.claims[id]
	return c.Key == (certs.Key{}) && c.Revoked.IsZero()
}

// SetClaim implements certs.Store.
func (s *Store) SetClaim(_ context.Context, id thing.ID, secret certs.Hash, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open(id) {
		return certs.ErrBound
	}
	s.set(certs.Claim{Thing: id, Secret: secret})
	return nil
}

// SetClaims implements certs.Store.
func (s *Store) SetClaims(_ context.Context, claims []certs.NewClaim, _ time.Time, limit int) ([]certs.LineProblem, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []certs.LineProblem
	for _, c := range claims {
		if held := s.claims[c.Thing]; !held.Revoked.IsZero() || !s.open(c.Thing) && held.Secret != c.Secret {
			problems = append(problems, certs.LineProblem{Line: c.Line, Problem: fmt.Sprintf("%s has enrolled or was revoked: want it released first", c.Thing)})
		}
		if owner, err := s.claimOf(c.Secret); err == nil && owner != c.Thing {
			problems = append(problems, certs.LineProblem{Line: c.Line, Problem: fmt.Sprintf("the secret hash of %s is that of %s", c.Thing, owner)})
		}
	}
	if len(problems) > 0 {
		return problems[:min(limit, len(problems))], nil
	}
	for _, c := range claims {
		if s.open(c.Thing) {
			s.set(certs.Claim{Thing: c.Thing, Secret: c.Secret})
		}
	}
	return nil, nil
}

// ClaimOf implements certs.Store.
func (s *Store) ClaimOf(_ context.Context, secret certs.Hash) (thing.ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimOf(secret)
}

func (s *Store) claimOf(secret certs.Hash) (thing.ID, error) {
	for _, c := range s.claims {
		if c.Secret == secret && secret != (certs.Hash{}) {
			return c.Thing, nil
		}
	}
	return "", certs.ErrUnknown
}

// Standing implements certs.Store.
func (s *Store) Standing(_ context.Context, id thing.ID, key certs.Key) (certs.Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.claims[id]
	st := certs.Standing{Claim: c, Known: ok}
	for _, r := range s.records {
		if r.Key == key && !r.Revoked.IsZero() {
			st.KeyReleased = st.KeyReleased || r.Released
			st.KeyRevoked = st.KeyRevoked || !r.Released
		}
	}
	return st, nil
}

// Issue implements certs.Store.
func (s *Store) Issue(_ context.Context, r certs.Record, from certs.Claim, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.claims[r.Thing]
	switch {
	case from == (certs.Claim{}):
		if known {
			return certs.ErrMoved
		}
		c = certs.Claim{Thing: r.Thing}
	case from.Key == r.Key && slices.ContainsFunc(s.records, func(old certs.Record) bool { return old.Key == r.Key && !old.Revoked.IsZero() }):
		return certs.ErrMoved
	case !known || !c.Revoked.IsZero() || c.Key != from.Key || from.Key != r.Key && c.Secret != from.Secret:
		return certs.ErrMoved
	}
	if c.Key != r.Key {
		for i := range s.records {
			if old := &s.records[i]; c.Key != (certs.Key{}) && old.Thing == r.Thing && old.Key == c.Key && old.Revoked.IsZero() {
				old.Revoked, old.Released, old.Reason = at, true, "replaced by another key"
			}
		}
		c.Key = r.Key
		s.set(c)
	}
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

// Revocations implements certs.Store.
func (s *Store) Revocations(_ context.Context, before time.Time, limit int) ([]certs.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []certs.Record
	for _, r := range s.records {
		if !r.Revoked.IsZero() && (before.IsZero() || r.Revoked.Before(before)) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b certs.Record) int {
		return cmp.Or(b.Revoked.Compare(a.Revoked), cmp.Compare(b.Serial, a.Serial))
	})
	return out[:min(limit, len(out))], nil
}

// end marks the certificates of a thing that are in force.
func (s *Store) end(id thing.ID, released bool, reason string, at time.Time) int {
	n := 0
	for i := range s.records {
		if r := &s.records[i]; r.Thing == id && r.Revoked.IsZero() {
			r.Revoked, r.Released, r.Reason = at, released, reason
			n++
		}
	}
	s.factory.Rev++
	return n
}

// Revoke implements certs.Store.
func (s *Store) Revoke(_ context.Context, id thing.ID, reason string, at time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[id]
	c.Thing = id
	if c.Revoked.IsZero() {
		c.Revoked = at
	}
	s.set(c)
	return s.end(id, false, reason, at), nil
}

// Release implements certs.Store.
func (s *Store) Release(_ context.Context, id thing.ID, secret certs.Hash, reason string, at time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.claims[id]; !ok {
		return 0, certs.ErrUnknown
	}
	s.set(certs.Claim{Thing: id, Secret: secret})
	return s.end(id, true, cmp.Or(reason, "released"), at), nil
}

// Factory implements certs.Store.
func (s *Store) Factory(_ context.Context, known uint64) (certs.FactoryState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := certs.FactoryState{Rev: s.factory.Rev + 1}
	if st.Rev == known {
		return st, nil
	}
	st.Batches, st.Revoked = slices.Clone(s.factory.Batches), slices.Clone(s.factory.Revoked)
	for id, c := range s.claims {
		if !c.Revoked.IsZero() {
			st.RevokedThis = append(st.RevokedThis, id)
		}
	}
	return st, nil
}

// PutBatch implements certs.Store.
func (s *Store) PutBatch(_ context.Context, b certs.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.factory.Rev++
	for i, old := range s.factory.Batches {
		if old.Name == b.Name {
			b.Created, b.Disabled, b.Reason = old.Created, old.Disabled, old.Reason
			s.factory.Batches[i] = b
			return nil
		}
	}
	s.factory.Batches = append(s.factory.Batches, b)
	slices.SortFunc(s.factory.Batches, func(a, b certs.Batch) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// DisableBatch implements certs.Store.
func (s *Store) DisableBatch(_ context.Context, name, reason string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.factory.Batches {
		if b := &s.factory.Batches[i]; b.Name == name {
			b.Disabled, b.Reason = at, reason
			s.factory.Rev++
			return nil
		}
	}
	return certs.ErrUnknown
}

// RevokeFactory implements certs.Store.
func (s *Store) RevokeFactory(_ context.Context, r certs.FactoryRevocation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.factory.Revoked, func(old certs.FactoryRevocation) bool { return old.CertificateID == r.CertificateID }) {
		s.factory.Revoked = append([]certs.FactoryRevocation{r}, s.factory.Revoked...)
		s.factory.Rev++
	}
	return nil
}

func gone(w waiting, at time.Time, l certs.WaitingLimits) bool {
	if w.Refused.IsZero() {
		return w.Last.Before(at.Add(-l.Expire))
	}
	return w.Refused.Before(at.Add(-l.Refused))
}

// Ask implements certs.Store.
func (s *Store) Ask(_ context.Context, a certs.Ask, l certs.WaitingLimits) (certs.Waiting, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w waiting) bool { return gone(w, a.At, l) })
	network, things := 0, 0
	for i := range s.waiting {
		w := &s.waiting[i]
		if w.Thing == a.Thing && w.Key == a.Key {
			w.Last, w.Addr = a.At, a.Addr
			w.Times++
			return w.Waiting, false, nil
		}
		if w.network == a.Network {
			network++
		}
		if w.Thing == a.Thing {
			things++
		}
	}
	if len(s.waiting) >= l.Max || network >= l.PerNetwork || things >= l.PerThing {
		return certs.Waiting{}, false, certs.ErrFull
	}
	w := certs.Waiting{Thing: a.Thing, Key: a.Key, Addr: a.Addr, First: a.At, Last: a.At, Times: 1}
	s.waiting = append(s.waiting, waiting{w, a.Network})
	return w, true, nil
}

// Waiting implements certs.Store.
func (s *Store) Waiting(_ context.Context, at time.Time, l certs.WaitingLimits) ([]certs.Waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []certs.Waiting
	for _, w := range s.waiting {
		if !gone(w, at, l) {
			c, known := s.claims[w.Thing]
			w.Known, w.Bound, w.Revoked = known, c.Key != (certs.Key{}), !c.Revoked.IsZero()
			out = append(out, w.Waiting)
		}
	}
	return out, nil
}

func (s *Store) find(id thing.ID, key certs.Key) *waiting {
	for i := range s.waiting {
		if s.waiting[i].Thing == id && s.waiting[i].Key == key {
			return &s.waiting[i]
		}
	}
	return nil
}

// Approve implements certs.Store.
func (s *Store) Approve(_ context.Context, id thing.ID, key certs.Key, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(id, key) == nil {
		return certs.ErrUnknown
	}
	c := s.claims[id]
	if !s.open(id) && (c.Key != key || !c.Revoked.IsZero()) {
		return certs.ErrBound
	}
	c.Thing, c.Key = id, key
	s.set(c)
	s.waiting = slices.DeleteFunc(s.waiting, func(w waiting) bool { return w.Thing == id })
	return nil
}

// Refuse implements certs.Store.
func (s *Store) Refuse(_ context.Context, id thing.ID, key certs.Key, reason string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.find(id, key)
	if w == nil {
		return certs.ErrUnknown
	}
	w.Refused, w.Reason = at, reason
	return nil
}

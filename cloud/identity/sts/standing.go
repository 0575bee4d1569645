package sts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// standingFresh is how old an answer about a robot's standing may be; what is taken away holds everywhere within 2 s.
const standingFresh = time.Second

// owned says whether a robot may still upload for a person: it is theirs, and its identity was not taken away.
type owned struct {
	owner   func(ctx context.Context, id thing.ID) (string, error)
	allowed func(ctx context.Context, id thing.ID) (bool, error)
	revoked func(ctx context.Context, id thing.ID) (bool, error)
	acts    func(ctx context.Context, id thing.ID, user string, at time.Time) (bool, error)

	mu    sync.Mutex
	known map[Grant]stood // by thing, user and, for those in use, when they were made
}

// Owned returns a Standing that remembers for a second whose a robot is. owner returns the account that owns a robot (NotFound: none), allowed whether that owner allows
// uploads, which is asked of grants in use alone, revoked whether the robot's identity was revoked, and acts whether it still acts for a user with what it got at a time; its tokens may have been revoked since.
func Owned(owner func(context.Context, thing.ID) (string, error), allowed, revoked func(context.Context, thing.ID) (bool, error),
	acts func(context.Context, thing.ID, string, time.Time) (bool, error)) Standing {
	return &owned{owner: owner, allowed: allowed, revoked: revoked, acts: acts, known: map[Grant]stood{}}
}

type stood struct {
	at  time.Time
	err error
}

// Check implements Standing. The owner's word is not remembered.
func (s *owned) Check(ctx context.Context, g Grant, made bool) error {
	if err := s.stands(ctx, g, made); err != nil || !made {
		return err
	}
	allowed, err := s.allowed(ctx, g.Thing)
	if err == nil && !allowed {
		err = consent.OptedOut(g.Thing)
	}
	return err
}

func (s *owned) stands(ctx context.Context, g Grant, made bool) error {
	key := Grant{Thing: g.Thing, User: g.User}
	if made {
		key.Issued = g.Issued
	}
	s.mu.Lock()
	was, ok := s.known[key]
	s.mu.Unlock()
	if ok && time.Since(was.at) < standingFresh {
		return was.err
	}
	at := time.Now()
	err := s.ask(ctx, g, made)
	if k := errs.KindOf(err); err != nil && (k == errs.Unavailable || k == errs.Internal) {
		return err // no answer to remember
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, old := range s.known { // a few robots upload at a time
		if time.Since(old.at) > standingFresh {
			delete(s.known, k)
		}
	}
	s.known[key] = stood{at, err}
	return err
}

func (s *owned) ask(ctx context.Context, g Grant, made bool) error {
	revoked, err := s.revoked(ctx, g.Thing)
	if err != nil {
		return fmt.Errorf("check of %s: %w", g.Thing, err)
	}
	if revoked {
		return errs.Coded(errs.Denied, "revoked", "the identity of %s was revoked", g.Thing)
	}
	owner, err := s.owner(ctx, g.Thing)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return errs.Coded(errs.Denied, "no_owner", "%s no longer has an owner", g.Thing)
	case err != nil:
		return err
	case owner != g.User:
		return errs.Coded(errs.Denied, "other_owner", "%s has another owner now", g.Thing)
	case !made:
		return nil
	}
	acts, err := s.acts(ctx, g.Thing, g.User, g.Issued)
	if err == nil && !acts {
		err = errs.Coded(errs.Denied, "token_revoked", "the tokens of %s were revoked after these credentials were made", g.Thing)
	}
	return err
}

package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/certs/limit"
	"kennel/cloud/sts"
	"kennel/cloud/sts/stsapi"
	"kennel/cloud/sts/stspg"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// standingFresh is how old an answer about a robot's standing may be; what is taken away holds everywhere within 2 s.
const standingFresh = time.Second

// wireUploads makes the credentials and the door for what robots upload; owners are wired before it.
func (c *Cloud) wireUploads(store *certspg.Store) (err error) {
	c.grants, err = sts.New(sts.Config{Seal: c.seal, Standing: &standing{owner: c.Owners.Owner, certs: store, known: map[sts.Grant]stood{}}})
	if err != nil {
		return err
	}
	c.uploads = sts.Personal{Objects: c.blobs, Prefixes: []string{sts.DefaultPrefix}}
	c.door, err = stsapi.New(stsapi.Config{
		Grants: c.grants, Store: c.blobs, Usage: stspg.New(c.pool), Limiter: limit.New(50*time.Millisecond, 200), Peers: limit.NewByAddr(time.Second, 60),
		Recorder: tokenSteps{c.Registry, c.log}, Log: c.log, Buckets: []string{c.cfg.S3.Bucket}, Domains: c.cfg.Robots.S3Domains,
	})
	return err
}

// standing says whether a robot may still upload for a person: it is theirs, and its identity was not taken away.
type standing struct {
	owner func(ctx context.Context, id thing.ID) (string, error)
	certs *certspg.Store

	mu    sync.Mutex
	known map[sts.Grant]stood // by thing and user alone
}

type stood struct {
	at  time.Time
	err error
}

// Check implements sts.Standing.
func (s *standing) Check(ctx context.Context, g sts.Grant) error {
	key := sts.Grant{Thing: g.Thing, User: g.User}
	s.mu.Lock()
	was, ok := s.known[key]
	s.mu.Unlock()
	if ok && time.Since(was.at) < standingFresh {
		return was.err
	}
	at := time.Now()
	err := s.ask(ctx, g)
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

func (s *standing) ask(ctx context.Context, g sts.Grant) error {
	st, err := s.certs.Standing(ctx, g.Thing, certs.Key{})
	if err != nil {
		return fmt.Errorf("standing of %s: %w", g.Thing, err)
	}
	if !st.Revoked.IsZero() {
		return errs.Coded(errs.Denied, "revoked", "the identity of %s was revoked", g.Thing)
	}
	owner, err := s.owner(ctx, g.Thing)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return errs.Coded(errs.Denied, "no_owner", "%s has no owner any more", g.Thing)
	case err != nil:
		return err
	case owner != g.User:
		return errs.Coded(errs.Denied, "other_owner", "%s has another owner now", g.Thing)
	}
	return nil
}

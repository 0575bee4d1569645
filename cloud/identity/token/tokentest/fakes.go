package tokentest

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"kennel/cloud/identity/token"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Sessions is token.UserSessions in memory, with the codes of the account service. The zero value is ready.
type Sessions struct {
	mu   sync.Mutex
	user map[string]string
	used map[string]bool
	Err  error // of every Burn, while it is set
}

// Issue makes a session of a user.
func (s *Sessions) Issue(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.user == nil {
		s.user, s.used = map[string]string{}, map[string]bool{}
	}
	name := "session-" + rand.Text()
	s.user[name] = user
	return name
}

// Burn implements token.UserSessions.
func (s *Sessions) Burn(_ context.Context, name string, _ thing.ID) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, known := s.user[name]
	switch {
	case s.Err != nil:
		return "", s.Err
	case !known:
		return "", errs.Coded(errs.Unauthenticated, "session_unknown", "user session is not accepted")
	case s.used[name]:
		return "", errs.Coded(errs.Unauthenticated, "session_used", "user session is not accepted")
	}
	s.used[name] = true
	return user, nil
}

// Used reports whether a session was burned.
func (s *Sessions) Used(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[name]
}

// Owners is token.Owners in memory: another's robot is refused unless it was wiped. The zero value is ready.
type Owners struct {
	mu  sync.Mutex
	of  map[thing.ID]string
	How []string // of each association, in order
}

// Owner implements token.Owners.
func (o *Owners) Owner(_ context.Context, id thing.ID) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if user, ok := o.of[id]; ok {
		return user, nil
	}
	return "", errs.New(errs.NotFound, "%s has no owner", id)
}

// Associate implements token.Owners.
func (o *Owners) Associate(_ context.Context, id thing.ID, user, how string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if had := o.of[id]; had != "" && had != user && how != token.HowWiped {
		return errs.Coded(errs.Conflict, "wrong_account", "%s has another owner", id)
	}
	if o.of == nil {
		o.of = map[thing.ID]string{}
	}
	o.of[id] = user
	o.How = append(o.How, how)
	return nil
}

// Disassociate implements token.Owners.
func (o *Owners) Disassociate(_ context.Context, id thing.ID) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, id)
	return nil
}

// Set makes user the owner, as a claim by code does.
func (o *Owners) Set(id thing.ID, user string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[thing.ID]string{}
	}
	o.of[id] = user
}

// STS is token.STS with made-up credentials.
type STS struct {
	Err   error
	Empty bool // answers credentials that are not complete
	Hook  func()
}

// Mint implements token.STS.
func (s *STS) Mint(_ context.Context, id thing.ID, user string) (token.Credentials, error) {
	if s.Hook != nil {
		s.Hook()
	}
	if s.Err != nil || s.Empty {
		return token.Credentials{}, s.Err
	}
	return token.Credentials{AccessKeyID: "ASIA" + id.Serial(), SecretAccessKey: "secret of " + logging.Secret(user), SessionToken: "sealed", Expires: time.Now().Add(12 * time.Hour)}, nil
}

// Recorder keeps steps in memory. The zero value is ready.
type Recorder struct {
	mu    sync.Mutex
	steps []token.Step
}

// Record implements token.Recorder.
func (r *Recorder) Record(_ context.Context, s token.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

// Steps returns what was recorded of a thing, and forgets nothing.
func (r *Recorder) Steps(id thing.ID) (out []token.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.steps {
		if s.Thing == id {
			out = append(out, s)
		}
	}
	return out
}

// Last returns what was recorded last, of whatever thing.
func (r *Recorder) Last() token.Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) == 0 {
		return token.Step{}
	}
	return r.steps[len(r.steps)-1]
}

// Limiter lets everything through but the keys of Stop.
type Limiter struct {
	mu   sync.Mutex
	stop []string
}

// Stop holds key back from now on.
func (l *Limiter) Stop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop = append(l.stop, key)
}

// Allow implements token.Limiter.
func (l *Limiter) Allow(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.stop, key) {
		return 1500 * time.Millisecond
	}
	return 0
}

// Factory is token.Certificates: certificate ids and the things they name.
type Factory map[string]thing.ID

// RevokeFactory implements token.Certificates.
func (f Factory) RevokeFactory(_ context.Context, certificateID, _ string) (thing.ID, error) {
	id, ok := f[certificateID]
	if !ok {
		return "", errs.New(errs.NotFound, "no such certificate")
	}
	return id, nil
}

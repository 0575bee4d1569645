package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"kennel/infra/auth"
	"kennel/infra/errs"
)

// Identity is an operator as an identity provider vouches for one.
type Identity struct {
	Issuer, Subject string
	Email           string
	EmailVerified   bool
	Role            auth.Role // by the provider's groups; "": none that we know
}

// ErrIdentity is wrapped by the error for a provider's answer that is not accepted; the reason is for the log alone.
var ErrIdentity = errors.New("account: the identity provider's answer is not accepted")

// IdentityStore keeps who is whose identity.
type IdentityStore interface {
	// Federate returns the account of an identity. The first time that is the operator with its e-mail, or a new one; from then on it goes by
	// issuer and subject. The role becomes the identity's, except that the last administrator stays one. What changed is logged, its object and
	// detail set. ErrTaken if an owner has the e-mail; ErrUnknown if the account is disabled.
	Federate(ctx context.Context, id Identity, passwordHash string, log Entry) (Account, error)
}

// Pace takes one attempt from an address's share: Exhausted if there is none.
func (s *Service) Pace(addr string) error {
	if wait := s.cfg.ByAddr.Allow(addr); wait > 0 {
		return slowDown(wait)
	}
	return nil
}

// LoginIdentity opens a session for an identity that a provider has just vouched for. An operator without an account gets one, with an unknown
// random password; the provider's word on the role holds at each sign-in. Errors: Denied "oidc_email" without a verified e-mail, "oidc_role"
// without a role, "oidc_account" for an e-mail that is an owner's and for an account that is disabled.
func (s *Service) LoginIdentity(ctx context.Context, id Identity, addr string) (Login, error) {
	refused := func(code, format string, args ...any) (Login, error) {
		if err := s.Audit(ctx, Entry{Addr: addr, Action: "login.refused", Detail: code}); err != nil {
			return Login{}, err
		}
		return Login{}, errs.Coded(errs.Denied, code, format, args...)
	}
	if id.Issuer == "" || id.Subject == "" {
		return Login{}, errs.New(errs.Invalid, "an identity without issuer or subject")
	}
	email, err := normalEmail(id.Email)
	if err != nil || !id.EmailVerified {
		return refused("oidc_email", "the identity provider does not vouch for an e-mail address")
	}
	if !id.Role.Staff() {
		return refused("oidc_role", "the identity provider gives no role here; ask an administrator for one")
	}
	id.Email = email
	hash, err := s.cfg.Hasher.Hash(ctx, rand.Text()) // e-mail and password open nothing until the person sets one by letter
	if err != nil {
		return Login{}, err
	}
	a, err := s.cfg.Store.Federate(ctx, id, hash, Entry{At: s.cfg.Now(), Addr: clip(addr, 2000)})
	switch {
	case errors.Is(err, ErrTaken), errors.Is(err, ErrUnknown):
		return refused("oidc_account", "this account is not open to the identity provider; ask an administrator")
	case err != nil:
		return Login{}, fmt.Errorf("read identity: %w", err)
	}
	l, err := s.openFor(ctx, a, ByOIDC, addr)
	if err != nil {
		return Login{}, err
	}
	return l, s.Audit(ctx, Entry{Actor: string(a.ID), Role: a.Role, Addr: addr, Action: "login", Object: string(a.ID), Detail: ByOIDC})
}

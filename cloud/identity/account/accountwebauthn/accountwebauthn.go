// Package accountwebauthn signs people in with passkeys: WebAuthn with user verification, so that one gesture is both factors.
package accountwebauthn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"kennel/cloud/identity/account"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Passkeys is an accountapi.Passkeys. Safe for concurrent use.
type Passkeys struct {
	keys  *account.Passkeys
	w     *webauthn.WebAuthn // nil: there are no passkeys here
	sites []string
	log   *slog.Logger
}

// New returns the passkeys of the site at publicURL: they are good there and nowhere else, but at other origins of the same host if there are any,
// such as a port that serves its own machine. A site that has no name but an address has none (Web Authentication, section 5.1.2: an RP ID is a
// domain), and every request is refused with that reason.
func New(keys *account.Passkeys, publicURL, site string, log *slog.Logger, others ...string) (*Passkeys, error) {
	u, err := url.Parse(publicURL)
	if err != nil || u.Host == "" {
		return nil, errs.New(errs.Invalid, "passkeys: public URL %.120q: want https://host", publicURL)
	}
	sites := []string{u.Scheme + "://" + u.Host}
	for _, o := range others {
		if other, err := url.Parse(o); err != nil || other.Hostname() != u.Hostname() {
			return nil, errs.New(errs.Invalid, "passkeys: origin %.120q: want one on the host %s", o, u.Hostname())
		}
		sites = append(sites, o)
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return &Passkeys{keys: keys, log: log}, nil
	}
	w, err := webauthn.New(&webauthn.Config{RPID: u.Hostname(), RPDisplayName: site, RPOrigins: sites,
		AuthenticatorSelection: protocol.AuthenticatorSelection{ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired}})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	return &Passkeys{keys, w, sites, log}, nil
}

// Sites returns the origins at which browsers take these passkeys, the public one first; none if there are none.
func (p *Passkeys) Sites() []string { return slices.Clone(p.sites) }

// noPasskeys is the refusal at a site without passkeys.
func noPasskeys() error {
	return errs.Coded(errs.Denied, "passkeys_off", "passkeys are not available here: browsers need a host name for them, and the public address of this cloud is an IP address")
}

// user is a person as the library sees one: the handle is the account's id.
type user struct {
	a    account.Account
	keys []account.Passkey
	list []webauthn.Credential
}

func newUser(a account.Account, keys []account.Passkey) (user, error) {
	u := user{a: a, keys: keys}
	for _, k := range keys {
		var c webauthn.Credential
		if err := json.Unmarshal(k.Credential, &c); err != nil {
			return u, errs.New(errs.Corrupt, "passkey %x: %w", k.ID, err)
		}
		u.list = append(u.list, c)
	}
	return u, nil
}

func (u user) WebAuthnID() []byte                         { return []byte(u.a.ID) }
func (u user) WebAuthnName() string                       { return u.a.Email }
func (u user) WebAuthnDisplayName() string                { return u.a.Email }
func (u user) WebAuthnCredentials() []webauthn.Credential { return u.list }

func (p *Passkeys) begin(ctx context.Context, options any, s *webauthn.SessionData) (logging.Secret, json.RawMessage, error) {
	shown, err := json.Marshal(options)
	if err != nil {
		return "", nil, fmt.Errorf("passkey: %w", err)
	}
	kept, err := json.Marshal(s)
	if err != nil {
		return "", nil, fmt.Errorf("passkey: %w", err)
	}
	name, err := p.keys.BeginCeremony(ctx, kept)
	return name, shown, err
}

func (p *Passkeys) end(ctx context.Context, ceremony logging.Secret) (s webauthn.SessionData, err error) {
	if p.w == nil {
		return s, noPasskeys()
	}
	kept, err := p.keys.EndCeremony(ctx, ceremony)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(kept, &s); err != nil {
		return s, errs.New(errs.Corrupt, "passkey ceremony: %w", err)
	}
	return s, nil
}

// refused logs why and returns what everybody is told.
func (p *Passkeys) refused(ctx context.Context, addr string, err error) error {
	why := err
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		why = fmt.Errorf("%w: %s", err, e.DevInfo)
	}
	p.log.WarnContext(ctx, "passkey refused", logging.Addr, addr, logging.Err, why)
	return account.PasskeyRefused()
}

// BeginRegister returns the options for navigator.credentials.create, for a person who knows the password. Errors as Confirm.
func (p *Passkeys) BeginRegister(ctx context.Context, id account.ID, password logging.Secret, addr string) (logging.Secret, json.RawMessage, error) {
	if p.w == nil {
		return "", nil, noPasskeys()
	}
	if _, err := p.keys.Confirm(ctx, id, password, addr); err != nil {
		return "", nil, err
	}
	a, keys, err := p.keys.Person(ctx, id)
	if err != nil {
		return "", nil, err
	}
	u, err := newUser(a, keys)
	if err != nil {
		return "", nil, err
	}
	options, s, err := p.w.BeginRegistration(u, webauthn.WithExclusions(webauthn.Credentials(u.list).CredentialDescriptors()))
	if err != nil {
		return "", nil, fmt.Errorf("passkey: %w", err)
	}
	return p.begin(ctx, options, s)
}

// FinishRegister takes the browser's answer and keeps the passkey under a name. Errors: Unauthenticated "passkey_refused"; Conflict.
func (p *Passkeys) FinishRegister(ctx context.Context, id account.ID, ceremony logging.Secret, name string, answer []byte, addr string) (account.Passkey, error) {
	s, err := p.end(ctx, ceremony)
	if err != nil {
		return account.Passkey{}, err
	}
	a, keys, err := p.keys.Person(ctx, id)
	if err != nil {
		return account.Passkey{}, err
	}
	u, err := newUser(a, keys)
	if err != nil {
		return account.Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return account.Passkey{}, p.refused(ctx, addr, err)
	}
	c, err := p.w.CreateCredential(u, s, parsed) // refuses another account's ceremony, and one for signing in: its user is another or none
	if err != nil {
		return account.Passkey{}, p.refused(ctx, addr, err)
	}
	kept, err := json.Marshal(c)
	if err != nil {
		return account.Passkey{}, fmt.Errorf("passkey: %w", err)
	}
	k := account.Passkey{ID: c.ID, Account: id, Name: name, Credential: kept}
	return k, p.keys.Add(ctx, k, addr)
}

// BeginLogin returns the options for navigator.credentials.get, the same for everybody. Exhausted.
func (p *Passkeys) BeginLogin(ctx context.Context, addr string) (logging.Secret, json.RawMessage, error) {
	if p.w == nil {
		return "", nil, noPasskeys()
	}
	if err := p.keys.Pace(addr); err != nil {
		return "", nil, err
	}
	options, s, err := p.w.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return "", nil, fmt.Errorf("passkey: %w", err)
	}
	return p.begin(ctx, options, s)
}

// FinishLogin takes the browser's answer and opens a session. Unauthenticated "passkey_refused".
func (p *Passkeys) FinishLogin(ctx context.Context, ceremony logging.Secret, answer []byte, addr string) (account.Login, error) {
	s, err := p.end(ctx, ceremony)
	if err != nil {
		return account.Login{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return account.Login{}, p.refused(ctx, addr, err)
	}
	var ours error // not the authenticator's fault
	found, c, err := p.w.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		a, keys, err := p.keys.Person(ctx, account.ID(handle))
		if err != nil {
			if errs.KindOf(err) != errs.NotFound {
				ours = err
			}
			return nil, err
		}
		u, err := newUser(a, keys)
		ours = err
		return u, err
	}, s, parsed)
	if ours != nil {
		return account.Login{}, ours
	}
	if err != nil {
		return account.Login{}, p.refused(ctx, addr, err)
	}
	u := found.(user)
	for _, k := range u.keys {
		if !bytes.Equal(k.ID, c.ID) {
			continue
		}
		if c.Authenticator.CloneWarning {
			if err := p.keys.Cloned(ctx, k, addr); err != nil {
				return account.Login{}, err
			}
			return account.Login{}, p.refused(ctx, addr, errors.New("its counter decreased: there may be a copy"))
		}
		after, err := json.Marshal(c)
		if err != nil {
			return account.Login{}, fmt.Errorf("passkey: %w", err)
		}
		return p.keys.Login(ctx, u.a, k, after, addr)
	}
	return account.Login{}, p.refused(ctx, addr, errors.New("not one of the account's passkeys"))
}

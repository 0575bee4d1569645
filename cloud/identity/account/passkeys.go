package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/mail"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// ceremonyTTL is how long an authenticator may take: ours, no source gives it.
const ceremonyTTL = 5 * time.Minute

// maxPasskeys is how many one person may have.
const maxPasskeys = 20

// Passkey is a person's key on an authenticator.
type Passkey struct {
	ID         []byte
	Account    ID
	Name       string // the person's word for it
	Credential []byte // JSON, accountwebauthn's own
	Created    time.Time
	LastUsed   time.Time // zero: never
}

// PasskeyStore keeps passkeys and the challenges that wait for an answer. Its methods are safe for concurrent use.
type PasskeyStore interface {
	// AddPasskey stores one; ErrTaken if its id is known, ErrUnknown if the account is gone.
	AddPasskey(ctx context.Context, k Passkey) error
	// Passkeys lists an account's, oldest first.
	Passkeys(ctx context.Context, id ID) ([]Passkey, error)
	// UsePasskey stores what changed with a use, if the credential is still as it was read; else ErrUnknown.
	UsePasskey(ctx context.Context, key []byte, before, after []byte, at time.Time) error
	// RemovePasskey forgets one of an account's; ErrUnknown.
	RemovePasskey(ctx context.Context, id ID, key []byte) error
	// PutCeremony keeps data until it expires.
	PutCeremony(ctx context.Context, name Hash, data []byte, expires time.Time) error
	// TakeCeremony returns it once; ErrUnknown.
	TakeCeremony(ctx context.Context, name Hash, now time.Time) ([]byte, error)
}

// Passkeys is the rules of people's passkeys. Safe for concurrent use.
type Passkeys struct {
	in    *SignIn
	store PasskeyStore
}

// NewPasskeys returns the rules.
func NewPasskeys(in *SignIn, store PasskeyStore) *Passkeys { return &Passkeys{in, store} }

// Pace is SignIn.Pace.
func (p *Passkeys) Pace(addr string) error { return p.in.Pace(addr) }

// BeginCeremony keeps what a challenge was made of and returns its name, which the answer brings along.
func (p *Passkeys) BeginCeremony(ctx context.Context, data []byte) (logging.Secret, error) {
	name := logging.Secret(rand.Text())
	return name, p.store.PutCeremony(ctx, name.Sum(), data, p.in.cfg.Now().Add(ceremonyTTL))
}

// EndCeremony returns what BeginCeremony kept, once. Unauthenticated "passkey_refused".
func (p *Passkeys) EndCeremony(ctx context.Context, name logging.Secret) ([]byte, error) {
	data, err := p.store.TakeCeremony(ctx, name.Sum(), p.in.cfg.Now())
	if errors.Is(err, ErrUnknown) {
		return nil, PasskeyRefused()
	}
	return data, err
}

// PasskeyRefused is the one answer to whatever an authenticator says that is not accepted.
func PasskeyRefused() error {
	return errs.Coded(errs.Unauthenticated, "passkey_refused", "this passkey is not accepted: try again, or sign in another way")
}

// Confirm checks the password of a person who is about to add a passkey: a session alone, which may be stolen, adds none. Errors: Unauthenticated
// "wrong_password"; Exhausted.
func (p *Passkeys) Confirm(ctx context.Context, id ID, password logging.Secret, addr string) (Account, error) {
	return p.in.Confirm(ctx, id, password, addr)
}

// Person returns a person who may sign in, and the passkeys; NotFound.
func (p *Passkeys) Person(ctx context.Context, id ID) (Account, []Passkey, error) {
	a, _, err := p.in.cfg.Store.ByID(ctx, id)
	if err == nil && a.Disabled {
		err = ErrUnknown
	}
	if err != nil {
		return Account{}, nil, notFound(err)
	}
	keys, err := p.store.Passkeys(ctx, id)
	return a, keys, err
}

// Add stores a person's passkey. Invalid for the name; Conflict.
func (p *Passkeys) Add(ctx context.Context, k Passkey, addr string) error {
	k.Name = audit.Clip(k.Name, 100)
	if k.Name == "" {
		return errs.New(errs.Invalid, "name is empty: want a name for the passkey")
	}
	a, keys, err := p.Person(ctx, k.Account)
	if err != nil {
		return err
	}
	if len(keys) >= maxPasskeys {
		return errs.Coded(errs.Conflict, "passkeys_full", "%d passkeys is the limit; remove one first", len(keys))
	}
	k.Created = p.in.cfg.Now()
	if err := p.in.announce(ctx, a, addr, "passkey.add", fmt.Sprintf("%x", k.ID)); err != nil {
		return err
	}
	if err := p.store.AddPasskey(ctx, k); errors.Is(err, ErrTaken) {
		return errs.Coded(errs.Conflict, "passkey_known", "this passkey is already registered")
	} else if err != nil {
		return fmt.Errorf("add passkey: %w", err)
	}
	if p.in.cfg.Mail == nil {
		return nil
	}
	return p.in.cfg.Mail.Post(ctx, mail.Mail{Kind: mailPasskeyAdded, To: a.Email, Account: string(a.ID), Data: map[string]string{"name": k.Name}})
}

// Remove forgets one of an account's passkeys. NotFound.
func (p *Passkeys) Remove(ctx context.Context, id ID, key []byte, addr string) error {
	a, _, err := p.in.cfg.Store.ByID(ctx, id)
	if err != nil {
		return notFound(err)
	}
	if err := p.in.announce(ctx, a, addr, "passkey.remove", fmt.Sprintf("%x", key)); err != nil {
		return err
	}
	if err := p.store.RemovePasskey(ctx, id, key); errors.Is(err, ErrUnknown) {
		return errs.New(errs.NotFound, "no such passkey")
	} else if err != nil {
		return fmt.Errorf("remove passkey: %w", err)
	}
	return nil
}

// Login opens a session for the person of a passkey that was just used. after is the credential with its new counter; two uses of the
// same counter at once are one too many.
func (p *Passkeys) Login(ctx context.Context, a Account, k Passkey, after []byte, addr string) (Login, error) {
	err := p.store.UsePasskey(ctx, k.ID, k.Credential, after, p.in.cfg.Now())
	if errors.Is(err, ErrUnknown) {
		return Login{}, PasskeyRefused()
	}
	if err != nil {
		return Login{}, fmt.Errorf("use passkey: %w", err)
	}
	if _, err := p.in.visited(ctx, a.ID, From{Addr: addr}); err != nil {
		return Login{}, err
	}
	if err := p.in.audit(ctx, a, addr, "login", ByPasskey); err != nil {
		return Login{}, err
	}
	return p.in.openFor(ctx, a, ByPasskey, addr)
}

// Cloned notes that a passkey's counter went back: there are two of it.
func (p *Passkeys) Cloned(ctx context.Context, k Passkey, addr string) error {
	return p.in.audit(ctx, Account{ID: k.Account}, addr, "login.refused", fmt.Sprintf("passkey %x: its counter decreased; there may be a copy", k.ID))
}

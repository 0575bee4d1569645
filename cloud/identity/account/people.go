package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/mail"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// SessionInfo is a session as its owner sees it.
type SessionInfo struct {
	ID       string // names it and opens nothing
	App      bool   // a token that an app has for robots
	Created  time.Time
	LastSeen time.Time // zero for an app's
	Expires  time.Time
	Addr     string
	Used     string // the robot that used an app's token
}

// SessionID names a session by its token's hash.
func SessionID(h Hash) string { return fmt.Sprintf("%x", h[:8]) }

// PeopleStore keeps accounts and their records. Its methods are safe for concurrent use.
type PeopleStore interface {
	AccountStore
	// CreateAccount stores a new account and returns it with id and time; ErrTaken.
	CreateAccount(ctx context.Context, a Account, passwordHash string) (Account, error)
	// SetDisabled changes the flag; disabling ends every session. ErrUnknown.
	SetDisabled(ctx context.Context, id ID, disabled bool) error

	// Profile returns an account's; DefaultProfile if it has none; ErrUnknown for an unknown account.
	Profile(ctx context.Context, id ID) (Profile, error)
	// SetProfile stores it; ErrUnknown.
	SetProfile(ctx context.Context, id ID, p Profile) error

	// Sessions lists an account's sessions, those of apps too, newest first.
	Sessions(ctx context.Context, id ID, now time.Time) ([]SessionInfo, error)
	// EndOne ends the session of that id if it is the account's; ErrUnknown.
	EndOne(ctx context.Context, id ID, session string) error
	// EndOthers ends every session of an account but keep and returns how many.
	EndOthers(ctx context.Context, id ID, keep Hash) (int, error)
	// EndSessions ends every session of an account and returns how many there were.
	EndSessions(ctx context.Context, id ID) (int, error)
}

// People is the rules of accounts, of the owner's record and of a person's own sessions. Safe for concurrent use.
type People struct {
	in    *SignIn
	store PeopleStore
}

// NewPeople returns the rules.
func NewPeople(in *SignIn, store PeopleStore) *People { return &People{in, store} }

// CreateAccount makes an account. With an empty password it makes a one-time password, shown only once, and marks the account
// MustChange; else the returned secret is empty. Errors: Invalid for the e-mail, role or password; Conflict "email_taken".
func (p *People) CreateAccount(ctx context.Context, email string, role auth.Role, password logging.Secret) (Account, logging.Secret, error) {
	email, err := normalEmail(email)
	if err != nil {
		return Account{}, "", err
	}
	if !slices.Contains(auth.People, role) {
		return Account{}, "", errs.New(errs.Invalid, "role %.40q: want one of %s", role, errs.List(auth.People))
	}
	var shown logging.Secret
	if password == "" {
		password = oneTime()
		shown = password
	} else if err := checkPassword(password); err != nil {
		return Account{}, "", err
	}
	hash, err := p.in.cfg.Hasher.Hash(ctx, string(password), Share{Known: true})
	if err != nil {
		return Account{}, "", err
	}
	a, err := p.store.CreateAccount(ctx, Account{Email: email, Role: role, MustChange: shown != ""}, hash)
	if errors.Is(err, ErrTaken) {
		return Account{}, "", emailTaken("")
	}
	if err != nil {
		return Account{}, "", fmt.Errorf("create account: %w", err)
	}
	return a, shown, nil
}

// Find returns the account of an e-mail; NotFound.
func (p *People) Find(ctx context.Context, email string) (Account, error) {
	email, err := normalEmail(email)
	if err != nil {
		return Account{}, err
	}
	a, _, err := p.store.ByEmail(ctx, email)
	return a, notFound(err)
}

// SetDisabled stops or allows an account; stopping ends its sessions. NotFound.
func (p *People) SetDisabled(ctx context.Context, id ID, disabled bool) error {
	return notFound(p.store.SetDisabled(ctx, id, disabled))
}

// Bounced notes in the record that an account's e-mail does not take mail. It fits mail.Config.
func (p *People) Bounced(ctx context.Context, m mail.Mail, code string) error {
	a, _, err := p.store.ByEmail(ctx, m.To)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.changeProfile(ctx, a.ID, func(r *Profile) error { r.EmailFailure = audit.Clip(code, 40); return nil })
}

// Addresses returns an account's e-mail; none for an unknown one. It fits mail.Config.
func (p *People) Addresses(ctx context.Context, id string) ([]string, error) {
	a, _, err := p.store.ByID(ctx, ID(id))
	if errors.Is(err, ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{a.Email}, nil
}

func (p *People) changeProfile(ctx context.Context, id ID, change func(*Profile) error) error {
	profile, err := p.store.Profile(ctx, id)
	if err == nil {
		if err = change(&profile); err == nil {
			err = p.store.SetProfile(ctx, id, profile)
		}
	}
	return notFound(err)
}

// Record returns an account's record; NotFound.
func (p *People) Record(ctx context.Context, id ID) (Record, error) {
	a, _, err := p.store.ByID(ctx, id)
	if err != nil {
		return Record{}, notFound(err)
	}
	profile, err := p.store.Profile(ctx, id)
	if err != nil {
		return Record{}, notFound(err)
	}
	if a.Disabled && profile.Status == "active" {
		profile.Status = "deleted" // the original's word for an account that is switched off
	}
	return record(a.ID, a.Email, a.Created, true, profile), nil
}

// Change changes fields of a record; Invalid, NotFound.
func (p *People) Change(ctx context.Context, id ID, c Change) (Record, error) {
	if err := p.changeProfile(ctx, id, func(r *Profile) error { return r.apply(c) }); err != nil {
		return Record{}, err
	}
	return p.Record(ctx, id)
}

// Sessions lists an account's sessions; current is the one that asks.
func (p *People) Sessions(ctx context.Context, id ID, current logging.Secret) (list []SessionInfo, mine string, err error) {
	list, err = p.store.Sessions(ctx, id, p.in.cfg.Now())
	return list, SessionID(current.Sum()), err
}

// EndSession ends one of an account's sessions; NotFound if it is none of them.
func (p *People) EndSession(ctx context.Context, id ID, session, addr string) error {
	if err := p.announce(ctx, id, addr, "session.end"); err != nil {
		return err
	}
	err := p.store.EndOne(ctx, id, session)
	if errors.Is(err, ErrUnknown) {
		return errs.New(errs.NotFound, "no such session")
	}
	return err
}

// EndOtherSessions ends all but the one that asks and returns how many there were.
func (p *People) EndOtherSessions(ctx context.Context, id ID, current logging.Secret, addr string) (int, error) {
	if err := p.announce(ctx, id, addr, "session.end"); err != nil {
		return 0, err
	}
	return p.store.EndOthers(ctx, id, current.Sum())
}

// announce appends a line about what a person, or with a letter an owner, is about to do to the own account.
func (p *People) announce(ctx context.Context, id ID, addr, action string) error {
	return p.in.announce(ctx, Account{ID: id, Role: cmp.Or(auth.CallerFrom(ctx).Role, auth.Owner)}, addr, action, "")
}

package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Sentinels of an OperatorStore.
var (
	ErrNotAdmin  = errors.New("account: not an administrator")
	ErrLastAdmin = errors.New("account: the last administrator")
)

// ErrIdentity is wrapped by the error for a provider's answer that is not accepted; the reason is for the log alone.
var ErrIdentity = errors.New("account: identity provider's answer refused")

// Operator is a person of the staff as administrators see one.
type Operator struct {
	Account
	Sessions int
	LastSeen time.Time // zero: not signed in
}

// OperatorChange is a change to an operator; nil leaves a field.
type OperatorChange struct {
	Role     *auth.Role
	Disabled *bool
	Password *string     // hash of a one-time password; every session and passkey is deleted
	Remove   bool        // begins the deletion
	Log      audit.Entry // is appended to the audit log with the change
}

// Identity is an operator as an identity provider vouches for one.
type Identity struct {
	Issuer, Subject string
	Email           string
	EmailVerified   bool
	Role            auth.Role // by the provider's groups; "": none that we know
}

// OperatorStore keeps the staff. A change, its conditions and its line in the audit log are one transaction: if two administrators demote each
// other at the same moment, the second is refused because they are no longer an administrator. Its methods are safe for concurrent use.
type OperatorStore interface {
	// Operators lists the staff, by e-mail.
	Operators(ctx context.Context, now time.Time) ([]Operator, error)
	// AddOperator stores a new account; ErrNotAdmin if by is none, ErrTaken. Log's object is set to the new id.
	AddOperator(ctx context.Context, by ID, a Account, passwordHash string, log audit.Entry) (Account, error)
	// ChangeOperator changes one of the staff and returns the account as it was. ErrNotAdmin if by is none; ErrUnknown if id is not of the
	// staff; ErrLastAdmin.
	ChangeOperator(ctx context.Context, by, id ID, c OperatorChange) (Account, error)
	// Federate returns the account of an identity. The first sign-in takes the operator with the identity's e-mail, or creates one; later
	// ones find it by issuer and subject. The role becomes the identity's, except that the last administrator stays one. Changes are logged,
	// with object and detail set. ErrTaken if an owner has the e-mail; ErrUnknown if the account is disabled.
	Federate(ctx context.Context, id Identity, passwordHash string, log audit.Entry) (Account, error)
}

// Operators is the staff and its administration. Safe for concurrent use.
type Operators struct {
	in     *SignIn
	people *People
	store  OperatorStore
	order  func(ctx context.Context, id string) error
}

// NewOperators returns the staff's service. order orders the task TaskDelete for a removed operator; nil: the next Privacy.Resume does.
func NewOperators(in *SignIn, people *People, store OperatorStore, order func(ctx context.Context, id string) error) *Operators {
	return &Operators{in, people, store, order}
}

func operatorErr(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnknown):
		return errs.New(errs.NotFound, "no such operator")
	case errors.Is(err, ErrNotAdmin):
		return errs.Coded(errs.Denied, "not_admin", "only an administrator may do this")
	case errors.Is(err, ErrLastAdmin):
		return errs.Coded(errs.Conflict, "last_admin", "this is the last administrator; make another one first")
	case errors.Is(err, ErrTaken):
		return emailTaken("")
	}
	return fmt.Errorf("%s: %w", what, err)
}

func staffRole(role auth.Role) error {
	if !role.Staff() {
		return errs.New(errs.Invalid, "role %.40q: want one of %s", role, errs.List(auth.Staff))
	}
	return nil
}

// By is the administrator who makes a change, and the address of the request.
type By struct {
	ID   ID
	Addr string
}

// entry returns the line for a change that an administrator makes to an operator.
func (by By) entry(action string, id ID, detail string) audit.Entry {
	return audit.Entry{Actor: string(by.ID), Role: auth.Admin, Addr: by.Addr, Action: "operator." + action, Object: string(id), Detail: detail}
}

// line is entry for a line that is written in the transaction of its change.
func (o *Operators) line(ctx context.Context, by By, action string, id ID, detail string) audit.Entry {
	return o.in.cfg.Audit.Stamp(ctx, by.entry(action, id, detail))
}

// List lists the staff.
func (o *Operators) List(ctx context.Context) ([]Operator, error) {
	list, err := o.store.Operators(ctx, o.in.cfg.Now())
	return list, operatorErr("list operators", err)
}

// Add makes an operator's account with a one-time password, shown only once. Errors: Invalid; Conflict "email_taken"; Denied.
func (o *Operators) Add(ctx context.Context, by By, email string, role auth.Role) (Account, logging.Secret, error) {
	email, err := normalEmail(email)
	if err != nil {
		return Account{}, "", err
	}
	if err := staffRole(role); err != nil {
		return Account{}, "", err
	}
	shown := oneTime()
	hash, err := o.in.cfg.Hasher.Hash(ctx, string(shown), Share{by.Addr, true})
	if err != nil {
		return Account{}, "", err
	}
	a, err := o.store.AddOperator(ctx, by.ID, Account{Email: email, Role: role, MustChange: true}, hash, o.line(ctx, by, "add", "", string(role)))
	if err != nil {
		return Account{}, "", operatorErr("add operator", err)
	}
	return a, shown, nil
}

// SetRole gives an operator another role. Administrators may lower themselves while there is another one. Errors: Invalid; NotFound; Denied;
// Conflict "last_admin".
func (o *Operators) SetRole(ctx context.Context, by By, id ID, role auth.Role) error {
	if err := staffRole(role); err != nil {
		return err
	}
	_, err := o.store.ChangeOperator(ctx, by.ID, id, OperatorChange{Role: &role, Log: o.line(ctx, by, "role", id, string(role))})
	return operatorErr("set role", err)
}

// SetDisabled stops or allows an operator; stopping ends the sessions. Errors as SetRole.
func (o *Operators) SetDisabled(ctx context.Context, by By, id ID, disabled bool) error {
	action := "enable"
	if disabled {
		action = "disable"
	}
	_, err := o.store.ChangeOperator(ctx, by.ID, id, OperatorChange{Disabled: &disabled, Log: o.line(ctx, by, action, id, "")})
	return operatorErr(action+" operator", err)
}

// Reset gives an operator a one-time password, shown only once, and deletes their sessions and passkeys. Errors as SetRole; Denied for
// oneself: change the own password instead.
func (o *Operators) Reset(ctx context.Context, by By, id ID) (logging.Secret, error) {
	if by.ID == id {
		return "", errs.Coded(errs.Denied, "own_password", "to change your own password, give the old one")
	}
	shown := oneTime()
	hash, err := o.in.cfg.Hasher.Hash(ctx, string(shown), Share{by.Addr, true})
	if err != nil {
		return "", err
	}
	if _, err := o.store.ChangeOperator(ctx, by.ID, id, OperatorChange{Password: &hash, Log: o.line(ctx, by, "password", id, "")}); err != nil {
		return "", operatorErr("reset operator", err)
	}
	return shown, nil
}

// Remove ends an operator's account; what is held about the person is erased like an owner's. Errors as SetRole.
func (o *Operators) Remove(ctx context.Context, by By, id ID) error {
	if _, err := o.store.ChangeOperator(ctx, by.ID, id, OperatorChange{Remove: true, Log: o.line(ctx, by, "remove", id, "")}); err != nil {
		return operatorErr("remove operator", err)
	}
	if o.order == nil {
		return nil // Privacy.Resume finds it
	}
	return o.order(ctx, string(id))
}

// check is nil for an id of the staff.
func (o *Operators) check(ctx context.Context, id ID) error {
	a, _, err := o.in.cfg.Store.ByID(ctx, id)
	if err == nil && !a.Role.Staff() {
		err = ErrUnknown
	}
	return operatorErr("read operator", err)
}

// Sessions lists where an operator is signed in. NotFound.
func (o *Operators) Sessions(ctx context.Context, id ID) ([]SessionInfo, error) {
	if err := o.check(ctx, id); err != nil {
		return nil, err
	}
	return o.people.store.Sessions(ctx, id, o.in.cfg.Now())
}

// EndSession ends one session of an operator, or with "" all of them, and returns how many. NotFound.
func (o *Operators) EndSession(ctx context.Context, by By, id ID, session string) (n int, err error) {
	if err := o.check(ctx, id); err != nil {
		return 0, err
	}
	if err := o.in.cfg.Audit.Announce(ctx, by.entry("sessions", id, "")); err != nil {
		return 0, err
	}
	if session == "" {
		n, err = o.people.store.EndSessions(ctx, id)
	} else {
		n, err = 1, o.people.store.EndOne(ctx, id, session)
	}
	if errors.Is(err, ErrUnknown) {
		return 0, errs.New(errs.NotFound, "no such session")
	}
	if err != nil {
		return 0, fmt.Errorf("end sessions: %w", err)
	}
	return n, nil
}

// Pace is SignIn.Pace.
func (o *Operators) Pace(addr string) error { return o.in.Pace(addr) }

// LoginIdentity opens a session for an identity that a provider has just vouched for. An operator without an account gets one, with an unknown
// random password; the provider's word on the role holds at each sign-in. Errors: Denied "oidc_email" without a verified e-mail, "oidc_role"
// without a role, "oidc_account" for an e-mail that is an owner's and for an account that is disabled.
func (o *Operators) LoginIdentity(ctx context.Context, id Identity, addr string) (Login, error) {
	refused := func(code, format string, args ...any) (Login, error) {
		if err := o.in.audit(ctx, Account{}, addr, "login.refused", code); err != nil {
			return Login{}, err
		}
		return Login{}, errs.Coded(errs.Denied, code, format, args...)
	}
	if id.Issuer == "" || id.Subject == "" {
		return Login{}, errs.New(errs.Invalid, "identity without issuer or subject")
	}
	email, err := normalEmail(id.Email)
	if err != nil || !id.EmailVerified {
		return refused("oidc_email", "the identity provider does not vouch for an e-mail address")
	}
	if !id.Role.Staff() {
		return refused("oidc_role", "the identity provider gives you no role here; ask an administrator for one")
	}
	id.Email = email
	hash, err := o.in.cfg.Hasher.Hash(ctx, rand.Text(), Share{addr, true}) // e-mail and password open nothing until the person sets one by letter
	if err != nil {
		return Login{}, err
	}
	a, err := o.store.Federate(ctx, id, hash, o.in.cfg.Audit.Stamp(ctx, audit.Entry{Addr: addr}))
	switch {
	case errors.Is(err, ErrTaken), errors.Is(err, ErrUnknown):
		return refused("oidc_account", "this account may not sign in with the identity provider; ask an administrator")
	case err != nil:
		return Login{}, fmt.Errorf("read identity: %w", err)
	}
	if err := o.in.audit(ctx, a, addr, "login", ByOIDC); err != nil {
		return Login{}, err
	}
	return o.in.openFor(ctx, a, ByOIDC, addr)
}

package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// DefaultOperatorIdle is how long an operator's session lasts without being used: ours, no source gives it.
const DefaultOperatorIdle = 12 * time.Hour

// Ways to open a session.
const (
	ByPassword = "password"
	ByIssue    = "issued" // for a program that proved itself another way
	ByOIDC     = "oidc"
	ByPasskey  = "passkey"
)

// Sentinels of an OperatorStore.
var (
	ErrNotAdmin  = errors.New("account: not an administrator")
	ErrLastAdmin = errors.New("account: the last administrator")
)

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
	Password *string // hash of a one-time password; every session ends, and the passkeys go
	Remove   bool    // begins the deletion
	Log      Entry   // goes into the audit log with it
}

// OperatorStore keeps the staff. A change, its conditions and its line in the audit log are one transaction: of two administrators who demote
// each other at the same moment one is second, and is none any more.
type OperatorStore interface {
	// Operators lists the staff, by e-mail.
	Operators(ctx context.Context, now time.Time) ([]Operator, error)
	// AddOperator stores a new account; ErrNotAdmin if by is none, ErrTaken. Log's object is set to the new id.
	AddOperator(ctx context.Context, by ID, a Account, passwordHash string, log Entry) (Account, error)
	// ChangeOperator changes one of the staff and returns the account as it was. ErrNotAdmin if by is none; ErrUnknown if id is not of the
	// staff; ErrLastAdmin.
	ChangeOperator(ctx context.Context, by, id ID, c OperatorChange) (Account, error)

	// Sessions lists an account's sessions, those of apps too, newest first.
	Sessions(ctx context.Context, id ID, now time.Time) ([]SessionInfo, error)
	// EndOne ends the session of that id if it is the account's; ErrUnknown.
	EndOne(ctx context.Context, id ID, session string) error
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
		return errs.Coded(errs.Conflict, "email_taken", "there is an account for this e-mail")
	}
	return fmt.Errorf("%s: %w", what, err)
}

func staffRole(role auth.Role) error {
	if !role.Staff() {
		return errs.New(errs.Invalid, "role %.40q: want one of %s", role, errs.List(auth.Staff))
	}
	return nil
}

// By is who administers, from where.
type By struct {
	ID   ID
	Addr string
}

// log is the line for what an administrator did to an operator.
func (s *Service) operatorEntry(by By, action string, id ID, detail string) Entry {
	return Entry{At: s.cfg.Now(), Actor: string(by.ID), Role: auth.Admin, Addr: clip(by.Addr, 2000), Action: "operator." + action, Object: string(id), Detail: detail}
}

// Operators lists the staff.
func (s *Service) Operators(ctx context.Context) ([]Operator, error) {
	list, err := s.cfg.Store.Operators(ctx, s.cfg.Now())
	return list, operatorErr("list operators", err)
}

// AddOperator makes an operator's account with a one-time password, which is returned this once. Errors: Invalid; Conflict "email_taken"; Denied.
func (s *Service) AddOperator(ctx context.Context, by By, email string, role auth.Role) (Account, logging.Secret, error) {
	email, err := normalEmail(email)
	if err != nil {
		return Account{}, "", err
	}
	if err := staffRole(role); err != nil {
		return Account{}, "", err
	}
	shown := oneTime()
	hash, err := s.cfg.Hasher.Hash(ctx, string(shown))
	if err != nil {
		return Account{}, "", err
	}
	a, err := s.cfg.Store.AddOperator(ctx, by.ID, Account{Email: email, Role: role, MustChange: true}, hash, s.operatorEntry(by, "add", "", string(role)))
	if err != nil {
		return Account{}, "", operatorErr("add operator", err)
	}
	return a, shown, nil
}

// SetRole gives an operator another role. Administrators may lower themselves while there is another one. Errors: Invalid; NotFound; Denied;
// Conflict "last_admin".
func (s *Service) SetRole(ctx context.Context, by By, id ID, role auth.Role) error {
	if err := staffRole(role); err != nil {
		return err
	}
	_, err := s.cfg.Store.ChangeOperator(ctx, by.ID, id, OperatorChange{Role: &role, Log: s.operatorEntry(by, "role", id, string(role))})
	return operatorErr("set role", err)
}

// SetOperatorDisabled stops or allows an operator; stopping ends the sessions. Errors as SetRole.
func (s *Service) SetOperatorDisabled(ctx context.Context, by By, id ID, disabled bool) error {
	action := "enable"
	if disabled {
		action = "disable"
	}
	_, err := s.cfg.Store.ChangeOperator(ctx, by.ID, id, OperatorChange{Disabled: &disabled, Log: s.operatorEntry(by, action, id, "")})
	return operatorErr(action+" operator", err)
}

// ResetOperator gives an operator a one-time password, which is returned this once, ends the sessions and forgets the passkeys. Errors as SetRole; Denied for
// oneself, who changes the password.
func (s *Service) ResetOperator(ctx context.Context, by By, id ID) (logging.Secret, error) {
	if by.ID == id {
		return "", errs.Coded(errs.Denied, "own_password", "change your own password with the old one")
	}
	shown := oneTime()
	hash, err := s.cfg.Hasher.Hash(ctx, string(shown))
	if err != nil {
		return "", err
	}
	if _, err := s.cfg.Store.ChangeOperator(ctx, by.ID, id, OperatorChange{Password: &hash, Log: s.operatorEntry(by, "password", id, "")}); err != nil {
		return "", operatorErr("reset operator", err)
	}
	return shown, nil
}

// RemoveOperator ends an operator's account; what is held about the person is erased like an owner's. Errors as SetRole.
func (s *Service) RemoveOperator(ctx context.Context, by By, id ID) error {
	if _, err := s.cfg.Store.ChangeOperator(ctx, by.ID, id, OperatorChange{Remove: true, Log: s.operatorEntry(by, "remove", id, "")}); err != nil {
		return operatorErr("remove operator", err)
	}
	if s.order == nil {
		return nil // the periodic job finds it
	}
	return s.order(ctx, string(id))
}

// isOperator is nil for an id of the staff.
func (s *Service) isOperator(ctx context.Context, id ID) error {
	a, _, err := s.cfg.Store.ByID(ctx, id)
	if err == nil && !a.Role.Staff() {
		err = ErrUnknown
	}
	return operatorErr("read operator", err)
}

// OperatorSessions lists where an operator is signed in. NotFound.
func (s *Service) OperatorSessions(ctx context.Context, id ID) ([]SessionInfo, error) {
	if err := s.isOperator(ctx, id); err != nil {
		return nil, err
	}
	return s.cfg.Store.Sessions(ctx, id, s.cfg.Now())
}

// EndOperatorSession ends one session of an operator, or with "" all of them, and returns how many. NotFound.
func (s *Service) EndOperatorSession(ctx context.Context, by By, id ID, session string) (n int, err error) {
	if err := s.isOperator(ctx, id); err != nil {
		return 0, err
	}
	if session == "" {
		n, err = s.cfg.Store.EndSessions(ctx, id)
	} else {
		n, err = 1, s.cfg.Store.EndOne(ctx, id, session)
	}
	if errors.Is(err, ErrUnknown) {
		return 0, errs.New(errs.NotFound, "no such session")
	}
	if err != nil {
		return 0, fmt.Errorf("end sessions: %w", err)
	}
	return n, s.Audit(ctx, s.operatorEntry(by, "sessions", id, fmt.Sprint(n, " ended")))
}

// OnlyNewPassword reports whether a session is good for choosing another password and for nothing else: an operator's, opened with a first
// password that another person has seen.
func OnlyNewPassword(a Account, s Session) bool {
	return a.MustChange && a.Role.Staff() && s.Method == ByPassword
}

// idle reports whether an operator's session was left alone for too long. A program's token file is not watched by a person and has its
// absolute end alone.
func (s *Service) idle(a Account, x Session, now time.Time) bool {
	return a.Role.Staff() && x.Method != ByIssue && now.Sub(x.LastSeen) > s.cfg.OperatorIdle
}

// StillGood reports whether a request under way may continue: its session exists and its account has at least the rights that it had when the
// request began. The end of a duty to choose another password does not end it. It does not count as a use. Errors are for a check that
// could not be made.
func (s *Service) StillGood(ctx context.Context, token logging.Secret, began Account) (bool, error) {
	now := s.cfg.Now()
	x, a, err := s.cfg.Store.Session(ctx, token.Sum(), now)
	if errors.Is(err, ErrUnknown) {
		return false, nil
	}
	return err == nil && a.Role == began.Role && (began.MustChange || !a.MustChange) && !s.idle(a, x, now), err
}

// ChangePassword is Service.ChangePassword.
func (o *Owners) ChangePassword(ctx context.Context, id ID, old, changed, keep logging.Secret, addr string) error {
	return o.cfg.Accounts.ChangePassword(ctx, id, old, changed, keep, addr)
}

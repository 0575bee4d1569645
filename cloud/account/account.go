// Package account holds the rules about people: accounts with a role, passwords, sessions, and the record of what they did (design
// section 6, VEC-SEC-07).
//
// A wrong password and an unknown e-mail cost the same work and get the same answer. Failures slow down both the address they come from and
// the e-mail they aim at, known or not, in every process at once, because they are counted in the database. Tokens and passwords are stored
// as hashes only.
//
// Service is sign-in for all people; Owners is self-service: sign up, prove an e-mail, reset a password, export all
// data, leave.
//
// The packages below: accountpg (storage), accounthash (argon2id), accountapi (HTTP, and the middleware that says who calls).
package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Bounds and defaults: ours, no source gives them.
const (
	DefaultSessionTTL = 7 * 24 * time.Hour
	MinPassword       = 10  // characters
	MaxPassword       = 256 // bytes
	maxEmail          = 254 // bytes, the most that mail carries
	freeTries         = 5   // wrong passwords for one e-mail before it is locked
	firstLock         = 30 * time.Second
	maxLock           = 15 * time.Minute
	attemptMemory     = 24 * time.Hour // after which a failure is forgotten
	touchEvery        = time.Minute    // how exact a session's last use is kept
)

// Sentinels of a Store.
var (
	ErrUnknown = errors.New("account: not known")
	ErrTaken   = errors.New("account: e-mail is taken")
)

// ID names an account: a UUID.
type ID string

// Account is a person's.
type Account struct {
	ID         ID
	Email      string // lower case
	Role       auth.Role
	MustChange bool // the password is a first one that another person has seen
	Disabled   bool
	Created    time.Time
}

// Session is a signed-in program or browser.
type Session struct {
	Account  ID
	Created  time.Time
	LastSeen time.Time // to the minute
	Expires  time.Time
	Addr     string // where it was last used
	Method   string // how it was opened: ByPassword and the others
}

// Hash is the SHA-256 of a session token, or of an e-mail for counting attempts.
type Hash [sha256.Size]byte

// Entry is one line of the audit log. Actor is an account id or a thing id; a name is joined on reading, so that a deleted person leaves none.
type Entry struct {
	ID     int64 // set by the store: its place, from 1 on without gaps
	At     time.Time
	Actor  string
	Name   string // of the actor, if the account still exists; only on reading
	Role   auth.Role
	Addr   string
	Action string // such as "thing.register"
	Object string // what was acted on
	Detail string
}

// Store is the storage that Service needs. Its methods are safe for concurrent use.
type Store interface {
	// CreateAccount stores a new account and returns it with id and time; ErrTaken.
	CreateAccount(ctx context.Context, a Account, passwordHash string) (Account, error)
	// ByEmail returns an account and its password's hash; ErrUnknown.
	ByEmail(ctx context.Context, email string) (Account, string, error)
	// ByID is ByEmail by id.
	ByID(ctx context.Context, id ID) (Account, string, error)
	// SetPassword replaces the password, clears MustChange, and ends every session but keep, those of apps too, all or nothing. complex is the
	// complexity that the owner's record gets.
	SetPassword(ctx context.Context, id ID, passwordHash string, complex bool, keep Hash) error
	// SetDisabled changes the flag; disabling ends every session. ErrUnknown.
	SetDisabled(ctx context.Context, id ID, disabled bool) error

	// CreateSession stores a session under its token's hash.
	CreateSession(ctx context.Context, token Hash, s Session) error
	// Session returns a session that has not expired at now, and its account, unless that is disabled; ErrUnknown.
	Session(ctx context.Context, token Hash, now time.Time) (Session, Account, error)
	// Touch notes a session's last use.
	Touch(ctx context.Context, token Hash, at time.Time, addr string) error
	// EndSession forgets a session; one that is not there is no error.
	EndSession(ctx context.Context, token Hash) error
	// EndSessions ends every session of an account and returns how many there were.
	EndSessions(ctx context.Context, id ID) (int, error)

	// Failures returns how often in a row this key failed, and when last; 0 if never.
	Failures(ctx context.Context, key Hash) (int, time.Time, error)
	// Fail counts one more failure of key and returns how many there are now.
	Fail(ctx context.Context, key Hash, at time.Time) (int, error)
	// Forgive forgets the failures of key.
	Forgive(ctx context.Context, key Hash) error

	AuditStore
	OperatorStore
	IdentityStore
	PasskeyStore

	// Prune forgets sessions that expired before now and failures from before old.
	Prune(ctx context.Context, now, old time.Time) error
}

// Hasher hashes passwords, slowly on purpose. It bounds how many it works on at once.
type Hasher interface {
	Hash(ctx context.Context, password string) (string, error)
	// Verify reports whether password is the one that was hashed. Errors are for hashes that are damaged and for a load that is too high.
	Verify(ctx context.Context, hash, password string) (bool, error)
}

// Limiter paces attempts by key. Allow takes one and returns 0, or how long to wait.
type Limiter interface {
	Allow(key string) time.Duration
}

// Config holds what Service is made of. Store, Hasher and ByAddr are required.
type Config struct {
	Store      Store
	Hasher     Hasher
	ByAddr     Limiter       // login attempts per peer address
	SessionTTL time.Duration // 0: DefaultSessionTTL

	OperatorTTL  time.Duration // absolute end of an operator's session; 0: SessionTTL
	OperatorIdle time.Duration // an operator's session ends when it was not used for so long; 0: DefaultOperatorIdle

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // gets an anchor of the audit log each hour, so that one is kept outside the database; nil: none
}

// Service is the rules. Safe for concurrent use.
type Service struct {
	cfg    Config
	nobody string // hash of no one's password, checked for unknown e-mails

	passwordChanged func(ctx context.Context, a Account) error // tells the person; set by NewOwners
	order           func(ctx context.Context, id string) error // orders TaskDelete; set by NewOwners
}

// New checks cfg and returns the service.
func New(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Hasher == nil || cfg.ByAddr == nil {
		return nil, errors.New("account: store, hasher and rate limit are required")
	}
	if cfg.SessionTTL == 0 {
		cfg.SessionTTL = DefaultSessionTTL
	}
	if cfg.OperatorTTL == 0 {
		cfg.OperatorTTL = cfg.SessionTTL
	}
	if cfg.OperatorIdle == 0 {
		cfg.OperatorIdle = DefaultOperatorIdle
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	nobody, err := cfg.Hasher.Hash(ctx, rand.Text())
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	return &Service{cfg: cfg, nobody: nobody}, nil
}

// CreateAccount makes an account. With an empty password it makes a one-time password, which is returned this once and marks the account
// MustChange; else the returned secret is empty. Errors: Invalid for the e-mail, role or password; Conflict "email_taken".
func (s *Service) CreateAccount(ctx context.Context, email string, role auth.Role, password logging.Secret) (Account, logging.Secret, error) {
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
	hash, err := s.cfg.Hasher.Hash(ctx, string(password))
	if err != nil {
		return Account{}, "", err
	}
	a, err := s.cfg.Store.CreateAccount(ctx, Account{Email: email, Role: role, MustChange: shown != ""}, hash)
	if errors.Is(err, ErrTaken) {
		return Account{}, "", errs.Coded(errs.Conflict, "email_taken", "there is an account for this e-mail")
	}
	if err != nil {
		return Account{}, "", fmt.Errorf("create account: %w", err)
	}
	return a, shown, nil
}

// oneTime returns a password of 80 random bits that people can type.
func oneTime() logging.Secret {
	t := strings.ToLower(rand.Text())
	return logging.Secret(strings.Join([]string{t[0:4], t[4:8], t[8:12], t[12:16]}, "-"))
}

// Find returns the account of an e-mail; NotFound.
func (s *Service) Find(ctx context.Context, email string) (Account, error) {
	email, err := normalEmail(email)
	if err != nil {
		return Account{}, err
	}
	a, _, err := s.cfg.Store.ByEmail(ctx, email)
	return a, notFound(err)
}

// SetDisabled stops or allows an account; stopping ends its sessions. NotFound.
func (s *Service) SetDisabled(ctx context.Context, id ID, disabled bool) error {
	return notFound(s.cfg.Store.SetDisabled(ctx, id, disabled))
}

func notFound(err error) error {
	if errors.Is(err, ErrUnknown) {
		return errs.New(errs.NotFound, "no such account")
	}
	return err
}

// ChangePassword replaces a password that the caller knows and ends every session but the one of keep. Wrong old passwords count as failed
// logins. Errors: Unauthenticated "wrong_password"; Invalid for the new one; Exhausted.
func (s *Service) ChangePassword(ctx context.Context, id ID, old, changed, keep logging.Secret, addr string) error {
	a, hash, err := s.cfg.Store.ByID(ctx, id)
	if err != nil {
		return notFound(err)
	}
	if err := checkPassword(changed); err != nil {
		return err
	}
	if changed == old {
		return errs.New(errs.Invalid, "the new password is the old one")
	}
	ok, err := s.guess(ctx, a.Email, hash, old, addr)
	if err != nil {
		return err
	}
	if !ok {
		return errs.Coded(errs.Unauthenticated, "wrong_password", "the old password is wrong")
	}
	next, err := s.cfg.Hasher.Hash(ctx, string(changed))
	if err != nil {
		return err
	}
	if err := s.cfg.Store.SetPassword(ctx, id, next, complexPassword(changed), keep.Sum()); err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	if s.passwordChanged != nil {
		if err := s.passwordChanged(ctx, a); err != nil {
			return err
		}
	}
	return s.Audit(ctx, Entry{Actor: string(id), Role: a.Role, Addr: addr, Action: "password.change", Object: string(id)})
}

// Audit appends a line to the audit log. At is set here; text beyond 2000 bytes is cut.
func (s *Service) Audit(ctx context.Context, e Entry) error {
	e.At = s.cfg.Now()
	for _, f := range []*string{&e.Actor, &e.Addr, &e.Action, &e.Object, &e.Detail} {
		*f = clip(*f, 2000)
	}
	if err := s.cfg.Store.Audit(ctx, e); err != nil {
		return fmt.Errorf("audit %s: %w", e.Action, err)
	}
	return nil
}

// clip makes text fit for a column: valid, without zero bytes, at most n bytes.
func clip(s string, n int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// AuditLog returns lines with an id below before (0: from the newest), newest first. limit is 1 to 1000; 0 means 100.
func (s *Service) AuditLog(ctx context.Context, before int64, limit int) ([]Entry, error) {
	if limit == 0 {
		limit = 100
	}
	if before < 0 || limit < 0 || limit > 1000 {
		return nil, errs.New(errs.Invalid, "before %d, limit %d: want before of 0 or more and limit of 1 to 1000", before, limit)
	}
	return s.cfg.Store.AuditLog(ctx, before, limit)
}

// Run forgets expired sessions, old failures and addresses once an hour, and logs an anchor of the audit log, until ctx ends. It is a service of the runner; n processes may run it at once.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		now := s.cfg.Now()
		if err := s.cfg.Store.Prune(ctx, now, now.Add(-attemptMemory)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("prune accounts: %w", err)
		}
		if err := s.cfg.Store.PruneAudit(ctx, now.Add(-auditAddrMemory)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("prune addresses of the audit log: %w", err)
		}
		if head, err := s.AuditHead(ctx); err == nil {
			s.cfg.Log.InfoContext(ctx, "audit log anchored", "anchor", head.String())
		} else if ctx.Err() == nil {
			return fmt.Errorf("read the head of the audit log: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// normalEmail returns the e-mail in lower case; Invalid if it is none.
func normalEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > maxEmail || strings.ContainsRune(email, 0) {
		return "", errs.Coded(errs.Invalid, "email_malformed", "e-mail %.80q: want name@host, at most %d bytes", email, maxEmail)
	}
	return email, nil
}

func checkPassword(p logging.Secret) error {
	switch n := utf8.RuneCountInString(string(p)); {
	case len(p) > MaxPassword:
		return errs.Coded(errs.Invalid, "password_long", "password of %d bytes: want at most %d", len(p), MaxPassword)
	case n < MinPassword:
		return errs.Coded(errs.Invalid, "password_short", "password of %d characters: want at least %d", n, MinPassword)
	}
	return nil
}

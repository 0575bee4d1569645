package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/mail"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
)

// Bounds and defaults of sign-in: ours, no source gives them.
const (
	DefaultSessionTTL   = 7 * 24 * time.Hour
	DefaultOperatorIdle = 12 * time.Hour // an unused operator's session ends after this time
	touchEvery          = time.Minute    // how exact a session's last use is kept
)

// tokenPrefix marks session tokens, so that people and scanners recognise one that got loose.
const tokenPrefix = "kst_"

// Ways to open a session.
const (
	ByPassword = "password"
	ByIssue    = "issued" // for a program that proved itself another way
	ByOIDC     = "oidc"
	ByPasskey  = "passkey"
)

// Session is a signed-in program or browser.
type Session struct {
	Account  ID
	Created  time.Time
	LastSeen time.Time // to the minute
	Expires  time.Time
	Addr     string // where it was last used
	Method   string // how it was opened: ByPassword and the others
}

// Login is a new session.
type Login struct {
	Token   logging.Secret // shown only once
	Account Account
	Expires time.Time
	Device  logging.Secret // makes the browser known: From.Device next time; "": there is no browser
}

// AccountStore finds accounts. Its methods are safe for concurrent use.
type AccountStore interface {
	// ByEmail returns an account and its password's hash; ErrUnknown.
	ByEmail(ctx context.Context, email string) (Account, string, error)
	// ByID is ByEmail by id.
	ByID(ctx context.Context, id ID) (Account, string, error)
}

// SignInStore keeps passwords and sessions. Its methods are safe for concurrent use.
type SignInStore interface {
	AccountStore
	// SetPassword replaces the password, clears MustChange, and ends every session but keep, those of apps too, all or nothing. complex is the
	// complexity that the owner's record gets.
	SetPassword(ctx context.Context, id ID, passwordHash string, complex bool, keep Hash) error
	// CreateSession stores a session under its token's hash.
	CreateSession(ctx context.Context, token Hash, s Session) error
	// Session returns a session that has not expired at now, and its account, unless the account is disabled; ErrUnknown.
	Session(ctx context.Context, token Hash, now time.Time) (Session, Account, error)
	// Touch notes a session's last use.
	Touch(ctx context.Context, token Hash, at time.Time, addr string) error
	// EndSession deletes a session; an unknown one is no error.
	EndSession(ctx context.Context, token Hash) error
	// Prune deletes sessions that expired before now and failures from before old.
	Prune(ctx context.Context, now, old time.Time) error
}

// Mailer takes letters: a mail.Queue.
type Mailer interface {
	Post(ctx context.Context, m mail.Mail) error
}

// SignInConfig configures SignIn. Store, Attempts, Audit, Hasher and ByAddr are required.
type SignInConfig struct {
	Store      SignInStore
	Attempts   AttemptStore
	Audit      *audit.Log
	Hasher     Hasher
	ByAddr     Limiter       // login attempts per peer address
	Secret     []byte        // signs what makes browsers known; nil: they are known until this process ends
	Instance   string        // short name of this cloud, the same in all its processes, in the names of cookies on loopback hosts; "": none
	SessionTTL time.Duration // 0: DefaultSessionTTL
	Mail       Mailer        // tells people that their password was changed; nil: no letters

	// RequireSecond leaves an operator without a second factor nothing to do but to set one up.
	RequireSecond bool

	OperatorTTL  time.Duration // absolute end of an operator's session; 0: SessionTTL
	OperatorIdle time.Duration // an unused operator's session ends after this time; 0: DefaultOperatorIdle

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // gets an anchor of the audit log each hour; nil: none
}

// SignIn is the rules of passwords and sessions. Safe for concurrent use.
//
// A wrong password and an unknown e-mail cost the same work and get the same answer. Failures slow down the address they come from and, in every
// process at once, because the database counts them, strangers at the e-mail they aim at, known or not. Strangers do not slow down browsers and
// addresses that signed in well before (ADR 0021). Tokens and passwords are stored as hashes only.
type SignIn struct {
	cfg   SignInConfig
	decoy string // hash of no account's password, checked for unknown e-mails
}

// NewSignIn checks cfg and returns the service.
func NewSignIn(ctx context.Context, cfg SignInConfig) (*SignIn, error) {
	if cfg.Store == nil || cfg.Attempts == nil || cfg.Audit == nil || cfg.Hasher == nil || cfg.ByAddr == nil {
		return nil, errors.New("account: stores, audit log, hasher and rate limit are required")
	}
	if cfg.SessionTTL == 0 {
		cfg.SessionTTL = DefaultSessionTTL
	}
	if cfg.Secret == nil {
		cfg.Secret = []byte(rand.Text())
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
	decoy, err := cfg.Hasher.Hash(ctx, rand.Text(), Share{Known: true})
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	return &SignIn{cfg: cfg, decoy: decoy}, nil
}

// Instance returns SignInConfig.Instance.
func (s *SignIn) Instance() string { return s.cfg.Instance }

// Run deletes expired sessions, old failures and old addresses once an hour, and logs an anchor of the audit log, until ctx ends. It is a
// service of the runner; n processes may run it at once.
func (s *SignIn) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		now := s.cfg.Now()
		err := s.cfg.Store.Prune(ctx, now, now.Add(-attemptMemory))
		if err == nil {
			err = s.cfg.Audit.Keep(ctx, s.cfg.Log)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("prune accounts: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Login is LoginFrom of a program, or of a browser that is not known.
func (s *SignIn) Login(ctx context.Context, email string, password logging.Secret, addr string) (Login, error) {
	return s.LoginFrom(ctx, email, password, From{Addr: addr})
}

// LoginFrom checks a password and opens a session. Errors: Unauthenticated "login_refused" for an unknown e-mail, a wrong password and a disabled
// account alike; Exhausted with a pause.
func (s *SignIn) LoginFrom(ctx context.Context, email string, password logging.Secret, from From) (Login, error) {
	a, err := s.check(ctx, email, password, from)
	if err != nil {
		return Login{}, err
	}
	var device logging.Secret
	if s.Lacks(a, Session{Method: ByPassword}) == LacksNothing { // else the code makes the place known
		if device, err = s.visited(ctx, a.ID, from); err != nil {
			return Login{}, err
		}
	}
	l, err := s.openFor(ctx, a, ByPassword, from.Addr)
	l.Device = device
	return l, err
}

// openFor opens a session that lasts as long as the role's sessions do.
func (s *SignIn) openFor(ctx context.Context, a Account, method, addr string) (Login, error) {
	ttl := s.cfg.SessionTTL
	if a.Role.Staff() {
		ttl = s.cfg.OperatorTTL
	}
	return s.open(ctx, a, ttl, method, addr)
}

// check is Login without the session.
func (s *SignIn) check(ctx context.Context, email string, password logging.Secret, from From) (Account, error) {
	addr := from.Addr
	a, hash, err := s.byEmail(ctx, email)
	if err != nil {
		return Account{}, err
	}
	l, err := s.laneOf(ctx, a.ID, email, from)
	if err != nil {
		return Account{}, err
	}
	ok, err := s.guess(ctx, l, hash, password, addr)
	if err != nil {
		return Account{}, err
	}
	if !ok || a.ID == "" || a.Disabled {
		// Written for unknown e-mails too, without the e-mail: the time it takes tells nothing.
		if err := s.audit(ctx, a, addr, "login.refused", ""); err != nil {
			return Account{}, err
		}
		return Account{}, errs.Coded(errs.Unauthenticated, "login_refused", "wrong e-mail or password")
	}
	return a, s.audit(ctx, a, addr, "login", "")
}

// inside is the lane of a signed-in person who is asked for the password again.
func inside(a Account) lane { return lane{key: laneKey("login "+a.Email, "inside")} }

// Confirm checks the password of a signed-in person. Errors: Unauthenticated "wrong_password"; Exhausted; NotFound.
func (s *SignIn) Confirm(ctx context.Context, id ID, password logging.Secret, addr string) (Account, error) {
	a, hash, err := s.cfg.Store.ByID(ctx, id)
	if err != nil {
		return Account{}, notFound(err)
	}
	ok, err := s.guess(ctx, inside(a), hash, password, addr)
	if err != nil {
		return Account{}, err
	}
	if !ok {
		return Account{}, errs.Coded(errs.Unauthenticated, "wrong_password", "the password is wrong")
	}
	return a, nil
}

// byEmail returns the zero account and the hash of no one's password for an unknown or malformed e-mail, so that the work that follows is
// the same.
func (s *SignIn) byEmail(ctx context.Context, email string) (Account, string, error) {
	email, err := normalEmail(email)
	if err != nil {
		email = "nobody" // no account has it
	}
	a, hash, err := s.cfg.Store.ByEmail(ctx, email)
	if errors.Is(err, ErrUnknown) {
		return Account{}, s.decoy, nil
	}
	if err != nil {
		return Account{}, "", fmt.Errorf("read account: %w", err)
	}
	return a, hash, nil
}

// Pace takes one attempt from an address's share: Exhausted if there is none.
func (s *SignIn) Pace(addr string) error {
	if wait := s.cfg.ByAddr.Allow(addr); wait > 0 {
		return slowDown(wait)
	}
	return nil
}

// IssueSession opens a session without a password, for a program that proved itself another way (the operator's token file of one-machine
// mode). NotFound for an unknown account.
func (s *SignIn) IssueSession(ctx context.Context, id ID, ttl time.Duration) (Login, error) {
	a, _, err := s.cfg.Store.ByID(ctx, id)
	if err != nil {
		return Login{}, notFound(err)
	}
	if err := s.audit(ctx, a, "", "session.issue", ttl.String()); err != nil {
		return Login{}, err
	}
	return s.open(ctx, a, ttl, ByIssue, "")
}

func (s *SignIn) open(ctx context.Context, a Account, ttl time.Duration, method, addr string) (Login, error) {
	token := logging.Secret(tokenPrefix + rand.Text())
	now := s.cfg.Now()
	err := s.cfg.Store.CreateSession(ctx, token.Sum(), Session{Account: a.ID, Created: now, LastSeen: now, Expires: now.Add(ttl), Addr: addr, Method: method})
	if err != nil {
		return Login{}, fmt.Errorf("open session: %w", err)
	}
	return Login{Token: token, Account: a, Expires: now.Add(ttl)}, nil
}

// Authenticate returns whose session a token is. Errors: Unauthenticated "session_over" for a token that is unknown, expired or revoked, and
// for a disabled account.
func (s *SignIn) Authenticate(ctx context.Context, token logging.Secret, addr string) (Account, Session, error) {
	over := errs.Coded(errs.Unauthenticated, "session_over", "this session has ended: sign in again")
	if !strings.HasPrefix(string(token), tokenPrefix) || len(token) > 64 {
		return Account{}, Session{}, over
	}
	now := s.cfg.Now()
	sess, a, err := s.cfg.Store.Session(ctx, token.Sum(), now)
	if errors.Is(err, ErrUnknown) {
		return Account{}, Session{}, over
	}
	if err != nil {
		return Account{}, Session{}, fmt.Errorf("read session: %w", err)
	}
	if s.idle(a, sess, now) {
		if err := s.cfg.Store.EndSession(ctx, token.Sum()); err != nil {
			return Account{}, Session{}, fmt.Errorf("end idle session: %w", err)
		}
		return Account{}, Session{}, over
	}
	if now.Sub(sess.LastSeen) > touchEvery || sess.Addr != addr {
		if err := s.cfg.Store.Touch(ctx, token.Sum(), now, addr); err != nil {
			return Account{}, Session{}, fmt.Errorf("touch session: %w", err)
		}
	}
	return a, sess, nil
}

// Logout ends the session of a token. A token that is none is no error.
func (s *SignIn) Logout(ctx context.Context, token logging.Secret) error {
	return s.cfg.Store.EndSession(ctx, token.Sum())
}

// ChangePassword replaces a password that the caller knows and ends every session but the one of keep. Wrong old passwords count as failed
// logins. Errors: Unauthenticated "wrong_password"; Invalid for the new one; Exhausted.
func (s *SignIn) ChangePassword(ctx context.Context, id ID, old, changed, keep logging.Secret, addr string) error {
	a, hash, err := s.cfg.Store.ByID(ctx, id)
	if err != nil {
		return notFound(err)
	}
	if err := checkPassword(changed); err != nil {
		return err
	}
	if changed == old {
		return errs.New(errs.Invalid, "the new password is the same as the old one")
	}
	ok, err := s.guess(ctx, inside(a), hash, old, addr)
	if err != nil {
		return err
	}
	if !ok {
		return errs.Coded(errs.Unauthenticated, "wrong_password", "the old password is wrong")
	}
	next, err := s.cfg.Hasher.Hash(ctx, string(changed), Share{ratelimit.Network(addr), true})
	if err != nil {
		return err
	}
	if err := s.announce(ctx, a, addr, "password.change", ""); err != nil {
		return err
	}
	if err := s.cfg.Store.SetPassword(ctx, id, next, complexPassword(changed), keep.Sum()); err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return s.tellPasswordChanged(ctx, a)
}

func (s *SignIn) tellPasswordChanged(ctx context.Context, a Account) error {
	if s.cfg.Mail == nil {
		return nil
	}
	return s.cfg.Mail.Post(ctx, mail.Mail{Kind: mailPasswordChanged, To: a.Email, Account: string(a.ID)})
}

// audit appends a line about what a person did to the person's own account.
func (s *SignIn) audit(ctx context.Context, a Account, addr, action, detail string) error {
	return s.cfg.Audit.Append(ctx, own(a, addr, action, detail))
}

// announce is audit for what the person is about to do: what cannot be written down is not done.
func (s *SignIn) announce(ctx context.Context, a Account, addr, action, detail string) error {
	return s.cfg.Audit.Announce(ctx, own(a, addr, action, detail))
}

func own(a Account, addr, action, detail string) audit.Entry {
	return audit.Entry{Actor: string(a.ID), Role: a.Role, Addr: addr, Action: action, Object: string(a.ID), Detail: detail}
}

// OnlyNewPassword reports whether a session is good for choosing another password and for nothing else: an operator's, opened with a first
// password that another person has seen.
func OnlyNewPassword(a Account, s Session) bool {
	return a.MustChange && a.Role.Staff() && s.Method == ByPassword
}

// idle reports whether an operator's session was left alone for too long. A program's token file is not watched by a person and has its
// absolute end alone.
func (s *SignIn) idle(a Account, x Session, now time.Time) bool {
	return a.Role.Staff() && x.Method != ByIssue && now.Sub(x.LastSeen) > s.cfg.OperatorIdle
}

// StillGood reports whether a request under way may continue: its session exists and its account has at least the rights that it had when the
// request began. The end of a duty to choose another password does not end it. It does not count as a use. Errors are for a check that
// could not be made.
func (s *SignIn) StillGood(ctx context.Context, token logging.Secret, began Account) (bool, error) {
	now := s.cfg.Now()
	x, a, err := s.cfg.Store.Session(ctx, token.Sum(), now)
	if errors.Is(err, ErrUnknown) {
		return false, nil
	}
	return err == nil && a.Role == began.Role && (began.MustChange || !a.MustChange) && !s.idle(a, x, now), err
}

package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/mail"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

const (
	DefaultAppTTL = 30 * 24 * time.Hour // of an app's session: ours; the original's was a year
	appPrefix     = "kus_"              // marks the session tokens of apps
)

// UserSession is a session that an app got for a person's password: it may ask for the person's record with it until it expires, and hand it to one
// robot, once (VEC-TOK-05, VEC-AUTH-05). It opens nothing else here.
type UserSession struct {
	Account ID   // or the id of a sign-up
	Pending bool // the e-mail is not proved: Account is a sign-up, and no robot may use the session
	Created time.Time
	Expires time.Time
	Burned  bool
}

// AppStore keeps the session tokens of apps. Its methods are safe for concurrent use.
type AppStore interface {
	// AddUserSession stores one under its token's hash; ErrUnknown if the account or sign-up is gone.
	AddUserSession(ctx context.Context, token Hash, s UserSession) error
	// UserSession returns one, expired or not, unless its account is disabled; ErrUnknown.
	UserSession(ctx context.Context, token Hash) (UserSession, error)
	// Burn marks one as used by a robot and returns true, if it is an account's, has not expired at now and was never used: for one caller.
	Burn(ctx context.Context, token Hash, by string, now time.Time) (bool, error)
	// EndUserSession forgets one, and all of the same account if all is set.
	EndUserSession(ctx context.Context, token Hash, all bool) error
	// ReplaceUserSession puts a new one in an old one's place; ErrUnknown if the old one is gone.
	ReplaceUserSession(ctx context.Context, old, token Hash, s UserSession) error
}

// Apps is the rules of the session tokens of apps. Safe for concurrent use.
type Apps struct {
	in      *SignIn
	people  *People
	letters *Letters
	store   AppStore
	ttl     time.Duration
}

// NewApps returns the rules; a ttl of 0 is DefaultAppTTL.
func NewApps(letters *Letters, store AppStore, ttl time.Duration) *Apps {
	return &Apps{letters.in, letters.people, letters, store, cmp.Or(ttl, DefaultAppTTL)}
}

// Issue makes a session for an app of a person who has signed in some other way. NotFound.
func (p *Apps) Issue(ctx context.Context, id ID) (logging.Secret, time.Time, error) {
	token, s, err := p.open(ctx, id, false)
	return token, s.Expires, err
}

func (p *Apps) open(ctx context.Context, id ID, pending bool) (logging.Secret, UserSession, error) {
	token := logging.Secret(appPrefix + rand.Text())
	now := p.in.cfg.Now()
	s := UserSession{Account: id, Pending: pending, Created: now, Expires: now.Add(p.ttl)}
	if err := p.store.AddUserSession(ctx, token.Sum(), s); err != nil {
		return "", UserSession{}, notFound(err)
	}
	return token, s, nil
}

// Burn errors, as a robot's association hears them. All say the same to the peer: only the code, for the doctor, tells them apart.
func burnt(code string) error {
	return errs.Coded(errs.Unauthenticated, code, "this session is not accepted: sign in again")
}

// Burn uses a session for a robot, by its id, and returns whose it is. It succeeds once. Errors: Unauthenticated "session_used",
// "session_expired", "session_unverified" (the e-mail is not proved yet), "session_unknown".
func (p *Apps) Burn(ctx context.Context, token logging.Secret, by string) (ID, error) {
	if !strings.HasPrefix(string(token), appPrefix) || len(token) > 64 {
		return "", burnt("session_unknown")
	}
	now := p.in.cfg.Now()
	s, err := p.store.UserSession(ctx, token.Sum())
	switch {
	case errors.Is(err, ErrUnknown):
		return "", burnt("session_unknown")
	case err != nil:
		return "", fmt.Errorf("read user session: %w", err)
	case s.Pending:
		return "", burnt("session_unverified")
	case s.Burned:
		return "", burnt("session_used")
	case !now.Before(s.Expires):
		return "", burnt("session_expired")
	}
	ok, err := p.store.Burn(ctx, token.Sum(), audit.Clip(by, 100), now)
	if err != nil {
		return "", fmt.Errorf("use up user session: %w", err)
	}
	if !ok {
		return "", burnt("session_used") // another was faster
	}
	return s.Account, p.in.cfg.Audit.Append(ctx, audit.Entry{Actor: by, Role: auth.Thing, Action: "session.burn", Object: string(s.Account)})
}

// AppSession is an app's session with the person's record.
type AppSession struct {
	Token   logging.Secret // of a new session; else empty
	Session UserSession
	Record  Record
}

// Login checks a password and makes a session for an app. Errors as Login; Denied "second_factor" for an operator of whom more than a password is asked: apps cannot ask for it.
func (p *Apps) Login(ctx context.Context, email string, password logging.Secret, addr string) (AppSession, error) {
	a, err := p.in.check(ctx, email, password, From{Addr: addr})
	if err != nil {
		return AppSession{}, err
	}
	if p.in.Lacks(a, Session{Method: ByPassword}) != LacksNothing {
		if err := p.in.audit(ctx, a, addr, "login.refused", "an app cannot ask for the second factor"); err != nil {
			return AppSession{}, err
		}
		return AppSession{}, errs.Coded(errs.Denied, "second_factor", "operators with a second factor sign in at the console")
	}
	token, s, err := p.open(ctx, a.ID, false)
	if err != nil {
		return AppSession{}, err
	}
	r, err := p.people.Record(ctx, a.ID)
	return AppSession{token, s, r}, err
}

// SignUp is Letters.SignUp with a session, as the app expects one: until the e-mail is proved it is good for asking for the record and the letter.
func (p *Apps) SignUp(ctx context.Context, n NewOwner, addr string) (AppSession, error) {
	up, err := p.letters.SignUp(ctx, n, addr)
	if err != nil {
		return AppSession{}, err
	}
	token, s, err := p.open(ctx, up.ID, true)
	if err != nil {
		return AppSession{}, err
	}
	return AppSession{token, s, record(up.ID, up.Email, up.Created, false, up.Profile)}, nil
}

// Verify is Letters.Verify with the session of the sign-up in place of the password, and signs the person in: for the browser that signed
// up. The session of the sign-up ends. Errors as Letters.Verify, with "other_signup" in place of "wrong_password".
func (p *Apps) Verify(ctx context.Context, code, token logging.Secret, addr string) (Login, error) {
	a, err := p.letters.verify(ctx, code, addr, func(t Ticket, _ string) error {
		s, err := p.store.UserSession(ctx, token.Sum())
		if errors.Is(err, ErrUnknown) || err == nil && (!s.Pending || s.Account != t.Signup || !p.in.cfg.Now().Before(s.Expires)) {
			return errs.Coded(errs.Unauthenticated, "other_signup", "enter the password that you chose when you signed up as well")
		}
		return err
	})
	if err == nil {
		err = p.store.EndUserSession(ctx, token.Sum(), false)
	}
	if err == nil {
		err = p.in.audit(ctx, a, addr, "login", "")
	}
	if err != nil {
		return Login{}, err
	}
	return p.in.openFor(ctx, a, ByPassword, addr)
}

// Session returns the session of a token, burned or not, and the person's record. Unauthenticated "session_over".
func (p *Apps) Session(ctx context.Context, token logging.Secret) (AppSession, error) {
	over := errs.Coded(errs.Unauthenticated, "session_over", "this session has ended: sign in again")
	if !strings.HasPrefix(string(token), appPrefix) || len(token) > 64 {
		return AppSession{}, over
	}
	now := p.in.cfg.Now()
	s, err := p.store.UserSession(ctx, token.Sum())
	if errors.Is(err, ErrUnknown) || err == nil && !now.Before(s.Expires) {
		return AppSession{}, over
	}
	if err != nil {
		return AppSession{}, fmt.Errorf("read user session: %w", err)
	}
	out := AppSession{Session: s}
	if s.Pending {
		up, _, err := p.letters.cfg.Store.Signup(ctx, s.Account, now)
		if errors.Is(err, ErrUnknown) {
			return AppSession{}, over
		}
		out.Record = record(up.ID, up.Email, up.Created, false, up.Profile)
		return out, err
	}
	out.Record, err = p.people.Record(ctx, s.Account)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return AppSession{}, over
	}
	return out, err
}

// Change is People.Change of the person whose session it is.
func (p *Apps) Change(ctx context.Context, s AppSession, c Change, addr string) (Record, error) {
	if err := p.people.announce(ctx, s.Session.Account, addr, "account.change"); err != nil {
		return Record{}, err
	}
	return p.people.Change(ctx, s.Session.Account, c)
}

// Renew gives a new session for an old one, which ends. Unauthenticated "session_over".
func (p *Apps) Renew(ctx context.Context, token logging.Secret, addr string) (AppSession, error) {
	old, err := p.Session(ctx, token)
	if err != nil {
		return AppSession{}, err
	}
	if err := p.people.announce(ctx, old.Session.Account, addr, "session.renew"); err != nil {
		return AppSession{}, err
	}
	next := logging.Secret(appPrefix + rand.Text())
	now := p.in.cfg.Now()
	s := UserSession{Account: old.Session.Account, Pending: old.Session.Pending, Created: now, Expires: now.Add(p.ttl)}
	err = p.store.ReplaceUserSession(ctx, token.Sum(), next.Sum(), s)
	if errors.Is(err, ErrUnknown) {
		return AppSession{}, errs.Coded(errs.Unauthenticated, "session_over", "this session has ended: sign in again")
	}
	return AppSession{next, s, old.Record}, err
}

// Logout ends a session of the account of s, or all that its apps have. A token that is none is no error.
func (p *Apps) Logout(ctx context.Context, s AppSession, token logging.Secret, all bool, addr string) error {
	if err := p.people.announce(ctx, s.Session.Account, addr, "session.end"); err != nil {
		return err
	}
	return p.store.EndUserSession(ctx, token.Sum(), all)
}

// AskAgain is Letters.AskAgain for the sign-up that an app's session belongs to. Errors: Conflict "email_already_verified"; Exhausted.
func (p *Apps) AskAgain(ctx context.Context, s AppSession, addr string) error {
	if !s.Session.Pending {
		return errs.Coded(errs.Conflict, "email_already_verified", "the e-mail is already verified")
	}
	if err := p.letters.mayMail(ctx, s.Record.Email, addr); err != nil {
		return err
	}
	id := string(s.Session.Account)
	return p.letters.cfg.Mail.Post(ctx, mail.Mail{Kind: mailSignup, To: s.Record.Email, Account: id, Data: map[string]string{"signup": id}})
}

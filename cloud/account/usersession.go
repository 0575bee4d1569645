package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// userPrefix marks the session tokens of apps.
const userPrefix = "kus_"

// UserSession is a session that an app got for a person's password: it may ask for the person's record with it until it expires, and hand it to one
// robot, once (VEC-TOK-05, VEC-AUTH-05). It opens nothing else here.
type UserSession struct {
	Account ID   // also of a sign-up
	Pending bool // the e-mail is not proved: the account is a sign-up, and no robot may use the session
	Created time.Time
	Expires time.Time
	Burned  bool
}

// UserSessionStore keeps the session tokens of apps.
type UserSessionStore interface {
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

// IssueUserSession makes a session for an app of a person who has signed in some other way. NotFound.
func (o *Owners) IssueUserSession(ctx context.Context, id ID) (logging.Secret, time.Time, error) {
	token, s, err := o.openUser(ctx, id, false)
	return token, s.Expires, err
}

func (o *Owners) openUser(ctx context.Context, id ID, pending bool) (logging.Secret, UserSession, error) {
	token := logging.Secret(userPrefix + rand.Text())
	now := o.now()
	s := UserSession{Account: id, Pending: pending, Created: now, Expires: now.Add(o.cfg.UserSessionTTL)}
	if err := o.cfg.Store.AddUserSession(ctx, token.Sum(), s); err != nil {
		return "", UserSession{}, notFound(err)
	}
	return token, s, nil
}

// Burn errors, as a robot's association hears them. All say the same to the peer: only the code, for the doctor, tells them apart.
func burnt(code string) error {
	return errs.Coded(errs.Unauthenticated, code, "this session is not accepted: sign in again")
}

// BurnUserSession uses a session for a robot, by its id, and returns whose it is. It succeeds once. Errors: Unauthenticated "session_used",
// "session_expired", "session_unverified" (the e-mail is not proved yet), "session_unknown".
func (o *Owners) BurnUserSession(ctx context.Context, token logging.Secret, by string) (ID, error) {
	if !strings.HasPrefix(string(token), userPrefix) || len(token) > 64 {
		return "", burnt("session_unknown")
	}
	now := o.now()
	s, err := o.cfg.Store.UserSession(ctx, token.Sum())
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
	ok, err := o.cfg.Store.Burn(ctx, token.Sum(), clip(by, 100), now)
	if err != nil {
		return "", fmt.Errorf("burn user session: %w", err)
	}
	if !ok {
		return "", burnt("session_used") // another was faster
	}
	return s.Account, o.cfg.Accounts.Audit(ctx, Entry{Actor: by, Role: auth.Thing, Action: "session.burn", Object: string(s.Account)})
}

// AppSession is an app's session with the person's record.
type AppSession struct {
	Token   logging.Secret // of a new session; else empty
	Session UserSession
	Record  Record
}

// AppLogin checks a password and makes a session for an app. Errors as Login.
func (o *Owners) AppLogin(ctx context.Context, email string, password logging.Secret, addr string) (AppSession, error) {
	a, err := o.cfg.Accounts.check(ctx, email, password, addr)
	if err != nil {
		return AppSession{}, err
	}
	token, s, err := o.openUser(ctx, a.ID, false)
	if err != nil {
		return AppSession{}, err
	}
	r, err := o.Record(ctx, a.ID)
	return AppSession{token, s, r}, err
}

// AppSignUp is SignUp with a session, as the app expects one: until the e-mail is proved it is good for asking for the record and the letter.
func (o *Owners) AppSignUp(ctx context.Context, n NewOwner, addr string) (AppSession, error) {
	up, err := o.SignUp(ctx, n, addr)
	if err != nil {
		return AppSession{}, err
	}
	token, s, err := o.openUser(ctx, up.ID, true)
	if err != nil {
		return AppSession{}, err
	}
	return AppSession{token, s, record(up.ID, up.Email, up.Created, false, up.Profile)}, nil
}

// App returns the session of a token, burned or not, and the person's record. Unauthenticated "session_over".
func (o *Owners) App(ctx context.Context, token logging.Secret) (AppSession, error) {
	over := errs.Coded(errs.Unauthenticated, "session_over", "this session has ended: sign in again")
	if !strings.HasPrefix(string(token), userPrefix) || len(token) > 64 {
		return AppSession{}, over
	}
	now := o.now()
	s, err := o.cfg.Store.UserSession(ctx, token.Sum())
	if errors.Is(err, ErrUnknown) || err == nil && !now.Before(s.Expires) {
		return AppSession{}, over
	}
	if err != nil {
		return AppSession{}, fmt.Errorf("read user session: %w", err)
	}
	out := AppSession{Session: s}
	if s.Pending {
		up, _, err := o.cfg.Store.Signup(ctx, s.Account, now)
		if errors.Is(err, ErrUnknown) {
			return AppSession{}, over
		}
		out.Record = record(up.ID, up.Email, up.Created, false, up.Profile)
		return out, err
	}
	out.Record, err = o.Record(ctx, s.Account)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return AppSession{}, over
	}
	return out, err
}

// AppRenew gives a new session for an old one, which ends. Unauthenticated "session_over".
func (o *Owners) AppRenew(ctx context.Context, token logging.Secret) (AppSession, error) {
	old, err := o.App(ctx, token)
	if err != nil {
		return AppSession{}, err
	}
	next := logging.Secret(userPrefix + rand.Text())
	now := o.now()
	s := UserSession{Account: old.Session.Account, Pending: old.Session.Pending, Created: now, Expires: now.Add(o.cfg.UserSessionTTL)}
	err = o.cfg.Store.ReplaceUserSession(ctx, token.Sum(), next.Sum(), s)
	if errors.Is(err, ErrUnknown) {
		return AppSession{}, errs.Coded(errs.Unauthenticated, "session_over", "this session has ended: sign in again")
	}
	return AppSession{next, s, old.Record}, err
}

// AppLogout ends an app's session, or all of the account's. A token that is none is no error.
func (o *Owners) AppLogout(ctx context.Context, token logging.Secret, all bool) error {
	return o.cfg.Store.EndUserSession(ctx, token.Sum(), all)
}

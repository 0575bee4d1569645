package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
)

// tokenPrefix marks session tokens, so that people and scanners recognise one that got loose.
const tokenPrefix = "kst_"

// Login is a new session.
type Login struct {
	Token   logging.Secret // shown this once
	Account Account
	Expires time.Time
}

// Login checks a password and opens a session. Errors: Unauthenticated "login_refused" for an unknown e-mail, a wrong password and a disabled
// account alike; Exhausted with a pause.
func (s *Service) Login(ctx context.Context, email string, password logging.Secret, addr string) (Login, error) {
	a, err := s.check(ctx, email, password, addr)
	if err != nil {
		return Login{}, err
	}
	return s.openFor(ctx, a, ByPassword, addr)
}

// openFor opens a session that lasts as long as the role's sessions do.
func (s *Service) openFor(ctx context.Context, a Account, method, addr string) (Login, error) {
	ttl := s.cfg.SessionTTL
	if a.Role.Staff() {
		ttl = s.cfg.OperatorTTL
	}
	return s.open(ctx, a, ttl, method, addr)
}

// check is Login without the session.
func (s *Service) check(ctx context.Context, email string, password logging.Secret, addr string) (Account, error) {
	a, hash, err := s.byEmail(ctx, email)
	if err != nil {
		return Account{}, err
	}
	ok, err := s.guess(ctx, emailKey(email), hash, password, addr)
	if err != nil {
		return Account{}, err
	}
	if !ok || a.ID == "" || a.Disabled {
		// Written for unknown e-mails too, without the e-mail: the time it takes tells nothing.
		if err := s.Audit(ctx, Entry{Actor: string(a.ID), Role: a.Role, Addr: addr, Action: "login.refused", Object: string(a.ID)}); err != nil {
			return Account{}, err
		}
		return Account{}, errs.Coded(errs.Unauthenticated, "login_refused", "e-mail and password are not accepted together")
	}
	return a, s.Audit(ctx, Entry{Actor: string(a.ID), Role: a.Role, Addr: addr, Action: "login", Object: string(a.ID)})
}

// confirm checks the password of a signed-in person. Errors: Unauthenticated "wrong_password"; Exhausted; NotFound.
func (s *Service) confirm(ctx context.Context, id ID, password logging.Secret, addr string) (Account, error) {
	a, hash, err := s.cfg.Store.ByID(ctx, id)
	if err != nil {
		return Account{}, notFound(err)
	}
	ok, err := s.guess(ctx, a.Email, hash, password, addr)
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
func (s *Service) byEmail(ctx context.Context, email string) (Account, string, error) {
	email, err := normalEmail(email)
	if err != nil {
		email = "nobody" // no account has it
	}
	a, hash, err := s.cfg.Store.ByEmail(ctx, email)
	if errors.Is(err, ErrUnknown) {
		return Account{}, s.nobody, nil
	}
	if err != nil {
		return Account{}, "", fmt.Errorf("read account: %w", err)
	}
	return a, hash, nil
}

// guess checks one password, within the limits of its address and of the e-mail it is for. It returns an error only if the password was not
// looked at.
func (s *Service) guess(ctx context.Context, email, hash string, password logging.Secret, addr string) (bool, error) {
	if wait := s.cfg.ByAddr.Allow(addr); wait > 0 {
		return false, slowDown(wait)
	}
	now := s.cfg.Now()
	key := loginKey(email)
	before, last, err := s.cfg.Store.Failures(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read failures: %w", err)
	}
	if wait := last.Add(lock(before)).Sub(now); before > 0 && wait > 0 {
		return false, slowDown(wait)
	}
	// Counted before it is known, and forgiven after: many at once gain nothing.
	n, err := s.cfg.Store.Fail(ctx, key, now)
	if err != nil {
		return false, fmt.Errorf("count attempt: %w", err)
	}
	if n > freeTries && n > before+1 {
		return false, slowDown(lock(n))
	}
	if len(password) > MaxPassword {
		password = password[:MaxPassword] // wrong in any case: no account has one that long
	}
	ok, err := s.cfg.Hasher.Verify(ctx, hash, string(password))
	if err != nil {
		return false, err
	}
	if ok {
		if err := s.cfg.Store.Forgive(ctx, key); err != nil {
			return false, fmt.Errorf("forgive failures: %w", err)
		}
	}
	return ok, nil
}

// loginKey returns the key under which failed logins at an e-mail are counted.
func loginKey(email string) Hash { return sha256.Sum256([]byte("login " + emailKey(email))) }

func emailKey(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// lock is how long an e-mail is locked after n failures in a row: not at all up to freeTries, then longer each time.
func lock(n int) time.Duration {
	if n < freeTries {
		return 0
	}
	return min(maxLock, firstLock<<min(n-freeTries, 16))
}

func slowDown(wait time.Duration) error {
	return &errs.Error{Kind: errs.Exhausted, Code: "too_many_attempts", Msg: "too many attempts; wait", Retry: wait}
}

// IssueSession opens a session without a password, for a program that proved itself another way (the operator's token file of one-machine
// mode). NotFound for an unknown account.
func (s *Service) IssueSession(ctx context.Context, id ID, ttl time.Duration) (Login, error) {
	a, _, err := s.cfg.Store.ByID(ctx, id)
	if err != nil {
		return Login{}, notFound(err)
	}
	if err := s.Audit(ctx, Entry{Actor: string(id), Role: a.Role, Action: "session.issue", Object: string(id), Detail: ttl.String()}); err != nil {
		return Login{}, err
	}
	return s.open(ctx, a, ttl, ByIssue, "")
}

func (s *Service) open(ctx context.Context, a Account, ttl time.Duration, method, addr string) (Login, error) {
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
func (s *Service) Authenticate(ctx context.Context, token logging.Secret, addr string) (Account, Session, error) {
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
func (s *Service) Logout(ctx context.Context, token logging.Secret) error {
	return s.cfg.Store.EndSession(ctx, token.Sum())
}

// EndSessions ends every session of an account and returns how many there were.
func (s *Service) EndSessions(ctx context.Context, id ID) (int, error) {
	return s.cfg.Store.EndSessions(ctx, id)
}

// Package account holds the rules about people: accounts with a role, passwords, sessions, and their personal data (design section 6,
// VEC-SEC-07).
//
//	SignIn     passwords, sessions, locks after wrong passwords
//	Passkeys   people's passkeys
//	Second     operators' authenticator apps
//	Operators  the staff and its administration; sign-in through an identity provider
//	People     accounts, the record of each owner, their sessions
//	Letters    everything that begins with a letter: sign-up, a new password, a new e-mail
//	Apps       the session tokens that apps hand to robots
//	Privacy    export and deletion of personal data
//
// The packages below: audit (the audit log), accountpg (storage), accounthash (argon2id), accountoidc and accountwebauthn (sign-in without a
// password), accountapi (HTTP, pages, and the middleware that finds the caller of a request).
package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Bounds: ours, no source gives them.
const (
	MinPassword = 10  // characters
	MaxPassword = 256 // bytes
	maxEmail    = 254 // bytes, the most that mail carries
)

// Sentinels of the stores.
var (
	ErrUnknown = errors.New("account: unknown")
	ErrTaken   = errors.New("account: e-mail already in use")
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
	HasApp     bool // an authenticator app gives codes for it
	HasPasskey bool
}

// Hash is the SHA-256 of a session token, of a letter's code, or of an e-mail for counting attempts.
type Hash [sha256.Size]byte

// Hasher hashes passwords, slowly on purpose. It bounds how many it works on at once.
type Hasher interface {
	Hash(ctx context.Context, password string, by Share) (string, error)
	// Verify reports whether password is the one that was hashed. Errors are for hashes that are damaged and for a load that is too high.
	Verify(ctx context.Context, hash, password string, by Share) (bool, error)
}

// Limiter paces attempts by key. Allow takes one and returns 0, or how long to wait.
type Limiter interface {
	Allow(key string) time.Duration
}

// oneTime returns a password of 80 random bits that people can type.
func oneTime() logging.Secret {
	t := strings.ToLower(rand.Text())
	return logging.Secret(strings.Join([]string{t[0:4], t[4:8], t[8:12], t[12:16]}, "-"))
}

func notFound(err error) error {
	if errors.Is(err, ErrUnknown) {
		return errs.New(errs.NotFound, "no such account")
	}
	return err
}

func emailTaken(hint string) error {
	return errs.Coded(errs.Conflict, "email_taken", "an account with this e-mail already exists%s", hint)
}

// normalEmail returns the e-mail in lower case; Invalid if it is none.
func normalEmail(email string) (string, error) {
	email = emailKey(email)
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > maxEmail || strings.ContainsRune(email, 0) {
		return "", errs.Coded(errs.Invalid, "email_malformed", "e-mail %.80q: want name@host, at most %d bytes", email, maxEmail)
	}
	return email, nil
}

func emailKey(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

func checkPassword(p logging.Secret) error {
	switch n := utf8.RuneCountInString(string(p)); {
	case len(p) > MaxPassword:
		return errs.Coded(errs.Invalid, "password_long", "password of %d bytes: want at most %d", len(p), MaxPassword)
	case n < MinPassword:
		return errs.Coded(errs.Invalid, "password_short", "use at least %d characters; this password has %d", MinPassword, n)
	}
	return nil
}

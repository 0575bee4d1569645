// Package certs holds the rules by which a robot gets and keeps its identity (design section 6, VEC-TOK-01/02).
//
// A robot is registered with a serial number and a claim secret. It makes its own key, sends a certificate request and the secret
// (Enroll), and gets a device certificate of a few weeks, which it renews by proving its key (Renew). The secret is bound to the first key
// it brings: the same key may enrol again, another key may not, so a secret that leaked after the first boot is worth nothing.
//
// Every attempt is told to a Recorder exactly as it failed. The peer learns less: an unknown thing and a wrong secret get the same answer.
//
// The packages below: ca (the authorities), certspg (storage), certsapi (HTTP), certsclient (its client), devicecert (the robot's side),
// limit (rate limits), thing (ids).
package certs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kennel/certs/thing"
	"kennel/infra/errs"
)

// DefaultTTL is how long a device certificate lives unless configured. Robots renew at two thirds of it.
const DefaultTTL = 30 * 24 * time.Hour

// Sentinels of a Store.
var (
	ErrUnknown = errors.New("certs: not known")
	ErrBound   = errors.New("certs: a key is bound already")
)

// Secret is a claim secret. It hides itself from logs and formatting; Reveal gives it.
type Secret string

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// String hides the secret from fmt.
func (Secret) String() string { return "[secret]" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "[secret]" }

// Reveal returns the secret for the one place that hands it over.
func (s Secret) Reveal() string { return string(s) }

// hash is what is stored. A secret has 130 random bits, so a plain hash is as hard to invert as the secret is to guess.
func (s Secret) hash() Hash { return sha256.Sum256([]byte(s)) }

// Hash is the SHA-256 of a claim secret.
type Hash [sha256.Size]byte

// Key is the fingerprint of a public key: SHA-256 over its SubjectPublicKeyInfo. The zero value is no key.
type Key [sha256.Size]byte

// KeyOf returns the fingerprint of the key of a certificate or a request, from its RawSubjectPublicKeyInfo.
func KeyOf(spki []byte) Key { return sha256.Sum256(spki) }

// String returns the fingerprint as 64 hex digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Claim is what is known of a thing before it has a certificate.
type Claim struct {
	Thing  thing.ID
	Secret Hash
	Key    Key // bound at first use; zero before
}

// Record is one issued certificate in the inventory.
type Record struct {
	Serial    string // of the certificate, hex
	Thing     thing.ID
	Key       Key
	NotBefore time.Time
	NotAfter  time.Time
	Method    string    // the Step that issued it
	Revoked   time.Time // zero: in force
	Reason    string    // why it was revoked
}

// Store is what Service needs from storage. Its methods are safe for concurrent use.
type Store interface {
	// SetClaim stores the secret's hash for a thing, in place of an earlier one that no key was bound to; ErrBound otherwise.
	SetClaim(ctx context.Context, id thing.ID, secret Hash, at time.Time) error
	// Claim returns the claim of a thing; ErrUnknown.
	Claim(ctx context.Context, id thing.ID) (Claim, error)
	// ClaimOf returns the thing a secret belongs to; ErrUnknown.
	ClaimOf(ctx context.Context, secret Hash) (thing.ID, error)
	// Bind binds key to the thing's claim unless one is bound, and returns the key that is bound now; ErrUnknown.
	Bind(ctx context.Context, id thing.ID, key Key, at time.Time) (Key, error)
	// Revoked reports whether a certificate of this key was revoked.
	Revoked(ctx context.Context, key Key) (bool, error)
	// AddCertificate writes the inventory row.
	AddCertificate(ctx context.Context, r Record) error
	// Certificates returns the inventory of a thing, newest first, at most 100 rows.
	Certificates(ctx context.Context, id thing.ID) ([]Record, error)
	// Revoke marks every certificate of a thing that is in force, and returns how many those were.
	Revoke(ctx context.Context, id thing.ID, reason string, at time.Time) (int, error)
}

// Issuer signs device certificates.
type Issuer interface {
	// IssueDevice returns a certificate for the request's key with CN = id, for client authentication only, and its issuers up to but
	// without the root. Nothing but the key is taken from the request, whose signature the caller has checked.
	IssueDevice(csr *x509.CertificateRequest, id thing.ID, ttl time.Duration) ([]*x509.Certificate, error)
	// VerifyDevice returns nil if leaf was signed by a device authority of ours, whether or not it has expired.
	VerifyDevice(leaf *x509.Certificate) error
}

// Limiter paces attempts by key. Allow takes one and returns 0, or how long to wait.
type Limiter interface {
	Allow(key string) time.Duration
}

// Recorder keeps the steps of each robot's activation, so that "why did this one fail" has an answer. It must not fail the request: an
// implementation logs its own trouble.
type Recorder interface {
	Record(ctx context.Context, s Step)
}

// The steps that this package records.
const (
	StepRegister = "register"
	StepEnroll   = "enroll"
	StepRenew    = "renew"
	StepRevoke   = "revoke"
)

// Step is one attempt at one step of activation, as it really went. It is for operators: a peer is told less.
type Step struct {
	Thing  thing.ID // zero if the peer named none that is well formed
	Step   string   // one of the Step constants
	Peer   string   // address of the peer, host or host:port; empty for our own doing
	OK     bool
	Code   string // stable word for programs, such as "secret_mismatch"; empty if OK
	Reason string // for people
	At     time.Time
}

// Config holds what Service is made of. All but TTL and Now are required.
type Config struct {
	Store    Store
	Issuer   Issuer
	Recorder Recorder
	ByAddr   Limiter          // one key per peer address
	ByThing  Limiter          // one key per thing, so that one serial cannot be guessed at from many addresses
	TTL      time.Duration    // life of a device certificate; 0: DefaultTTL; at least 3 s
	Now      func() time.Time // nil: time.Now
}

// Service is the rules. Safe for concurrent use.
type Service struct {
	store    Store
	issuer   Issuer
	recorder Recorder
	byAddr   Limiter
	byThing  Limiter
	ttl      time.Duration
	now      func() time.Time
}

// New checks cfg and returns the service. The error names the missing part.
func New(cfg Config) (*Service, error) {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	switch {
	case cfg.Store == nil:
		return nil, errors.New("certs: no store")
	case cfg.Issuer == nil:
		return nil, errors.New("certs: no issuer")
	case cfg.Recorder == nil:
		return nil, errors.New("certs: no recorder")
	case cfg.ByAddr == nil || cfg.ByThing == nil:
		return nil, errors.New("certs: no rate limits")
	case cfg.TTL < 3*time.Second:
		return nil, fmt.Errorf("certs: device certificates of %v: want at least 3s", cfg.TTL)
	}
	return &Service{cfg.Store, cfg.Issuer, cfg.Recorder, cfg.ByAddr, cfg.ByThing, cfg.TTL, cfg.Now}, nil
}

// Register makes a thing known and returns its claim secret, which is shown this once and stored as a hash. A thing whose secret was never
// used may be registered again: the new secret replaces the old. A thing that has enrolled is a Conflict, code "thing_exists".
func (s *Service) Register(ctx context.Context, id thing.ID) (Secret, error) {
	secret := Secret(rand.Text())
	err := s.store.SetClaim(ctx, id, secret.hash(), s.now())
	if errors.Is(err, ErrBound) {
		return "", errs.Coded(errs.Conflict, "thing_exists", "%s is registered and has enrolled with a key of its own", id)
	}
	if err != nil {
		return "", fmt.Errorf("register %s: %w", id, err)
	}
	s.recorder.Record(ctx, Step{Thing: id, Step: StepRegister, OK: true, Reason: "claim secret made", At: s.now()})
	return secret, nil
}

// Certificates returns the inventory of a thing, newest first, at most 100 rows.
func (s *Service) Certificates(ctx context.Context, id thing.ID) ([]Record, error) {
	return s.store.Certificates(ctx, id)
}

// Revoke takes the identity of a thing away: its certificates are marked, and neither its key nor a certificate of that key gets a new one.
// It returns how many certificates were in force.
func (s *Service) Revoke(ctx context.Context, id thing.ID, reason string) (int, error) {
	n, err := s.store.Revoke(ctx, id, reason, s.now())
	if err != nil {
		return 0, fmt.Errorf("revoke %s: %w", id, err)
	}
	s.recorder.Record(ctx, Step{Thing: id, Step: StepRevoke, OK: true, Reason: reason, At: s.now()})
	return n, nil
}

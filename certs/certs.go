// Package certs holds the rules by which a robot gets and keeps its identity (design section 6, VEC-TOK-01/02).
//
// A robot makes its own key, sends a certificate request (Enroll), and gets a device certificate of a few weeks, which it renews by proving
// its key (Renew). Its first proof decides whether it gets one:
//
//   - A claim secret, which it was registered with. The secret is bound to the first key it brings: the same key may enrol again, another
//     key may not, so a secret that leaked after the first boot is worth nothing.
//   - A factory certificate of a manufacturing batch we trust, and a signature of the factory key over the request (Batch, FactoryProof).
//     The factory vouches for the robot itself, so it may bring another key after a wipe; the key before is then given up for good.
//   - Nothing: it waits in a bounded list until an operator, who compares the fingerprint that the robot shows, approves it (Waiting).
//
// Release frees a thing for another key, Revoke takes its identity away. A key that was released or revoked is never accepted again.
//
// A Recorder gets every attempt with the exact failure. The peer learns less: an unknown thing and a wrong secret get the same answer.
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
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// DefaultTTL is how long a device certificate lives unless configured. Robots renew at two thirds of it.
const DefaultTTL = 30 * 24 * time.Hour

// Sentinels of a Store.
var (
	ErrUnknown = errors.New("certs: unknown")
	ErrBound   = errors.New("certs: a key is already bound, or the thing is revoked")
	ErrMoved   = errors.New("certs: the claim has changed since it was read")
	ErrFull    = errors.New("certs: the waiting list is full")
)

// Hash is the SHA-256 of a claim secret.
type Hash [sha256.Size]byte

// Key is the fingerprint of a public key: SHA-256 over its SubjectPublicKeyInfo. The zero value is no key.
type Key [sha256.Size]byte

// KeyOf returns the fingerprint of the key of a certificate or a request, from its RawSubjectPublicKeyInfo.
func KeyOf(spki []byte) Key { return sha256.Sum256(spki) }

// String returns the fingerprint as 64 hex digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Claim is a thing's record apart from its certificates.
type Claim struct {
	Thing   thing.ID
	Secret  Hash      // zero: there is no claim secret
	Key     Key       // bound at first use; zero before
	Revoked time.Time // when its identity was taken away; zero: it was not
}

// Standing is the relation of a thing and a key.
type Standing struct {
	Claim
	Known       bool // there is a claim; if not, Claim is zero
	KeyRevoked  bool // a certificate of the key was revoked
	KeyReleased bool // the key was given up for another
}

// Ways by which a certificate was issued, for Record.Method.
const (
	MethodEnroll  = "enroll"  // by a claim secret
	MethodFactory = "factory" // by a factory certificate
	MethodKey     = "key"     // by a key that is bound already, such as an approved one
	MethodRenew   = "renew"   // by the key of an earlier certificate
)

// Record is one issued certificate in the inventory.
type Record struct {
	Serial    string // of the certificate, hex
	Thing     thing.ID
	Key       Key
	NotBefore time.Time
	NotAfter  time.Time
	Method    string    // one of the Method constants
	Revoked   time.Time // zero: in force
	Released  bool      // revoked because its key was given up
	Reason    string    // why it was revoked
}

// MaxRows bounds the length of a Store's lists.
const MaxRows = 1000

// Store keeps claims and certificates, which change together. Its methods are safe for concurrent use, as those of Batches and WaitingList are.
type Store interface {
	Claims
	Inventory
}

// Claims keeps which things may have a certificate.
type Claims interface {
	// SetClaim stores the secret's hash for a thing, in place of an earlier one; ErrBound if a key is bound, or the thing is revoked.
	SetClaim(ctx context.Context, id thing.ID, secret Hash, at time.Time) error
	// SetClaims is SetClaim for many things, all or none; the problems it returns, at most max, name the things that prevented it. A claim
	// that is already bound with the same secret stays as it is.
	SetClaims(ctx context.Context, claims []NewClaim, at time.Time, max int) ([]LineProblem, error)
	// ClaimOf returns the thing a secret belongs to; ErrUnknown.
	ClaimOf(ctx context.Context, secret Hash) (thing.ID, error)
	// Standing returns the relation of a thing and a key, from one consistent read.
	Standing(ctx context.Context, id thing.ID, key Key) (Standing, error)
	// Release forgets the key of a thing, and that the thing was revoked, gives it a new secret, and marks its certificates as released. It
	// returns how many of those were in force; ErrUnknown.
	Release(ctx context.Context, id thing.ID, secret Hash, reason string, at time.Time) (int, error)
	// Revoke marks a thing, whether known or not, and its certificates in force, and returns how many those were.
	Revoke(ctx context.Context, id thing.ID, reason string, at time.Time) (int, error)
}

// Inventory keeps every certificate that was issued.
type Inventory interface {
	// Issue writes the row of a certificate, durably, if the thing's claim is still the one given, and else returns ErrMoved. The claim is
	// bound to the key of the row; a zero claim is made; certificates of a key that it replaces are marked as released. Of a claim that is
	// bound to the key already, thing and key are enough, and ErrMoved too if the key was revoked or given up.
	Issue(ctx context.Context, r Record, from Claim, at time.Time) error
	// Certificates returns the inventory of a thing, newest first, at most 100 rows.
	Certificates(ctx context.Context, id thing.ID) ([]Record, error)
	// Revocations returns certificates revoked before a time (zero: all), latest first, at most limit rows.
	Revocations(ctx context.Context, before time.Time, limit int) ([]Record, error)
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

// BatchRecorder is a Recorder that takes many steps of one kind at once, such as the registration of a whole delivery.
type BatchRecorder interface {
	RecordAll(ctx context.Context, s []Step)
}

// The steps that this package records.
const (
	StepRegister = "register"
	StepEnroll   = "enroll"
	StepRenew    = "renew"
	StepRevoke   = "revoke"
	StepRelease  = "release"  // its key was given up: sessions made with it should end
	StepApproval = "approval" // an operator's answer to a robot that waits
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
	Shown  *x509.Certificate // the certificate that the peer showed, accepted or not; nil: none that can be read
}

// Config holds the parts of a Service. Storage, Issuer, Recorder and the limits are required.
type Config struct {
	Store      Store
	Batches    Batches
	Requests   WaitingList
	Issuer     Issuer
	Recorder   Recorder         // if it is a BatchRecorder too, that is used for many steps at once
	ByAddr     Limiter          // one key per peer address
	ByThing    Limiter          // one key per thing, so that one serial cannot be guessed at from many addresses
	TTL        time.Duration    // life of a device certificate; 0: DefaultTTL; at least 3 s
	NoApproval bool             // robots without any proof are refused, not put on the waiting list
	Waiting    WaitingLimits    // zero fields: the defaults
	Now        func() time.Time // nil: time.Now
}

// Service is the rules. Safe for concurrent use.
type Service struct {
	store      Store
	batches    Batches
	requests   WaitingList
	issuer     Issuer
	recorder   Recorder
	byAddr     Limiter
	byThing    Limiter
	ttl        time.Duration
	noApproval bool
	waiting    WaitingLimits
	now        func() time.Time
	factory    factoryCache
	bulk       chan struct{} // one delivery at a time: its rows are in memory
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
	case cfg.Store == nil || cfg.Batches == nil || cfg.Requests == nil:
		return nil, errors.New("certs: want a store")
	case cfg.Issuer == nil:
		return nil, errors.New("certs: want an issuer")
	case cfg.Recorder == nil:
		return nil, errors.New("certs: want a recorder")
	case cfg.ByAddr == nil || cfg.ByThing == nil:
		return nil, errors.New("certs: want rate limits")
	case cfg.TTL < 3*time.Second:
		return nil, fmt.Errorf("certs: device certificates of %v: want at least 3s", cfg.TTL)
	}
	return &Service{store: cfg.Store, batches: cfg.Batches, requests: cfg.Requests, issuer: cfg.Issuer, recorder: cfg.Recorder,
		byAddr: cfg.ByAddr, byThing: cfg.ByThing, ttl: cfg.TTL,
		noApproval: cfg.NoApproval, waiting: cfg.Waiting.withDefaults(), now: cfg.Now, bulk: make(chan struct{}, 1)}, nil
}

// Register makes a thing known and returns its claim secret, which is shown only once and stored as a hash. A thing whose secret was never
// used may be registered again: the new secret replaces the old. A thing that has enrolled is a Conflict, code "thing_exists".
func (s *Service) Register(ctx context.Context, id thing.ID) (logging.Secret, error) {
	secret := logging.Secret(rand.Text())
	err := s.store.SetClaim(ctx, id, secret.Sum(), s.now())
	if errors.Is(err, ErrBound) {
		return "", errs.Coded(errs.Conflict, "thing_exists", "%s has its own key or was revoked: release it to give it a new secret", id)
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

// Revocations returns certificates revoked before a time (zero: all), latest first, at most limit rows (0 or more than MaxRows: MaxRows).
func (s *Service) Revocations(ctx context.Context, before time.Time, limit int) ([]Record, error) {
	if limit <= 0 || limit > MaxRows {
		limit = MaxRows
	}
	return s.store.Revocations(ctx, before, limit)
}

// Revoke takes the identity of a thing away: its certificates are marked, and neither its key, nor a certificate of that key, nor a factory
// certificate or a claim secret of the thing gets a new one until it is released. It returns how many certificates were in force.
func (s *Service) Revoke(ctx context.Context, id thing.ID, reason string) (int, error) {
	n, err := s.store.Revoke(ctx, id, reason, s.now())
	if err != nil {
		return 0, fmt.Errorf("revoke %s: %w", id, err)
	}
	s.factory.forget()
	s.recorder.Record(ctx, Step{Thing: id, Step: StepRevoke, OK: true, Reason: reason, At: s.now()})
	return n, nil
}

// Release frees a thing for another key: after a wipe that took its key, with another board, or after a mistaken revocation. Its
// certificates are revoked and their key is never accepted again. The returned secret is for its next key and is shown only once. NotFound
// "unknown_thing" for a thing that was never registered.
func (s *Service) Release(ctx context.Context, id thing.ID, reason string) (logging.Secret, error) {
	secret := logging.Secret(rand.Text())
	n, err := s.store.Release(ctx, id, secret.Sum(), reason, s.now())
	if errors.Is(err, ErrUnknown) {
		return "", errs.Coded(errs.NotFound, "unknown_thing", "%s was never registered", id)
	}
	if err != nil {
		return "", fmt.Errorf("release %s: %w", id, err)
	}
	s.factory.forget()
	s.recorder.Record(ctx, Step{Thing: id, Step: StepRelease, OK: true, At: s.now(),
		Reason: fmt.Sprintf("%s; %d certificates in force ended, a new claim secret was made", reason, n)})
	return secret, nil
}

package token

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Times and bounds. RefreshWithin and DefaultTTL are the published ones; the others are ours.
const (
	DefaultTTL    = 24 * time.Hour       // of an access token
	MinTTL        = 10 * time.Minute     // shorter wishes are taken as this: endless refreshing serves no purpose
	MaxTTL        = 7 * 24 * time.Hour   // longer wishes are taken as this
	RefreshWithin = 365 * 24 * time.Hour // how old a token may be that is refreshed
	keepExpired   = 7 * 24 * time.Hour   // how long the row of an expired token is kept for people to read
	maxUser       = 64                   // bytes of an account id
	maxName       = 64                   // characters of an app's name (part of VEC-AUTH-10)
	maxCert       = 8 << 10              // bytes of a session certificate
)

// IsID reports whether s is a token id: a UUID in its usual form.
func IsID(s string) bool { return len(s) == 36 && s == strings.ToLower(s) && uuid.Validate(s) == nil }

func isUser(s string) bool {
	return s != "" && len(s) <= maxUser && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// Credentials are temporary ones for S3.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey logging.Secret
	SessionToken    logging.Secret
	Expires         time.Time
}

func (c Credentials) complete() bool {
	return c.AccessKeyID != "" && c.SecretAccessKey != "" && c.SessionToken != "" && !c.Expires.IsZero()
}

// Bundle is the answer to a robot. Parts that it did not ask for are zero.
type Bundle struct {
	Token       logging.Secret // access token
	ClientToken logging.Secret // base64 of 16 bytes, shown only once
	STS         *Credentials
}

// Peer is who asks, with what it proves itself. Nothing of it is checked yet, but Thing.
type Peer struct {
	Thing       thing.ID            // set if the transport has proved it (MQTT); no certificate and no app key are asked for then
	Chain       []*x509.Certificate // client certificate, leaf first
	Addr        string
	Version     string // what the peer says it is
	AppKey      logging.Secret
	UserSession logging.Secret
	AccessToken logging.Secret
}

// Ports to other domains. Their errors with a kind of Unavailable or Internal are passed on; others are refusals, with their codes for the
// doctor.
type (
	// Robots says which robot a client certificate names; the error says what is wrong with it.
	Robots interface {
		Identify(chain []*x509.Certificate) (thing.ID, error)
	}
	// Services says which of our services a client certificate names.
	Services interface {
		Service(chain []*x509.Certificate) (string, error)
	}
	// UserSessions burns single-use sessions of people: the first call returns the account, every later one an error of kind Unauthenticated.
	UserSessions interface {
		Burn(ctx context.Context, token string, by thing.ID) (userID string, err error)
	}
	// Owners keeps whose a robot is.
	Owners interface {
		// Owner returns the account; NotFound.
		Owner(ctx context.Context, id thing.ID) (account string, err error)
		// Associate makes account the owner. A refusal (any kind but Unavailable and Internal) says that the robot is another's. how is one
		// of the How constants.
		Associate(ctx context.Context, id thing.ID, account, how string) error
		// Disassociate leaves the robot without an owner; one that has none is no error.
		Disassociate(ctx context.Context, id thing.ID) error
	}
	// Docs keeps documents; jdocs.Service has it.
	Docs interface {
		Get(ctx context.Context, key jdocs.Key) (jdocs.Revision, error)
		Write(ctx context.Context, key jdocs.Key, d jdocs.Doc, by string) (jdocs.WriteResult, error)
	}
	// STS makes temporary credentials for the part of the log bucket that is the robot's.
	STS interface {
		Mint(ctx context.Context, id thing.ID, userID string) (Credentials, error)
	}
	// Certificates takes factory certificates out of use.
	Certificates interface {
		// RevokeFactory returns the thing that the certificate named; NotFound.
		RevokeFactory(ctx context.Context, certificateID, by string) (thing.ID, error)
	}
	// Recorder keeps the steps of each robot's activation. It must not fail the request: an implementation logs its own trouble.
	Recorder interface {
		Record(ctx context.Context, s Step)
	}
	// Limiter paces attempts by key. Allow takes one and returns 0, or how long to wait.
	Limiter interface {
		Allow(key string) time.Duration
	}
)

// How a robot came to its owner. A robot makes a new session certificate only after its user data was wiped.
const (
	HowAssociate = "associate" // with the session certificate we know, or none
	HowWiped     = "wiped"     // with another session certificate than the one we know
)

// The steps that this package records.
const (
	StepAssociate    = "associate"
	StepReassociate  = "reassociate"
	StepSecondary    = "secondary client"
	StepRefresh      = "token refresh"
	StepDisassociate = "disassociate"
	StepCertificate  = "session certificate"
	StepListRevoked  = "list revoked tokens"
	StepRevoke       = "revoke tokens"
	StepFactory      = "revoke factory certificate"
)

// Step is one attempt, as it really went. It is for operators: a peer is told less. No account is in it, so that nothing is left of a person
// whose account is deleted.
type Step struct {
	Thing   thing.ID // zero if the peer named none that is well formed; if a certificate was refused, what it claims
	Step    string
	Peer    string
	Version string
	OK      bool
	Code    string // stable word, such as "session_used"; empty if OK
	Reason  string // for people
	At      time.Time
	Shown   *x509.Certificate // by which the robot called, believed or not; nil: none
}

// Token is the row of one access token.
type Token struct {
	ID      string
	Issued  time.Time // whole seconds
	Expires time.Time
	How     string // the step that made it
}

// TokenInfo is a Token as people read it.
type TokenInfo struct {
	Token
	Thing   thing.ID
	User    string // empty if the person was erased
	Parent  string // the token it was refreshed from; empty if none
	Revoked time.Time
	Reason  string // why it was revoked
}

// Association is the beginning of an association.
type Association struct {
	Thing       thing.ID
	User        string
	First       Token
	Certificate []byte // session certificate, PEM; nil: leave what there is
	Keep        bool   // an open association with this user continues, with one more token
}

// Standing is the store's state of a token that a robot presents.
type Standing int

// Standings. The zero value is good.
const (
	Good       Standing = iota
	IsRevoked           // the token was
	Ended               // there is no association, or it began later
	OtherUsers          // the association is another user's
)

// End says what an end took.
type End struct {
	Tokens int        // in force until then
	Things []thing.ID // whose associations ended
}

// ErrUnknown says that there is no such token.
var ErrUnknown = errors.New("token: unknown")

// Store is the storage that Service needs. Safe for concurrent use. A change for which it returned nil is durable.
type Store interface {
	// Associate ends the thing's association and revokes its tokens, unless it is kept, and begins the next with its first token.
	Associate(ctx context.Context, a Association) error
	// LastUser returns the user of the thing's latest association, whether or not it lasts; "" if there is none.
	LastUser(ctx context.Context, id thing.ID) (string, error)
	// Refresh stores next if shown is good for the association of its thing and user.
	Refresh(ctx context.Context, shown Access, next Token) (Standing, error)
	// Standing is the same question without a new token.
	Standing(ctx context.Context, shown Access) (Standing, error)
	// End ends the association of a thing and revokes its tokens.
	End(ctx context.Context, id thing.ID, why string) (End, error)
	// EndUser is End for all things of a user.
	EndUser(ctx context.Context, user, why string) (End, error)
	// RevokeToken revokes one token and those refreshed from it, and returns how many were in force; ErrUnknown. An empty thing means any.
	RevokeToken(ctx context.Context, id thing.ID, token, why string) (int, error)
	// RevokedPage returns ids of revoked tokens in force that follow after, in order, at most limit.
	RevokedPage(ctx context.Context, after string, limit int) ([]string, error)
	// Certificate returns a thing's session certificate, nil if there is none.
	Certificate(ctx context.Context, id thing.ID) ([]byte, error)
	// SetCertificate replaces it.
	SetCertificate(ctx context.Context, id thing.ID, cert []byte) error
	// Prune forgets tokens that expired before expired, unless they are revoked and were issued after revoked, and ended associations without
	// tokens, but never a thing's latest.
	Prune(ctx context.Context, expired, revoked time.Time) error
}

// Inventory lists what is held about robots and people.
type Inventory interface {
	// Tokens returns those of a thing, newest first, at most limit.
	Tokens(ctx context.Context, id thing.ID, limit int) ([]TokenInfo, error)
	// UserTokens returns those of a user.
	UserTokens(ctx context.Context, user string) ([]TokenInfo, error)
	// UserThings returns the things that a user was ever associated with, as far as it is remembered.
	UserThings(ctx context.Context, user string) ([]thing.ID, error)
	// Forget removes the user from every row.
	Forget(ctx context.Context, user string) error
}

// Config holds what Service is made of. All but Services, Certificates, Gateway, TTL and Now are required.
type Config struct {
	Store        Store
	Inventory    Inventory
	Keys         *Keyring
	Verifier     *Verifier
	Robots       Robots
	Services     Services // nil: the calls of services are refused
	Sessions     UserSessions
	Owners       Owners
	Docs         Docs
	STS          STS
	Certificates Certificates // nil: no factory certificate can be revoked here
	Recorder     Recorder
	// Gateway returns where a robot said last that programs reach it, as host:port; "": it serves none. nil: no robot does.
	Gateway func(ctx context.Context, id thing.ID) (string, error)

	ByThing Limiter // requests of one robot
	ByAddr  Limiter // requests that name no robot, by peer address
	AppKeys AppKeys
	TTL     time.Duration // of access tokens; 0: DefaultTTL
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// Service is the rules. Safe for concurrent use.
type Service struct {
	cfg Config
	now func() time.Time
	ok  heard
}

// New checks cfg and returns the service. The error names the missing part.
func New(cfg Config) (*Service, error) {
	cfg.TTL = cmp.Or(cfg.TTL, DefaultTTL)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	switch {
	case cfg.Store == nil || cfg.Inventory == nil || cfg.Keys == nil || cfg.Verifier == nil:
		return nil, errors.New("token: store, keys and verifier are required")
	case cfg.Robots == nil || cfg.Sessions == nil || cfg.Owners == nil || cfg.Docs == nil || cfg.STS == nil:
		return nil, errors.New("token: robots, sessions, owners, documents and temporary credentials are required")
	case cfg.Recorder == nil || cfg.ByThing == nil || cfg.ByAddr == nil || cfg.Log == nil:
		return nil, errors.New("token: recorder, rate limits and log are required")
	case cfg.AppKeys.Len() == 0:
		return nil, errors.New("token: no app keys: original robots could not associate")
	case cfg.TTL < MinTTL || cfg.TTL > MaxTTL:
		return nil, fmt.Errorf("token: access tokens of %v: want %v to %v", cfg.TTL, MinTTL, MaxTTL)
	}
	return &Service{cfg: cfg, now: cfg.Now}, nil
}

// Run forgets old tokens once an hour until ctx ends. It is a service of the runner; n processes may run it at once.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		now := s.now()
		if err := s.cfg.Store.Prune(ctx, now.Add(-keepExpired), now.Add(-RefreshWithin)); err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "expired tokens not removed", logging.Err, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// next makes the row of a new token. minutes is the peer's wish; 0: none.
func (s *Service) next(step string, minutes uint32) Token {
	ttl := s.cfg.TTL
	if minutes != 0 {
		ttl = time.Duration(min(max(minutes, uint32(MinTTL.Minutes())), uint32(MaxTTL.Minutes()))) * time.Minute
	}
	now := s.now().UTC().Truncate(time.Second)
	return Token{ID: uuid.NewString(), Issued: now, Expires: now.Add(ttl), How: step}
}

// robot returns who asks. The thing is set also with an error, if the peer claims to be one: the doctor of that robot shall know.
func (s *Service) robot(p Peer) (thing.ID, error) {
	if p.Thing != "" {
		return p.Thing, nil
	}
	if len(p.Chain) == 0 {
		return "", unproved("certificate_missing", "no client certificate", nil)
	}
	id, err := s.cfg.Robots.Identify(p.Chain)
	if err != nil {
		claimed, malformed := thing.Parse(p.Chain[0].Subject.CommonName)
		if malformed != nil {
			claimed = ""
		}
		return claimed, s.turn(err, "certificate_refused", unproved)
	}
	return id, nil
}

// turn makes a refusal of another domain's error, unless it is one of trouble, which is passed on.
func (s *Service) turn(err error, code string, as func(code, reason string, cause error) *Refusal) error {
	if trouble(err) {
		return err
	}
	return as(cmp.Or(errs.CodeOf(err), code), err.Error(), nil)
}

// trouble reports whether err is no verdict. An error without a kind is one only if it says so itself: checks of certificates have none.
func trouble(err error) bool {
	var e *errs.Error
	if errors.As(err, &e) {
		return e.Kind == errs.Unavailable || e.Kind == errs.Internal || e.Kind == errs.Exhausted
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// pace refuses a robot, or an address, that asks too often.
func (s *Service) pace(l Limiter, key string) error {
	if d := l.Allow(key); d > 0 {
		return &errs.Error{Kind: errs.Exhausted, Code: "too_many_requests", Msg: "too many requests", Retry: d}
	}
	return nil
}

// appKey checks the app key of a peer that comes over gRPC.
func (s *Service) appKey(p Peer) error {
	switch {
	case p.Thing != "":
		return nil
	case p.AppKey == "":
		return unproved("app_key_missing", "no app key", nil)
	case !s.cfg.AppKeys.Has(p.AppKey):
		return unproved("app_key_wrong", "unknown app key", nil)
	}
	return nil
}

// burn returns the account of a user session, and ends the session.
func (s *Service) burn(ctx context.Context, session logging.Secret, id thing.ID) (string, error) {
	if session == "" {
		return "", unproved("session_missing", "no user session", nil)
	}
	user, err := s.cfg.Sessions.Burn(ctx, session.Reveal(), id)
	if err != nil {
		if errs.KindOf(err) == errs.Internal {
			return "", fmt.Errorf("user session for %s: %w", id, err)
		}
		return "", s.turn(err, "session_refused", unproved)
	}
	if !isUser(user) {
		return "", fmt.Errorf("user session for %s: account id of %d bytes is not valid for an owner", id, len(user))
	}
	return user, nil
}

// record tells how a step went, and returns the error for the transport.
func (s *Service) record(ctx context.Context, p Peer, step string, id thing.ID, good string, err error) error {
	if err != nil && ctx.Err() != nil && trouble(err) {
		return err // the peer is gone: nothing was decided
	}
	st := Step{Thing: id, Step: step, Peer: p.Addr, Version: p.Version, OK: err == nil, Reason: good, At: s.now()}
	if len(p.Chain) > 0 {
		st.Shown = p.Chain[0]
	}
	if err == nil {
		if step == StepRefresh && s.ok.skip(string(id), heardEvery, st.At) {
			return nil
		}
		s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "token request done", slog.String(logging.Thing, string(id)), slog.String("step", step),
			slog.String(logging.Addr, p.Addr))
		s.cfg.Recorder.Record(ctx, st)
		return nil
	}
	s.ok.forget(string(id))
	st.Code, st.Reason = codeOf(err)
	s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "token request refused", slog.String(logging.Thing, string(id)), slog.String("step", step),
		slog.String(logging.Addr, p.Addr), slog.String("code", st.Code), slog.String("reason", st.Reason))
	s.cfg.Recorder.Record(ctx, st)
	return err
}

// heard remembers what was lately recorded, so that a routine refresh costs no second write, nor a flood of requests one each. The zero
// value is ready.
type heard struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// How often a good refresh is recorded, and how many robots are remembered; beyond that all are forgotten, which costs some writes.
const (
	heardEvery = time.Hour
	heardMax   = 100_000
)

// skip reports whether the event of key was recorded less than every ago; if not, it is recorded now.
func (h *heard) skip(key string, every time.Duration, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.last[key]) < every {
		return true
	}
	if h.last == nil || len(h.last) >= heardMax {
		h.last = map[string]time.Time{}
	}
	h.last[key] = now
	return false
}

// forget has the next success recorded.
func (h *heard) forget(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.last, key)
}

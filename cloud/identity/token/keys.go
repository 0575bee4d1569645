package token

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kennel/infra/errs"
)

// Alg is a signature algorithm.
type Alg string

// The algorithms. RS256 costs 25 times as much to sign; it is for robots that take nothing else.
const (
	ES256 Alg = "ES256"
	RS256 Alg = "RS256"
)

// rsaBits is the size of RS256 keys.
const rsaBits = 2048

// Key is one signing key as it is stored. Its turn begins at SignFrom and ends when the next key's begins.
type Key struct {
	ID       string
	Alg      Alg
	Public   []byte // SubjectPublicKeyInfo
	Private  []byte // PKCS#8, sealed for the key's ID; nil once its turn is over
	SignFrom time.Time
}

// KeyChange is the change of one rotation.
type KeyChange struct {
	Add    *Key     // nil: none
	Retire []string // ids of keys whose private half goes
	Drop   []string // ids of keys that nothing alive is signed with
}

func (c KeyChange) empty() bool { return c.Add == nil && len(c.Retire) == 0 && len(c.Drop) == 0 }

// KeyStore keeps the signing keys for all processes of a cloud.
type KeyStore interface {
	// Keys returns all keys.
	Keys(ctx context.Context) ([]Key, error)
	// Change calls decide with all keys while no other process changes them, stores what it returns, and announces it.
	Change(ctx context.Context, decide func([]Key) (KeyChange, error)) error
	// FollowKeys calls read whenever keys may have changed, and after every so often, until ctx ends; it then returns nil (pg.Follow).
	FollowKeys(ctx context.Context, log *slog.Logger, every time.Duration, read func(context.Context) error) error
}

// Sealer closes private halves up; infra/secretbox has it.
type Sealer interface {
	Seal(plain, about []byte) []byte
	Open(sealed, about []byte) ([]byte, error)
}

// Rotation says how keys come and go. The zero value of each field is its default.
type Rotation struct {
	Alg     Alg           // of new keys; ES256
	Period  time.Duration // how long one key signs; 30 days
	Overlap time.Duration // how long a key is published before its turn, and its private half kept after it; 10 minutes
	Keep    time.Duration // how long a public half is kept after its turn; RefreshWithin and MaxTTL
}

func (r Rotation) withDefaults() Rotation {
	r.Alg = cmp.Or(r.Alg, ES256)
	r.Period = cmp.Or(r.Period, 30*24*time.Hour)
	r.Overlap = cmp.Or(r.Overlap, 10*time.Minute)
	r.Keep = cmp.Or(r.Keep, RefreshWithin+MaxTTL)
	return r
}

func (r Rotation) validate() error {
	switch {
	case r.Alg != ES256 && r.Alg != RS256:
		return errs.New(errs.Invalid, "token keys: algorithm %.20q: want %s or %s", string(r.Alg), ES256, RS256)
	case r.Overlap <= 0 || r.Period < 2*r.Overlap || r.Keep < MaxTTL:
		return errs.New(errs.Invalid, "token keys: period %v, overlap %v, keep %v: want an overlap above 0, a period of at least twice that, and keep of at least %v",
			r.Period, r.Overlap, r.Keep, MaxTTL)
	}
	return nil
}

// plan says which keys are due at now. add is false if none; from is when the new key's turn begins.
func (r Rotation) plan(keys []Key, now time.Time) (add bool, from time.Time, c KeyChange) {
	keys = slices.Clone(keys)
	inOrder(keys)
	for i := range keys[:max(len(keys)-1, 0)] {
		end := keys[i+1].SignFrom
		if !now.Before(end.Add(r.Keep)) {
			c.Drop = append(c.Drop, keys[i].ID)
		} else if keys[i].Private != nil && !now.Before(end.Add(r.Overlap)) {
			c.Retire = append(c.Retire, keys[i].ID)
		}
	}
	if len(keys) == 0 {
		return true, now, c
	}
	newest := keys[len(keys)-1]
	switch {
	case newest.SignFrom.After(now): // the next one waits already
	case newest.Alg != r.Alg:
		return true, now.Add(r.Overlap), c
	case !now.Before(newest.SignFrom.Add(r.Period - r.Overlap)):
		from := newest.SignFrom.Add(r.Period)
		if soon := now.Add(r.Overlap); from.Before(soon) {
			from = soon
		}
		return true, from, c
	}
	return false, time.Time{}, c
}

func inOrder(keys []Key) {
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Or(a.SignFrom.Compare(b.SignFrom), cmp.Compare(a.ID, b.ID)) })
}

// key is a Key ready for use.
type key struct {
	id          string
	alg         Alg
	method      jwt.SigningMethod
	public      crypto.PublicKey
	private     crypto.Signer // nil: its turn is over
	from, until time.Time     // of its turn; zero until: it has no successor
}

// rereadKeys is how often Run reads keys again without being told; reread paces readings for unknown key ids.
const (
	rereadKeys = 30 * time.Second
	reread     = time.Second
)

// Keyring signs tokens and knows the keys they are checked with. It remembers the stored keys; Run keeps them fresh and rotates them.
// Safe for concurrent use.
type Keyring struct {
	store KeyStore
	seal  Sealer
	rot   Rotation
	now   func() time.Time
	log   *slog.Logger

	ring   atomic.Pointer[[]*key] // in order of their turns
	stored atomic.Pointer[[]Key]

	mu   sync.Mutex // one reading at a time
	last time.Time  // of the last reading for an unknown key
}

// NewKeyring reads the keys and makes the first one if there is none. An error says which key the sealing key does not open: signing with a
// new one instead would hide that processes have different sealing keys.
func NewKeyring(ctx context.Context, store KeyStore, seal Sealer, rot Rotation, log *slog.Logger, now func() time.Time) (*Keyring, error) {
	if now == nil {
		now = time.Now
	}
	k := &Keyring{store: store, seal: seal, rot: rot.withDefaults(), now: now, log: log}
	if err := k.rot.validate(); err != nil {
		return nil, err
	}
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	return k, k.Rotate(ctx)
}

// Rotate makes the next key when its time has come and takes away what is over. Any number of processes may call it at any time.
func (k *Keyring) Rotate(ctx context.Context) error {
	if add, _, c := k.rot.plan(*k.stored.Load(), k.now()); !add && c.empty() {
		return nil
	}
	err := k.store.Change(ctx, func(keys []Key) (KeyChange, error) {
		add, from, c := k.rot.plan(keys, k.now()) // another process may have been first
		if add {
			next, err := k.newKey(from)
			if err != nil {
				return KeyChange{}, err
			}
			c.Add = &next
			k.log.InfoContext(ctx, "token key created", "kid", next.ID, "alg", string(next.Alg), "signs_from", next.SignFrom)
		}
		return c, nil
	})
	if err != nil {
		return fmt.Errorf("rotate token keys: %w", err)
	}
	return k.load(ctx)
}

func (k *Keyring) newKey(from time.Time) (Key, error) {
	out := Key{ID: rand.Text(), Alg: k.rot.Alg, SignFrom: from.UTC().Truncate(time.Microsecond)}
	var private crypto.Signer
	var err error
	if out.Alg == RS256 {
		private, err = rsa.GenerateKey(rand.Reader, rsaBits)
	} else {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return Key{}, err
	}
	if out.Public, err = x509.MarshalPKIXPublicKey(private.Public()); err != nil {
		return Key{}, err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, err
	}
	out.Private = k.seal.Seal(plain, []byte(out.ID))
	return out, nil
}

// load reads all keys.
func (k *Keyring) load(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.loadLocked(ctx)
}

func (k *Keyring) loadLocked(ctx context.Context) error {
	keys, err := k.store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read token keys: %w", err)
	}
	inOrder(keys)
	ring := make([]*key, len(keys))
	for i, stored := range keys {
		opened, err := k.open(stored)
		if err != nil {
			return fmt.Errorf("token key %s: %w", stored.ID, err)
		}
		if i+1 < len(keys) {
			opened.until = keys[i+1].SignFrom
		}
		ring[i] = opened
	}
	k.ring.Store(&ring)
	k.stored.Store(&keys)
	return nil
}

func (k *Keyring) open(stored Key) (*key, error) {
	out := &key{id: stored.ID, alg: stored.Alg, from: stored.SignFrom}
	public, err := x509.ParsePKIXPublicKey(stored.Public)
	if err != nil {
		return nil, err
	}
	out.public = public
	switch pub := public.(type) {
	case *ecdsa.PublicKey:
		out.method = jwt.SigningMethodES256
		if stored.Alg != ES256 || pub.Curve != elliptic.P256() {
			return nil, fmt.Errorf("key on curve %s for algorithm %s: want P-256 and ES256", pub.Curve.Params().Name, stored.Alg)
		}
	case *rsa.PublicKey:
		out.method = jwt.SigningMethodRS256
		if stored.Alg != RS256 {
			return nil, fmt.Errorf("RSA key for algorithm %s: want RS256", stored.Alg)
		}
	default:
		return nil, fmt.Errorf("public key %T: want ECDSA or RSA", public)
	}
	if stored.Private == nil {
		return out, nil
	}
	for _, had := range k.have() { // opened before
		if had.id == out.id && had.private != nil {
			out.private = had.private
			return out, nil
		}
	}
	plain, err := k.seal.Open(stored.Private, []byte(stored.ID))
	if err != nil {
		return nil, fmt.Errorf("open private key, which may be sealed with another sealing key: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return nil, errors.New("private key is damaged") // the parser's words might repeat it
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key %T cannot sign", parsed)
	}
	out.private = signer
	return out, nil
}

func (k *Keyring) have() []*key {
	if ring := k.ring.Load(); ring != nil {
		return *ring
	}
	return nil
}

// Sign returns the token of a.
func (k *Keyring) Sign(a Access) (string, error) {
	signing := k.signing(a.Issued)
	if signing == nil {
		return "", errs.New(errs.Unavailable, "no key for signing tokens")
	}
	t := jwt.NewWithClaims(signing.method, a.Claims())
	t.Header["kid"] = signing.id
	out, err := t.SignedString(signing.private)
	if err != nil {
		return "", fmt.Errorf("sign token with key %s: %w", signing.id, err)
	}
	return out, nil
}

// signing returns the key whose turn it is; the first one also a little before its turn, for a process whose clock is behind.
func (k *Keyring) signing(now time.Time) (out *key) {
	for _, next := range k.have() {
		if next.private != nil && (out == nil || !next.from.After(now)) {
			out = next
		}
	}
	return out
}

// find returns a key by its id, after another look into the store if that has not just been done. It is nil if there is none.
func (k *Keyring) find(ctx context.Context, id string) (*key, error) {
	if out := k.remembered(id); out != nil {
		return out, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if out := k.remembered(id); out != nil { // read meanwhile
		return out, nil
	}
	now := time.Now() // pace of this process, whatever k.now says
	if now.Sub(k.last) < reread {
		return nil, nil
	}
	k.last = now
	if err := k.loadLocked(ctx); err != nil {
		return nil, err
	}
	return k.remembered(id), nil
}

func (k *Keyring) remembered(id string) *key {
	for _, one := range k.have() {
		if one.id == id {
			return one
		}
	}
	return nil
}

// Run keeps the keys fresh and rotates them until ctx ends, and returns nil.
func (k *Keyring) Run(ctx context.Context) error {
	return k.store.FollowKeys(ctx, k.log, rereadKeys, func(ctx context.Context) error {
		if err := k.load(ctx); err != nil {
			return err
		}
		return k.Rotate(ctx)
	})
}

// JWK is one public key (RFC 7517).
type JWK struct {
	Type  string `json:"kty"`
	Use   string `json:"use"`
	Alg   Alg    `json:"alg"`
	ID    string `json:"kid"`
	Curve string `json:"crv,omitempty"`
	X     string `json:"x,omitempty"`
	Y     string `json:"y,omitempty"`
	N     string `json:"n,omitempty"`
	E     string `json:"e,omitempty"`
}

// JWKS is a set of public keys.
type JWKS struct {
	Keys []JWK `json:"keys"`
}

// JWKS returns the keys that a token in force may be signed with, and the one whose turn is next.
func (k *Keyring) JWKS() (JWKS, error) {
	out := JWKS{Keys: []JWK{}}
	now := k.now()
	for _, one := range k.have() {
		if !one.until.IsZero() && now.After(one.until.Add(MaxTTL+k.rot.Overlap)) {
			continue
		}
		jwk, err := one.jwk()
		if err != nil {
			return JWKS{}, err
		}
		out.Keys = append(out.Keys, jwk)
	}
	return out, nil
}

func (k *key) jwk() (JWK, error) {
	out := JWK{Use: "sig", Alg: k.alg, ID: k.id}
	b64 := base64.RawURLEncoding.EncodeToString
	switch pub := k.public.(type) {
	case *ecdsa.PublicKey:
		point, err := pub.Bytes() // 4, X, Y
		if err != nil {
			return JWK{}, fmt.Errorf("token key %s: %w", k.id, err)
		}
		half := (len(point) - 1) / 2
		out.Type, out.Curve, out.X, out.Y = "EC", "P-256", b64(point[1:1+half]), b64(point[1+half:])
	case *rsa.PublicKey:
		out.Type, out.N, out.E = "RSA", b64(pub.N.Bytes()), b64(bytes.TrimLeft(big.NewInt(int64(pub.E)).Bytes(), "\x00"))
	}
	return out, nil
}

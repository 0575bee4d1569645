package token

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// maxToken bounds a token's text, in bytes; ours have about 500.
const maxToken = 4 << 10

// skew is how much the clocks of two of our processes may differ.
const skew = 5 * time.Second

// Verifier checks access tokens without asking the database: the keys and the revoked tokens are in memory. Every service has one. Safe for
// concurrent use.
type Verifier struct {
	keys    *Keyring
	revoked *Revocations
	now     func() time.Time
	full    *jwt.Parser
	bare    *jwt.Parser // signature and form alone
	algs    []string    // that are taken
	good    goodTokens
}

// maxGood bounds the tokens that a verifier remembers; each takes about 250 bytes.
const maxGood = 1 << 14

// goodTokens remembers tokens whose signature was good, by the hash of their text: a robot shows the same one for a day, and a signature
// costs more than the rest of a call. Expiry, the key and revocation are looked at again each time. The zero value is ready.
type goodTokens struct {
	mu sync.Mutex
	m  map[[sha256.Size]byte]goodToken
}

type goodToken struct {
	access Access
	key    *key
}

func (g *goodTokens) get(sum [sha256.Size]byte) (goodToken, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok := g.m[sum]
	return t, ok
}

func (g *goodTokens) add(sum [sha256.Size]byte, t goodToken) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.m == nil {
		g.m = map[[sha256.Size]byte]goodToken{}
	}
	for old := range g.m { // any: a map has no order
		if len(g.m) < maxGood {
			break
		}
		delete(g.m, old)
	}
	g.m[sum] = t
}

// NewVerifier returns a verifier. It takes ES256, and RS256 only if the keys' rotation makes such.
func NewVerifier(keys *Keyring, revoked *Revocations) *Verifier {
	v := &Verifier{keys: keys, revoked: revoked, now: keys.now}
	v.algs = []string{string(ES256)}
	if keys.rot.Alg == RS256 {
		v.algs = append(v.algs, string(RS256))
	}
	v.full = jwt.NewParser(jwt.WithValidMethods(v.algs), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(skew), jwt.WithTimeFunc(v.now))
	v.bare = jwt.NewParser(jwt.WithValidMethods(v.algs), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())
	return v
}

// Verify returns what a token in force says. Everything that is wrong with it is one Refusal, of kind Denied, which makes an original robot
// refresh; Unauthenticated if there is no token; Unavailable if the keys cannot be read.
func (v *Verifier) Verify(ctx context.Context, raw logging.Secret) (Access, error) {
	sum := sha256.Sum256([]byte(raw))
	seen, ok := v.good.get(sum)
	a := seen.access
	if !ok || v.now().After(a.Expires) || v.keys.remembered(seen.key.id) != seen.key {
		var by *key
		var err error
		if a, by, err = v.parse(ctx, v.full, raw); err != nil {
			return Access{}, err
		}
		v.good.add(sum, goodToken{a, by})
	}
	if v.revoked.Has(a.ID) {
		return Access{}, badToken("token_revoked", fmt.Sprintf("token %s of %s was revoked", a.ID, a.Thing))
	}
	return a, nil
}

// VerifyFor is Verify for a robot that has proved who it is: another robot's token is refused.
func (v *Verifier) VerifyFor(ctx context.Context, raw logging.Secret, id thing.ID) (Access, error) {
	a, err := v.Verify(ctx, raw)
	if err == nil && a.Thing != id {
		return Access{}, otherRobots(a, id)
	}
	return a, err
}

func otherRobots(a Access, id thing.ID) error {
	return badToken("token_other_robot", fmt.Sprintf("token %s belongs to %s, not to %s", a.ID, a.Thing, id))
}

// old returns what a token says that may have expired, but was issued within RefreshWithin. Whether it was revoked the caller asks the store.
func (v *Verifier) old(ctx context.Context, raw logging.Secret, id thing.ID) (Access, error) {
	a, _, err := v.parse(ctx, v.bare, raw)
	if err != nil {
		return Access{}, err
	}
	now := v.now()
	switch {
	case a.Thing != id:
		return Access{}, otherRobots(a, id)
	case a.Issued.After(now.Add(skew)):
		return Access{}, badToken("token_future", fmt.Sprintf("token %s is of %s, which is not yet", a.ID, a.Issued.Format(time.RFC3339)))
	case now.After(a.Issued.Add(RefreshWithin)):
		return Access{}, badToken("token_expired", fmt.Sprintf("token %s is of %s: it may be refreshed for %v", a.ID, a.Issued.Format(time.RFC3339), RefreshWithin))
	}
	return a, nil
}

func (v *Verifier) parse(ctx context.Context, p *jwt.Parser, raw logging.Secret) (Access, *key, error) {
	switch {
	case raw == "":
		return Access{}, nil, unproved("token_missing", "no access token", nil)
	case len(raw) > maxToken:
		return Access{}, nil, badToken("token_malformed", fmt.Sprintf("token of %d bytes: want at most %d", len(raw), maxToken))
	}
	var claims Claims
	var signed *key
	t, err := p.ParseWithClaims(string(raw), &claims, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		one, err := v.keys.find(ctx, kid)
		switch {
		case err != nil:
			return nil, &unreadable{err}
		case one == nil:
			return nil, fmt.Errorf("%w %.40q", errNoKey, kid)
		case t.Method.Alg() != string(one.alg):
			return nil, fmt.Errorf("%w: key %s is for algorithm %s, the token has %s", errOtherAlg, kid, one.alg, t.Method.Alg())
		}
		signed = one
		return one.public, nil
	})
	switch {
	case err == nil:
	case t != nil && t.Method != nil && !slices.Contains(v.algs, t.Method.Alg()): // the library calls that a wrong signature, too
		return Access{}, nil, refusalOf(fmt.Errorf("%w: %s", errOtherAlg, t.Method.Alg()))
	default:
		return Access{}, nil, refusalOf(err)
	}
	a, err := claims.access()
	if err != nil {
		return Access{}, nil, refusalOf(err)
	}
	// A private key that got loose after its turn makes no tokens of today.
	if a.Issued.Before(signed.from.Add(-v.keys.rot.Overlap)) || !signed.until.IsZero() && a.Issued.After(signed.until.Add(v.keys.rot.Overlap)) {
		return Access{}, nil, badToken("token_key", fmt.Sprintf("token %s of %s was issued outside the turn of its key %s", a.ID, a.Thing, signed.id))
	}
	return a, signed, nil
}

var (
	errNoKey    = errors.New("no such key")
	errOtherAlg = errors.New("wrong algorithm")
)

// unreadable: the keys could not be read; nothing is said about the token.
type unreadable struct{ err error }

func (u *unreadable) Error() string { return u.err.Error() }
func (u *unreadable) Unwrap() error { return u.err }

// refusalOf gives each way a token can be wrong its code. The library's words name no part of the token but its header.
func refusalOf(err error) error {
	if u, ok := errors.AsType[*unreadable](err); ok {
		if errs.KindOf(u.err) != errs.Internal {
			return u.err
		}
		return errs.RetryLater(2*time.Second, "tokens cannot be checked now", u.err)
	}
	code := "token_malformed"
	for _, c := range []struct {
		err  error
		code string
	}{
		{errNoKey, "token_key"}, {errOtherAlg, "token_alg"},
		{jwt.ErrTokenExpired, "token_expired"}, {jwt.ErrTokenUsedBeforeIssued, "token_future"},
		{jwt.ErrTokenSignatureInvalid, "token_signature"},
		{jwt.ErrTokenRequiredClaimMissing, "token_claims"}, {jwt.ErrTokenInvalidClaims, "token_claims"},
	} {
		if errors.Is(err, c.err) {
			code = c.code
			break
		}
	}
	return badToken(code, err.Error())
}

package token_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	rex, bo = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")
	anna    = "6b1f8a52-5c8e-4a39-9d5e-0d7c1f2a3b4c"
)

// forger signs what it likes, also with the key that the cloud signs with now.
type forger struct {
	t   *testing.T
	kid string
	key *ecdsa.PrivateKey
}

func newForger(t *testing.T, h *tokentest.House) forger {
	t.Helper()
	keys, err := h.Store.Keys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v; want 1", len(keys), err)
	}
	plain, err := h.Seal.For("token/key").Open(keys[0].Private, []byte(keys[0].ID))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		t.Fatal(err)
	}
	return forger{t, keys[0].ID, parsed.(*ecdsa.PrivateKey)}
}

// claims is a good set for rex, changed; a nil value removes a claim.
func claims(change map[string]any) jwt.MapClaims {
	now := time.Now().UTC()
	c := jwt.MapClaims{"token_id": uuid.NewString(), "token_type": "user+robot", "requestor_id": string(rex), "user_id": anna,
		"iat": now.Format(time.RFC3339), "expires": now.Add(time.Hour).Format(time.RFC3339), "permissions": nil}
	maps.Copy(c, change)
	for k, v := range c {
		if v == nil && k != "permissions" {
			delete(c, k)
		}
	}
	return c
}

func (f forger) sign(method jwt.SigningMethod, header map[string]any, key any, c jwt.Claims) string {
	f.t.Helper()
	tok := jwt.NewWithClaims(method, c)
	tok.Header["kid"] = f.kid
	maps.Copy(tok.Header, header)
	for k, v := range tok.Header {
		if v == nil {
			delete(tok.Header, k)
		}
	}
	text, err := tok.SignedString(key)
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

func (f forger) good(change map[string]any) string {
	f.t.Helper()
	return f.sign(jwt.SigningMethodES256, nil, f.key, claims(change))
}

// TestHostileTokens is issue 4, "what must hold" 4, for access tokens: each is refused alike, by every service and by the refresh.
func TestHostileTokens(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	if err := p.Robot(t, rex).Associate(ctx, h.Sessions.Issue(anna)); err != nil {
		t.Fatal(err)
	}
	f := newForger(t, h)
	spki, err := x509.MarshalPKIXPublicKey(f.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	text := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	good := f.good(nil)
	part := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	const year = 365 * 24 * time.Hour

	for _, tc := range []struct {
		name, raw, code string
		refresh         string // code of the refresh, if another; "-": it may be refreshed
	}{
		{"alg none", f.sign(jwt.SigningMethodNone, nil, jwt.UnsafeAllowNoneSignatureType, claims(nil)), "token_alg", ""},
		{"alg None by hand", b64([]byte(`{"alg":"None","typ":"JWT","kid":"`+f.kid+`"}`)) + "." + part[1] + ".", "token_malformed", ""},
		{"HS256 with the public key", f.sign(jwt.SigningMethodHS256, nil, spki, claims(nil)), "token_alg", ""},
		{"RS256", f.sign(jwt.SigningMethodRS256, nil, rsaKey, claims(nil)), "token_alg", ""},
		{"RS512 of another cloud", f.sign(jwt.SigningMethodRS512, nil, rsaKey, claims(nil)), "token_alg", ""},
		{"ES384", f.sign(jwt.SigningMethodES384, nil, p384, claims(nil)), "token_alg", ""},
		{"another key under our id", f.sign(jwt.SigningMethodES256, nil, other, claims(nil)), "token_signature", ""},
		{"unknown key id", f.sign(jwt.SigningMethodES256, map[string]any{"kid": "x"}, other, claims(nil)), "token_key", ""},
		{"no key id", f.sign(jwt.SigningMethodES256, map[string]any{"kid": nil}, f.key, claims(nil)), "token_key", ""},
		{"key id of another type", f.sign(jwt.SigningMethodES256, map[string]any{"kid": []string{f.kid}}, f.key, claims(nil)), "token_key", ""},
		{"brings its own key", f.sign(jwt.SigningMethodES256, map[string]any{"kid": "own", "jwk": map[string]string{"kty": "EC"}, "jku": "https://x.example"}, other, claims(nil)), "token_key", ""},
		{"changed claims", part[0] + "." + strings.Split(f.good(map[string]any{"user_id": "x"}), ".")[1] + "." + part[2], "token_signature", ""},
		{"no signature", part[0] + "." + part[1] + ".", "token_signature", ""},
		{"signature with another end", part[0] + "." + part[1] + "." + part[2][:len(part[2])-1] + flip(part[2][len(part[2])-1]), "token_malformed", ""},
		{"expired", f.good(map[string]any{"iat": text(-2 * time.Hour), "expires": text(-time.Hour)}), "token_expired", "token_key"}, // before the first key's turn
		{"expired a moment ago", f.good(map[string]any{"iat": text(0), "expires": text(-10 * time.Second)}), "token_expired", "-"},
		{"of the future", f.good(map[string]any{"iat": text(time.Hour), "expires": text(2 * time.Hour)}), "token_future", ""},
		{"of last year", f.good(map[string]any{"iat": text(-year - time.Hour), "expires": text(time.Hour)}), "token_key", ""},
		{"other robot's", f.good(map[string]any{"requestor_id": string(bo)}), "token_other_robot", ""},
		{"no thing", f.good(map[string]any{"requestor_id": "Rex"}), "token_claims", ""},
		{"other type", f.good(map[string]any{"token_type": "user"}), "token_claims", ""},
		{"no type", f.good(map[string]any{"token_type": nil}), "token_claims", ""},
		{"empty user", f.good(map[string]any{"user_id": ""}), "token_claims", ""},
		{"no id", f.good(map[string]any{"token_id": nil}), "token_claims", ""},
		{"id that is none", f.good(map[string]any{"token_id": "'; DROP TABLE token_token; --"}), "token_claims", ""},
		{"no expires", f.good(map[string]any{"expires": nil}), "token_claims", ""},
		{"empty expires", f.good(map[string]any{"expires": ""}), "token_claims", ""},
		{"numeric expires", f.good(map[string]any{"expires": now.Add(time.Hour).Unix()}), "token_malformed", ""},
		{"numeric expires as text", f.good(map[string]any{"expires": "99999999999"}), "token_claims", ""},
		{"exp instead of expires", f.good(map[string]any{"expires": nil, "exp": now.Add(time.Hour).Unix()}), "token_claims", ""},
		{"no iat", f.good(map[string]any{"iat": nil}), "token_claims", ""},
		{"numeric iat", f.good(map[string]any{"iat": now.Unix()}), "token_malformed", ""},
		{"claims as a list", f.signRaw(`[]`), "token_malformed", ""},
		{"claims that are no JSON", f.signRaw(`{`), "token_malformed", ""},
		{"not a token", "hello", "token_malformed", ""},
		{"dots", "..", "token_malformed", ""},
		{"four parts", good + ".x", "token_malformed", ""},
		{"huge", strings.Repeat("x", 1<<16), "token_malformed", ""},
		{"none", "", "token_missing", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := p.Verifier.VerifyFor(ctx, logging.Secret(tc.raw), rex)
			check(t, "service", err, tc.code)
			refresh := tc.refresh
			if refresh == "" {
				refresh = tc.code
			}
			_, err = p.Service.RefreshToken(ctx, token.Peer{Thing: rex, Addr: "192.0.2.1:1", AccessToken: logging.Secret(tc.raw)}, token.RefreshRequest{JWT: true})
			if refresh == "-" {
				if err != nil {
					t.Errorf("refresh: %v", err)
				}
				return
			}
			check(t, "refresh", err, refresh)
			if last := h.Recorder.Last(); last.Thing != rex || last.Code != refresh || last.Reason == "" || last.Peer != "192.0.2.1:1" {
				t.Errorf("recorded %+v", last)
			}
		})
	}
	// Good ones stay good after all of it; also one whose id the cloud has never stored, because it was signed with its key.
	if _, err := p.Verifier.VerifyFor(ctx, logging.Secret(good), rex); err != nil {
		t.Error(err)
	}
}

// check wants one public text for everything that is wrong with a token.
func check(t *testing.T, what string, err error, code string) {
	t.Helper()
	var why *token.Refusal
	if !errors.As(err, &why) || why.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
		return
	}
	kind, public := errs.Denied, "access token is not accepted"
	if code == "token_missing" {
		kind, public = errs.Unauthenticated, "not accepted; the operator's doctor knows why"
	}
	if errs.KindOf(err) != kind || errs.Public(err) != public || errs.CodeOf(err) != "" {
		t.Errorf("%s: the peer learns %v %q %q", what, errs.KindOf(err), errs.CodeOf(err), errs.Public(err))
	}
}

// flip changes a base64 digit in the bits that carry nothing.
func flip(c byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(digits[strings.IndexByte(digits, c)^1])
}

// signRaw signs claims that are not even an object.
func (f forger) signRaw(body string) string {
	f.t.Helper()
	head, err := json.Marshal(map[string]string{"alg": "ES256", "typ": "JWT", "kid": f.kid})
	if err != nil {
		f.t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64(head) + "." + b64([]byte(body))
	sig, err := jwt.SigningMethodES256.Sign(text, crypto.Signer(f.key))
	if err != nil {
		f.t.Fatal(err)
	}
	return text + "." + b64(sig)
}

// TestRS256 is for robots that take nothing else: such keys are made and taken only where it is configured.
func TestRS256(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	ctx := t.Context()
	es := h.Start(t)
	r := es.Robot(t, rex)
	if err := r.Associate(ctx, h.Sessions.Issue(anna)); err != nil {
		t.Fatal(err)
	}
	before := logging.Secret(r.Token)
	later := time.Now().Add(20 * time.Minute) // the new key is published first
	rs := h.Start(t, tokentest.WithRotation(token.Rotation{Alg: token.RS256}))
	then := h.Start(t, tokentest.WithRotation(token.Rotation{Alg: token.RS256}), tokentest.WithClock(func() time.Time { return later }))
	if _, err := rs.Verifier.Verify(ctx, before); err != nil {
		t.Errorf("ES256 where RS256 is made: %v", err)
	}
	r.Addr = then.Addr
	if err := r.RefreshJWT(ctx); err != nil {
		t.Fatal(err)
	}
	head, _ := base64.RawURLEncoding.DecodeString(strings.Split(r.Token, ".")[0])
	if !strings.Contains(string(head), `"RS256"`) {
		t.Errorf("header %s", head)
	}
	if _, err := then.Verifier.VerifyFor(ctx, logging.Secret(r.Token), rex); err != nil {
		t.Error(err)
	}
	_, err := es.Verifier.Verify(ctx, logging.Secret(r.Token))
	check(t, "where it is not configured", err, "token_alg")
	set, err := rs.Keys.JWKS()
	if err != nil || len(set.Keys) != 2 || set.Keys[1].Type != "RSA" || set.Keys[1].E != "AQAB" || len(set.Keys[1].N) != 342 {
		t.Errorf("keys %+v, %v", set, err)
	}
}

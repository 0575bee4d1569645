package accountoidc_test

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accountoidc"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const secret = "the client's secret"

// provider is a small OpenID Connect provider that checks what a real one checks: code used once, PKCE, client secret, redirect.
type provider struct {
	*httptest.Server
	t    *testing.T
	key  *rsa.PrivateKey
	mu   sync.Mutex
	code map[string]url.Values // what the authorization was asked with

	claims func(c map[string]any)    // changes the token's claims
	sign   func(input string) string // replaces the signature; nil: RS256
	alg    string
	denies bool // the person says no
}

// providerKey is every provider's: making one takes longer than a sign-in.
var providerKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := providerKey()
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, code: map[string]url.Values{}, alg: "RS256"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig",
			"n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())}}})
	})
	mux.HandleFunc("GET /auth", func(w http.ResponseWriter, r *http.Request) { // the person says yes
		q := r.URL.Query()
		if q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" || q.Get("client_id") != "kennel" || len(q.Get("state")) < 20 || len(q.Get("nonce")) < 20 {
			t.Errorf("asked with %v", q)
		}
		if p.denies {
			http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"error": {"access_denied"}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
			return
		}
		code := rand.Text()
		p.mu.Lock()
		p.code[code] = q
		p.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	user, pass, _ := r.BasicAuth()
	user, _ = url.QueryUnescape(user)
	pass, _ = url.QueryUnescape(pass)
	p.mu.Lock()
	defer p.mu.Unlock()
	q, ok := p.code[r.PostFormValue("code")]
	delete(p.code, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if user != "kennel" || pass != secret || !ok || b64(sum[:]) != q.Get("code_challenge") || r.PostFormValue("redirect_uri") != q.Get("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	claims := map[string]any{"iss": p.URL, "sub": "ada-7", "aud": "kennel", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "nonce": q.Get("nonce"),
		"email": "Ada@example.com", "email_verified": true, "groups": []string{"staff", "kennel-support", "kennel-viewers"}}
	if p.claims != nil {
		p.claims(claims)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	input := b64([]byte(`{"alg":"`+p.alg+`","kid":"k"}`)) + "." + b64(body)
	sig := ""
	if p.sign != nil {
		sig = p.sign(input)
	} else {
		h := sha256.Sum256([]byte(input))
		raw, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, h[:])
		if err != nil {
			p.t.Error(err)
		}
		sig = b64(raw)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": input + "." + sig})
}

// site is a cloud that takes this provider's word.
type site struct {
	*httptest.Server
	svc accounttest.Accounts
	log *bytes.Buffer
}

func newSite(t *testing.T, p *provider) *site {
	t.Helper()
	svc := accounttest.New(t, pgtest.New(t))
	s := &site{svc: svc, log: new(bytes.Buffer)}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	mux := http.NewServeMux()
	accountapi.Operations(svc.SignIn, svc.Second, log).Mount(mux, op.Doors{Log: log})
	accountapi.StaffOperations(svc.Operators).Mount(mux, op.Doors{Log: log})
	accountapi.AuditOperations(svc.Audit, log).Mount(mux, op.Doors{Log: log})
	s.Server = httptest.NewServer(accountapi.Authenticator(svc.SignIn, log)(access.HTTP.Guard(mux, log)))
	t.Cleanup(s.Close)
	id, err := accountoidc.New(accountoidc.Config{Issuer: p.URL, ClientID: "kennel", ClientSecretFile: secretFile(t),
		Roles: map[string]string{"kennel-viewers": "viewer", "kennel-support": "support", "kennel-admins": "admin"}}, s.URL+"/login/oidc/callback")
	if err != nil {
		t.Fatal(err)
	}
	accountapi.MountOIDC(mux, svc.Operators, id, log)
	return s
}

func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// browser keeps cookies; callback is where the provider last sent it.
type browser struct {
	*http.Client
	callback string
}

// stopAt makes the browser stop before the callback, as a thief of the code does.
func newBrowser(t *testing.T, stop bool) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{Client: &http.Client{Jar: jar}}
	b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/login/oidc/callback" {
			b.callback = r.URL.String()
			if stop {
				return http.ErrUseLastResponse
			}
		}
		return nil
	}
	return b
}

func (b *browser) get(t *testing.T, address string) (int, string) {
	t.Helper()
	resp, err := b.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ Code string }
	if json.Unmarshal(body, &p) == nil && p.Code != "" {
		return resp.StatusCode, p.Code
	}
	return resp.StatusCode, string(body)
}

func TestSignIn(t *testing.T) {
	p := newProvider(t)
	s := newSite(t, p)
	b := newBrowser(t, false)
	if status, body := b.get(t, s.URL+"/login/oidc"); status != 200 || !strings.Contains(body, `content="0;url=/"`) {
		t.Fatalf("%d %s\n%s", status, body, s.log)
	}
	status, body := b.get(t, s.URL+"/v1/me")
	if status != 200 || !strings.Contains(body, `"email":"ada@example.com","role":"support","must_change":false`) {
		t.Errorf("%d %s", status, body)
	}
	// The same person: the provider's word on the role holds, its own name for her counts and not the e-mail.
	p.claims = func(c map[string]any) { c["groups"], c["email"] = "kennel-admins", "countess@example.com" }
	again := newBrowser(t, false)
	again.get(t, s.URL+"/login/oidc")
	if status, body := again.get(t, s.URL+"/v1/me"); status != 200 || !strings.Contains(body, `"email":"ada@example.com","role":"admin"`) {
		t.Errorf("%d %s", status, body)
	}
	// She is the last administrator: the provider cannot take that away.
	p.claims = nil
	third := newBrowser(t, false)
	third.get(t, s.URL+"/login/oidc")
	if status, body := third.get(t, s.URL+"/v1/me"); status != 200 || !strings.Contains(body, `"role":"admin"`) {
		t.Errorf("%d %s", status, body)
	}
	list, err := s.svc.Audit.Lines(t.Context(), 0, 0)
	if err != nil || len(list) != 5 || list[4].Detail != "new, support; linked" || list[2].Detail != "support becomes admin" {
		t.Errorf("%+v %v", list, err)
	}
	for _, secret := range []string{secret, "code=", "eyJ"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("%s is in the log: %s", secret, s.log)
		}
	}
}

// Answers of the provider that are false, or about a person without a role here.
func TestRefusedTokens(t *testing.T) {
	set := func(k string, v any) func(*provider) {
		return func(p *provider) { p.claims = func(c map[string]any) { c[k] = v } }
	}
	for _, c := range []struct {
		name   string
		change func(*provider)
		code   string
	}{
		{"another audience", set("aud", "another-client"), "oidc_refused"},
		{"audiences, for another", func(p *provider) {
			p.claims = func(c map[string]any) { c["aud"], c["azp"] = []string{"kennel", "another"}, "another" }
		}, "oidc_refused"},
		{"another issuer", set("iss", "https://evil.example"), "oidc_refused"},
		{"another sign-in's nonce", set("nonce", "AAAAAAAAAAAAAAAAAAAAAAAAAA"), "oidc_refused"},
		{"no nonce", set("nonce", ""), "oidc_refused"},
		{"expired", set("exp", time.Now().Add(-time.Hour).Unix()), "oidc_refused"},
		{"alg none", func(p *provider) { p.alg, p.sign = "none", func(string) string { return "" } }, "oidc_refused"},
		{"HS256 with the public key", func(p *provider) {
			p.alg, p.sign = "HS256", func(in string) string {
				m := hmac.New(sha256.New, p.key.N.Bytes())
				m.Write([]byte(in))
				return b64(m.Sum(nil))
			}
		}, "oidc_refused"},
		{"another key", func(p *provider) {
			other, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				p.t.Fatal(err)
			}
			p.sign = func(in string) string {
				h := sha256.Sum256([]byte(in))
				raw, err := rsa.SignPKCS1v15(rand.Reader, other, crypto.SHA256, h[:])
				if err != nil {
					p.t.Error(err)
				}
				return b64(raw)
			}
		}, "oidc_refused"},
		{"unverified e-mail", set("email_verified", false), "oidc_email"},
		{"verified in words only", set("email_verified", "true"), "oidc_email"},
		{"no e-mail", set("email", ""), "oidc_email"},
		{"no group of ours", set("groups", []string{"staff"}), "oidc_role"},
		{"groups of another shape", set("groups", map[string]any{"kennel-admins": true}), "oidc_role"},
		{"an owner's e-mail", set("email", "own@example.com"), "oidc_account"},
		{"a disabled operator", set("email", "gone@example.com"), "oidc_account"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			s := newSite(t, p)
			c.change(p)
			people(t, s.svc)
			b := newBrowser(t, false)
			if status, code := b.get(t, s.URL+"/login/oidc"); status/100 != 4 || code != c.code {
				t.Errorf("%d %s, want %s\n%s", status, code, c.code, s.log)
			}
			if status, _ := b.get(t, s.URL+"/v1/me"); status != 401 {
				t.Errorf("signed in all the same: %d", status)
			}
			if list, err := s.svc.Operators.List(t.Context()); err != nil || len(list) != 1 {
				t.Errorf("%+v %v", list, err)
			}
		})
	}
}

// An answer is good in the browser that began, once, with the state it was sent with.
func TestStateAndCode(t *testing.T) {
	p := newProvider(t)
	s := newSite(t, p)
	victim, attacker := newBrowser(t, true), newBrowser(t, true)
	attacker.get(t, s.URL+"/login/oidc")
	if status, code := newBrowser(t, false).get(t, attacker.callback); status != 401 || code != "oidc_state" {
		t.Errorf("a browser that began nothing: %d %s", status, code)
	}
	victim.get(t, s.URL+"/login/oidc")
	if status, code := victim.get(t, attacker.callback); status != 401 || code != "oidc_state" {
		t.Errorf("an attacker's answer in a victim's browser: %d %s", status, code)
	}
	// The victim's own state with the attacker's code: PKCE and nonce tell them apart.
	mine := newBrowser(t, true)
	mine.get(t, s.URL+"/login/oidc")
	state, err := url.Parse(mine.callback)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := url.Parse(attacker.callback)
	if err != nil {
		t.Fatal(err)
	}
	q := state.Query()
	q.Set("code", theirs.Query().Get("code"))
	if status, code := mine.get(t, s.URL+"/login/oidc/callback?"+q.Encode()); status != 401 || code != "oidc_refused" {
		t.Errorf("another one's code: %d %s", status, code)
	}
	// A code twice: the browser has forgotten what began, and the provider refuses it, too.
	once := newBrowser(t, true)
	once.get(t, s.URL+"/login/oidc")
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	kept := once.Jar.Cookies(u)
	if status, body := once.get(t, once.callback); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if status, code := once.get(t, once.callback); status != 401 || code != "oidc_state" {
		t.Errorf("again: %d %s", status, code)
	}
	thief := newBrowser(t, true)
	thief.Jar.SetCookies(u, kept)
	if status, code := thief.get(t, once.callback); status != 401 || code != "oidc_refused" {
		t.Errorf("again with the cookie: %d %s", status, code)
	}
	for _, query := range []string{"", "?state=", "?error=access_denied&state=x", "?code=x", "?state=" + strings.Repeat("x", 20_000)} {
		if status, code := newBrowser(t, true).get(t, s.URL+"/login/oidc/callback"+query); status != 401 || code != "oidc_state" {
			t.Errorf("%.30s: %d %s", query, status, code)
		}
	}
}

func TestProviderAway(t *testing.T) {
	p := newProvider(t)
	s := newSite(t, p)
	p.Close()
	if status, code := newBrowser(t, false).get(t, s.URL+"/login/oidc"); status != 503 || code != "retry_after" {
		t.Errorf("%d %s", status, code)
	}
}

func TestConfig(t *testing.T) {
	good := accountoidc.Config{Issuer: "https://id.example", ClientID: "kennel", Roles: map[string]string{"a": "viewer"}}
	for name, change := range map[string]func(*accountoidc.Config){
		"plain http":   func(c *accountoidc.Config) { c.Issuer = "http://id.example" },
		"no url":       func(c *accountoidc.Config) { c.Issuer = "id" },
		"no client":    func(c *accountoidc.Config) { c.ClientID = "" },
		"no roles":     func(c *accountoidc.Config) { c.Roles = nil },
		"owner role":   func(c *accountoidc.Config) { c.Roles = map[string]string{"a": "owner"} },
		"unknown role": func(c *accountoidc.Config) { c.Roles = map[string]string{"a": "king"} },
	} {
		c := good
		change(&c)
		if err := c.Validate(); errs.KindOf(err) != errs.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errs.New(errs.Invalid, "x"); good.Validate() != nil || (accountoidc.Config{}).Validate() != nil || err == nil {
		t.Error("good settings are refused")
	}
	if _, err := accountoidc.New(accountoidc.Config{}, ""); err == nil {
		t.Error("a provider without an issuer")
	}
	good.ClientSecretFile = "/does/not/exist"
	if _, err := accountoidc.New(good, ""); err == nil {
		t.Error("no secret file")
	}
}

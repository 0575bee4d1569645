package accountwebauthn_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/descope/virtualwebauthn"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/access"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/account/accountwebauthn"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	ada      = "ada@example.com"
	password = "correct horse"
)

var here = virtualwebauthn.RelyingParty{Name: "Kennel", ID: "kennel.example", Origin: "https://kennel.example"}

// site is a cloud with one operator who is signed in.
type site struct {
	t     *testing.T
	svc   accounttest.Accounts
	pool  *pgxpool.Pool
	h     http.Handler
	log   *bytes.Buffer
	id    account.ID
	token string
}

func newSite(t *testing.T) *site {
	t.Helper()
	pool := pgtest.New(t)
	svc := accounttest.New(t, pool)
	s := &site{t: t, svc: svc, pool: pool, log: new(bytes.Buffer)}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	p, err := accountwebauthn.New(svc.Passkeys, "https://kennel.example", "Kennel", log)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	accountapi.Operations(svc.SignIn, svc.Second, log).Mount(mux, op.Doors{Log: log})
	accountapi.StaffOperations(svc.Operators).Mount(mux, op.Doors{Log: log})
	accountapi.AuditOperations(svc.Audit, log).Mount(mux, op.Doors{Log: log})
	accountapi.PasskeyOperations(svc.Passkeys, p, log).Mount(mux, op.Doors{Log: log})
	s.h = accountapi.Authenticator(svc.SignIn, log)(accountapi.Audited(svc.Audit, mux, log)(access.HTTP.Guard(mux, log)))
	s.id, s.token = s.operator(ada, auth.Admin)
	return s
}

func (s *site) operator(email string, role auth.Role) (account.ID, string) {
	s.t.Helper()
	a, _, err := s.svc.CreateAccount(s.t.Context(), email, role, password)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := s.svc.Login(s.t.Context(), email, password, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return a.ID, l.Token.Reveal()
}

// do sends one request and returns the status and, of a refusal, the code; out is read from a good answer.
func (s *site) do(method, path, token string, in, out any) (int, string) {
	s.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(method, "https://kennel.example"+path, bytes.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	var p struct{ Code string }
	if w.Code/100 != 2 {
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			s.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	} else if out != nil {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			s.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	return w.Code, p.Code
}

// key is an authenticator with one passkey.
type key struct {
	virtualwebauthn.Authenticator
	virtualwebauthn.Credential
}

// newKey makes a key whose coordinates have no leading zero byte: the virtual authenticator drops those, and the cloud refuses such a key.
func newKey(t *testing.T, id account.ID) *key {
	t.Helper()
	for {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		point, err := private.PublicKey.Bytes() // 04, X, Y
		if err != nil {
			t.Fatal(err)
		}
		if point[1] == 0 || point[33] == 0 {
			continue
		}
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			t.Fatal(err)
		}
		return &key{virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: []byte(id)}),
			virtualwebauthn.NewCredentialWithImportedKey(virtualwebauthn.KeyTypeEC2, der)}
	}
}

// register adds the key and returns what the cloud said.
func (s *site) register(token string, k *key, rp virtualwebauthn.RelyingParty) (int, string) {
	s.t.Helper()
	var c accountapi.PasskeyCeremony
	if status, code := s.do("POST", "/v1/me/passkeys/begin", token, accountapi.PasskeyBegin{Password: password}, &c); status != 200 {
		s.t.Fatalf("begin: %d %s", status, code)
	}
	options, err := virtualwebauthn.ParseAttestationOptions(string(c.Options))
	if err != nil || options.RelyingPartyID != here.ID {
		s.t.Fatalf("%s: %v", c.Options, err)
	}
	answer := virtualwebauthn.CreateAttestationResponse(rp, k.Authenticator, k.Credential, *options)
	return s.do("POST", "/v1/me/passkeys", token, accountapi.PasskeyAnswer{Ceremony: c.Ceremony, Credential: json.RawMessage(answer), Name: "the blue one"}, nil)
}

// answer begins a sign-in and returns the key's answer.
func (s *site) answer(k *key, rp virtualwebauthn.RelyingParty) accountapi.PasskeyAnswer {
	s.t.Helper()
	var c accountapi.PasskeyCeremony
	if status, code := s.do("POST", "/v1/login/passkey/begin", "", nil, &c); status != 200 {
		s.t.Fatalf("begin: %d %s", status, code)
	}
	options, err := virtualwebauthn.ParseAssertionOptions(string(c.Options))
	if err != nil {
		s.t.Fatalf("%s: %v", c.Options, err)
	}
	k.Counter++
	return accountapi.PasskeyAnswer{Ceremony: c.Ceremony, Credential: json.RawMessage(virtualwebauthn.CreateAssertionResponse(rp, k.Authenticator, k.Credential, *options))}
}

func (s *site) signIn(a accountapi.PasskeyAnswer) (status int, code string, l accountapi.LoginAnswer) {
	s.t.Helper()
	status, code = s.do("POST", "/v1/login/passkey", "", a, &l)
	return status, code, l
}

func TestPasskey(t *testing.T) {
	s := newSite(t)
	k := newKey(t, s.id)
	if status, code := s.register(s.token, k, here); status != 200 {
		t.Fatalf("%d %s\n%s", status, code, s.log)
	}
	for range 3 {
		status, code, l := s.signIn(s.answer(k, here))
		if status != 200 || l.Token == "" || l.Account.Email != ada || l.Account.Role != auth.Admin {
			t.Fatalf("%d %s %+v\n%s", status, code, l, s.log)
		}
		if status, code := s.do("GET", "/v1/audit", l.Token, nil, nil); status != 200 {
			t.Errorf("%d %s", status, code)
		}
	}
	var list []accountapi.Passkey
	if status, _ := s.do("GET", "/v1/me/passkeys", s.token, nil, &list); status != 200 || len(list) != 1 || list[0].Name != "the blue one" || list[0].LastUsed.IsZero() {
		t.Errorf("%d %+v", status, list)
	}
	if status, code := s.register(s.token, k, here); status != 409 && status != 401 {
		t.Errorf("the same key twice: %d %s", status, code)
	}
	_, other := s.operator("bob@example.com", auth.Viewer)
	if status, _ := s.do("DELETE", "/v1/me/passkeys/"+list[0].ID, other, nil, nil); status != 404 {
		t.Errorf("another one removes it: %d", status)
	}
	if status, _ := s.do("DELETE", "/v1/me/passkeys/"+list[0].ID, s.token, nil, nil); status != 204 {
		t.Errorf("remove: %d", status)
	}
	if status, code, _ := s.signIn(s.answer(k, here)); status != 401 || code != "passkey_refused" {
		t.Errorf("removed, and still good: %d %s", status, code)
	}
	lines, err := s.svc.Audit.Lines(t.Context(), 0, 0)
	if err != nil || len(lines) != 9 || lines[0].Action != "passkey.remove" || lines[0].Refused != "" || lines[1].Refused != "not_found" || lines[3].Refused != "conflict" ||
		lines[4].Detail != "passkey" {
		t.Errorf("%+v %v", lines, err)
	}
}

func TestHostile(t *testing.T) {
	evil := virtualwebauthn.RelyingParty{Name: "Kennel", ID: "kennel.example", Origin: "https://kennel.example.evil.example"}
	foreign := virtualwebauthn.RelyingParty{Name: "Kennel", ID: "evil.example", Origin: "https://kennel.example"}
	for _, c := range []struct {
		name string
		do   func(s *site, k *key) accountapi.PasskeyAnswer
	}{
		{"another origin", func(s *site, k *key) accountapi.PasskeyAnswer { return s.answer(k, evil) }},
		{"another site's id", func(s *site, k *key) accountapi.PasskeyAnswer { return s.answer(k, foreign) }},
		{"replayed", func(s *site, k *key) accountapi.PasskeyAnswer {
			a := s.answer(k, here)
			if status, code, _ := s.signIn(a); status != 200 {
				s.t.Fatal(status, code)
			}
			return a
		}},
		{"an old answer to a new challenge", func(s *site, k *key) accountapi.PasskeyAnswer {
			old, fresh := s.answer(k, here), s.answer(k, here)
			return accountapi.PasskeyAnswer{Ceremony: fresh.Ceremony, Credential: old.Credential}
		}},
		{"a challenge that was let expire", func(s *site, k *key) accountapi.PasskeyAnswer {
			a := s.answer(k, here)
			if _, err := s.pool.Exec(s.t.Context(), `UPDATE account_ceremony SET expires_at = now() - interval '1 second'`); err != nil {
				s.t.Fatal(err)
			}
			return a
		}},
		{"a copy with an older counter", func(s *site, k *key) accountapi.PasskeyAnswer {
			copied := *k
			for range 3 {
				if status, code, _ := s.signIn(s.answer(k, here)); status != 200 {
					s.t.Fatal(status, code)
				}
			}
			return s.answer(&copied, here)
		}},
		{"another key under its id", func(s *site, k *key) accountapi.PasskeyAnswer {
			forged := newKey(s.t, s.id)
			forged.ID, forged.Counter = k.ID, 100
			return s.answer(forged, here)
		}},
		{"another account's handle", func(s *site, k *key) accountapi.PasskeyAnswer {
			bob, _ := s.operator("bob@example.com", auth.Viewer)
			k.Options.UserHandle = []byte(bob)
			return s.answer(k, here)
		}},
		{"nobody's handle", func(s *site, k *key) accountapi.PasskeyAnswer {
			k.Options.UserHandle = []byte("\x00")
			return s.answer(k, here)
		}},
		{"the person was not verified", func(s *site, k *key) accountapi.PasskeyAnswer {
			k.Options.UserNotVerified = true
			return s.answer(k, here)
		}},
		{"nobody was there", func(s *site, k *key) accountapi.PasskeyAnswer {
			k.Options.UserNotPresent = true
			return s.answer(k, here)
		}},
		{"disabled meanwhile", func(s *site, k *key) accountapi.PasskeyAnswer {
			a := s.answer(k, here)
			if err := s.svc.SetDisabled(s.t.Context(), s.id, true); err != nil {
				s.t.Fatal(err)
			}
			return a
		}},
		{"no ceremony", func(s *site, k *key) accountapi.PasskeyAnswer {
			a := s.answer(k, here)
			a.Ceremony = ""
			return a
		}},
		{"a ceremony for registering", func(s *site, k *key) accountapi.PasskeyAnswer {
			var c accountapi.PasskeyCeremony
			s.do("POST", "/v1/me/passkeys/begin", s.token, accountapi.PasskeyBegin{Password: password}, &c)
			a := s.answer(k, here)
			a.Ceremony = c.Ceremony
			return a
		}},
		{"not a credential", func(s *site, k *key) accountapi.PasskeyAnswer {
			a := s.answer(k, here)
			a.Credential = json.RawMessage(`{"id":"AAAA","type":"public-key"}`)
			return a
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			k := newKey(t, s.id)
			if status, code := s.register(s.token, k, here); status != 200 {
				t.Fatal(status, code)
			}
			if status, code, l := s.signIn(c.do(s, k)); status != 401 || code != "passkey_refused" || l.Token != "" {
				t.Errorf("%d %s\n%s", status, code, s.log)
			}
			if c.name == "a copy with an older counter" {
				lines, err := s.svc.Audit.Lines(t.Context(), 0, 1)
				if err != nil || !strings.Contains(lines[0].Detail, "there may be a copy") {
					t.Errorf("%+v %v", lines, err)
				}
			}
		})
	}
}

// TestOwnersPasskey: an owner adds a passkey, names it, signs in with it while strangers guess at the password, and removes it.
func TestOwnersPasskey(t *testing.T) {
	s := newSite(t)
	id, token := s.operator("own@example.com", auth.Owner)
	k := newKey(t, id)
	if status, code := s.register(token, k, here); status != 200 {
		t.Fatal(status, code)
	}
	for i := range 20 {
		if _, err := s.svc.Login(t.Context(), "own@example.com", "a wrong password", fmt.Sprint("198.51.100.", i)); err == nil {
			t.Fatal("a wrong password is accepted")
		}
	}
	status, code, l := s.signIn(s.answer(k, here))
	if status != 200 || l.Account.Role != auth.Owner {
		t.Fatal(status, code, l.Account)
	}
	var list []accountapi.Passkey
	if status, code := s.do("GET", "/v1/me/passkeys", l.Token, nil, &list); status != 200 || len(list) != 1 || list[0].LastUsed.IsZero() {
		t.Fatal(status, code, list)
	}
	if status, code := s.do("DELETE", "/v1/me/passkeys/"+list[0].ID, s.token, nil, nil); status != 404 {
		t.Errorf("removed by another: %d %s", status, code)
	}
	if status, code := s.do("DELETE", "/v1/me/passkeys/"+list[0].ID, l.Token, nil, nil); status != 204 {
		t.Errorf("removed: %d %s", status, code)
	}
	if status, code, _ := s.signIn(s.answer(k, here)); status != 401 || code != "passkey_refused" {
		t.Errorf("after removal: %d %s", status, code)
	}
}

// Adding a passkey takes the password, the operator's own ceremony and this site.
func TestHostileRegistration(t *testing.T) {
	s := newSite(t)
	if status, code := s.do("POST", "/v1/me/passkeys/begin", s.token, accountapi.PasskeyBegin{Password: "a wrong password"}, nil); status != 401 || code != "wrong_password" {
		t.Errorf("%d %s", status, code)
	}
	for name, rp := range map[string]virtualwebauthn.RelyingParty{"origin": {ID: here.ID, Origin: "https://evil.example"}, "id": {ID: "evil.example", Origin: here.Origin}} {
		if status, code := s.register(s.token, newKey(t, s.id), rp); status != 401 || code != "passkey_refused" {
			t.Errorf("another %s: %d %s", name, status, code)
		}
	}
	bob, token := s.operator("bob@example.com", auth.Viewer)
	var c accountapi.PasskeyCeremony
	s.do("POST", "/v1/me/passkeys/begin", s.token, accountapi.PasskeyBegin{Password: password}, &c)
	options, err := virtualwebauthn.ParseAttestationOptions(string(c.Options))
	if err != nil {
		t.Fatal(err)
	}
	k := newKey(t, bob)
	a := accountapi.PasskeyAnswer{Ceremony: c.Ceremony, Name: "x", Credential: json.RawMessage(virtualwebauthn.CreateAttestationResponse(here, k.Authenticator, k.Credential, *options))}
	if status, code := s.do("POST", "/v1/me/passkeys", token, a, nil); status != 401 || code != "passkey_refused" {
		t.Errorf("another one's ceremony: %d %s", status, code)
	}
	var n int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM account_passkey`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d passkeys, %v", n, err)
	}
	// A first password by an administrator takes the passkeys away: they may be the reason.
	if status, code := s.register(token, k, here); status != 200 {
		t.Fatal(status, code)
	}
	if _, err := s.svc.Operators.Reset(t.Context(), account.By{ID: s.id}, bob); err != nil {
		t.Fatal(err)
	}
	if status, code, _ := s.signIn(s.answer(k, here)); status != 401 || code != "passkey_refused" {
		t.Errorf("after a reset: %d %s", status, code)
	}
}

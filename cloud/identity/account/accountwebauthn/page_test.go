package accountwebauthn_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/descope/virtualwebauthn"

	"kennel/cloud/access"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accountwebauthn"
	"kennel/cloud/web/console"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
)

// fleet is a registry that no test here asks.
type fleet struct{ console.Fleet }

const (
	desk   = "http://localhost:8080" // the console of onebox: plain HTTP on this machine, by name
	public = "https://localhost:8443"
)

// browser keeps the session's cookie.
type browser struct {
	t      *testing.T
	h      http.Handler
	cookie *http.Cookie
}

func openDesk(t *testing.T) (*site, *browser) {
	t.Helper()
	s := newSite(t)
	log := slog.New(slog.NewTextHandler(s.log, nil))
	p, err := accountwebauthn.New(s.svc.Passkeys, public, "Kennel", log, desk)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	accountapi.PasskeyOperations(s.svc.Passkeys, p, log).Mount(mux, op.Doors{Log: log})
	if err := console.Mount(mux, console.Config{Fleet: fleet{}, Auth: accountapi.Browser{In: s.svc.SignIn, Log: log}, Passkeys: s.svc.Passkeys, PasskeySites: p.Sites(), Log: log}); err != nil {
		t.Fatal(err)
	}
	return s, &browser{t: t, h: accountapi.Authenticator(s.svc.SignIn, log)(access.HTTP.Guard(mux, log))}
}

// send asks as a page of this site does: v as JSON, if there is one.
func (b *browser) send(method, path string, v any) *httptest.ResponseRecorder {
	b.t.Helper()
	var body bytes.Buffer
	if v != nil {
		if err := json.NewEncoder(&body).Encode(v); err != nil {
			b.t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, desk+path, &body)
	r.RemoteAddr = "127.0.0.1:40000"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "text/html")
	if v != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookie = c; c.MaxAge < 0 {
			b.cookie = nil
		}
	}
	return w
}

// ask is send with an answer in JSON.
func (b *browser) ask(path string, v, out any) *httptest.ResponseRecorder {
	b.t.Helper()
	w := b.send("POST", path, v)
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			b.t.Fatalf("%s: %s", path, w.Body)
		}
	}
	return w
}

// see returns a page that holds all of want.
func (b *browser) see(path string, want ...string) string {
	b.t.Helper()
	w := b.send("GET", path, nil)
	body := w.Body.String()
	for _, s := range want {
		if w.Code != http.StatusOK || !strings.Contains(body, s) {
			b.t.Errorf("%s: %d, no %q in\n%s", path, w.Code, s, body)
		}
	}
	return body
}

var here8080 = virtualwebauthn.RelyingParty{Name: "Kennel", ID: "localhost", Origin: desk}

// add adds a key as page and script do together.
func (b *browser) add(k *key, name string) (out accountapi.Passkey) {
	b.t.Helper()
	var c accountapi.PasskeyCeremony
	if w := b.ask("/v1/me/passkeys/begin", accountapi.PasskeyBegin{Password: password}, &c); w.Code != http.StatusOK {
		b.t.Fatal(w.Code, w.Body)
	}
	var o struct { // the members that the script reads
		PublicKey struct {
			Challenge string
			User      struct{ ID string }
		}
	}
	if err := json.Unmarshal(c.Options, &o); err != nil || o.PublicKey.Challenge == "" || o.PublicKey.User.ID == "" || strings.ContainsAny(o.PublicKey.Challenge+o.PublicKey.User.ID, "+/=") {
		b.t.Errorf("%s: %v", c.Options, err)
	}
	options, err := virtualwebauthn.ParseAttestationOptions(string(c.Options))
	if err != nil {
		b.t.Fatal(err)
	}
	answer := virtualwebauthn.CreateAttestationResponse(here8080, k.Authenticator, k.Credential, *options)
	if w := b.ask("/v1/me/passkeys", accountapi.PasskeyAnswer{Ceremony: c.Ceremony, Name: name, Credential: json.RawMessage(answer)}, &out); w.Code != http.StatusOK {
		b.t.Fatal(w.Code, w.Body)
	}
	return out
}

// signIn signs in as page and script do together.
func (b *browser) signIn(k *key) *httptest.ResponseRecorder {
	b.t.Helper()
	var c accountapi.PasskeyCeremony
	if w := b.ask("/v1/login/passkey/begin", struct{}{}, &c); w.Code != http.StatusOK {
		b.t.Fatal(w.Code, w.Body)
	}
	options, err := virtualwebauthn.ParseAssertionOptions(string(c.Options))
	if err != nil {
		b.t.Fatal(err)
	}
	k.Counter++
	answer := virtualwebauthn.CreateAssertionResponse(here8080, k.Authenticator, k.Credential, *options)
	var l accountapi.LoginAnswer
	w := b.ask("/v1/login/passkey", accountapi.PasskeyAnswer{Ceremony: c.Ceremony, Cookie: true, Credential: json.RawMessage(answer)}, &l)
	if l.Token != "" {
		b.t.Error("the script is shown a token that only the cookie should hold")
	}
	return w
}

// TestPasskeyOnThePages: an operator adds a passkey on the page /me, signs in with it on the page that signs in, and removes it. Requests are those
// of passkey.js; a virtual authenticator takes the real one's part.
func TestPasskeyOnThePages(t *testing.T) {
	s, b := openDesk(t)
	b.cookie = &http.Cookie{Name: accountapi.PlainCookie + "-8080", Value: s.token}
	b.see("/me", "None yet", `id="passkey-add"`)
	k := newKey(t, s.id)
	added := b.add(k, `the "blue" one`)
	b.see("/me?done=passkey-added", "Passkey added", "the &#34;blue&#34; one", "never used")

	// Away, and in again with the key alone.
	if w := b.send("POST", "/logout", nil); w.Code != http.StatusSeeOther || b.cookie != nil {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	b.see("/login?next=/me", `id="passkey-login" data-next="/me"`)
	if w := b.signIn(k); w.Code != http.StatusOK || b.cookie == nil || !b.cookie.HttpOnly || b.cookie.SameSite != http.SameSiteStrictMode {
		t.Fatalf("%d %s %v\n%s", w.Code, w.Body, b.cookie, s.log)
	}

	// Removed on the page, it is good for nothing; the page says so, and the answer to the key helps and tells nothing.
	form := regexp.MustCompile(`action="(/me/passkeys/[^"]*/remove)"`).FindStringSubmatch(b.see("/me", "last used"))
	if form == nil || form[1] != "/me/passkeys/"+added.ID+"/remove" {
		t.Fatalf("%v", form)
	}
	if w := b.send("POST", form[1], nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/me?done=passkey-removed" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	b.see("/me?done=passkey-removed", "Passkey removed", "None yet")
	if w := b.send("POST", form[1], nil); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "No such passkey") {
		t.Errorf("removed twice: %d %s", w.Code, w.Body)
	}
	b.send("POST", "/logout", nil)
	if w := b.signIn(k); w.Code != http.StatusUnauthorized || b.cookie != nil || !strings.Contains(w.Body.String(), "sign in another way") || strings.Contains(w.Body.String(), ada) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestPasskeysOfOthers: operators neither see nor remove another's passkeys on the page, and an owner has no such page.
func TestPasskeysOfOthers(t *testing.T) {
	s, b := openDesk(t)
	b.cookie = &http.Cookie{Name: accountapi.PlainCookie + "-8080", Value: s.token}
	added := b.add(newKey(t, s.id), "the blue one")
	_, bob := s.operator("bob@example.com", auth.Viewer)
	b.cookie.Value = bob
	if body := b.see("/me", "None yet"); strings.Contains(body, "the blue one") {
		t.Errorf("%s", body)
	}
	_, owner := s.operator("own@example.com", auth.Owner)
	for who, want := range map[string]int{bob: http.StatusNotFound, owner: http.StatusForbidden} {
		b.cookie.Value = who
		for _, id := range []string{added.ID, base64.RawURLEncoding.EncodeToString([]byte("none"))} {
			if w := b.send("POST", "/me/passkeys/"+id+"/remove", nil); w.Code != want {
				t.Errorf("%d, want %d: %s", w.Code, want, w.Body)
			}
		}
	}
	if _, keys, err := s.svc.Passkeys.Person(t.Context(), s.id); err != nil || len(keys) != 1 {
		t.Errorf("%v %v", keys, err)
	}
}

// TestSites: where browsers take passkeys; at an address that is a number they take none.
func TestSites(t *testing.T) {
	for _, c := range []struct {
		public string
		others []string
		want   []string
		bad    bool
	}{
		{"https://kennel.example", nil, []string{"https://kennel.example"}, false},
		{public, []string{desk}, []string{public, desk}, false},
		{"https://192.0.2.7:8443", nil, nil, false},
		{"https://[2001:db8::7]", nil, nil, false},
		{"https://kennel.example", []string{"http://localhost:8080"}, nil, true},
		{"kennel.example", nil, nil, true},
	} {
		p, err := accountwebauthn.New(nil, c.public, "Kennel", slog.New(slog.DiscardHandler), c.others...)
		if (err != nil) != c.bad {
			t.Errorf("%s %v: %v", c.public, c.others, err)
		}
		if err == nil && !slices.Equal(p.Sites(), c.want) {
			t.Errorf("%s %v: %v", c.public, c.others, p.Sites())
		}
		if err == nil && c.want == nil {
			_, _, in := p.BeginLogin(t.Context(), "")
			_, _, add := p.BeginRegister(t.Context(), "", "", "")
			if errs.CodeOf(in) != "passkeys_off" || errs.CodeOf(add) != "passkeys_off" {
				t.Errorf("%s: %v, %v", c.public, in, add)
			}
		}
	}
}

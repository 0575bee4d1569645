package accountapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The pages: looking changes nothing, the button does; no script, no frame of another site, and the code stays out of referrers.
func TestPages(t *testing.T) {
	s := newOwnersSite(t)
	form := header("Content-Type", "application/x-www-form-urlencoded")
	post := func(path string, f url.Values) *httptest.ResponseRecorder {
		return s.do("POST", path, f.Encode(), form, header("Sec-Fetch-Site", "same-origin"))
	}
	for _, p := range []string{"signup", "verify", "again", "forgot", "reset", "email"} {
		w := s.do("GET", "/account/"+p+`?code="><script>alert(1)</script>`, "")
		h := w.Header()
		if w.Code != 200 || strings.Contains(w.Body.String(), "<script") || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s", p, w.Code, h, w.Body)
		}
	}
	if w := post("/account/signup", url.Values{"email": {ada}, "password": {password}}); w.Code != 200 || !strings.Contains(w.Body.String(), "we have sent an e-mail") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	l := s.letter(t)
	u, err := url.Parse(l.Link)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // scanners look at it
		if w := s.do("GET", u.RequestURI(), ""); w.Code != 200 || !strings.Contains(w.Body.String(), l.Code) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if w := post("/account/verify", url.Values{"code": {l.Code}, "password": {"wrong password"}}); w.Code != 403 || !strings.Contains(w.Body.String(), "password for this sign-up") || !strings.Contains(w.Body.String(), l.Code) || strings.Contains(w.Body.String(), "wrong password") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := post(u.Path, url.Values{"code": {l.Code}, "password": {password}}); w.Code != 200 || !strings.Contains(w.Body.String(), "account is ready") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := post("/account/forgot", url.Values{"email": {ada}}); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	l = s.letter(t)
	if w := post("/account/reset", url.Values{"code": {l.Code}, "password": {"short"}}); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := post("/account/reset", url.Values{"code": {l.Code}, "password": {"battery staple"}}); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := post("/account/reset", url.Values{"code": {l.Code}, "password": {"battery staple"}}); w.Code != 403 {
		t.Errorf("a code twice: %d %s", w.Code, w.Body)
	}
	s.login(t, `{"email":"ada@example.com","password":"battery staple"}`)
}

// The browser that signed up types the password once: the form with the code follows at once, the letter can be sent again, and the code
// signs the person in. Every other browser has to give the password.
func TestSignUpInOneBrowser(t *testing.T) {
	s := newOwnersSite(t)
	send := func(c *http.Cookie, path string, f url.Values) *httptest.ResponseRecorder {
		change := []func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded"), header("Sec-Fetch-Site", "same-origin")}
		if c != nil {
			change = append(change, cookie(c))
		}
		return s.do("POST", path, f.Encode(), change...)
	}
	named := func(w *httptest.ResponseRecorder, name string) *http.Cookie {
		t.Helper()
		for _, c := range w.Result().Cookies() {
			if c.Name == name {
				return c
			}
		}
		t.Fatalf("no cookie %s: %d %v", name, w.Code, w.Header())
		return nil
	}
	has := func(w *httptest.ResponseRecorder, code int, want, not string) {
		t.Helper()
		if body := w.Body.String(); w.Code != code || !strings.Contains(body, want) || not != "" && strings.Contains(body, not) {
			t.Errorf("%d, want %d with %s and without %s:\n%s", w.Code, code, want, not, body)
		}
	}
	w := send(nil, "/account/signup", url.Values{"email": {ada}, "password": {password}})
	has(w, 200, `action="/account/verify"`, `type="password"`)
	c := named(w, "__Host-kennel-signup")
	if !c.HttpOnly || !c.Secure || c.Path != "/" {
		t.Errorf("%v", c)
	}
	s.letter(t)
	has(s.do("GET", "/account/again", "", cookie(c)), 200, `value="`+ada+`"`, "")
	has(send(c, "/account/again", url.Values{"email": {ada}}), 200, `name="code"`, `type="password"`)
	code := s.letter(t).Code
	has(s.do("GET", "/account/verify?code="+code, ""), 200, `type="password"`, "")
	has(s.do("GET", "/account/verify?code="+code, "", cookie(c)), 200, code, `type="password"`)
	has(send(nil, "/account/verify", url.Values{"code": {code}}), 403, "password for this sign-up", "")
	has(send(c, "/account/verify", url.Values{"code": {"WRONG"}}), 403, "ask for a new one", `type="password"`)

	w = send(nil, "/account/signup", url.Values{"email": {ada}, "password": {"the password of a thief"}})
	thief := named(w, "__Host-kennel-signup")
	s.letters(t)
	w = send(thief, "/account/verify", url.Values{"code": {code}})
	has(w, 403, `type="password"`, "")
	if c := named(w, "__Host-kennel-signup"); c.MaxAge >= 0 {
		t.Errorf("the cookie of another sign-up stays: %v", c)
	}

	w = send(c, "/account/verify", url.Values{"code": {code}})
	has(w, 200, `href="/my"`, "<form")
	if got := s.do("GET", "/v1/me", "", cookie(named(w, "__Host-kennel"))); got.Code != 200 || !strings.Contains(got.Body.String(), ada) {
		t.Errorf("after the code: %d %s", got.Code, got.Body)
	}
	has(send(c, "/account/verify", url.Values{"code": {code}}), 403, "ask for a new one", "")
	s.login(t, `{"email":"ada@example.com","password":"`+password+`"}`)
}

func TestDatabaseAwayForOwners(t *testing.T) {
	s := newOwnersSite(t)
	s.end()
	for _, req := range []string{"POST /v1/account/signup", "POST /v1/account/reset", "POST /1/sessions", "POST /1/users", "POST /account/forgot"} {
		method, path, _ := strings.Cut(req, " ")
		w := s.do(method, path, `{"email":"ada@example.com","username":"ada@example.com","password":"correct horse"}`, asJSON, header("Anki-App-Key", appKey), func(r *http.Request) {
			if strings.HasSuffix(path, "reset") {
				r.Body = io.NopCloser(strings.NewReader(`{"email":"ada@example.com"}`))
			}
			if strings.HasSuffix(path, "signup") {
				r.Body = io.NopCloser(strings.NewReader(`{"email":"ada@example.com","password":"correct horse"}`))
			}
		})
		if w.Code < 500 || strings.Contains(w.Body.String(), "pool") {
			t.Errorf("%s: %d %s; want it to be our fault, without saying which", req, w.Code, w.Body)
		}
	}
}

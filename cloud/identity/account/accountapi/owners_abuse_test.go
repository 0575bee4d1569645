package accountapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/mail"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/ratelimit"
)

// changing is every new route that changes something.
var changing = []string{"POST /v1/account/signup", "POST /v1/account/verify", "POST /v1/account/verify/again", "POST /v1/account/reset", "POST /v1/account/reset/confirm",
	"POST /v1/account/email", "POST /v1/account/email/confirm", "PATCH /v1/account", "DELETE /v1/account/sessions", "DELETE /v1/account/sessions/1", "POST /v1/account/apps",
	"POST /v1/account/delete", "POST /1/sessions", "POST /1/sessions/reup", "POST /1/sessions/delete", "POST /1/users", "PATCH /1/users/me", "POST /1/users/me/patch",
	"POST /1/users/me/verify_email", "POST /1/reset_user_password", "POST /account/signup", "POST /account/verify", "POST /account/again", "POST /account/forgot", "POST /account/reset", "POST /account/email"}

// A page elsewhere makes a signed-in browser send what it likes: nothing happens.
func TestCrossSiteRequestsDoNothing(t *testing.T) {
	s := newOwnersSite(t)
	s.create(t, ada, auth.Owner)
	_, w := s.login(t, `{"email":"ada@example.com","password":"correct horse","cookie":true}`, header("Sec-Fetch-Site", "same-origin"))
	c := w.Result().Cookies()[0]
	for name, from := range map[string]func(*http.Request){"cross-site": header("Sec-Fetch-Site", "cross-site"), "sibling": header("Sec-Fetch-Site", "same-site"), "older browser": header("Origin", "https://evil.example")} {
		for _, cookies := range []bool{true, false} {
			for _, req := range changing {
				method, path, _ := strings.Cut(req, " ")
				change := []func(*http.Request){from, header("Anki-App-Key", appKey)}
				if cookies {
					change = append(change, cookie(c))
				}
				w := s.do(method, path, `{"email":"thief@example.com","password":"correct horse"}`, change...)
				if w.Code != 403 && !(!cookies && w.Code/100 == 4) {
					t.Errorf("%s, cookie %v, %s: %d %s", name, cookies, req, w.Code, w.Body)
				}
			}
		}
	}
	var n int
	if err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM account_signup) + (SELECT count(*) FROM mail_outbox) + (SELECT count(*) FROM account_user_session) + (SELECT count(*) FROM account_deletion)`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d traces, %v", n, err)
	}
	if w := s.do("POST", "/v1/account/apps", "", cookie(c), header("Sec-Fetch-Site", "same-origin")); w.Code != 200 {
		t.Errorf("our own page: %d %s", w.Code, w.Body)
	}
}

// A login never returns a session that an attacker planted, and a token of one kind opens no door of the other.
func TestSessionFixation(t *testing.T) {
	s := newOwnersSite(t)
	s.create(t, ada, auth.Owner)
	s.create(t, "thief@example.com", auth.Owner)
	thief := object(t, s.app("POST", "/1/sessions", url.Values{"username": {"thief@example.com"}, "password": {password}}, ""), 200)["session"].(map[string]any)["session_token"].(string)
	for name, change := range map[string]func(*http.Request){
		"header": header("Authorization", "Anki "+thief), "cookie": cookie(&http.Cookie{Name: accountapi.SecureCookie, Value: thief}), "query": func(r *http.Request) { r.URL.RawQuery = "session_token=" + thief },
	} {
		form := url.Values{"username": {ada}, "password": {password}, "session_token": {thief}, "token": {thief}}
		w := s.app("POST", "/1/sessions", form, "", change)
		got := object(t, w, 200)
		if got["session"].(map[string]any)["session_token"] == thief || got["user"].(map[string]any)["email"] != ada || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", name, got)
		}
	}
	if me := object(t, s.app("GET", "/1/users/me", nil, thief), 200); me["email"] != "thief@example.com" {
		t.Errorf("the planted session became %v", me["email"])
	}
	if w := s.do("GET", "/v1/account", "", bearer(thief)); w.Code != 401 {
		t.Errorf("an app's token as a person's: %d", w.Code)
	}
	if w := s.do("GET", "/v1/account", "", cookie(&http.Cookie{Name: accountapi.SecureCookie, Value: thief})); w.Code != 401 {
		t.Errorf("an app's token as a cookie: %d", w.Code)
	}
	l, _ := s.login(t, good)
	appProblem(t, "a person's token as an app's", s.app("GET", "/1/users/me", nil, l.Token), 403, "invalid_session")
	// Proving an e-mail does not validate a session that another person made: see accountpg's TestNobodyProvesForSomebodyElse.
}

// A thousand guesses, of a password from a thousand addresses and of codes: what all strangers have at one account is looked at, none is right, and the
// right password from one of those addresses waits too.
func TestBruteForce(t *testing.T) {
	s := newOwnersSite(t)
	s.create(t, ada, auth.Owner)
	from := func(i int) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr = fmt.Sprintf("198.51.%d.%d:1234", 100+i/250, i%250+1) }
	}
	looked, refused := 0, 0
	for i := range 1000 {
		w := s.app("POST", "/1/sessions", url.Values{"username": {ada}, "password": {fmt.Sprint("guess number ", i)}}, "", from(i))
		switch w.Code {
		case 403:
			looked++
		case 429:
			if refused++; w.Header().Get("Retry-After") == "" {
				t.Fatal("429 without Retry-After")
			}
			appProblem(t, "too many", w, 429, "rate_limited")
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if looked > 130 || looked+refused != 1000 {
		t.Errorf("%d of 1000 passwords were looked at, want at most 130", looked)
	}
	if w := s.app("POST", "/1/sessions", url.Values{"username": {ada}, "password": {password}}, "", from(1)); w.Code != 429 {
		t.Errorf("the right password while locked: %d", w.Code)
	}
	if w := s.do("POST", "/v1/login", good, from(2)); w.Code != 429 {
		t.Errorf("the other door while locked: %d", w.Code)
	}
	// Codes: from one address, which is paced, and none is right.
	strict := s.svc.WithLetters(t, account.LettersConfig{Mail: mail.Queue{}, ByAddr: ratelimit.NewByAddr(time.Hour, 20), PublicURL: "https://cloud.example"}, account.PrivacyConfig{})
	mux := http.NewServeMux()
	own := accountapi.OwnersConfig{SignIn: s.svc.SignIn, People: s.svc.People, Letters: strict.Letters, Apps: strict.Apps, Privacy: strict.Privacy, Log: slog.New(slog.DiscardHandler)}
	accountapi.OwnersOperations(own).Mount(mux, op.Doors{Log: own.Log})
	if err := accountapi.MountOwners(mux, own); err != nil {
		t.Fatal(err)
	}
	codes := map[int]int{}
	for i := range 1000 {
		r := httptest.NewRequest("POST", "https://cloud.example/v1/account/reset/confirm", strings.NewReader(fmt.Sprintf(`{"code":"GUESS%021d","password":"battery staple"}`, i)))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		codes[w.Code]++
	}
	if codes[401] != 20 || codes[429] != 980 {
		t.Errorf("1000 codes from one address: %v, want 20 looked at", codes)
	}
}

func TestOversizeBodies(t *testing.T) {
	s := newOwnersSite(t)
	s.create(t, ada, auth.Owner)
	l, _ := s.login(t, good)
	big := `{"email":"` + strings.Repeat("x", 4<<20) + `"}`
	for _, req := range changing {
		method, path, _ := strings.Cut(req, " ")
		if strings.HasPrefix(req, "DELETE") || path == "/v1/account/apps" || strings.HasSuffix(path, "reup") || strings.HasSuffix(path, "verify_email") {
			continue // reads no body
		}
		change := []func(*http.Request){asJSON, header("Anki-App-Key", appKey), bearer(l.Token)}
		if strings.HasPrefix(path, "/1/") {
			change[2] = header("Authorization", "Anki x")
		}
		body := &counter{Reader: strings.NewReader(big)}
		w := s.do(method, path, "", append(change, func(r *http.Request) { r.Body = body })...)
		if w.Code != 400 && w.Code != 403 || body.n > 1<<20 {
			t.Errorf("%s: %d after %d bytes, %.200s", req, w.Code, body.n, w.Body)
		}
	}
}

type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func (*counter) Close() error { return nil }

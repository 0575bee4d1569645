package accountapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	ada      = "ada@example.com"
	password = "correct horse"
)

// site is the whole behind the authenticator, and a log to search.
type site struct {
	svc accounttest.Accounts
	h   http.Handler
	log *bytes.Buffer
	end func()

	lasts func(*http.Request) // answers /lasts
}

func newSite(t testing.TB, change ...func(*account.SignInConfig)) *site {
	t.Helper()
	pool := pgtest.New(t)
	svc := accounttest.New(t, pool, append(change, func(c *account.SignInConfig) { c.ByAddr = ratelimit.NewByAddr(time.Hour, 100) })...)
	s := &site{svc: svc, log: new(bytes.Buffer), end: pool.Close}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mux := http.NewServeMux()
	accountapi.Operations(svc.SignIn, svc.Second, log).Mount(mux, op.Doors{Log: log})
	accountapi.StaffOperations(svc.Operators).Mount(mux, op.Doors{Log: log})
	accountapi.AuditOperations(svc.Audit, log).Mount(mux, op.Doors{Log: log})
	mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) { kithttp.WriteJSON(w, 200, auth.CallerFrom(r.Context())) })
	mux.HandleFunc("POST /things/{thing}/poke", func(w http.ResponseWriter, r *http.Request) {
		err := errs.New(errs.Denied, "role %s may not", auth.CallerFrom(r.Context()).Role)
		if r.URL.Query().Has("ill") {
			err = errs.New(errs.Invalid, "ill")
		}
		kithttp.WriteError(w, err)
	})
	mux.HandleFunc("/lasts", func(_ http.ResponseWriter, r *http.Request) { s.lasts(r) })
	s.h = accountapi.Authenticator(svc.SignIn, log)(accountapi.Audited(svc.Audit, mux, log)(mux))
	return s
}

func (s *site) create(t testing.TB, email string, role auth.Role) {
	t.Helper()
	if _, _, err := s.svc.CreateAccount(t.Context(), email, role, password); err != nil {
		t.Fatal(err)
	}
}

// do sends one request as a remote browser or program over TLS.
func (s *site) do(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://cloud.example"+path, strings.NewReader(body))
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func header(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }

func cookie(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
}

func code(t testing.TB, w *httptest.ResponseRecorder) string {
	t.Helper()
	var p kithttp.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return p.Code
}

func (s *site) login(t testing.TB, body string, change ...func(*http.Request)) (accountapi.LoginAnswer, *httptest.ResponseRecorder) {
	t.Helper()
	w := s.do("POST", "/v1/login", body, change...)
	var a accountapi.LoginAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &a); w.Code != 200 || err != nil {
		t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	return a, w
}

const good = `{"email":"ada@example.com","password":"correct horse"}`

// TestRequestsThatLast: a request that reads ends with its session; one that changes something runs to its end, since it may have ended the session.
func TestRequestsThatLast(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Admin)
	l, _ := s.login(t, good)
	changing, over := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	s.lasts = func(r *http.Request) {
		if r.Method == http.MethodPost {
			close(changing)
			<-over
			done <- r.Context().Err()
			return
		}
		if w := s.do("POST", "/v1/logout", "", bearer(l.Token)); w.Code != 204 {
			t.Errorf("logout: %d %s", w.Code, w.Body)
		}
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
			t.Error("a request that reads continues without its session")
		}
		close(over)
	}
	go s.do("POST", "/lasts", "", bearer(l.Token))
	<-changing
	s.do("GET", "/lasts", "", bearer(l.Token))
	if err := <-done; err != nil {
		t.Errorf("a request that changes something, begun before: %v", err)
	}
}

func TestBearer(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Admin)
	l, w := s.login(t, good)
	if l.Token == "" || l.Account.Email != ada || l.Account.Role != auth.Admin || time.Until(l.Expires) < 6*24*time.Hour || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("%+v %v", l.Account, w.Header())
	}
	var me accountapi.Account
	w = s.do("GET", "/v1/me", "", bearer(l.Token))
	if err := json.Unmarshal(w.Body.Bytes(), &me); err != nil || me != l.Account {
		t.Errorf("me: %d %s", w.Code, w.Body)
	}
	var who auth.Caller
	w = s.do("POST", "/who", "", bearer(l.Token)) // no cookie: nothing to forge
	if err := json.Unmarshal(w.Body.Bytes(), &who); err != nil || who != (auth.Caller{Role: auth.Admin, Account: string(l.Account.ID), Name: ada, Addr: "192.0.2.1"}) {
		t.Errorf("caller %+v", who)
	}
	if w = s.do("POST", "/v1/me/password", `{"old":"correct horse","new":"battery staple"}`, bearer(l.Token)); w.Code != 204 {
		t.Errorf("change: %d %s", w.Code, w.Body)
	}
	w = s.do("GET", "/v1/audit?limit=10", "", bearer(l.Token))
	var lines []accountapi.AuditEntry
	if err := json.Unmarshal(w.Body.Bytes(), &lines); err != nil || len(lines) != 2 || lines[0].Action != "password.change" || lines[1].Action != "login" || lines[1].Name != ada || lines[1].Addr != "192.0.2.1" {
		t.Errorf("audit: %d %s", w.Code, w.Body)
	}
	if w = s.do("POST", "/v1/logout", "", bearer(l.Token)); w.Code != 204 {
		t.Errorf("logout: %d %s", w.Code, w.Body)
	}
	for path, want := range map[string]string{"/v1/me": "session_over", "/who": "session_over"} {
		if w = s.do("GET", path, "", bearer(l.Token)); w.Code != 401 || code(t, w) != want {
			t.Errorf("%s after logout: %d %s", path, w.Code, w.Body)
		}
	}
	if w = s.do("GET", "/v1/me", ""); w.Code != 401 {
		t.Errorf("nobody: %d", w.Code)
	}
}

func TestCookie(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Viewer)
	l, w := s.login(t, `{"email":"ada@example.com","password":"correct horse","cookie":true}`, header("Sec-Fetch-Site", "same-origin"))
	c := w.Result().Cookies()[0]
	if l.Token != "" || c.Name != accountapi.SecureCookie || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("token %q, cookie %v", l.Token, c)
	}
	// A second login makes another session: one that was planted before is not taken over.
	_, w2 := s.login(t, `{"email":"ada@example.com","password":"correct horse","cookie":true}`, cookie(c), header("Sec-Fetch-Site", "same-origin"))
	if w2.Result().Cookies()[0].Value == c.Value {
		t.Error("login kept the session it was sent with")
	}
	for _, x := range []struct {
		name   string
		method string
		change []func(*http.Request)
		want   int
	}{
		{"reading from anywhere", "GET", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 200},
		{"our page", "POST", []func(*http.Request){header("Sec-Fetch-Site", "same-origin")}, 200},
		{"our page, older browser", "POST", []func(*http.Request){header("Origin", "https://cloud.example")}, 200},
		{"our script, no browser headers", "POST", []func(*http.Request){header(accountapi.CSRFHeader, "1")}, 200},
		{"another site", "POST", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403},
		{"another site with our header", "POST", []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header(accountapi.CSRFHeader, "1")}, 403},
		{"another host of our site", "DELETE", []func(*http.Request){header("Sec-Fetch-Site", "same-site")}, 403},
		{"another origin, older browser", "PUT", []func(*http.Request){header("Origin", "https://evil.example")}, 403},
		{"no origin at all", "POST", []func(*http.Request){header("Origin", "null")}, 403},
		{"nothing said", "POST", nil, 403},
	} {
		w := s.do(x.method, "/who", "", append(x.change, cookie(c))...)
		if w.Code != x.want || x.want == 403 && code(t, w) != "cross_site" {
			t.Errorf("%s: %d %s, want %d", x.name, w.Code, w.Body, x.want)
		}
	}
	if w := s.do("POST", "/v1/login", `{"email":"ada@example.com","password":"correct horse","cookie":true}`, header("Sec-Fetch-Site", "cross-site")); w.Code != 403 {
		t.Errorf("another site signs a browser in: %d", w.Code)
	}
	// An old cookie is no reason to refuse the page that signs in.
	if w := s.do("POST", "/v1/logout", "", cookie(c), header(accountapi.CSRFHeader, "1")); w.Code != 204 || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %d %v", w.Code, w.Header())
	}
	if w := s.do("GET", "/who", "", cookie(c)); w.Code != 200 || !strings.Contains(w.Body.String(), `"Role":""`) {
		t.Errorf("old cookie: %d %s", w.Code, w.Body)
	}
}

// Plain HTTP keeps a cookie only between this machine and itself.
func TestPlainCookieOnlyOnLoopback(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Viewer)
	for _, c := range []struct{ host, remote, want string }{
		{"localhost:8080", "127.0.0.1:5000", accountapi.PlainCookie + "-8080"},
		{"[::1]:8080", "[::1]:5000", accountapi.PlainCookie + "-8080"},
		{"cloud.example:8443", "192.0.2.1:5000", accountapi.SecureCookie + "-8443"},
		{"127.0.0.1", "127.0.0.1:5000", accountapi.PlainCookie},
		{"cloud.example", "127.0.0.1:5000", accountapi.SecureCookie}, // behind a proxy on this machine
		{"localhost", "192.0.2.1:5000", accountapi.SecureCookie},     // a Host header is only what the peer says
		{"localhost.evil.example", "127.0.0.1:5000", accountapi.SecureCookie},
	} {
		_, w := s.login(t, `{"email":"ada@example.com","password":"correct horse","cookie":true}`, func(r *http.Request) { r.TLS, r.Host, r.RemoteAddr = nil, c.host, c.remote })
		if got := w.Result().Cookies()[0]; got.Name != c.want || got.Secure != strings.HasPrefix(c.want, accountapi.SecureCookie) {
			t.Errorf("%s from %s: %v", c.host, c.remote, got)
		}
	}
}

// TestCookiesOfTwoClouds: of two clouds that one after the other answer at a port of this machine, each ignores the other's cookie and leaves it alone.
func TestCookiesOfTwoClouds(t *testing.T) {
	clouds := map[string]*site{}
	for _, name := range []string{"aa", "bb"} {
		clouds[name] = newSite(t, func(c *account.SignInConfig) { c.Instance = name })
		clouds[name].create(t, ada, auth.Viewer)
	}
	now := clouds["aa"]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.h.ServeHTTP(w, r) }))
	defer server.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	ask := func(method, path, body, want string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Fatalf("%s %s: %s %s %v, want %s", method, path, resp.Status, b, err, want)
		}
	}
	const login = `{"email":"ada@example.com","password":"correct horse","cookie":true}`
	ask("POST", "/v1/login", login, ada)
	now = clouds["bb"]
	ask("GET", "/who", "", `"Role":""`)
	ask("POST", "/v1/login", login, ada)
	now = clouds["aa"]
	ask("GET", "/who", "", `"Role":"viewer"`)

	for host, want := range map[string]string{"localhost:8443": accountapi.SecureCookie + "-8443-aa", "127.0.0.1": accountapi.SecureCookie + "-aa", "cloud.example:8443": accountapi.SecureCookie + "-8443"} {
		if _, w := now.login(t, login, func(r *http.Request) { r.Host = host }); w.Result().Cookies()[0].Name != want {
			t.Errorf("at %s: %v, want %s", host, w.Result().Cookies()[0], want)
		}
	}
}

func TestRefusedLogins(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Viewer)
	wrong := s.do("POST", "/v1/login", `{"email":"ada@example.com","password":"hunter2hunter2"}`)
	unknown := s.do("POST", "/v1/login", `{"email":"bob@example.com","password":"hunter2hunter2"}`)
	if wrong.Code != 401 || unknown.Code != 401 || wrong.Body.String() != unknown.Body.String() {
		t.Errorf("wrong password: %d %s\nunknown: %d %s", wrong.Code, wrong.Body, unknown.Code, unknown.Body)
	}
	for name, body := range map[string]string{"empty": "", "not JSON": "{", "array": "[]", "unknown field": `{"email":"a","admin":true}`, "number": `{"email":1}`,
		"two": good + good, "oversize": `{"email":"` + strings.Repeat("x", 1<<20) + `"}`} {
		if w := s.do("POST", "/v1/login", body); w.Code != 400 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	last := 0
	for range 10 {
		w := s.do("POST", "/v1/login", `{"email":"ada@example.com","password":"hunter2hunter2"}`)
		if last = w.Code; last == 429 && w.Header().Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	if last != 429 {
		t.Errorf("after 11 wrong passwords: %d, want 429", last)
	}
	if log := s.log.String(); !strings.Contains(log, "login refused") || strings.Contains(log, "hunter2") {
		t.Errorf("log: %s", log)
	}
}

func TestAuditIsForAdmins(t *testing.T) {
	s := newSite(t)
	for _, role := range auth.People {
		email := string(role) + "@example.com"
		s.create(t, email, role)
		l, _ := s.login(t, `{"email":"`+email+`","password":"correct horse"}`)
		want := 403
		if role == auth.Admin {
			want = 200
		}
		if w := s.do("GET", "/v1/audit", "", bearer(l.Token)); w.Code != want {
			t.Errorf("%s: %d, want %d", role, w.Code, want)
		}
		if role != auth.Admin {
			continue
		}
		for _, q := range []string{"before=x", "limit=-1", "limit=99999999999", "limit=1001", "before=-1"} {
			if w := s.do("GET", "/v1/audit?"+q, "", bearer(l.Token)); w.Code != 400 {
				t.Errorf("%s: %d %s", q, w.Code, w.Body)
			}
		}
	}
}

func TestDatabaseAway(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Admin)
	l, _ := s.login(t, good)
	s.end()
	if w := s.do("GET", "/v1/me", "", bearer(l.Token)); w.Code < 500 {
		t.Errorf("%d %s: want it to be our fault, not the caller's", w.Code, w.Body)
	}
}

func TestAuditor(t *testing.T) {
	s := newSite(t)
	audit := s.svc.Audit.Note
	ctx := auth.WithCaller(t.Context(), auth.Caller{Role: auth.Thing, Thing: "vic:1", Addr: "192.0.2.9"})
	if err := audit(ctx, "thing.register", "vic:2", "x"); err != nil {
		t.Fatal(err)
	}
	lines, err := s.svc.Audit.Lines(t.Context(), 0, 1)
	if err != nil || lines[0].Actor != "vic:1" || lines[0].Role != "thing" || lines[0].Object != "vic:2" || lines[0].Addr != "192.0.2.9" {
		t.Errorf("%+v %v", lines, err)
	}
}

// TestRefusalsAreWritten: one line for what an operator was refused, to change or to read; none for what was ill, and not without bound.
func TestRefusalsAreWritten(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Viewer)
	l, _ := s.login(t, good)
	s.do("POST", "/things/vic:00e20100/poke?ill", "", bearer(l.Token))
	before, err := s.svc.Audit.Lines(t.Context(), 0, 100)
	if err != nil || len(before) == 0 || before[0].Action == "refused" {
		t.Fatalf("%+v, %v; want no refusal yet", before, err)
	}
	s.do("GET", "/v1/audit", "", bearer(l.Token))
	before, err = s.svc.Audit.Lines(t.Context(), 0, 100)
	if err != nil || before[0].Action != "refused" || before[0].Detail != "GET /v1/audit" || before[0].Refused != "denied" {
		t.Errorf("%+v, %v; want that reading was refused", before, err)
	}
	for i := range 300 {
		if w := s.do("POST", "/things/vic:00e20100/poke", "", bearer(l.Token)); w.Code != 403 {
			t.Fatalf("%d %s, want 403", w.Code, w.Body)
		}
		if i > 0 {
			continue
		}
		lines, err := s.svc.Audit.Lines(t.Context(), 0, 1)
		if e := lines[0]; err != nil || e.Action != "refused" || e.Object != "vic:00e20100" || e.Detail != "POST /things/{thing}/poke" || e.Refused != "denied" || e.Role != auth.Viewer {
			t.Errorf("%+v, %v; want who was refused what about which robot", lines, err)
		}
	}
	after, err := s.svc.Audit.Lines(t.Context(), 0, 500)
	if n := len(after) - len(before); err != nil || n < 200 || n > 260 {
		t.Errorf("%d lines for 300 refusals, %v; want 200, and one for each second since", n, err)
	}
}

// TestEveryChangeIsAudited: each operation by which a person changes something has one line with its result, whether it writes its own or not. Each that is
// refused for want of a right has one (issue 16, finding 7), also if it only reads; and each by which an owner asks for another's robot.
func TestEveryChangeIsAudited(t *testing.T) {
	svc := accounttest.New(t, pgtest.New(t))
	mux := http.NewServeMux()
	names := access.HTTP.Names()
	for _, name := range names {
		mux.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("X-Answer") {
			case "done":
			case "denied":
				kithttp.WriteError(w, errs.New(errs.Denied, "no"))
			case "unknown":
				kithttp.WriteError(w, auth.UnknownThing("vic:00e20100"))
			case "noted":
				if err := svc.Audit.Note(r.Context(), "thing.change", "x", "y"); err != nil {
					t.Error(err)
				}
			case "conflict":
				if err := svc.Audit.Note(r.Context(), "thing.change", "x", "y"); err != nil {
					t.Error(err)
				}
				kithttp.WriteError(w, errs.New(errs.Conflict, "late"))
			case "panic":
				panic(http.ErrAbortHandler)
			default:
				kithttp.WriteError(w, errs.New(errs.Invalid, "ill"))
			}
		})
	}
	h := accountapi.Audited(svc.Audit, mux, slog.New(slog.DiscardHandler))(mux)
	var last int64
	changes := 0
	for i, name := range names {
		method, pattern, _ := strings.Cut(name, " ")
		changing := access.HTTP[name].Changes()
		wants := map[string]string{} // by who asked: each answer is given to another caller
		for answer, want := range map[string]string{"done": "request " + name + " done", "denied": "refused " + name + " not done: denied", "unknown": "refused " + name + " not done: not_found", "noted": "thing.change y done",
			"conflict": "thing.change y not done: conflict", "panic": "refused " + name + " not done: internal", "ill": ""} {
			path := strings.NewReplacer("{thing}", "vic:00e20100", "{$}", "", "{", "", "}", "", "...", "").Replace(pattern)
			who := auth.Caller{Role: auth.Admin, Account: fmt.Sprintf("%s-%0*d", answer, 35-len(answer), i)}
			if answer == "unknown" {
				who.Role = auth.Owner
				if !changing && !(access.HTTP[name].Own && strings.Contains(pattern, "{thing}")) {
					want = ""
				}
			} else if !changing && answer != "denied" && strings.Contains(want, name) {
				want = ""
			}
			if access.HTTP[name].Plain { // its line comes first
				result, role := map[string]string{"done": "done", "noted": "done"}[answer], auth.Admin
				if answer == "noted" || answer == "conflict" {
					continue // it writes none
				}
				if result == "" {
					_, result, _ = strings.Cut(want+" not done: invalid", " not done: ")
					result = "not done: " + strings.TrimSuffix(result, " not done: invalid")
				}
				if !slices.Contains(access.HTTP[name].Roles, role) {
					role = auth.Owner
				}
				who.Role, want = role, "request "+name+" "+result
			}
			r := httptest.NewRequest(method, path, nil)
			r.Header.Set("X-Answer", answer)
			func() {
				defer func() { _ = recover() }() // of net/http
				h.ServeHTTP(httptest.NewRecorder(), r.WithContext(auth.WithCaller(r.Context(), who)))
			}()
			if want != "" {
				wants[who.Account] = want
			}
		}
		lines, err := svc.Audit.Lines(t.Context(), 0, 2*len(wants)+10)
		if err != nil {
			t.Fatal(err)
		}
		got, newest := map[string]string{}, last
		for _, l := range lines {
			if l.ID <= last {
				break
			}
			newest = max(newest, l.ID)
			if got[l.Actor] != "" {
				t.Errorf("%s: a second line of %s: %+v", name, l.Actor, l)
			}
			if got[l.Actor] = l.Action + " " + l.Detail + " " + l.Result(); l.ByName() != "deleted account" {
				t.Errorf("%s: %+v; want the caller", name, l)
			}
		}
		if last = newest; !maps.Equal(got, wants) {
			t.Errorf("%s: lines %q; want %q", name, got, wants)
		}
		if changing {
			changes++
		}
	}
	if changes < 80 {
		t.Errorf("%d operations change something; want the table's", changes)
	}
	// An action has its result on whatever page of the list it is, also if the line that tells it would be on the page before.
	all, err := svc.Audit.Lines(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{7, 100} {
		var paged []audit.Entry
		for before := int64(0); len(paged) < len(all); before = paged[len(paged)-1].ID {
			lines, err := svc.Audit.Lines(t.Context(), before, size)
			if err != nil {
				t.Fatal(err)
			}
			if paged = append(paged, lines...); len(lines) < size {
				break
			}
		}
		if !slices.Equal(paged[:min(len(paged), len(all))], all) {
			t.Errorf("%d lines in pages of %d, %d at once, or with other results", len(paged), size, len(all))
		}
	}
}

// FuzzLogin: whatever comes, the answer is a JSON refusal, and never ours to mend.
func FuzzLogin(f *testing.F) {
	s := newSite(f)
	f.Add([]byte(good), "Bearer kst_x", "kennel=1")
	f.Add([]byte(`{"email":"\u0000","password":"\ud800"}`), "Basic eA==", "__Host-kennel=kst_\x00")
	f.Fuzz(func(t *testing.T, body []byte, auth, cookies string) {
		r := httptest.NewRequest("POST", "https://cloud.example/v1/login", bytes.NewReader(body))
		r.Header["Authorization"], r.Header["Cookie"] = []string{auth}, []string{cookies}
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r)
		var p kithttp.Problem
		b, err := io.ReadAll(w.Body)
		if err != nil || json.Unmarshal(b, &p) != nil || p.Kind == "" || w.Code < 400 || w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, b)
		}
	})
}

package accountapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounthash"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
)

func answered[T any](t testing.TB, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code/100 != 2 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// A first password opens the way to another one and nothing else, for programs and browsers; then all is open.
func TestFirstPasswordOpensNothingElse(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Admin)
	admin, _ := s.login(t, good)
	first := answered[accountapi.FirstPassword](t, s.do("POST", "/v1/operators", `{"email":"grace@example.com","role":"viewer"}`, bearer(admin.Token)))
	signIn := fmt.Sprintf(`{"email":"grace@example.com","password":%q}`, first.Password)
	l, _ := s.login(t, signIn)
	if !l.Account.MustChange {
		t.Error("the login does not say that it must change")
	}
	_, w := s.login(t, strings.TrimSuffix(signIn, "}")+`,"cookie":true}`, header("Sec-Fetch-Site", "same-origin"))
	c := w.Result().Cookies()[0]
	for _, r := range []struct{ method, path string }{{"GET", "/who"}, {"POST", "/who"}, {"GET", "/v1/audit"}, {"GET", "/v1/me/"}, {"GET", "/v1/operators"}, {"DELETE", "/v1/me"}} {
		if w := s.do(r.method, r.path, "", bearer(l.Token)); w.Code != 403 || code(t, w) != "password_must_change" {
			t.Errorf("%s %s: %d %s", r.method, r.path, w.Code, w.Body)
		}
	}
	if w := s.do("GET", "/who", "", cookie(c), header("Accept", "text/html,*/*")); w.Code != 303 || w.Header().Get("Location") != "/account/password" {
		t.Errorf("browser: %d %v", w.Code, w.Header())
	}
	if w := s.do("GET", "/who", "", cookie(c)); w.Code != 403 {
		t.Errorf("script of a page: %d", w.Code)
	}
	if me := answered[accountapi.Account](t, s.do("GET", "/v1/me", "", bearer(l.Token))); !me.MustChange {
		t.Errorf("%+v", me)
	}
	// A program that proved itself another way does not depend on the password.
	issued, err := s.svc.IssueSession(t.Context(), l.Account.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if w := s.do("GET", "/who", "", bearer(issued.Token.Reveal())); w.Code != 200 {
		t.Errorf("issued: %d %s", w.Code, w.Body)
	}
	change := fmt.Sprintf(`{"old":%q,"new":"battery staple"}`, first.Password)
	if w := s.do("POST", "/v1/me/password", change, bearer(l.Token)); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.do("GET", "/who", "", bearer(l.Token)); w.Code != 200 || !strings.Contains(w.Body.String(), `"viewer"`) {
		t.Errorf("after the change: %d %s", w.Code, w.Body)
	}
	if w := s.do("GET", "/who", "", cookie(c), header("Accept", "text/html")); w.Code != 200 || !strings.Contains(w.Body.String(), `"Role":""`) {
		t.Errorf("the other session goes on: %d %s", w.Code, w.Body)
	}
	if strings.Contains(s.log.String(), first.Password) {
		t.Error("the first password is in the log")
	}
}

func TestOperatorsAreForAdmins(t *testing.T) {
	s := newSite(t)
	s.create(t, ada, auth.Admin)
	admin, _ := s.login(t, good)
	path := "/v1/operators/" + string(admin.Account.ID)
	routes := []struct{ method, path, body string }{{"GET", "/v1/operators", ""}, {"POST", "/v1/operators", `{"email":"x@example.com","role":"admin"}`},
		{"PATCH", path, `{"role":"admin"}`}, {"PATCH", path, `{"disabled":true}`}, {"POST", path + "/password", ""}, {"DELETE", path, ""},
		{"GET", path + "/sessions", ""}, {"DELETE", path + "/sessions", ""}, {"DELETE", path + "/sessions/0011223344556677", ""}, {"GET", "/v1/audit/verify", ""}}
	for _, role := range auth.People[:len(auth.People)-1] {
		email := string(role) + "@example.com"
		s.create(t, email, role)
		l, _ := s.login(t, `{"email":"`+email+`","password":"correct horse"}`)
		for _, r := range routes {
			if w := s.do(r.method, r.path, r.body, bearer(l.Token)); w.Code != 403 {
				t.Errorf("%s %s as %s: %d", r.method, r.path, role, w.Code)
			}
		}
	}
	for _, r := range routes {
		if w := s.do(r.method, r.path, r.body); w.Code != 401 {
			t.Errorf("%s %s as nobody: %d", r.method, r.path, w.Code)
		}
	}
	for _, body := range []string{"", "{}", `{"role":"viewer","disabled":true}`, `{"admin":true}`, `{"role":7}`, `{"role":"owner"}`} {
		if w := s.do("PATCH", path, body, bearer(admin.Token)); w.Code != 400 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := s.do("DELETE", path, "", bearer(admin.Token)); w.Code != 409 || code(t, w) != "last_admin" {
		t.Errorf("the last one: %d %s", w.Code, w.Body)
	}
	if w := s.do("PATCH", "/v1/operators/x%00y", `{"disabled":true}`, bearer(admin.Token)); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if r := answered[accountapi.AuditReport](t, s.do("GET", "/v1/audit/verify", "", bearer(admin.Token))); !r.Done || r.Broken != nil {
		t.Errorf("%+v", r)
	}
	if w := s.do("GET", "/v1/audit/verify?from=-3", "", bearer(admin.Token)); w.Code != 400 {
		t.Errorf("%d", w.Code)
	}
}

// process is a server with a service and connections of its own on one database.
func process(t *testing.T, pool *pgxpool.Pool, hasher account.Hasher, perAddr int) (accounttest.Accounts, *httptest.Server) {
	t.Helper()
	own, err := pgxpool.NewWithConfig(t.Context(), pool.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	svc := accounttest.New(t, own, func(c *account.SignInConfig) { c.Hasher, c.ByAddr = hasher, ratelimit.NewByAddr(time.Hour, perAddr) })
	log := slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	accountapi.Operations(svc.SignIn, svc.Second, log).Mount(mux, op.Doors{Log: log})
	accountapi.StaffOperations(svc.Operators).Mount(mux, op.Doors{Log: log})
	accountapi.AuditOperations(svc.Audit, log).Mount(mux, op.Doors{Log: log})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		if auth.CallerFrom(r.Context()).Role == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	srv := httptest.NewServer(accountapi.Authenticator(svc.SignIn, log)(mux))
	t.Cleanup(srv.Close)
	return svc, srv
}

// A stream of one process ends within two seconds when an administrator ends the session in another.
func TestRevokedSessionEndsItsStreams(t *testing.T) {
	pool := pgtest.New(t)
	a, _ := process(t, pool, accounthash.NewAt(accounthash.Cost{Memory: 64, Passes: 1}), 1000)
	_, there := process(t, pool, accounthash.NewAt(accounthash.Cost{Memory: 64, Passes: 1}), 1000)
	eve, _, err := a.CreateAccount(t.Context(), "eve@example.com", auth.Admin, password)
	if err != nil {
		t.Fatal(err)
	}
	op, _, err := a.CreateAccount(t.Context(), ada, auth.Support, password)
	if err != nil {
		t.Fatal(err)
	}
	by := account.By{ID: eve.ID}
	no := true
	for name, end := range map[string]func() error{
		"sessions": func() error { _, err := a.Operators.EndSession(t.Context(), by, op.ID, ""); return err },
		"role":     func() error { return a.Operators.SetRole(t.Context(), by, op.ID, auth.Viewer) },
		"disable":  func() error { return a.Operators.SetDisabled(t.Context(), by, op.ID, no) },
	} {
		if err := a.Operators.SetDisabled(t.Context(), by, op.ID, false); err != nil {
			t.Fatal(err)
		}
		if err := a.Operators.SetRole(t.Context(), by, op.ID, auth.Support); err != nil {
			t.Fatal(err)
		}
		l, err := a.Login(t.Context(), ada, password, "")
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", there.URL+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+l.Token.Reveal())
		resp, err := there.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "first" {
			t.Fatal(string(first), err)
		}
		start := time.Now()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Error(name, err)
		}
		resp.Body.Close()
		took := time.Since(start)
		t.Logf("%s: the stream ended after %v", name, took.Round(time.Millisecond))
		if took > 5*2*time.Second {
			t.Errorf("%s: the stream ended after %v, want within 2 s", name, took)
		}
	}
}

// counted counts how many passwords were really looked at.
type counted struct {
	account.Hasher
	n atomic.Int64
}

func (c *counted) Verify(ctx context.Context, hash, password string, by account.Share) (bool, error) {
	c.n.Add(1)
	return c.Hasher.Verify(ctx, hash, password, by)
}

// A thousand tries at one operator, spread over two processes and twenty at a time, look at a handful of passwords, and the right one among the
// last opens nothing. A thousand tries at as many people from one address are held up by the address.
func TestBruteForceOfTwoProcesses(t *testing.T) {
	pool := pgtest.New(t)
	hasher := &counted{Hasher: accounthash.NewAt(accounthash.Cost{Memory: 64, Passes: 1})}
	a, one := process(t, pool, hasher, 1_000_000) // the attacker has as many addresses as needed
	_, two := process(t, pool, hasher, 1_000_000)
	if _, _, err := a.CreateAccount(t.Context(), ada, auth.Admin, password); err != nil {
		t.Fatal(err)
	}
	try := func(srv *httptest.Server, email, pw string) (int, string) {
		body, err := json.Marshal(accountapi.LoginRequest{Email: email, Password: pw})
		if err != nil {
			t.Error(err)
		}
		resp, err := srv.Client().Post(srv.URL+"/v1/login", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		var p struct{ Code string }
		_ = json.NewDecoder(resp.Body).Decode(&p) // a login has none
		return resp.StatusCode, p.Code
	}
	var mu sync.Mutex
	codes := map[string]int{}
	flood := func(n int, f func(i int) (int, string)) {
		next := make(chan int)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for i := range next {
					status, code := f(i)
					mu.Lock()
					codes[fmt.Sprint(status, " ", code)]++
					mu.Unlock()
				}
			})
		}
		for i := range n {
			next <- i
		}
		close(next)
		wg.Wait()
	}
	flood(1000, func(i int) (int, string) {
		pw := fmt.Sprint("guess number ", i)
		if i > 900 && i%10 == 0 {
			pw = password
		}
		return try([]*httptest.Server{one, two}[i%2], ada, pw)
	})
	t.Logf("one operator: %v, %d passwords looked at", codes, hasher.n.Load())
	if n := hasher.n.Load(); n > 10 || codes["200 "] > 0 || codes["429 too_many_attempts"] < 980 || codes["401 login_refused"]+codes["429 too_many_attempts"] != 1000 {
		t.Errorf("%d passwords were looked at: %v", n, codes)
	}
	// Both processes know that it is locked.
	for _, srv := range []*httptest.Server{one, two} {
		if status, code := try(srv, ada, password); status != 429 {
			t.Errorf("locked: %d %s", status, code)
		}
	}

	hasher.n.Store(0)
	clear(codes)
	_, three := process(t, pool, hasher, 30)
	flood(1000, func(i int) (int, string) {
		return try(three, fmt.Sprintf("person%d@example.com", i), "a usual password")
	})
	t.Logf("many people from one address: %v, %d passwords looked at", codes, hasher.n.Load())
	if n := hasher.n.Load(); n > 30 || codes["429 too_many_attempts"] < 970 {
		t.Errorf("%d passwords were looked at: %v", n, codes)
	}
	if r, err := a.Audit.Verify(t.Context(), audit.Anchor{}); err != nil || !r.Done || errs.KindOf(err) != errs.Internal && err != nil {
		t.Errorf("%+v %v", r, err)
	}
}

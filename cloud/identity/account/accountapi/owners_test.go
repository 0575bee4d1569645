package accountapi_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounthash"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/mail/mailpg"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const appKey = "test-app-key"

// ownersSite is a site with owners, and a postman.
type ownersSite struct {
	*site
	o    accounttest.Owners
	pool *pgxpool.Pool
}

func newOwnersSite(t testing.TB) *ownersSite {
	t.Helper()
	pool := pgtest.New(t)
	if _, err := jobs.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	orders, err := jobs.NewOrders(pool)
	if err != nil {
		t.Fatal(err)
	}
	svc := accounttest.New(t, pool, func(c *account.SignInConfig) {
		c.Hasher, c.ByAddr = accounthash.New(), ratelimit.NewByAddr(time.Second, 10_000)
	})
	o := svc.WithLetters(t, account.LettersConfig{Mail: mail.Queue{Outbox: mailpg.New(pool, orders)}, ByAddr: ratelimit.NewByAddr(time.Second, 10_000), PublicURL: "https://cloud.example"}, account.PrivacyConfig{})
	s := &site{svc: svc, log: new(bytes.Buffer), end: pool.Close}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mux := http.NewServeMux()
	accountapi.Operations(svc.SignIn, svc.Second, log).Mount(mux, op.Doors{Log: log})
	accountapi.StaffOperations(svc.Operators).Mount(mux, op.Doors{Log: log})
	accountapi.AuditOperations(svc.Audit, log).Mount(mux, op.Doors{Log: log})
	own := accountapi.OwnersConfig{SignIn: svc.SignIn, People: svc.People, Letters: o.Letters, Apps: o.Apps, Privacy: o.Privacy, AppKeys: []string{appKey}, Log: log}
	accountapi.OwnersOperations(own).Mount(mux, op.Doors{Log: log})
	if err := accountapi.MountOwners(mux, own); err != nil {
		t.Fatal(err)
	}
	s.h = accountapi.Authenticator(svc.SignIn, log)(mux)
	return &ownersSite{s, o, pool}
}

// letters composes what waits, as the postman does, and takes it away.
func (s *ownersSite) letters(t testing.TB) (out []mail.Letter, to []string) {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `DELETE FROM mail_outbox RETURNING id::text, kind, recipient, account, lang, data, created_at, expires_at`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m mail.Mail, err error) {
		err = row.Scan(&m.ID, &m.Kind, &m.To, &m.Account, &m.Lang, &m.Data, &m.Created, &m.Expires)
		return m, err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b mail.Mail) int { return a.Created.Compare(b.Created) })
	for _, m := range list {
		l, say, err := s.o.Letters.Compose(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if say {
			out, to = append(out, l), append(to, m.To)
		}
	}
	return out, to
}

func (s *ownersSite) letter(t testing.TB) mail.Letter {
	t.Helper()
	l, to := s.letters(t)
	if len(l) != 1 {
		t.Fatalf("%d letters to %v, want 1", len(l), to)
	}
	return l[0]
}

// app sends a request as the original app or the SDK's configuration tool does: a form, and the app key.
func (s *ownersSite) app(method, path string, form url.Values, session string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	all := []func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded"), header("Anki-App-Key", appKey), header("User-Agent", "Vector-sdk/0.7.2 CPython/3.9.5")}
	if session != "" {
		all = append(all, header("Authorization", "Anki "+session))
	}
	return s.do(method, path, form.Encode(), append(all, change...)...)
}

func object(t testing.TB, w *httptest.ResponseRecorder, want int) map[string]any {
	t.Helper()
	var out map[string]any
	if w.Code != want {
		t.Fatalf("%d %s, want %d", w.Code, w.Body, want)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return out
}

func asJSON(r *http.Request) { r.Header.Set("Content-Type", "application/json") }

// appProblem compares an answer with the original's refusal.
func appProblem(t testing.TB, name string, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var p struct{ Status, Code, Message string }
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != status || p.Status != "error" || p.Code != code || p.Message == "" {
		t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, status, code)
	}
}

var recordFields = []string{"created_by_app_name", "created_by_app_platform", "created_by_app_version", "deactivation_reason", "dob", "drive_guest_id", "email", "email_failure_code",
	"email_is_blocked", "email_is_verified", "email_lang", "family_name", "gender", "given_name", "is_email_account", "no_autodelete", "password_is_complex", "player_id", "purge_reason",
	"status", "time_created", "user_id", "username"}

// The requests and answers of the SDK's configuration tool, and its refusals.
func TestSDKConfigurationLogin(t *testing.T) {
	s := newOwnersSite(t)
	s.create(t, ada, auth.Owner)
	good := url.Values{"username": {"Ada@example.com"}, "password": {password}}
	answer := object(t, s.app("POST", "/1/sessions", good, ""), 200)
	if keys := slices.Sorted(maps.Keys(answer)); !slices.Equal(keys, []string{"session", "user"}) {
		t.Errorf("answer has %v", keys)
	}
	session, user := answer["session"].(map[string]any), answer["user"].(map[string]any)
	if keys := slices.Sorted(maps.Keys(session)); !slices.Equal(keys, []string{"scope", "session_token", "time_created", "time_expires", "user_id"}) || session["scope"] != "user" || session["user_id"] != user["user_id"] {
		t.Errorf("session %v", session)
	}
	for _, k := range []string{"time_created", "time_expires"} {
		if at, err := time.Parse(time.RFC3339Nano, session[k].(string)); err != nil || !strings.HasSuffix(session[k].(string), "Z") || at.Before(time.Now().Add(-time.Minute)) {
			t.Errorf("%s: %v", k, session[k])
		}
	}
	if keys := slices.Sorted(maps.Keys(user)); !slices.Equal(keys, recordFields) || user["email"] != ada || user["email_is_verified"] != true {
		t.Errorf("user has %v", keys)
	}
	token := session["session_token"].(string)
	if me := object(t, s.app("GET", "/1/users/me", nil, token), 200); me["user_id"] != user["user_id"] {
		t.Errorf("me: %v", me)
	}
	// JSON does as well.
	object(t, s.do("POST", "/1/sessions", `{"username":"ada@example.com","password":"correct horse","remember":true}`, asJSON, header("Anki-App-Key", appKey)), 200)

	for name, c := range map[string]struct {
		form   url.Values
		change func(*http.Request)
		status int
		code   string
	}{
		"wrong password": {url.Values{"username": {ada}, "password": {"hunter2hunter2"}}, nil, 403, "invalid_username_or_password"},
		"unknown":        {url.Values{"username": {"bob@example.com"}, "password": {"hunter2hunter2"}}, nil, 403, "invalid_username_or_password"},
		"malformed":      {url.Values{"username": {"\x00"}, "password": {"hunter2hunter2"}}, nil, 403, "invalid_username_or_password"},
		"no password":    {url.Values{"username": {ada}}, nil, 400, "missing_params"},
		"nothing":        {nil, nil, 400, "missing_params"},
		"no app key":     {good, func(r *http.Request) { r.Header.Del("Anki-App-Key") }, 400, "no_app_key"},
		"wrong app key":  {good, header("Anki-App-Key", "another"), 401, "invalid_app_key"},
		"other type":     {good, header("Content-Type", "text/xml"), 400, "invalid_fields"},
		"not JSON":       {good, asJSON, 400, "invalid_fields"},
	} {
		change := []func(*http.Request){}
		if c.change != nil {
			change = append(change, c.change)
		}
		appProblem(t, name, s.app("POST", "/1/sessions", c.form, "", change...), c.status, c.code)
	}
	appProblem(t, "no session", s.app("GET", "/1/users/me", nil, ""), 403, "invalid_session")
	appProblem(t, "made up session", s.app("GET", "/1/users/me", nil, "kus_AAAAAAAAAAAAAAAAAAAAAAAAAA"), 403, "invalid_session")
}

// The original app's way: sign up, look until the e-mail is proved, change the record, renew, sign out.
func TestAppSignUpToSignOut(t *testing.T) {
	s := newOwnersSite(t)
	w := s.do("POST", "/1/users", `{"email":"ada@example.com","username":"ada@example.com","password":"Correct Horse 1","dob":"1985-12-10","email_lang":"en-US","given_name":null,
		"created_by_app_name":"chewie","created_by_app_version":"1.3.1","created_by_app_platform":"ios 12.1.2; iPhone8,1","is_admin":true}`, header("Content-Type", "text/json"), header("Anki-App-Key", appKey))
	answer := object(t, w, 200)
	token := answer["session"].(map[string]any)["session_token"].(string)
	id := answer["user"].(map[string]any)["user_id"].(string)
	if user := answer["user"].(map[string]any); user["email_is_verified"] != false || user["created_by_app_name"] != "chewie" || user["password_is_complex"] != true || user["dob"] != "1985-12-10" {
		t.Errorf("user %v", user)
	}
	first := s.letter(t)
	if m := object(t, s.app("POST", "/1/users/"+id+"/verify_email", nil, token), 200); m["status"] != "ok" {
		t.Errorf("%v", m)
	}
	l := s.letter(t)
	if first.Code == l.Code || l.Template != "verify" {
		t.Errorf("letters %+v, %+v", first, l)
	}
	appProblem(t, "change before proof", s.app("PATCH", "/1/users/me", url.Values{"given_name": {"Ada"}}, token), 403, "permission_denied")
	if me := object(t, s.app("GET", "/1/users/"+id, nil, token), 200); me["email_is_verified"] != false {
		t.Errorf("proved too early: %v", me)
	}
	if w := s.do("POST", "/v1/account/verify", `{"code":"`+l.Code+`","password":"Correct Horse 1"}`); w.Code != 200 {
		t.Fatalf("verify: %d %s", w.Code, w.Body)
	}
	if me := object(t, s.app("GET", "/1/users/me", nil, token), 200); me["email_is_verified"] != true || me["user_id"] != id {
		t.Errorf("me: %v", me)
	}
	appProblem(t, "verified twice", s.app("POST", "/1/users/me/verify_email", nil, token), 409, "email_already_verified")
	for _, path := range []string{"PATCH /1/users/me", "POST /1/users/" + id + "/patch"} {
		method, path, _ := strings.Cut(path, " ")
		r := object(t, s.do(method, path, `{"given_name":"Ada","email_lang":"de-DE","player_id":"11111111-2222-4333-8444-555555555555"}`, asJSON, header("Anki-App-Key", appKey), header("Authorization", "Anki "+token)), 200)
		if r["given_name"] != "Ada" || r["email_lang"] != "de-DE" || r["drive_guest_id"] != "11111111-2222-4333-8444-555555555555" {
			t.Errorf("%s: %v", path, r)
		}
	}
	// A session is in the hands of robots and networks: it must not take the account over.
	appProblem(t, "password by session", s.app("POST", "/1/users/me/patch", url.Values{"password": {"thief's password"}}, token), 403, "permission_denied")
	appProblem(t, "e-mail by session", s.app("POST", "/1/users/me/patch", url.Values{"email": {"thief@example.com"}}, token), 403, "permission_denied")
	appProblem(t, "bad field", s.app("POST", "/1/users/me/patch", url.Values{"dob": {"yesterday"}}, token), 400, "invalid_fields")
	// Another's record, there or not.
	s.create(t, "bob@example.com", auth.Owner)
	bob, err := s.svc.Find(t.Context(), "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{string(bob.ID), "00000000-0000-4000-8000-000000000000", "x"} {
		for _, req := range [][2]string{{"GET", "/1/users/" + other}, {"PATCH", "/1/users/" + other}, {"POST", "/1/users/" + other + "/verify_email"}} {
			appProblem(t, req[0]+" of another", s.app(req[0], req[1], nil, token), 403, "permission_denied")
		}
	}
	renewed := object(t, s.app("POST", "/1/sessions/reup", nil, token), 200)["session_token"].(string)
	appProblem(t, "old session", s.app("GET", "/1/users/me", nil, token), 403, "invalid_session")
	theirs := object(t, s.app("POST", "/1/sessions", url.Values{"username": {"bob@example.com"}, "password": {password}}, ""), 200)["session"].(map[string]any)["session_token"].(string)
	appProblem(t, "ending another's session", s.app("POST", "/1/sessions/delete", url.Values{"session_token": {theirs}}, renewed), 403, "invalid_session")
	object(t, s.app("POST", "/1/sessions/delete", url.Values{"session_token": {renewed}, "delete_related": {"true"}}, renewed), 200)
	appProblem(t, "after sign-out", s.app("GET", "/1/users/me", nil, renewed), 403, "invalid_session")
	object(t, s.app("GET", "/1/users/me", nil, theirs), 200)
}

func TestLocations(t *testing.T) {
	s := newOwnersSite(t)
	w := s.do("GET", "/1/locations", "")
	var list []string
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 || !slices.Contains(list, "San Francisco, California, United States") {
		t.Errorf("%d, %d names, %v", w.Code, len(list), err)
	}
}

// The same answer to the byte for a taken e-mail and a free one, at every door that takes one.
func TestAnswersDoNotTell(t *testing.T) {
	s := newOwnersSite(t)
	s.create(t, ada, auth.Owner)
	s.create(t, "op@example.com", auth.Admin)
	volatile := regexp.MustCompile(`"(session_token|user_id|player_id|drive_guest_id|time_created|time_expires|email|username)":"[^"]*"`)
	token := regexp.MustCompile(`kus_\w+`)
	for name, send := range map[string]func(email string) *httptest.ResponseRecorder{
		"sign-up": func(email string) *httptest.ResponseRecorder {
			return s.do("POST", "/v1/account/signup", `{"email":"`+email+`","password":"correct horse"}`)
		},
		"again": func(email string) *httptest.ResponseRecorder {
			return s.do("POST", "/v1/account/verify/again", `{"email":"`+email+`"}`)
		},
		"reset": func(email string) *httptest.ResponseRecorder {
			return s.do("POST", "/v1/account/reset", `{"email":"`+email+`"}`)
		},
		"login": func(email string) *httptest.ResponseRecorder {
			return s.do("POST", "/v1/login", `{"email":"`+email+`","password":"hunter2hunter2"}`)
		},
		"app sign-up": func(email string) *httptest.ResponseRecorder {
			return s.app("POST", "/1/users", url.Values{"email": {email}, "password": {password}}, "")
		},
		"app reset": func(email string) *httptest.ResponseRecorder {
			return s.app("POST", "/1/reset_user_password", url.Values{"email": {email}}, "")
		},
		"app login": func(email string) *httptest.ResponseRecorder {
			return s.app("POST", "/1/sessions", url.Values{"username": {email}, "password": {"hunter2hunter2"}}, "")
		},
		"name check": func(email string) *httptest.ResponseRecorder {
			return s.app("GET", "/1/username-check?username="+url.QueryEscape(email), nil, "")
		},
		"name": func(email string) *httptest.ResponseRecorder {
			return s.app("GET", "/1/usernames/"+url.PathEscape(email), nil, "")
		},
		"page sign-up": func(email string) *httptest.ResponseRecorder {
			return s.do("POST", "/account/signup", url.Values{"email": {email}, "password": {password}}.Encode(), header("Content-Type", "application/x-www-form-urlencoded"))
		},
		"page again": func(email string) *httptest.ResponseRecorder {
			return s.do("POST", "/account/again", url.Values{"email": {email}}.Encode(), header("Content-Type", "application/x-www-form-urlencoded"))
		},
		"page forgot": func(email string) *httptest.ResponseRecorder {
			return s.do("POST", "/account/forgot", url.Values{"email": {email}}.Encode(), header("Content-Type", "application/x-www-form-urlencoded"))
		},
	} {
		var first string
		for _, email := range []string{ada, "op@example.com", "nobody@example.com"} {
			w := send(email)
			got := fmt.Sprint(w.Code, token.ReplaceAllString(fmt.Sprint(w.Header()), "-"), volatile.ReplaceAllString(w.Body.String(), `"$1":"-"`))
			if w.Code >= 500 || w.Code == 429 {
				t.Errorf("%s of %s: %s", name, email, got)
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%s of %s:\n%s\nof another:\n%s", name, email, got, first)
			}
		}
		if _, err := s.pool.Exec(t.Context(), `DELETE FROM account_attempt`); err != nil { // the next kind of letter may be asked for at once
			t.Fatal(err)
		}
	}
	// In the end a sign-up session for a taken e-mail is good for nothing but looking.
	stolen := object(t, s.app("POST", "/1/users", url.Values{"email": {ada}, "password": {"thief's password"}}, ""), 200)["session"].(map[string]any)["session_token"].(string)
	if _, err := s.o.Apps.Burn(t.Context(), logging.Secret(stolen), "vic:1"); errs.CodeOf(err) != "session_unverified" {
		t.Error(err)
	}
}

func TestOwnersOverHTTP(t *testing.T) {
	s := newOwnersSite(t)
	if w := s.do("POST", "/v1/account/signup", `{"email":"ada@example.com","password":"correct horse","given_name":"Ada","email_lang":"de"}`); w.Code != 202 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.do("POST", "/v1/account/verify", `{"code":"`+s.letter(t).Code+`","password":"correct horse"}`); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	l, _ := s.login(t, good)
	me := bearer(l.Token)
	if r := object(t, s.do("GET", "/v1/account", "", me), 200); r["given_name"] != "Ada" || len(r) != len(recordFields) {
		t.Errorf("%v", r)
	}
	if r := object(t, s.do("PATCH", "/v1/account", `{"given_name":"Augusta"}`, me), 200); r["given_name"] != "Augusta" || r["email_lang"] != "de" {
		t.Errorf("%v", r)
	}
	app := object(t, s.do("POST", "/v1/account/apps", "", me), 200)
	if id, err := s.o.Apps.Burn(t.Context(), logging.Secret(app["session_token"].(string)), "vic:00e20100"); err != nil || id != l.Account.ID {
		t.Errorf("%q %v", id, err)
	}
	other, _ := s.login(t, good)
	var list []accountapi.Session
	if w := s.do("GET", "/v1/account/sessions", "", me); json.Unmarshal(w.Body.Bytes(), &list) != nil || len(list) != 3 || list[0].Current || !list[1].App || list[1].Robot != "vic:00e20100" || !list[2].Current {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.do("DELETE", "/v1/account/sessions/"+list[0].ID, "", me); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.do("GET", "/v1/account", "", bearer(other.Token)); w.Code != 401 || code(t, w) != "session_over" {
		t.Errorf("ended session: %d %s", w.Code, w.Body)
	}
	if w := s.do("DELETE", "/v1/account/sessions/0123456789abcdef", "", me); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if r := object(t, s.do("DELETE", "/v1/account/sessions", "", me), 200); r["ended"] != 1.0 {
		t.Errorf("%v", r)
	}
	if w := s.do("POST", "/v1/account/email", `{"email":"new@example.com","password":"correct horse"}`, me); w.Code != 202 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.do("POST", "/v1/account/email/confirm", `{"code":"`+s.letter(t).Code+`"}`); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	s.letters(t)
	w := s.do("GET", "/v1/account/export", "", me)
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/zip" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	z, err := zip.NewReader(bytes.NewReader(w.Body.Bytes()), int64(w.Body.Len()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("account.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err != nil || !strings.Contains(string(b), "new@example.com") || strings.Contains(string(b), l.Token) || strings.Contains(string(b), "argon2") {
		t.Errorf("%s, %v", b, err)
	}
	if w := s.do("POST", "/v1/account/reset", `{"email":"new@example.com"}`); w.Code != 202 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	reset := s.letter(t)
	if w := s.do("POST", "/v1/account/reset/confirm", `{"code":"`+reset.Code+`","password":"battery staple"}`); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.do("GET", "/v1/account", "", me); w.Code != 401 {
		t.Errorf("a session from before the reset: %d", w.Code)
	}
	s.letters(t)
	l, _ = s.login(t, `{"email":"new@example.com","password":"battery staple"}`)
	if w := s.do("POST", "/v1/account/delete", `{"password":"correct horse"}`, bearer(l.Token)); w.Code != 401 || code(t, w) != "wrong_password" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.do("POST", "/v1/account/delete", `{"password":"battery staple"}`, bearer(l.Token)); w.Code != 202 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := s.o.Privacy.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.svc.Find(t.Context(), "new@example.com"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("still there: %v", err)
	}
	// Without a session every route for signed-in people is shut.
	for _, req := range []string{"GET /v1/account", "PATCH /v1/account", "GET /v1/account/sessions", "DELETE /v1/account/sessions", "DELETE /v1/account/sessions/1", "POST /v1/account/apps",
		"GET /v1/account/export", "POST /v1/account/delete", "POST /v1/account/email"} {
		method, path, _ := strings.Cut(req, " ")
		if w := s.do(method, path, `{}`); w.Code != 401 {
			t.Errorf("%s for nobody: %d %s", req, w.Code, w.Body)
		}
	}
	for _, secret := range []string{"correct horse", "battery staple", reset.Code, l.Token, "kus_", "@example.com"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, s.log)
		}
	}
}

// FuzzAppLogin: whatever comes, the answer is one of the original's refusals, and never ours to mend.
func FuzzAppLogin(f *testing.F) {
	s := newOwnersSite(f)
	f.Add([]byte("username=a&password=b"), "application/x-www-form-urlencoded")
	f.Add([]byte(`{"username":"a\u0000@b","password":1}`), "application/json")
	f.Add([]byte("%zz;&="), "")
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		r := httptest.NewRequest("POST", "https://cloud.example/1/sessions", bytes.NewReader(body))
		r.Header["Content-Type"], r.Header["Anki-App-Key"] = []string{kind}, []string{appKey}
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r.WithContext(context.WithoutCancel(t.Context())))
		var p struct{ Status, Code, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != "error" || p.Code == "" || w.Code < 400 || w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}

// The page where a first password becomes another one: for who is signed in, by our own form.
func TestPasswordPage(t *testing.T) {
	s := newOwnersSite(t)
	eve, _, err := s.svc.CreateAccount(t.Context(), "eve@example.com", auth.Admin, password)
	if err != nil {
		t.Fatal(err)
	}
	_, first, err := s.svc.Operators.Add(t.Context(), account.By{ID: eve.ID}, ada, auth.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	_, w := s.login(t, `{"email":"ada@example.com","password":"`+first.Reveal()+`","cookie":true}`, header("Sec-Fetch-Site", "same-origin"))
	c := w.Result().Cookies()[0]
	form := header("Content-Type", "application/x-www-form-urlencoded")
	body := url.Values{"old": {first.Reveal()}, "password": {"battery staple"}, "again": {"battery staple"}}.Encode()
	if w := s.do("GET", "/account/password", "", cookie(c), header("Accept", "text/html")); w.Code != 200 || !strings.Contains(w.Body.String(), `name="old"`) || !strings.Contains(w.Body.String(), "New password again") || !strings.Contains(w.Body.String(), "#0b6b61") {
		t.Errorf("an operator's page: %d %s", w.Code, w.Body)
	}
	for _, r := range []struct {
		name   string
		body   string
		change []func(*http.Request)
		want   int
	}{
		{"another site", body, []func(*http.Request){cookie(c), form, header("Sec-Fetch-Site", "cross-site")}, 403},
		{"nobody", body, []func(*http.Request){form, header("Sec-Fetch-Site", "same-origin")}, 403},
		{"the wrong old one", url.Values{"old": {"a wrong password"}, "password": {"battery staple"}, "again": {"battery staple"}}.Encode(), []func(*http.Request){cookie(c), form, header("Sec-Fetch-Site", "same-origin")}, 403},
		{"a slip of the finger", url.Values{"old": {first.Reveal()}, "password": {"battery staple"}, "again": {"battery stable"}}.Encode(), []func(*http.Request){cookie(c), form, header("Sec-Fetch-Site", "same-origin")}, 400},
		{"too short", url.Values{"old": {first.Reveal()}, "password": {"short"}, "again": {"short"}}.Encode(), []func(*http.Request){cookie(c), form, header("Sec-Fetch-Site", "same-origin")}, 400},
		{"the person", body, []func(*http.Request){cookie(c), form, header("Sec-Fetch-Site", "same-origin")}, 200},
	} {
		w := s.do("POST", "/account/password", r.body, r.change...)
		if w.Code != r.want || r.want == 200 && !strings.Contains(w.Body.String(), `href="/"`) {
			t.Errorf("%s: %d %s", r.name, w.Code, w.Body)
		}
	}
	if w := s.do("GET", "/v1/account", "", cookie(c)); w.Code != 200 {
		t.Errorf("after the change: %d %s", w.Code, w.Body)
	}
}

// TestAppsAskForNoSecondFactor (issue 28.10): a password alone gives an operator with a second factor no session of an app.
func TestAppsAskForNoSecondFactor(t *testing.T) {
	s := newOwnersSite(t)
	if _, _, err := s.svc.CreateAccount(t.Context(), "op@example.com", auth.Admin, password); err != nil {
		t.Fatal(err)
	}
	login := url.Values{"username": {"op@example.com"}, "password": {password}}
	object(t, s.app("POST", "/1/sessions", login, ""), 200)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO account_totp (account, secret, since) SELECT id, 'x', now() FROM account_account WHERE email = 'op@example.com'`); err != nil {
		t.Fatal(err)
	}
	appProblem(t, "operator", s.app("POST", "/1/sessions", login, ""), 403, "second_factor_required")
	login.Set("password", "wrong horse battery")
	appProblem(t, "wrong password", s.app("POST", "/1/sessions", login, ""), 403, "invalid_username_or_password")
}

package accountapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/pg/pgtest"
)

// TestNoChangeWithoutItsLine: with a full disk under the audit log, each operation of the access table that changes something is refused. One that
// writes no line of its own is not begun; of one that should have written a line and did not, the answer is withheld (issue 28, must hold 3).
func TestNoChangeWithoutItsLine(t *testing.T) {
	pool := pgtest.New(t)
	svc := accounttest.New(t, pool)
	accounttest.FillAudit(t, pool)
	mux := http.NewServeMux()
	begun := ""
	for _, name := range access.HTTP.Names() {
		mux.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) {
			begun = name
			if r.Header.Get("X-Own") != "" {
				if err := svc.Audit.Note(r.Context(), "thing.change", "x", "y"); err != nil {
					kithttp.WriteError(w, err)
					return
				}
			}
			http.SetCookie(w, &http.Cookie{Name: "done"})
			http.Redirect(w, r, "/?done=it", http.StatusSeeOther)
		})
	}
	h := accountapi.Audited(svc.Audit, mux, slog.New(slog.DiscardHandler))(mux)
	changes, plain := 0, 0
	for _, name := range access.HTTP.Names() {
		rule := access.HTTP[name]
		for _, role := range rule.Roles {
			for _, own := range []string{"", "yes"} {
				begun = ""
				method, pattern, _ := strings.Cut(name, " ")
				r := httptest.NewRequest(method, strings.NewReplacer("{thing}", "vic:00e20100", "{$}", "", "{", "", "}", "", "...", "").Replace(pattern), nil)
				r.Header.Set("X-Own", own)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role, Account: "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11"})))
				if !rule.Changes() {
					if begun != name || own == "" && w.Code != http.StatusSeeOther {
						t.Errorf("%s as %s: %d; want it done, for it changes nothing", name, role, w.Code)
					}
					continue
				}
				var p kithttp.Problem
				if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusServiceUnavailable || p.Code != "audit_unwritten" || w.Header().Get("Retry-After") == "" {
					t.Errorf("%s as %s: %d %s; want it refused", name, role, w.Code, w.Body)
				}
				if w.Header().Get("Set-Cookie")+w.Header().Get("Location") != "" {
					t.Errorf("%s as %s: %v; want nothing of an answer that is withheld", name, role, w.Header())
				}
				if rule.Plain && begun != "" {
					t.Errorf("%s as %s was begun", name, role)
				}
				if changes++; rule.Plain {
					plain++
				}
			}
		}
	}
	if changes < 200 || plain < 10 {
		t.Errorf("%d requests change something, %d without a line of their own; want the table's", changes, plain)
	}
}

// TestAppsChangeNothingUnwritten: what an app changes with its session leaves a line, and is refused while none can be written.
func TestAppsChangeNothingUnwritten(t *testing.T) {
	s := newOwnersSite(t)
	s.create(t, ada, auth.Owner)
	token := object(t, s.app("POST", "/1/sessions", url.Values{"username": {ada}, "password": {password}}, ""), 200)["session"].(map[string]any)["session_token"].(string)
	who, err := s.svc.Find(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	changes := []struct {
		method, path, action string
		form                 url.Values
	}{
		{"PATCH", "/1/users/me", "account.change", url.Values{"given_name": {"Ada"}}},
		{"POST", "/1/users/me/patch", "account.change", url.Values{"given_name": {"Ada"}}},
		{"POST", "/1/sessions/reup", "session.renew", nil},
		{"POST", "/1/sessions/delete", "session.end", nil},
	}
	for _, full := range []bool{true, false} {
		empty := func() {}
		if full {
			empty = accounttest.FillAudit(t, s.pool)
		}
		for _, c := range changes {
			if c.action == "session.end" {
				c.form = url.Values{"session_token": {token}}
			}
			w := s.app(c.method, c.path, c.form, token)
			if full {
				appProblem(t, c.path, w, 503, "server_busy")
				if r, err := s.svc.People.Record(t.Context(), who.ID); err != nil || r.GivenName != nil {
					t.Errorf("%s: the record is %+v, %v", c.path, r, err)
				}
				object(t, s.app("GET", "/1/users/me", nil, token), 200) // its session has not ended
				continue
			}
			answer := object(t, w, 200)
			if c.action == "session.renew" {
				token = answer["session_token"].(string)
			}
			lines, err := s.svc.Audit.Lines(t.Context(), 0, 1)
			if err != nil || len(lines) != 1 || lines[0].Action != c.action || lines[0].Actor != string(who.ID) || lines[0].Addr == "" {
				t.Errorf("%s: last line %+v, %v; want %s", c.path, lines, err, c.action)
			}
		}
		empty()
	}
}

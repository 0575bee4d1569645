package ctl

import (
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
)

// newPeople is the real rules and endpoints of people, and what more mounts, behind HTTPS, and the command line of an admin.
func newPeople(t *testing.T, more ...func(mux *http.ServeMux, svc accounttest.Accounts, pool *pgxpool.Pool)) (svc accounttest.Accounts, pool *pgxpool.Pool, dir string) {
	t.Helper()
	pool = pgtest.New(t)
	svc = accounttest.New(t, pool, func(c *account.SignInConfig) { c.ByAddr = free{} })
	mux := http.NewServeMux()
	log := slog.New(slog.DiscardHandler)
	accountapi.Operations(svc.SignIn, svc.Second, log).Mount(mux, op.Doors{Log: log})
	accountapi.StaffOperations(svc.Operators).Mount(mux, op.Doors{Log: log})
	accountapi.AuditOperations(svc.Audit, log).Mount(mux, op.Doors{Log: log})
	for _, mount := range more {
		mount(mux, svc, pool)
	}
	admin, _, err := svc.CreateAccount(t.Context(), "op@example.org", auth.Admin, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	l, err := svc.IssueSession(t.Context(), admin.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	behind := accountapi.Authenticator(svc.SignIn, log)(accountapi.Audited(svc.Audit, mux, log)(mux))
	c := &cloud{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token { // what the other tests' command line sends
			r.Header.Set("Authorization", "Bearer "+l.Token.Reveal())
		}
		behind.ServeHTTP(w, r)
	}))}
	t.Cleanup(c.Close)
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	return svc, pool, c.onebox(t)
}

// TestAudit: the log as an admin sees it, whole and then with a line taken out.
func TestAudit(t *testing.T) {
	svc, pool, dir := newPeople(t)
	for range 5 {
		if err := svc.Audit.Append(t.Context(), audit.Entry{Actor: "vic:00e20100", Role: "thing", Addr: "192.0.2.1", Action: "test.\x1b[2J"}); err != nil {
			t.Fatal(err)
		}
	}
	if out := want(t, dir, "", 0, `(?m)^6 .*vic:00e20100 +thing +192.0.2.1 +test`, "audit", "list", "-limit", "2"); strings.Count(out, "\n") != 3 || strings.Contains(out, "\x1b") {
		t.Error(out)
	}
	want(t, dir, "", 0, `op@example.org +admin .*session.issue`, "audit", "list")
	out := want(t, dir, "", 0, `6 lines checked\nanchor 6:[0-9a-f]{64}\n`, "audit", "verify")
	_, anchor, _ := strings.Cut(strings.TrimSpace(out), "anchor ")
	want(t, dir, "", 0, `"checked": 0,[^}]*"done": true`, "audit", "verify", "-from", anchor, "-o", "json")
	want(t, dir, "", 2, `anchor "x"`, "audit", "verify", "-from", "x")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`SET LOCAL session_replication_role = replica`, `DELETE FROM account_audit WHERE seq = 3`} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, dir, "", 1, `line 3: .* 2:`, "audit", "verify")
	want(t, dir, "", 0, `2 lines checked`, "audit", "verify", "-from", "4")
}

// TestOperators: from a first password to being removed.
func TestOperators(t *testing.T) {
	svc, _, dir := newPeople(t)
	out := want(t, dir, "", 0, `password +[a-z2-7]{4}(-[a-z2-7]{4}){3}\n`, "operators", "add", "Grace@example.org", "-role", "support")
	first := logging.Secret(strings.Fields(out)[3])
	l, err := svc.Login(t.Context(), "grace@example.org", first, "192.0.2.9")
	if err != nil || !l.Account.MustChange {
		t.Fatal(l.Account, err)
	}
	want(t, dir, "", 0, `grace@example.org +support +1 .* +[0-9a-f-]{36}\n`, "operators", "list")
	sessions := want(t, dir, "", 0, `192.0.2.9`, "operators", "sessions", "grace@example.org")
	id := strings.Fields(strings.Split(sessions, "\n")[1])[0]
	want(t, dir, "", 0, `1 session `, "operators", "end", "grace@example.org", id)
	want(t, dir, "", 3, `no such session`, "operators", "end", "grace@example.org", id)
	want(t, dir, "", 0, `0 sessions `, "operators", "end", "grace@example.org")
	if _, _, err := svc.Authenticate(t.Context(), l.Token, "192.0.2.9"); err == nil {
		t.Error("the session did not end")
	}
	want(t, dir, "", 0, `release-manager`, "operators", "role", string(l.Account.ID), "release-manager")
	want(t, dir, "", 2, `role "king"`, "operators", "role", "grace@example.org", "king")
	want(t, dir, "", 1, `last administrator`, "operators", "role", "op@example.org", "viewer")
	want(t, dir, "", 1, `last administrator`, "operators", "disable", "op@example.org")
	want(t, dir, "", 1, `last administrator`, "operators", "remove", "op@example.org")
	want(t, dir, "", 4, `your own password`, "operators", "password", "op@example.org")
	want(t, dir, "", 0, `grace@example.org`, "operators", "disable", "grace@example.org")
	want(t, dir, "", 0, `disabled`, "operators", "list")
	want(t, dir, "", 0, `grace@example.org`, "operators", "enable", "grace@example.org")
	out = want(t, dir, "", 0, `password +`, "operators", "password", "grace@example.org")
	if again := logging.Secret(strings.Fields(out)[3]); again == first {
		t.Error("the same password twice")
	} else if _, err := svc.Login(t.Context(), "grace@example.org", again, "192.0.2.9"); err != nil {
		t.Error(err)
	}
	want(t, dir, "", 0, `grace@example.org`, "operators", "remove", "grace@example.org")
	want(t, dir, "", 3, `grace@example.org`, "operators", "role", "grace@example.org", "viewer")
	want(t, dir, "", 3, `no such operator`, "operators", "sessions", "00000000-0000-0000-0000-000000000000")
	out = want(t, dir, "", 0, `operator.add`, "audit", "list", "-o", "json")
	for _, action := range []string{"operator.sessions", "operator.role", "operator.disable", "operator.enable", "operator.password", "operator.remove"} {
		if !strings.Contains(out, action) {
			t.Errorf("%s is not in the audit log:\n%s", action, out)
		}
	}
}

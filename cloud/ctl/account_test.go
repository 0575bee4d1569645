package ctl

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
)

// accounts is a cloud that knows accounts.
type accounts struct {
	*httptest.Server
	ca      string
	mu      sync.Mutex
	got     []string // METHOD path authorization body
	exports string
	cut     bool // exports end early
}

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	c := &accounts{exports: "PK a zip"}
	record := map[string]any{"user_id": "u-1", "email": "ada@example.org", "given_name": "Ada", "family_name": nil, "email_is_verified": true}
	answers := map[string]any{
		"POST /v1/account/signup": client.Accepted{Next: "a letter is on its way"}, "POST /v1/account/verify/again": client.Accepted{Next: "a letter is on its way"}, "POST /v1/account/reset": client.Accepted{Next: "a letter is on its way"},
		"POST /v1/account/verify": map[string]string{"id": "u-1", "email": "ada@example.org", "role": "owner"}, "POST /v1/account/reset/confirm": nil,
		"POST /v1/account/email": client.Accepted{Next: "a letter is on its way"}, "POST /v1/account/email/confirm": nil, "GET /v1/account": record, "PATCH /v1/account": record,
		"GET /v1/account/sessions":    []client.Session{{ID: "aaaa", Current: true, Created: at(1), LastSeen: at(2), Expires: at(9), Addr: "192.0.2.1"}, {ID: "bbbb", App: true, Created: at(1), Expires: at(9), Robot: "vic:00e20100"}},
		"DELETE /v1/account/sessions": map[string]int{"ended": 3}, "DELETE /v1/account/sessions/bbbb": nil,
		"POST /v1/account/apps": map[string]any{"session_token": "kus_X", "expires": at(9)}, "POST /v1/account/delete": client.Accepted{Next: "what we hold is being deleted"},
	}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.got = append(c.got, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(b)))
		c.mu.Unlock()
		if r.URL.Path == "/v1/account/export" {
			if c.cut {
				w.Header().Set("Content-Length", "1000")
			}
			_, _ = io.WriteString(w, c.exports)
			return
		}
		v, ok := answers[r.Method+" "+r.URL.Path]
		switch {
		case !ok:
			kithttp.WriteError(w, errs.New(errs.NotFound, "no such session"))
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			kithttp.WriteJSON(w, http.StatusAccepted, v)
		}
	}))
	t.Cleanup(c.Close)
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	return c
}

func (c *accounts) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) == 0 {
		return ""
	}
	return c.got[len(c.got)-1]
}

// TestAccountCommands: each command sends its request as the right person: those of strangers send no token even if there is one, and passwords are never on the command line.
func TestAccountCommands(t *testing.T) {
	c := newAccounts(t)
	tokenFile, pw := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "pw")
	write(t, tokenFile, token)
	write(t, pw, "correct horse\n")
	env := map[string]string{"KENNEL_TOKEN_FILE": tokenFile}
	const me = "Bearer " + token
	for _, tt := range []struct {
		line, stdin, sent, out string
	}{
		{"signup -email ada@example.org -lang de", "correct horse\n", `POST /v1/account/signup  {"email":"ada@example.org","email_lang":"de","password":"correct horse"}`, "a letter"},
		{"signup -password-file " + pw, "ada@example.org\n", `POST /v1/account/signup  {"email":"ada@example.org","password":"correct horse"}`, "a letter"},
		{"verify", "CODE\ncorrect horse\n", `POST /v1/account/verify  {"code":"CODE","password":"correct horse"}`, "kennelctl login"},
		{"again ada@example.org", "", `POST /v1/account/verify/again  {"email":"ada@example.org"}`, "a letter"},
		{"reset ada@example.org", "", `POST /v1/account/reset  {"email":"ada@example.org"}`, "a letter"},
		{"set-password -code CODE", "battery staple\n", `POST /v1/account/reset/confirm  {"code":"CODE","password":"battery staple"}`, ""},
		{"email new@example.org", "correct horse\n", `POST /v1/account/email ` + me + ` {"email":"new@example.org","password":"correct horse"}`, "a letter"},
		{"email-confirm CODE", "", `POST /v1/account/email/confirm  {"code":"CODE"}`, "new address"},
		{"show", "", `GET /v1/account ` + me, "given_name         Ada"},
		{"set given_name=Ada dob=1985-12-10 gender=1", "", `PATCH /v1/account ` + me + ` {"dob":"1985-12-10","gender":"1","given_name":"Ada"}`, "ada@example.org"},
		{"sessions", "", `GET /v1/account/sessions ` + me, "bbbb     app "},
		{"end bbbb", "", `DELETE /v1/account/sessions/bbbb ` + me, "1 "},
		{"end -others", "", `DELETE /v1/account/sessions ` + me, "3 "},
		{"app-token", "", `POST /v1/account/apps ` + me, "kus_X"},
		{"delete", "correct horse\n", `POST /v1/account/delete ` + me + ` {"password":"correct horse"}`, "being deleted"},
	} {
		code, out, errOut := run(t.Context(), env, tt.stdin, append([]string{"-server", c.URL, "-ca", c.ca, "account"}, strings.Fields(tt.line)...)...)
		if code != 0 || c.last() != tt.sent || !strings.Contains(out, tt.out) || strings.Contains(out, "null") || strings.Contains(out, "<nil>") {
			t.Errorf("%s: exit %d, %s%s, sent %s; want %s and %q", tt.line, code, out, errOut, c.last(), tt.sent, tt.out)
		}
	}
	for line, want := range map[string]int{"end": cli.ExitUsage, "end bbbb -others": cli.ExitUsage, "end cccc": cli.ExitNotFound, "set given_name": cli.ExitUsage, "signup -email a@b": cli.ExitUsage} {
		if code, _, errOut := run(t.Context(), env, "", append([]string{"-server", c.URL, "-ca", c.ca, "account"}, strings.Fields(line)...)...); code != want {
			t.Errorf("%s: exit %d, %s; want %d", line, code, errOut, want)
		}
	}
	code, out, errOut := run(t.Context(), env, "", "-server", c.URL, "-ca", c.ca, "account", "show", "-o", "json")
	var r map[string]any
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r) != 5 {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
}

func TestAccountExport(t *testing.T) {
	c := newAccounts(t)
	dir := t.TempDir()
	tokenFile, to := filepath.Join(dir, "token"), filepath.Join(dir, "mine.zip")
	write(t, tokenFile, token)
	env := map[string]string{"KENNEL_TOKEN_FILE": tokenFile}
	args := []string{"-server", c.URL, "-ca", c.ca, "account", "export", "-to", to}
	if code, out, errOut := run(t.Context(), env, "", args...); code != 0 || !strings.Contains(out, "8 bytes") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
	b, err := os.ReadFile(to)
	fi, err2 := os.Stat(to)
	if err != nil || err2 != nil || string(b) != "PK a zip" || fi.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v %v", b, fi.Mode(), err, err2)
	}
	if code, _, errOut := run(t.Context(), env, "", args...); code != cli.ExitUsage || !strings.Contains(errOut, "exists") {
		t.Errorf("again: exit %d, %s", code, errOut)
	}
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	c.cut = true
	if code, _, errOut := run(t.Context(), env, "", args...); code == 0 {
		t.Errorf("half an export counts as one: %s", errOut)
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("half an export is kept: %v", err)
	}
}

package originalsapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/originals"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/secretbox"
)

// desk is a service whose marks and erasures are counted.
type desk struct {
	svc            *originals.Service
	marked, erased []string
	running        bool
}

// Begin implements originals.Turns.
func (d *desk) Begin(_ context.Context, length time.Duration) (time.Duration, error) {
	if d.running {
		return length, nil
	}
	d.running = true
	return 0, nil
}

// End implements originals.Turns.
func (d *desk) End(context.Context) error {
	d.running = false
	return nil
}

func newDesk(t *testing.T, change func(*originals.Door)) *desk {
	t.Helper()
	authority, err := ca.Init(filepath.Join(t.TempDir(), "ca"))
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("an-app-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	door := originals.Door{Listen: "127.0.0.1:1", Public: "kennel.invalid:1", Bucket: "kennel", Prefix: "logs", AppKeys: keys, Root: authority.Root,
		Names: []string{"kennel.invalid", "kennel.s3.us-west-2.amazonaws.com"}, Advice: "Port 443 is <b>not</b> served."}
	if change != nil {
		change(&door)
	}
	d := &desk{}
	d.svc = originals.New(originals.Config{Door: door, Issuer: authority, Sessions: originals.NewSessions(secretbox.New()), Turns: d,
		Mark:   func(context.Context) error { d.marked = append(d.marked, "mark"); return nil },
		Forget: func(context.Context) error { d.marked = append(d.marked, "forget"); return nil },
		Erase:  func(_ context.Context, account string) error { d.erased = append(d.erased, account); return nil }})
	return d
}

func as(role auth.Role) context.Context {
	return auth.WithCaller(context.Background(), auth.Caller{Role: role})
}

// TestPage: the page shows what to copy, as text, has the button for administrators, and says how the last self-test went.
func TestPage(t *testing.T) {
	d := newDesk(t, nil)
	p := Page(d.svc, slog.New(slog.DiscardHandler))
	show := func(role auth.Role) string {
		t.Helper()
		body, err := p.Show(as(role))
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	before := show(auth.Admin)
	for _, want := range []string{"Run self-test", "kennel.s3.us-west-2.amazonaws.com", "&#34;appkey&#34;: &#34;an-app-key&#34;", "BEGIN CERTIFICATE", "Port 443 is &lt;b&gt;not&lt;/b&gt; served.", "/etc/ssl/certs/local/root.crt"} {
		if !strings.Contains(before, want) {
			t.Errorf("the page lacks %q:\n%s", want, before)
		}
	}
	if text := show(auth.Support); strings.Contains(text, "Run self-test") {
		t.Error("support has the button")
	}
	if err := p.Do(as(auth.Admin), nil); err != nil {
		t.Fatal(err)
	}
	if text := show(auth.Admin); !strings.Contains(text, "Step 1 of 11, names, fails: the name kennel.invalid is not known here") || !strings.Contains(text, "pill fail") {
		t.Errorf("after a self-test:\n%s", text)
	}
	if !slices.Equal(d.marked, []string{"mark", "forget"}) || len(d.erased) != 1 || d.erased[0] != originals.TestAccount {
		t.Errorf("marked %q, erased %q", d.marked, d.erased)
	}
	none := Page(newDesk(t, func(door *originals.Door) { door.Listen = "" }).svc, slog.New(slog.DiscardHandler))
	if body, err := none.Show(as(auth.Admin)); err != nil || !strings.Contains(string(body), "Original robots are not served: robots.listen is empty.") || strings.Contains(string(body), "Run self-test") {
		t.Errorf("without a port: %s, %v", body, err)
	}
}

// TestHTTP: who gets the guide and an identity, and what is not written down is not done.
func TestHTTP(t *testing.T) {
	d := newDesk(t, nil)
	mux, audited := http.NewServeMux(), error(nil)
	Operations(d.svc, func(context.Context, string, string, string) error { return audited }).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	ask := func(role auth.Role, method, path string, in any) *httptest.ResponseRecorder {
		t.Helper()
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(as(role), method, path, strings.NewReader(string(body))))
		return w
	}
	_, csr, err := originals.Applicant()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		role         auth.Role
		method, path string
		in           any
		code         int
		has          string
	}{
		{auth.Viewer, "GET", "/v1/originals", nil, 403, ""},
		{auth.Support, "GET", "/v1/originals", nil, 200, `"tms":"kennel.invalid:1"`},
		{auth.Support, "POST", "/v1/originals/self-test", SelfTest{string(csr)}, 403, ""},
		{auth.Admin, "POST", "/v1/originals/self-test", SelfTest{"nonsense"}, 400, "csr_malformed"},
		{auth.Admin, "POST", "/v1/originals/self-test", SelfTest{string(csr)}, 200, `"session":"kst_`},
		{auth.Admin, "POST", "/v1/originals/self-test", SelfTest{string(csr)}, 409, "241 s"},
		{auth.Support, "DELETE", "/v1/originals/self-test", nil, 403, ""},
		{auth.Admin, "DELETE", "/v1/originals/self-test", nil, 204, ""},
	} {
		if w := ask(tc.role, tc.method, tc.path, tc.in); w.Code != tc.code || !strings.Contains(w.Body.String(), tc.has) {
			t.Errorf("%s %s as %s: %d %s, want %d with %q", tc.method, tc.path, tc.role, w.Code, w.Body, tc.code, tc.has)
		}
	}
	if !slices.Equal(d.marked, []string{"mark", "mark", "forget"}) || len(d.erased) != 1 {
		t.Errorf("robot %q, erased %d times; want it marked twice, then forgotten, and once", d.marked, len(d.erased))
	}
	audited = errors.New("the log is full")
	if w := ask(auth.Admin, "POST", "/v1/originals/self-test", SelfTest{string(csr)}); w.Code != 500 || len(d.marked) != 3 {
		t.Errorf("without a line in the audit log: %d, marked %d times", w.Code, len(d.marked))
	}
}

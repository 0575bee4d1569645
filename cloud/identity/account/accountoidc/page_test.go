package accountoidc_test

import (
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accountoidc"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/web/console"
	"kennel/infra/auth"
	"kennel/infra/pg/pgtest"
)

// fleet is a registry that no test here asks.
type fleet struct{ console.Fleet }

// newDesk is a cloud with the console, behind the same doors as in production.
func newDesk(t *testing.T, p *provider) (*httptest.Server, accounttest.Accounts) {
	t.Helper()
	svc := accounttest.New(t, pgtest.New(t))
	log := slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	s := httptest.NewServer(accountapi.Authenticator(svc.SignIn, log)(access.HTTP.Guard(mux, log)))
	t.Cleanup(s.Close)
	id, err := accountoidc.New(accountoidc.Config{Issuer: p.URL, ClientID: "kennel", Name: "The Works", ClientSecretFile: secretFile(t),
		Roles: map[string]string{"kennel-support": "support"}}, s.URL+"/login/oidc/callback")
	if err != nil {
		t.Fatal(err)
	}
	accountapi.MountOIDC(mux, svc.Operators, id, log)
	if err := console.Mount(mux, console.Config{Fleet: fleet{}, Auth: accountapi.Browser{In: svc.SignIn, Log: log}, Passkeys: svc.Passkeys, Provider: id.Name(), Log: log}); err != nil {
		t.Fatal(err)
	}
	return s, svc
}

// look opens a page as a browser does, over all redirects, and returns where that led, and the page.
func (b *browser) look(t *testing.T, address string) (int, *url.URL, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	resp, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Request.URL, string(body)
}

func attr(t *testing.T, body, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no %s in\n%s", pattern, body)
	}
	return html.UnescapeString(m[1])
}

// TestPageToPage: an operator who is led to the sign-in page reaches the page they wanted through the provider, with links alone.
func TestPageToPage(t *testing.T) {
	p := newProvider(t)
	s, _ := newDesk(t, p)
	b := newBrowser(t, false)
	status, at, body := b.look(t, s.URL+"/me?done=x")
	if status != 200 || at.Path != "/login" || !strings.Contains(body, "Sign in with The Works</a>") {
		t.Fatalf("%d %s\n%s", status, at, body)
	}
	status, at, body = b.look(t, s.URL+attr(t, body, `href="(/login/oidc[^"]*)"`))
	if status != 200 || at.Path != "/login/oidc/callback" {
		t.Fatalf("%d %s\n%s", status, at, body)
	}
	next := attr(t, body, `content="0;url=([^"]*)"`)
	if next != "/me?done=x" || attr(t, body, `<a href="([^"]*)"`) != next {
		t.Errorf("goes on to %s", next)
	}
	if status, at, body = b.look(t, s.URL+next); status != 200 || at.Path != "/me" || !strings.Contains(body, "ada@example.com") || !strings.Contains(body, ">support<") {
		t.Errorf("%d %s\n%s", status, at, body)
	}
	// The address may be anybody's: it leads nowhere else.
	for _, evil := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:alert(1)", "/login/oidc", strings.Repeat("/x", 5000), "\"><script>"} {
		_, _, body := newBrowser(t, false).look(t, s.URL+"/login/oidc?"+url.Values{"next": {evil}}.Encode())
		if got := attr(t, body, `content="0;url=([^"]*)"`); got != "/" {
			t.Errorf("%.40s: goes on to %s", evil, got)
		}
	}
}

// TestRefusedOnThePage: who is refused sees the page that signs in again, with a reason that helps and tells a stranger nothing.
func TestRefusedOnThePage(t *testing.T) {
	set := func(k string, v any) func(*provider) {
		return func(p *provider) { p.claims = func(c map[string]any) { c[k] = v } }
	}
	p := newProvider(t)
	s, svc := newDesk(t, p)
	people(t, svc)
	late, _ := newDesk(t, p) // has not asked the provider yet
	for _, c := range []struct {
		name, words string
		change      func(*provider)
	}{
		{"no role", "Ask an administrator", set("groups", []string{"staff"})},
		{"unverified e-mail", "Confirm it there", set("email_verified", false)},
		{"an owner's e-mail", "Ask an administrator", set("email", "own@example.com")},
		{"a disabled operator", "Ask an administrator", set("email", "gone@example.com")},
		{"a token for another", "check the log", set("aud", "another")},
		{"a person who says no", "you cancelled it", func(p *provider) { p.denies = true }},
		{"a provider that is away", "not responding", func(p *provider) { p.Close(); s = late }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.claims, p.denies = nil, false
			c.change(p)
			b := newBrowser(t, false)
			status, at, body := b.look(t, s.URL+"/login/oidc")
			if status != 403 || at.Path != "/login" || !strings.Contains(body, `role="alert"`) || !strings.Contains(body, c.words) || !strings.Contains(body, `name="password"`) {
				t.Errorf("%d %s\n%s", status, at, body)
			}
			for _, leak := range []string{"id_token", "own@example.com", "gone@example.com", "disabled", "audience", p.URL, "code="} {
				if strings.Contains(body, leak) || strings.Contains(at.RawQuery, leak) {
					t.Errorf("%s tells of %s", at, leak)
				}
			}
			if status, at, _ := b.look(t, s.URL+"/me"); at.Path != "/login" {
				t.Errorf("signed in all the same: %d %s", status, at)
			}
		})
	}
	if status, at, body := newBrowser(t, false).look(t, s.URL+"/login/oidc/callback?code=x&state=y"); status != 403 || at.Query().Get("refused") != "oidc_state" || !strings.Contains(body, "started in another browser") {
		t.Errorf("%d %s\n%s", status, at, body)
	}
}

// people makes an owner and an operator who may not sign in.
func people(t *testing.T, svc accounttest.Accounts) {
	t.Helper()
	if _, _, err := svc.CreateAccount(t.Context(), "own@example.com", auth.Owner, "correct horse"); err != nil {
		t.Fatal(err)
	}
	gone, _, err := svc.CreateAccount(t.Context(), "gone@example.com", auth.Viewer, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if err := svc.SetDisabled(t.Context(), gone.ID, true); err != nil {
		t.Fatal(err)
	}
}

func TestName(t *testing.T) {
	c := accountoidc.Config{Issuer: "https://id.example:8443/realm", ClientID: "kennel", Roles: map[string]string{"a": "viewer"}}
	p, err := accountoidc.New(c, "")
	if err != nil || p.Name() != "id.example" {
		t.Errorf("%v, %v", p, err)
	}
	c.Name = strings.Repeat("x", 61)
	if c.Validate() == nil {
		t.Error("a name that fits on no button")
	}
	c.Name = "The Works"
	if p, err = accountoidc.New(c, ""); err != nil || p.Name() != "The Works" {
		t.Errorf("%v, %v", p, err)
	}
}

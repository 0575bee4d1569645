package console

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/infra/auth"
)

// at asks as a browser at another name does.
func at(t *testing.T, mux *http.ServeMux, role auth.Role, host, target string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", target, nil)
	r.Host = host
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role, Account: "op-1", Name: "ops@example.org"})))
	return w
}

func signInPage(t *testing.T, cfg Config) *http.ServeMux {
	t.Helper()
	cfg.Fleet, cfg.Auth, cfg.Log = &fleet{}, &door{}, slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	if err := Mount(mux, cfg); err != nil {
		t.Fatal(err)
	}
	return mux
}

// TestWaysToSignIn: the page offers what is configured and what the browser can do at this address, and nothing else.
func TestWaysToSignIn(t *testing.T) {
	const oidc, passkey, script, hint = `href="/login/oidc?next=`, `id="passkey-login"`, `/assets/passkey.js`, "Passkeys work at"
	sites := []string{"https://localhost:8443", "http://localhost:8080"}
	for _, c := range []struct {
		name     string
		provider string
		sites    []string
		host     string
		want     []string
	}{
		{"nothing", "", nil, "localhost:8080", nil},
		{"a provider", "The <Works>", nil, "kennel.example", []string{oidc, "Sign in with The &lt;Works&gt;"}},
		{"passkeys", "", sites, "localhost:8443", []string{passkey, script}},
		{"passkeys on the other port", "", sites, "localhost:8080", []string{passkey, script}},
		{"passkeys at an address that has none", "", sites, "127.0.0.1:8080", []string{hint, `href="http://localhost:8080/login"`}},
		{"both", "id.example", []string{"https://kennel.example"}, "Kennel.Example", []string{oidc, passkey, script}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := at(t, signInPage(t, Config{Provider: c.provider, PasskeySites: c.sites}), "", c.host, "/login?next=/things/vic:00e20100")
			body := w.Body.String()
			if w.Code != 200 || !strings.Contains(body, `name="password"`) {
				t.Fatalf("%d %s", w.Code, body)
			}
			for _, s := range c.want {
				if !strings.Contains(body, s) {
					t.Errorf("no %s in %s", s, body)
				}
			}
			if len(c.want) == 0 && strings.Contains(body, `class="ways"`) {
				t.Errorf("a place for ways that there are not: %s", body)
			}
			for _, s := range []string{oidc, passkey, script, hint} {
				wanted := false
				for _, x := range c.want {
					wanted = wanted || x == s
				}
				if !wanted && strings.Contains(body, s) {
					t.Errorf("%s, which is not there", s)
				}
			}
			if c.provider != "" && !strings.Contains(body, `href="/login/oidc?next=%2Fthings%2Fvic%3A00e20100"`) {
				t.Errorf("where the person wanted to go is lost: %s", body)
			}
			if inline := regexp.MustCompile(`<script[^>]*>[^<]|\son[a-z]+=|\sstyle=`).FindString(body); inline != "" {
				t.Errorf("the policy forbids %q", inline)
			}
		})
	}
}

// TestRefusedElsewhere: who comes back refused is told why in words of ours, whatever the address says.
func TestRefusedElsewhere(t *testing.T) {
	mux := signInPage(t, Config{Provider: "id.example"})
	for why, words := range refusals {
		if w := at(t, mux, "", "kennel.example", "/login?refused="+why); w.Code != 403 || !strings.Contains(w.Body.String(), strings.ReplaceAll(words, "'", "&#39;")) {
			t.Errorf("%s: %d %s", why, w.Code, w.Body)
		}
	}
	for _, why := range []string{"failed", "call+0900+evil", "%3Cscript%3E"} {
		w := at(t, mux, "", "kennel.example", "/login?refused="+why)
		if body := w.Body.String(); w.Code != 403 || !strings.Contains(body, refusedElse) || strings.Contains(body, "evil") || strings.Contains(body, "&lt;script") {
			t.Errorf("%s: %d %s", why, w.Code, body)
		}
	}
}

// TestMe: the list is there at every address, the form to add one only where browsers take passkeys, and the script is one of our assets.
func TestMe(t *testing.T) {
	mux, _ := openDesk(t)
	w := at(t, mux, auth.Viewer, "kennel.example", "/me")
	body := w.Body.String()
	for _, s := range []string{"ops@example.org", "&lt;script&gt;alert", `action="/me/passkeys/QUI/remove"`, "the key ring", "never used", `id="passkey-add" hidden`, `href="/account/password"`, "/assets/passkey.js"} {
		if w.Code != 200 || !strings.Contains(body, s) {
			t.Errorf("%d, no %s in %s", w.Code, s, body)
		}
	}
	src := regexp.MustCompile(`src="(/assets/passkey\.js[^"]*)"`).FindStringSubmatch(body)
	if src == nil {
		t.Fatal("no script")
	}
	if js := at(t, mux, "", "kennel.example", src[1]); js.Code != 200 || !strings.HasPrefix(js.Header().Get("Content-Type"), "text/javascript") ||
		!strings.Contains(js.Body.String(), "navigator.credentials.create") {
		t.Errorf("%d %v", js.Code, js.Header())
	}
	if body := at(t, mux, auth.Viewer, "10.0.0.7", "/me").Body.String(); strings.Contains(body, "passkey-add") || !strings.Contains(body, `href="https://kennel.example/me"`) || !strings.Contains(body, "the key ring") {
		t.Errorf("at an address without passkeys: %s", body)
	}
	if w := at(t, mux, "", "kennel.example", "/me"); w.Code != 303 || w.Header().Get("Location") != "/login?next=%2Fme" {
		t.Errorf("a stranger: %d %v", w.Code, w.Header())
	}
	if _, there := access.HTTP["GET /me"]; !there {
		t.Error("the page is in no table")
	}
	// Without passkeys the header leads to the password, as ever.
	if body := at(t, signInPage(t, Config{}), auth.Viewer, "kennel.example", "/").Body.String(); !strings.Contains(body, `class="user" href="/account/password"`) {
		t.Errorf("%s", body)
	}
}

// TestLost: where nothing is, people get a page with a way on, programs an answer of the API.
func TestLost(t *testing.T) {
	mux := signInPage(t, Config{})
	for _, tt := range []struct {
		name, path, accept string
		role               auth.Role
		kind, want         string
	}{
		{"nobody", "/fleeet", "text/html", "", "text/html", `href="/login"`},
		{"operator", "/fleeet", "text/html", auth.Viewer, "text/html", "Go to the fleet"},
		{"program", "/fleeet", "*/*", auth.Viewer, "application/json", `"code":"no_page"`},
		{"browser at the API", "/v1/thingss", "text/html", auth.Viewer, "application/json", `"code":"no_page"`},
	} {
		r := httptest.NewRequest("GET", tt.path, nil)
		r.Header.Set("Accept", tt.accept)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: tt.role, Account: "op-1", Name: "ops@example.org"})))
		if w.Code != 404 || !strings.HasPrefix(w.Header().Get("Content-Type"), tt.kind) || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s %s; want 404, %s with %s", tt.name, w.Code, w.Header(), w.Body, tt.kind, tt.want)
		}
	}
}

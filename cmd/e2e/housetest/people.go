package housetest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/openapi/openapitest"
	"kennel/infra/auth"
)

// Person is a client of the public API of a house.
type Person struct {
	T     *testing.T
	HTTP  *http.Client
	API   string
	Token string // bearer; "": not signed in
	ID    string // of the account
	Email string
}

// Stranger returns a person without an account.
func (h *House) Stranger(t *testing.T) *Person {
	t.Helper()
	root, err := os.ReadFile(h.Ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		t.Fatal("no certificate in root_ca")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}
	t.Cleanup(transport.CloseIdleConnections)
	return &Person{T: t, API: h.Ready.Endpoints["api"], HTTP: &http.Client{Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Operator returns the first administrator.
func (h *House) Operator(t *testing.T) *Person {
	t.Helper()
	p := h.Stranger(t)
	b, err := os.ReadFile(h.Ready.Files["operator_token"])
	if err != nil {
		t.Fatal(err)
	}
	p.Token = strings.TrimSpace(string(b))
	return p
}

// With returns the same person at another kenneld.
func (p *Person) With(api string) *Person {
	q := *p
	q.API = api
	return &q
}

// Try makes a request and returns what came back. A string body goes as it is, anything else as JSON.
func (p *Person) Try(method, path string, body any, header ...string) (int, []byte) {
	p.T.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			p.T.Fatal(err)
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(p.T.Context(), method, p.API+path, r)
	if err != nil {
		p.T.Fatal(err)
	}
	if p.Token != "" {
		req.Header.Set("Authorization", "Bearer "+p.Token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := p.HTTP.Do(req)
	if err != nil {
		p.T.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp.StatusCode, nil // it does not end
	}
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		p.T.Fatalf("%s %s: %v", method, path, err)
	}
	// Every answer that these tests get is held against the API's description.
	if err := openapitest.Check(method, req.URL.Path, resp.StatusCode, resp.Header.Get("Content-Type"), out); err != nil {
		p.T.Errorf("not as described: %v", err)
	}
	return resp.StatusCode, out
}

// Agrees says whether events, logs and crashes of the person's robots may be kept (VEC-DOC-05). thing is one of them.
func (p *Person) Agrees(thing string, yes bool) {
	p.T.Helper()
	p.Do("PATCH", "/v1/things/"+thing+"/jdocs/vic.AccountSettings", map[string]any{"set": map[string]bool{"data_collection": yes}}, nil)
}

// Do is Try for requests that must work; out may be nil.
func (p *Person) Do(method, path string, body, out any, header ...string) {
	p.T.Helper()
	code, b := p.Try(method, path, body, header...)
	if code >= 300 {
		p.T.Fatalf("%s %s: %d %s", method, path, code, b)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			p.T.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
}

// OwnersPassword is the password of all owners that these tests sign up.
const OwnersPassword = "correct horse battery"

var codeLine = regexp.MustCompile(`(?m)^([A-Za-z0-9_-]{16,})\s*$`)

// Owner signs a person up with the code from the letter, and signs them in.
func (h *House) Owner(t *testing.T, email, given string) *Person {
	t.Helper()
	p := h.Stranger(t)
	p.Email = email
	p.Do("POST", "/v1/account/signup", map[string]string{"email": email, "password": OwnersPassword, "given_name": given}, nil)
	code := ""
	Await(t, time.Minute, "the letter to "+email, func() (err error) { code, err = h.letter(email); return err })
	p.Do("POST", "/v1/account/verify", map[string]string{"code": code, "password": OwnersPassword}, nil)
	var l struct {
		Token   string
		Account struct{ ID string }
	}
	p.Do("POST", "/v1/login", map[string]string{"email": email, "password": OwnersPassword}, &l)
	p.Token, p.ID = l.Token, l.Account.ID
	return p
}

// letter returns the code in the newest letter to an address.
func (h *House) letter(to string) (string, error) {
	all, err := h.letters(to)
	if err != nil {
		return "", err
	}
	code := ""
	for _, text := range all {
		if found := codeLine.FindStringSubmatch(text); found != nil {
			code = found[1]
		}
	}
	if code == "" {
		return "", fmt.Errorf("no code for %s in %d letters", to, len(all))
	}
	return code, nil
}

// letters returns the texts of the letters to an address, the oldest first.
func (h *House) letters(to string) (out []string, err error) {
	files, err := filepath.Glob(filepath.Join(h.Ready.Files["mail"], "*.eml"))
	if err != nil {
		return nil, err
	}
	for _, f := range files { // by time
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		m, err := mail.ReadMessage(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		if !strings.Contains(m.Header.Get("To"), to) {
			continue
		}
		text, err := PlainText(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = append(out, text)
	}
	return out, nil
}

// AwaitLetter waits for a letter to an address that says all of words.
func (h *House) AwaitLetter(t *testing.T, to string, words ...string) {
	t.Helper()
	Await(t, time.Minute, fmt.Sprintf("a letter to %s that says %q", to, words), func() error {
		all, err := h.letters(to)
		if err != nil {
			return err
		}
		for _, text := range all {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
				return nil
			}
		}
		return fmt.Errorf("%d letters say other things", len(all))
	})
}

// PlainText returns the text half of a letter.
func PlainText(m *mail.Message) (string, error) {
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return "", err
	}
	decode := func(encoding string, r io.Reader) (string, error) {
		if strings.EqualFold(encoding, "quoted-printable") {
			r = quotedprintable.NewReader(r)
		}
		b, err := io.ReadAll(r)
		return string(b), err
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return decode(m.Header.Get("Content-Transfer-Encoding"), m.Body)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			return "", fmt.Errorf("no text in the letter: %w", err)
		}
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/plain") {
			return decode(p.Header.Get("Content-Transfer-Encoding"), p)
		}
	}
}

// AppSession logs in as the original app does: it exchanges e-mail and password for a session that it hands to a robot (VEC-AUTH-05).
func (p *Person) AppSession(appKey string) string {
	p.T.Helper()
	var out struct {
		Session struct {
			Token string `json:"session_token"`
		} `json:"session"`
	}
	form := url.Values{"username": {p.Email}, "password": {OwnersPassword}}
	anybody := *p
	anybody.Token = ""
	anybody.Do("POST", "/1/sessions", form.Encode(), &out, "Content-Type", "application/x-www-form-urlencoded", "Anki-App-Key", appKey)
	if out.Session.Token == "" {
		p.T.Fatal("log-in of an app gave no session")
	}
	return out.Session.Token
}

// Doctor returns what the cloud says is wrong with a thing, as JSON text.
func (p *Person) Doctor(thing string) string {
	p.T.Helper()
	code, b := p.Try("GET", "/v1/things/"+thing+"/doctor", nil)
	if code != http.StatusOK {
		return fmt.Sprintf("%d %s", code, b)
	}
	return string(b)
}

// Cookie is the one of a browser in which p is signed in. Its name is asked for once: signing out without a session only removes it.
func (p *Person) Cookie() *http.Cookie {
	p.T.Helper()
	name, known := cookieNames.Load(p.API)
	if !known {
		req, err := http.NewRequestWithContext(p.T.Context(), "POST", p.API+"/logout", nil)
		if err != nil {
			p.T.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		resp, err := p.HTTP.Transport.RoundTrip(req)
		if err != nil {
			p.T.Fatal(err)
		}
		defer resp.Body.Close()
		if len(resp.Cookies()) != 1 {
			p.T.Fatalf("POST /logout: %s, cookies %v, want the session's", resp.Status, resp.Cookies())
		}
		name = resp.Cookies()[0].Name
		cookieNames.Store(p.API, name)
	}
	return &http.Cookie{Name: name.(string), Value: p.Token}
}

var cookieNames sync.Map // of session cookies, by API

// Staff makes an operator of a role and signs them in with a password of their own.
func (h *House) Staff(t *testing.T, admin *Person, role auth.Role) *Person {
	t.Helper()
	p := h.Stranger(t)
	p.Email = string(role) + "@staff.example"
	var made struct {
		Password string `json:"password"`
	}
	admin.Do("POST", "/v1/operators", map[string]string{"email": p.Email, "role": string(role)}, &made)
	var l struct{ Token string }
	p.Do("POST", "/v1/login", map[string]string{"email": p.Email, "password": made.Password}, &l)
	p.Token = l.Token
	if code, b := p.Try("GET", "/v1/fleet", nil); code != http.StatusForbidden {
		t.Errorf("%s with a first password sees the fleet: %d %s", role, code, b)
	}
	p.Do("POST", "/v1/me/password", map[string]string{"old": made.Password, "new": OwnersPassword}, nil)
	return p
}

// Answer is the response to a request of the walks.
type Answer struct {
	Code     int
	Location string
	Header   http.Header
	Body     string
}

// Ask makes one request of the walks as a browser of this site would, with the session as pages and API have it; extra headers come last.
func (p *Person) Ask(route, path, body string, page bool, extra ...string) (Answer, error) {
	method, _, ok := strings.Cut(route, " ")
	if !ok {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(p.T.Context(), method, p.API+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	switch {
	case p.Token == "":
	case page:
		req.AddCookie(p.Cookie())
	default:
		req.Header.Set("Authorization", "Bearer "+p.Token)
	}
	if page && method != http.MethodGet {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", "text/html, application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(extra); i += 2 {
		if req.Header.Del(extra[i]); extra[i+1] != "" {
			req.Header.Set(extra[i], extra[i+1])
		}
	}
	resp, err := p.HTTP.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	a := Answer{Code: resp.StatusCode, Location: resp.Header.Get("Location"), Header: resp.Header}
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
		if err != nil {
			return a, err
		}
		a.Body = string(b)
	}
	return a, nil
}

package e2e

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
)

// person is a client of the public API of a house.
type person struct {
	t     *testing.T
	http  *http.Client
	api   string
	token string // bearer; "": not signed in
	id    string // of the account
	email string
}

// stranger returns a person without an account.
func (h *house) stranger(t *testing.T) *person {
	t.Helper()
	root, err := os.ReadFile(h.ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		t.Fatal("no certificate in root_ca")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}
	t.Cleanup(transport.CloseIdleConnections)
	return &person{t: t, api: h.ready.Endpoints["api"], http: &http.Client{Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// operator returns the first administrator.
func (h *house) operator(t *testing.T) *person {
	t.Helper()
	p := h.stranger(t)
	b, err := os.ReadFile(h.ready.Files["operator_token"])
	if err != nil {
		t.Fatal(err)
	}
	p.token = strings.TrimSpace(string(b))
	return p
}

// with returns the same person at another kenneld.
func (p *person) with(api string) *person {
	q := *p
	q.api = api
	return &q
}

// try makes a request and returns what came back. A string body goes as it is, anything else as JSON.
func (p *person) try(method, path string, body any, header ...string) (int, []byte) {
	p.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			p.t.Fatal(err)
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.api+path, r)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := p.http.Do(req)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp.StatusCode, nil // it does not end
	}
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	// Every answer that these tests get is held against the API's description.
	if err := openapitest.Check(method, req.URL.Path, resp.StatusCode, resp.Header.Get("Content-Type"), out); err != nil {
		p.t.Errorf("not as described: %v", err)
	}
	return resp.StatusCode, out
}

// agrees says whether events, logs and crashes of the person's robots may be kept (VEC-DOC-05). thing is one of them.
func (p *person) agrees(thing string, yes bool) {
	p.t.Helper()
	p.do("PATCH", "/v1/things/"+thing+"/jdocs/vic.AccountSettings", map[string]any{"set": map[string]bool{"data_collection": yes}}, nil)
}

// do is try for requests that must work; out may be nil.
func (p *person) do(method, path string, body, out any, header ...string) {
	p.t.Helper()
	code, b := p.try(method, path, body, header...)
	if code >= 300 {
		p.t.Fatalf("%s %s: %d %s", method, path, code, b)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			p.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
}

const ownersPassword = "correct horse battery"

var codeLine = regexp.MustCompile(`(?m)^([A-Za-z0-9_-]{16,})\s*$`)

// owner signs a person up with the code from the letter, and signs them in.
func (h *house) owner(t *testing.T, email, given string) *person {
	t.Helper()
	p := h.stranger(t)
	p.email = email
	p.do("POST", "/v1/account/signup", map[string]string{"email": email, "password": ownersPassword, "given_name": given}, nil)
	code := ""
	await(t, time.Minute, "the letter to "+email, func() (err error) { code, err = h.letter(email); return err })
	p.do("POST", "/v1/account/verify", map[string]string{"code": code, "password": ownersPassword}, nil)
	var l struct {
		Token   string
		Account struct{ ID string }
	}
	p.do("POST", "/v1/login", map[string]string{"email": email, "password": ownersPassword}, &l)
	p.token, p.id = l.Token, l.Account.ID
	return p
}

// letter returns the code in the newest letter to an address.
func (h *house) letter(to string) (string, error) {
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
func (h *house) letters(to string) (out []string, err error) {
	files, err := filepath.Glob(filepath.Join(h.ready.Files["mail"], "*.eml"))
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
		text, err := plainText(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = append(out, text)
	}
	return out, nil
}

// awaitLetter waits for a letter to an address that says all of words.
func (h *house) awaitLetter(t *testing.T, to string, words ...string) {
	t.Helper()
	await(t, time.Minute, fmt.Sprintf("a letter to %s that says %q", to, words), func() error {
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

// plainText returns the text half of a letter.
func plainText(m *mail.Message) (string, error) {
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

// appSession logs in as the original app does: it exchanges e-mail and password for a session that it hands to a robot (VEC-AUTH-05).
func (p *person) appSession(appKey string) string {
	p.t.Helper()
	var out struct {
		Session struct {
			Token string `json:"session_token"`
		} `json:"session"`
	}
	form := url.Values{"username": {p.email}, "password": {ownersPassword}}
	anybody := *p
	anybody.token = ""
	anybody.do("POST", "/1/sessions", form.Encode(), &out, "Content-Type", "application/x-www-form-urlencoded", "Anki-App-Key", appKey)
	if out.Session.Token == "" {
		p.t.Fatal("log-in of an app gave no session")
	}
	return out.Session.Token
}

// doctor returns what the cloud says is wrong with a thing, as JSON text.
func (p *person) doctor(thing string) string {
	p.t.Helper()
	code, b := p.try("GET", "/v1/things/"+thing+"/doctor", nil)
	if code != http.StatusOK {
		return fmt.Sprintf("%d %s", code, b)
	}
	return string(b)
}

// cookie is the one of a browser in which p is signed in. Its name is asked for once: signing out without a session only removes it.
func (p *person) cookie() *http.Cookie {
	p.t.Helper()
	name, known := cookieNames.Load(p.api)
	if !known {
		req, err := http.NewRequestWithContext(p.t.Context(), "POST", p.api+"/logout", nil)
		if err != nil {
			p.t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		resp, err := p.http.Transport.RoundTrip(req)
		if err != nil {
			p.t.Fatal(err)
		}
		defer resp.Body.Close()
		if len(resp.Cookies()) != 1 {
			p.t.Fatalf("POST /logout: %s, cookies %v, want the session's", resp.Status, resp.Cookies())
		}
		name = resp.Cookies()[0].Name
		cookieNames.Store(p.api, name)
	}
	return &http.Cookie{Name: name.(string), Value: p.token}
}

var cookieNames sync.Map // of session cookies, by API

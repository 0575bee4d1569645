package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/openapi/operations"
	"kennel/infra/auth"
)

// door is an operation that takes a password.
type door struct {
	body    string // with the password as PASSWORD, and the caller's e-mail as EMAIL; JSON of the API, a form of a page
	role    auth.Role
	session bool // it wants one besides
	chooses bool // the password is a new one: nothing is checked
}

// doors are all of them. TestPasswordDoors finds those that are missing.
var doors = map[string]door{
	"POST /v1/login":                      {body: `{"email":"EMAIL","password":"PASSWORD"}`, role: auth.Admin},
	"POST /login":                         {body: "email=EMAIL&password=PASSWORD", role: auth.Admin},
	"POST /my/login":                      {body: "email=EMAIL&password=PASSWORD", role: auth.Admin},
	"POST /1/sessions":                    {body: "username=EMAIL&password=PASSWORD", role: auth.Admin},
	"POST /v1/me/password":                {body: `{"old":"PASSWORD","new":"another horse battery"}`, role: auth.Admin, session: true},
	"POST /account/password":              {body: "old=PASSWORD&password=another horse battery&again=another horse battery", role: auth.Admin, session: true},
	"POST /v1/me/passkeys/begin":          {body: `{"password":"PASSWORD"}`, role: auth.Admin, session: true},
	"POST /v1/me/second/begin":            {body: `{"password":"PASSWORD"}`, role: auth.Admin, session: true},
	"POST /v1/me/second/remove":           {body: `{"password":"PASSWORD"}`, role: auth.Admin, session: true},
	"POST /account/second":                {body: "step=remove&password=PASSWORD", role: auth.Admin, session: true},
	"POST /v1/account/email":              {body: `{"email":"new@example.org","password":"PASSWORD"}`, role: auth.Admin, session: true},
	"POST /v1/account/delete":             {body: `{"password":"PASSWORD"}`, role: auth.Owner, session: true},
	"POST /my/account/delete":             {body: "sure=yes&password=PASSWORD", role: auth.Owner, session: true},
	"POST /v1/my/robots/{thing}/transfer": {body: `{"to":"other@example.org","password":"PASSWORD"}`, role: auth.Owner, session: true},
	"POST /my/robots/{thing}/offer":       {body: "to=other@example.org&password=PASSWORD", role: auth.Owner, session: true},
	"POST /v1/account/verify":             {body: `{"code":"AAAAAAAAAAAAAAAAAAAAAAAAAA","password":"PASSWORD"}`},
	"POST /account/verify":                {body: "code=AAAAAAAAAAAAAAAAAAAAAAAAAA&password=PASSWORD"},
	"POST /v1/account/signup":             {body: `{"email":"EMAIL","password":"PASSWORD"}`, chooses: true},
	"POST /account/signup":                {body: "email=EMAIL&password=PASSWORD", chooses: true},
	"POST /1/users":                       {body: "email=EMAIL&username=EMAIL&password=PASSWORD", chooses: true},
	"POST /v1/account/email/confirm":      {body: `{"code":"AAAAAAAAAAAAAAAAAAAAAAAAAA","password":"PASSWORD"}`, chooses: true}, // its body has a field for one
	"POST /v1/account/reset/confirm":      {body: `{"code":"AAAAAAAAAAAAAAAAAAAAAAAAAA","password":"PASSWORD"}`, chooses: true},
	"POST /account/reset":                 {body: "code=AAAAAAAAAAAAAAAAAAAAAAAAAA&password=PASSWORD", chooses: true},
}

// passwordForm finds the address of a form with a field for a password.
var passwordForm = regexp.MustCompile(`(?s)<form[^>]*action="([^"]+)"[^>]*>([^<]|<[^/]|</[^f])*?type="password"`)

// TestPasswordDoors walks every door that takes a password: the API's by the bodies that it describes, the pages' by their forms, the original app's by the access
// table. With the right password of an operator who has a second factor none gives a session that may do anything, and a session without the factor opens none
// of them. Each paces guesses (issue 28, must hold 3).
func TestPasswordDoors(t *testing.T) {
	w := start(t, func(c *Config) { c.API.AppKeys = []string{"*"} })
	const password = "correct horse battery staple"
	made := 0
	person := func(role auth.Role, app bool) (account.Account, string) {
		t.Helper()
		made++
		a, _, err := w.Accounts.People.CreateAccount(t.Context(), fmt.Sprintf("p%d@example.org", made), role, password)
		if err != nil {
			t.Fatal(err)
		}
		if app {
			if _, err := w.base.Pool.Exec(t.Context(), `INSERT INTO account_totp (account, secret, since) VALUES ($1, 'x', now())`, string(a.ID)); err != nil {
				t.Fatal(err)
			}
		}
		l, err := w.Accounts.SignIn.Login(t.Context(), a.Email, password, fmt.Sprintf("192.0.2.%d", made))
		if err != nil {
			t.Fatal(err)
		}
		return a, l.Token.Reveal()
	}
	robots, cookie := ownerpg.New(w.base.Pool), w.cookie(t)
	// ask sends one request from an address of its own.
	ask := func(from int, name, body, email, word, token string) (*http.Response, string) {
		t.Helper()
		method, path, _ := strings.Cut(name, " ")
		path = strings.ReplaceAll(path, "{thing}", string(rex))
		body = strings.NewReplacer("EMAIL", email, "PASSWORD", word).Replace(body)
		kind := "application/json"
		if body != "" && body[0] != '{' {
			v, err := url.ParseQuery(body)
			if err != nil {
				t.Fatal(name, err)
			}
			kind, body = "application/x-www-form-urlencoded", v.Encode()
		}
		req, err := http.NewRequestWithContext(t.Context(), method, w.api+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Anki-App-Key", "any")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
			req.AddCookie(&http.Cookie{Name: cookie, Value: token})
		}
		tr := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(from), 1)}}).DialContext}
		defer tr.CloseIdleConnections()
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(name, err)
		}
		defer resp.Body.Close()
		return resp, read(t, resp.Body)
	}

	// The operations that take a password, as the code says.
	found := map[string]bool{}
	for _, op := range operations.All(Operations()) {
		if b := reflect.TypeOf(op.Body); b != nil && b.Kind() == reflect.Struct {
			for i := range b.NumField() {
				if n, _, _ := strings.Cut(b.Field(i).Tag.Get("json"), ","); n == "password" || n == "old" {
					found[op.Route] = true
				}
			}
		}
	}
	mine, owners := person(auth.Owner, false)
	_, staff := person(auth.Admin, false)
	if _, _, err := robots.Begin(t.Context(), rex, string(mine.ID), "code", false); err != nil {
		t.Fatal(err)
	}
	for _, name := range access.HTTP.Names() {
		rule := access.HTTP[name]
		method, path, _ := strings.Cut(name, " ")
		if !rule.Page && method == "POST" && strings.HasPrefix(path, "/1/") && strings.Contains(rule.By, "password") {
			found[name] = true
		}
		if !rule.Page || method != "GET" || strings.HasSuffix(path, "/live") || strings.Contains(path, "stream") {
			continue
		}
		for _, token := range []string{"", owners, staff} {
			_, text := ask(1, "GET "+strings.NewReplacer("{$}", "", "{path...}", "x").Replace(path), "", "", "", token)
			for _, f := range passwordForm.FindAllStringSubmatch(text, -1) {
				action := strings.ReplaceAll(f[1], string(rex), "{thing}")
				action, _, _ = strings.Cut(action, "?")
				found["POST "+action] = true
			}
		}
	}
	for name := range found {
		if _, ok := doors[name]; !ok {
			t.Errorf("%s takes a password and is in no table of this test", name)
		}
	}
	for name := range doors {
		if !found[name] && name != "POST /1/users" { // its fields are in no type
			t.Errorf("%s is in the table, and no body or form has a password for it", name)
		}
	}

	from := 2
	for name, d := range doors {
		from++
		a, half := person(auth.Admin, true)
		if !d.chooses {
			token := ""
			if d.session {
				token = half
			}
			resp, text := ask(from, name, d.body, a.Email, password, token)
			var got []string
			for _, c := range resp.Cookies() {
				got = append(got, c.Value)
			}
			got = append(got, regexp.MustCompile(`\bk[su][ts]_\w+`).FindAllString(text, -1)...)
			if d.session && resp.StatusCode < 400 && resp.Header.Get("Location") != "/account/second" {
				t.Errorf("%s opens to a session without the second factor: %d", name, resp.StatusCode)
			}
			if strings.Contains(text, "kus_") {
				t.Errorf("%s gives an app's session for a password alone", name)
			}
			for _, token := range got {
				for _, op := range []string{"GET /v1/fleet", "GET /v1/account", "POST /v1/account/apps"} {
					if resp, _ := ask(from, op, "", "", "", token); resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusUnauthorized {
						t.Errorf("%s: what it gives for a password alone may %s: %d", name, op, resp.StatusCode)
					}
				}
			}
			if _, err := w.Accounts.SignIn.Login(t.Context(), a.Email, password, fmt.Sprintf("192.0.2.%d", made)); err != nil {
				t.Errorf("%s with a session without the second factor: the password is another: %v", name, err)
			}
		}
		role := d.role
		if role == "" {
			role = auth.Owner
		}
		b, whole := person(role, false)
		if !d.session {
			whole = ""
		}
		if strings.Contains(name, "{thing}") {
			if _, _, err := robots.Begin(t.Context(), rex, string(b.ID), "wiped", true); err != nil {
				t.Fatal(err)
			}
		}
		var codes []int
		for i := range 40 {
			resp, _ := ask(from, name, d.body, b.Email, fmt.Sprint("a wrong password ", i), whole)
			if codes = append(codes, resp.StatusCode); resp.StatusCode == http.StatusTooManyRequests {
				break
			}
		}
		if !slices.Contains(codes, http.StatusTooManyRequests) {
			t.Errorf("%s takes guesses without end: %v", name, codes)
		}
	}
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

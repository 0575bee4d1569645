package accountapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"kennel/cloud/access"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
)

// twoStep is a site with second factors, and one browser or program.
type twoStep struct {
	t       *testing.T
	svc     accounttest.Accounts
	h       http.Handler
	now     atomic.Pointer[time.Time]
	cookies map[string]*http.Cookie
	addr    string
}

func newTwoStep(t *testing.T, required bool) *twoStep {
	s := &twoStep{t: t, cookies: map[string]*http.Cookie{}, addr: "192.0.2.1"}
	now := time.Now()
	s.now.Store(&now)
	s.svc = accounttest.New(t, pgtest.New(t), func(c *account.SignInConfig) {
		c.RequireSecond, c.Now = required, func() time.Time { return *s.now.Load() }
	})
	log := slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	accountapi.Operations(s.svc.SignIn, s.svc.Second, log).Mount(mux, op.Doors{Log: log})
	accountapi.SecondOperations(s.svc.Second).Mount(mux, op.Doors{Log: log})
	accountapi.MountSecond(mux, s.svc.SignIn, s.svc.Second, "Kennel", log)
	accountapi.StaffOperations(s.svc.Operators).Mount(mux, op.Doors{Log: log})
	browser := accountapi.Browser{In: s.svc.SignIn, Log: log}
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { // as the console's form does
		if err := browser.SignIn(w, r, r.FormValue("email"), r.FormValue("password")); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, "/v1/operators", http.StatusSeeOther)
	})
	s.h = accountapi.Authenticator(s.svc.SignIn, log)(access.HTTP.Guard(mux, log))
	if _, _, err := s.svc.CreateAccount(t.Context(), ada, auth.Admin, password); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *twoStep) sleep(d time.Duration) {
	now := s.now.Load().Add(d)
	s.now.Store(&now)
}

// send asks as a browser does, or with a token as a program does.
func (s *twoStep) send(method, path, token string, body any) *httptest.ResponseRecorder {
	s.t.Helper()
	var b bytes.Buffer
	kind := "application/json"
	switch v := body.(type) {
	case nil:
	case url.Values:
		kind = "application/x-www-form-urlencoded"
		b.WriteString(v.Encode())
	default:
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			s.t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, "https://kennel.example"+path, &b)
	r.RemoteAddr = s.addr + ":4000"
	r.Header.Set("Content-Type", kind)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	} else {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Accept", "text/html")
		for _, c := range s.cookies {
			r.AddCookie(c)
		}
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if s.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(s.cookies, c.Name)
		}
	}
	return w
}

func (s *twoStep) login(code string) (token string, w *httptest.ResponseRecorder) {
	s.t.Helper()
	w = s.send("POST", "/v1/login", "", accountapi.LoginRequest{Email: ada, Password: password, Code: code})
	var l accountapi.LoginAnswer
	_ = json.Unmarshal(w.Body.Bytes(), &l) // a refusal has none
	return l.Token, w
}

// code returns the code that the app shows now.
func (s *twoStep) code(uri string) string {
	s.t.Helper()
	k, err := otp.NewKeyFromURL(uri)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := totp.GenerateCode(k.Secret(), *s.now.Load())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// add sets an app up over the API.
func (s *twoStep) add(token string) (uri string, recovery []string) {
	s.t.Helper()
	var app accountapi.SecondApp
	if w := s.send("POST", "/v1/me/second/begin", token, accountapi.SecondBegin{Password: password}); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &app) != nil {
		s.t.Fatal(w.Code, w.Body)
	}
	if w := s.send("POST", "/v1/me/second", token, accountapi.SecondCode{Code: "000000"}); w.Code != 401 && s.code(app.URI) != "000000" {
		s.t.Fatal(w.Code, w.Body)
	}
	var codes accountapi.SecondCodes
	if w := s.send("POST", "/v1/me/second", token, accountapi.SecondCode{Code: s.code(app.URI)}); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &codes) != nil || len(codes.RecoveryCodes) != 10 {
		s.t.Fatal(w.Code, w.Body)
	}
	return app.URI, codes.RecoveryCodes
}

// TestSecondFactorOverTheAPI: with an app, a password alone opens nothing; a code is good once, and so is a recovery code.
func TestSecondFactorOverTheAPI(t *testing.T) {
	s := newTwoStep(t, false)
	token, w := s.login("")
	if w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	if w := s.send("POST", "/v1/me/second/begin", token, accountapi.SecondBegin{Password: "a wrong password"}); w.Code != 401 {
		t.Errorf("begun with a wrong password: %d %s", w.Code, w.Body)
	}
	uri, recovery := s.add(token)
	if w := s.send("GET", "/v1/operators", token, nil); w.Code != 200 {
		t.Errorf("the session that set it up: %d %s", w.Code, w.Body)
	}
	if w := s.send("POST", "/v1/me/second/begin", token, accountapi.SecondBegin{Password: password}); w.Code != 409 {
		t.Errorf("a second app: %d %s", w.Code, w.Body)
	}
	problem := func(what string, w *httptest.ResponseRecorder, status int, code string) {
		t.Helper()
		if w.Code != status || !strings.Contains(w.Body.String(), `"`+code+`"`) {
			t.Errorf("%s: %d %s, want %d %s", what, w.Code, w.Body, status, code)
		}
	}
	_, w = s.login("")
	problem("no code", w, 401, "second_factor")
	_, w = s.login(s.code(uri))
	problem("the code that set it up", w, 401, "code_wrong")
	s.sleep(time.Minute)
	good := s.code(uri)
	if token, w := s.login(good); w.Code != 200 || s.send("GET", "/v1/operators", token, nil).Code != 200 {
		t.Errorf("the code: %d %s", w.Code, w.Body)
	}
	_, w = s.login(good)
	problem("the code again", w, 401, "code_wrong")
	if _, w := s.login(strings.ToUpper(recovery[3])); w.Code != 200 {
		t.Errorf("a recovery code: %d %s", w.Code, w.Body)
	}
	_, w = s.login(recovery[3])
	problem("the recovery code again", w, 401, "code_wrong")
	var st accountapi.Second
	if w := s.send("GET", "/v1/me/second", token, nil); json.Unmarshal(w.Body.Bytes(), &st) != nil || !st.App || st.RecoveryCodes != 9 || st.Required {
		t.Errorf("%+v", st)
	}

	// Guessing at codes, with the password: five, then pauses, and those at a known address do not wait.
	s.addr = "198.51.100.1"
	codes := map[int]int{}
	for range 30 {
		_, w := s.login("123456")
		codes[w.Code]++
	}
	if codes[401] > 5 || codes[200] > 0 {
		t.Errorf("guesses: %v", codes)
	}
	s.addr = "192.0.2.1"
	s.sleep(time.Minute)
	if _, w := s.login(s.code(uri)); w.Code != 200 {
		t.Errorf("at the known address: %d %s", w.Code, w.Body)
	}

	// The secret is not in the database in the clear, nor are recovery codes.
	kept, err := s.svc.Store.App(t.Context(), accountID(t, s))
	k, _ := otp.NewKeyFromURL(uri)
	if err != nil || strings.Contains(string(kept.Secret), k.Secret()) {
		t.Errorf("%q, %v", kept.Secret, err)
	}
	if w := s.send("POST", "/v1/me/second/remove", token, accountapi.SecondBegin{Password: password}); w.Code != 204 {
		t.Errorf("remove: %d %s", w.Code, w.Body)
	}
	if _, w := s.login(""); w.Code != 200 {
		t.Errorf("without the app: %d %s", w.Code, w.Body)
	}
}

func accountID(t *testing.T, s *twoStep) account.ID {
	t.Helper()
	a, err := s.svc.Find(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

// TestSecondFactorOnThePages: where it is required, an operator is led to set it up and can do nothing else; afterwards the page asks for the code.
func TestSecondFactorOnThePages(t *testing.T) {
	s := newTwoStep(t, true)
	signIn := func() {
		t.Helper()
		if w := s.send("POST", "/login", "", url.Values{"email": {ada}, "password": {password}}); w.Code != 303 {
			t.Fatal(w.Code, w.Body)
		}
	}
	led := func(what string) {
		t.Helper()
		if w := s.send("GET", "/v1/operators", "", nil); w.Code != 303 || w.Header().Get("Location") != "/account/second" {
			t.Errorf("%s: %d to %s", what, w.Code, w.Header().Get("Location"))
		}
		if w := s.send("POST", "/v1/operators", "", accountapi.NewOperator{Email: "eve@example.com", Role: auth.Admin}); w.Code != 403 {
			t.Errorf("%s: a change: %d", what, w.Code)
		}
	}
	form := func(step, field, value string, status int, want string) string {
		t.Helper()
		w := s.send("POST", "/account/second", "", url.Values{"step": {step}, field: {value}})
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Fatalf("%s: %d, want %d and %q:\n%s", step, w.Code, status, want, w.Body)
		}
		return w.Body.String()
	}
	if token, w := s.login(""); w.Code != 200 || s.send("GET", "/v1/operators", token, nil).Code != 403 {
		t.Errorf("a program without a second factor: %d %s", w.Code, w.Body)
	}
	signIn()
	led("before")
	if w := s.send("GET", "/account/second", "", nil); w.Code != 200 || !strings.Contains(w.Body.String(), `name="step" value="begin"`) || !strings.Contains(w.Header().Get("Content-Security-Policy"), "img-src data:") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	form("begin", "password", "a wrong password", 403, `role="alert"`)
	page := form("begin", "password", password, 200, `src="data:image/png;base64,`)
	led("begun")
	secret := regexp.MustCompile(`<code>([A-Z2-7]+)</code>`).FindStringSubmatch(page)
	if secret == nil {
		t.Fatal(page)
	}
	uri := "otpauth://totp/Kennel:ada?secret=" + secret[1]
	form("confirm", "code", "12", 403, "This code is wrong")
	codes := regexp.MustCompile(`<li><code>([a-z2-7-]+)</code>`).FindAllStringSubmatch(form("confirm", "code", s.code(uri), 200, "shown only now"), -1)
	if len(codes) != 10 {
		t.Fatal(codes)
	}
	if w := s.send("GET", "/v1/operators", "", nil); w.Code != 200 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
	form("confirm", "code", s.code(uri), 404, `role="alert"`)
	form("nonsense", "code", "", 400, "want begin, confirm, give or remove")

	// Again, with the app's code.
	s.send("POST", "/v1/logout", "", struct{}{})
	if w := s.send("GET", "/account/second", "", nil); w.Code != 303 || !strings.HasPrefix(w.Header().Get("Location"), "/login") {
		t.Errorf("not signed in: %d to %s", w.Code, w.Header().Get("Location"))
	} else if h := w.Header(); h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("the way to the sign-in: %v", h)
	}
	signIn()
	led("half signed in")
	if w := s.send("GET", "/account/second", "", nil); !strings.Contains(w.Body.String(), `name="code"`) || strings.Contains(w.Body.String(), "Remove the app") {
		t.Errorf("%s", w.Body)
	}
	// Half a session neither removes the app nor makes another.
	form("begin", "password", password, 403, `role="alert"`)
	form("remove", "password", password, 403, `role="alert"`)
	form("give", "code", "999999999", 403, "This code is wrong")
	s.sleep(time.Minute)
	form("give", "code", s.code(uri), 303, "")
	if w := s.send("GET", "/v1/operators", "", nil); w.Code != 200 {
		t.Errorf("after the code: %d %s", w.Code, w.Body)
	}
	if c := s.cookies["__Host-kennel-device"]; c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.MaxAge < 300*24*3600 {
		t.Errorf("the device: %v", c)
	}
	form("remove", "password", password, 200, "The app is removed.")
}

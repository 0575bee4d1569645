package accountpg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"mime/quotedprintable"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/mail/mailpg"
	"kennel/cloud/identity/mail/mailspool"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"

	"github.com/jackc/pgx/v5"
)

// home is a world with owners and a postman who works when he is told to.
type home struct {
	world
	o     accounttest.Owners
	store *accountpg.Store
	mail  *mail.Service
	spool string
}

// ownersConfig holds the settings of a home that a test may change.
type ownersConfig struct {
	account.LettersConfig
	account.PrivacyConfig
}

func newHome(t *testing.T, change ...func(*ownersConfig)) *home {
	t.Helper()
	w := newWorld(t, 100_000)
	if _, err := jobs.Migrate(t.Context(), w.pool); err != nil {
		t.Fatal(err)
	}
	orders, err := jobs.NewOrders(w.pool)
	if err != nil {
		t.Fatal(err)
	}
	box := mailpg.New(w.pool, orders)
	now := func() time.Time { return *w.now.Load() }
	h := &home{world: w, store: accountpg.New(w.pool), spool: filepath.Join(t.TempDir(), "mail")}
	spool, err := mailspool.Open(h.spool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spool.Close() })
	h.Accounts = w.process(t, w.pool, func(c *account.SignInConfig) {
		c.ByAddr, c.Mail = ratelimit.NewByAddr(time.Hour, 100_000), mail.Queue{Outbox: box, Now: now}
	})
	cfg := ownersConfig{LettersConfig: account.LettersConfig{Mail: mail.Queue{Outbox: box, Now: now}, ByAddr: ratelimit.NewByAddr(time.Hour, 100_000), PublicURL: "https://kennel.example"}}
	// The letters are one of the domains that hold something; they ask the owners who is who.
	letters := mail.Config{Outbox: box, Transport: spool, From: "home@kennel.example", Now: now, Log: slog.New(slog.DiscardHandler),
		Compose:   func(ctx context.Context, m mail.Mail) (mail.Letter, bool, error) { return h.o.Letters.Compose(ctx, m) },
		Addresses: func(ctx context.Context, id string) ([]string, error) { return h.Addresses(ctx, id) },
		Bounced:   func(ctx context.Context, m mail.Mail, code string) error { return h.Bounced(ctx, m, code) }}
	if h.mail, err = mail.New(letters); err != nil {
		t.Fatal(err)
	}
	cfg.Personal = []account.Holder{{Name: "mail", Personal: h.mail}}
	for _, c := range change {
		c(&cfg)
	}
	h.o = h.WithLetters(t, cfg.LettersConfig, cfg.PrivacyConfig)
	return h
}

// letter is a letter in the mailbox.
type letter struct{ to, subject, code, text string }

var codeLine = regexp.MustCompile(`(?m)^([A-Z2-7]{26})\r?$`)

// letters has the postman bring what waits and returns it.
func (h *home) letters(t testing.TB) []letter {
	t.Helper()
	rows, err := h.pool.Query(t.Context(), `SELECT id::text FROM mail_outbox ORDER BY created_at`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var out []letter
	for _, id := range ids {
		if err := h.mail.Send(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(h.spool, "*_"+id+".eml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			header, body, _ := strings.Cut(string(b), "\r\n\r\n")
			plain := new(bytes.Buffer)
			if _, err := plain.ReadFrom(quotedprintable.NewReader(strings.NewReader(body))); err != nil {
				t.Fatal(err)
			}
			l := letter{text: plain.String()}
			for line := range strings.SplitSeq(header, "\r\n") {
				l.to = cutHeader(l.to, line, "To: ")
				l.subject = cutHeader(l.subject, line, "Subject: ")
			}
			if f := codeLine.FindStringSubmatch(l.text); f != nil {
				l.code = f[1]
			}
			out = append(out, l)
		}
	}
	return out
}

func cutHeader(old, line, name string) string {
	if v, ok := strings.CutPrefix(line, name); ok {
		return strings.Trim(v, "<>")
	}
	return old
}

// one is letters for when there is one.
func (h *home) one(t testing.TB) letter {
	t.Helper()
	l := h.letters(t)
	if len(l) != 1 {
		t.Fatalf("%d letters, want 1: %+v", len(l), l)
	}
	return l[0]
}

func ptr(s string) *string { return &s }

// signUp makes a whole owner.
func (h *home) signUp(t *testing.T, email string) account.Account {
	t.Helper()
	if _, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: email, Password: password}, here); err != nil {
		t.Fatal(err)
	}
	a, err := h.o.Letters.Verify(t.Context(), logging.Secret(h.one(t).code), password, here)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// From sign-up to the whole record (VEC-DOC-09): 24 rows of the book, one of them twice.
func TestSignUpToRecord(t *testing.T) {
	h := newHome(t)
	s, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: " Ada@Example.com ", Password: "Correct Horse 1", AppName: "chewie", AppPlatform: "ios 12.1.2; iPhone8,1", AppVersion: "1.3.1",
		Change: account.Change{Given: ptr("Ada"), Family: ptr("Lovelace"), Gender: ptr("F"), Born: ptr("1815-12-10"), Lang: ptr("de_at")}}, here)
	if err == nil {
		t.Fatal("a birthday before 1850 is a typing error")
	}
	s, err = h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: " Ada@Example.com ", Password: "Correct Horse 1", AppName: "chewie", AppPlatform: "ios 12.1.2; iPhone8,1", AppVersion: "1.3.1",
		Change: account.Change{Given: ptr("Ada"), Family: ptr("Lovelace"), Gender: ptr("F"), Born: ptr("1985-12-10"), Lang: ptr("de_at")}}, here)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Login(t.Context(), ada, "Correct Horse 1", here); errs.CodeOf(err) != "login_refused" {
		t.Errorf("login before the e-mail is proved: %v", err)
	}
	l := h.one(t)
	if l.to != ada || !strings.Contains(l.text, "bei Kennel ein Konto") || !strings.Contains(l.text, "https://kennel.example/account/verify?code="+l.code) {
		t.Fatalf("letter %+v", l)
	}
	for name, c := range map[string]struct {
		code, password logging.Secret
		want           string
	}{
		"made up":        {"AAAAAAAAAAAAAAAAAAAAAAAAAA", "Correct Horse 1", "code_refused"},
		"empty":          {"", "Correct Horse 1", "code_refused"},
		"wrong password": {logging.Secret(l.code), "hunter2hunter2", "wrong_password"},
	} {
		if _, err := h.o.Letters.Verify(t.Context(), c.code, c.password, here); errs.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if err := h.o.Letters.Reset(t.Context(), logging.Secret(l.code), "battery staple", here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("the code of one purpose for another: %v", err)
	}
	a, err := h.o.Letters.Verify(t.Context(), logging.Secret(" "+strings.ToLower(l.code)+"\n"), "Correct Horse 1", here) // as people type it
	if err != nil || a.ID != s.ID || a.Email != ada || a.Role != auth.Owner {
		t.Fatalf("%+v %v", a, err)
	}
	if _, err := h.o.Letters.Verify(t.Context(), logging.Secret(l.code), "Correct Horse 1", here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("a code twice: %v", err)
	}
	if _, err := h.Login(t.Context(), ada, "Correct Horse 1", here); err != nil {
		t.Error(err)
	}
	r, err := h.Record(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 23 || got["player_id"] != got["drive_guest_id"] || len(got["player_id"].(string)) != 36 {
		t.Errorf("%d fields: %v", len(got), got)
	}
	for k, want := range map[string]any{"user_id": string(a.ID), "created_by_app_name": "chewie", "created_by_app_platform": "ios 12.1.2; iPhone8,1", "created_by_app_version": "1.3.1",
		"deactivation_reason": nil, "dob": "1985-12-10", "email": ada, "email_failure_code": nil, "email_is_blocked": false, "email_is_verified": true, "email_lang": "de-AT",
		"family_name": "Lovelace", "gender": "F", "given_name": "Ada", "is_email_account": true, "no_autodelete": false, "password_is_complex": true, "purge_reason": nil,
		"status": "active", "username": ada} {
		if v, ok := got[k]; !ok || v != want {
			t.Errorf("%s is %v, want %v", k, v, want)
		}
	}
	if at, err := time.Parse(time.RFC3339, got["time_created"].(string)); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("time_created %v", got["time_created"])
	}
	// One that an operator made has a whole record too.
	b2 := h.create(t, "op@example.com", auth.Owner)
	if r, err := h.Record(t.Context(), b2.ID); err != nil || !r.EmailIsVerified || r.Status != "active" || r.PlayerID == "" || !r.IsEmailAccount || r.GivenName != nil {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := h.Change(t.Context(), b2.ID, account.Change{Given: ptr("Bob")}); err != nil || *r.GivenName != "Bob" || !r.IsEmailAccount || r.Status != "active" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestFieldsAreChecked(t *testing.T) {
	h := newHome(t)
	a := h.signUp(t, ada)
	for name, c := range map[string]account.Change{
		"given_name": {Given: ptr("a\x00b")}, "family_name": {Family: ptr(strings.Repeat("ä", 101))}, "gender": {Gender: ptr("a\nb")}, "dob": {Born: ptr("10.12.1985")},
		"email_lang": {Lang: ptr("klingon!")}, "player_id": {PlayerID: ptr(strings.Repeat("1", 41))}, "dob of tomorrow": {Born: ptr("2999-01-01")},
	} {
		if _, err := h.Change(t.Context(), a.ID, c); errs.CodeOf(err) != "invalid_fields" || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Change(t.Context(), "nobody", account.Change{Given: ptr("x")}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("nobody's record: %v", err)
	}
}

// A stranger signs up with Ada's e-mail and waits for her click. Her link asks for the password, which she does not know; and when she signs up
// herself, their session ends with their sign-up.
func TestNobodyProvesForSomebodyElse(t *testing.T) {
	h := newHome(t)
	thief, err := h.o.Apps.SignUp(t.Context(), account.NewOwner{Email: ada, Password: "thief's password"}, "198.51.100.1")
	if err != nil || thief.Record.EmailIsVerified {
		t.Fatalf("%+v %v", thief.Record, err)
	}
	first := h.one(t)
	mine, err := h.o.Apps.SignUp(t.Context(), account.NewOwner{Email: ada, Password: password}, here)
	if err != nil {
		t.Fatal(err)
	}
	second := h.one(t)
	if _, err := h.o.Letters.Verify(t.Context(), logging.Secret(first.code), password, here); errs.CodeOf(err) != "wrong_password" {
		t.Errorf("the thief's link with Ada's password: %v", err)
	}
	for _, s := range []account.AppSession{thief, mine} {
		if _, err := h.o.Apps.Burn(t.Context(), s.Token, "vic:1"); errs.CodeOf(err) != "session_unverified" {
			t.Errorf("a robot for an e-mail that nobody proved: %v", err)
		}
	}
	a, err := h.o.Letters.Verify(t.Context(), logging.Secret(second.code), password, here)
	if err != nil || a.ID == thief.Session.Account {
		t.Fatalf("%+v %v", a, err)
	}
	if _, err := h.o.Apps.Session(t.Context(), thief.Token); errs.CodeOf(err) != "session_over" {
		t.Errorf("the thief's session: %v", err)
	}
	if _, err := h.o.Letters.Verify(t.Context(), logging.Secret(first.code), "thief's password", here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("the thief's link after: %v", err)
	}
	if s, err := h.o.Apps.Session(t.Context(), mine.Token); err != nil || !s.Record.EmailIsVerified || s.Session.Pending {
		t.Errorf("Ada's session: %+v %v", s.Record, err)
	}
	if id, err := h.o.Apps.Burn(t.Context(), mine.Token, "vic:1"); err != nil || id != a.ID {
		t.Errorf("%q %v", id, err)
	}
}

func TestReset(t *testing.T) {
	h := newHome(t)
	a := h.signUp(t, ada)
	login, err := h.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	app, err := h.o.Apps.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.o.Letters.AskEmail(t.Context(), a.ID, "thief@example.com", password, here); err != nil {
		t.Fatal(err)
	}
	change := h.one(t).code
	if err := h.Passkeys.Add(t.Context(), account.Passkey{Account: a.ID, ID: []byte("key"), Name: "thief's phone", Credential: []byte("{}")}, here); err != nil {
		t.Fatal(err)
	}
	if l := h.one(t); l.to != ada || !strings.Contains(l.text, "thief's phone") {
		t.Errorf("a new passkey (issue 28.10): %+v", l)
	}
	for range 6 { // locked out
		_, _ = h.Login(t.Context(), ada, "wrong password", "198.51.100.1")
	}
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil {
		t.Fatal(err)
	}
	stale := h.one(t).code
	h.sleep(2 * time.Hour)
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil {
		t.Fatal(err)
	}
	fresh := h.one(t).code
	for name, code := range map[string]string{"replaced": stale, "none": "", "hostile": "'; DROP TABLE account_account --"} {
		if err := h.o.Letters.Reset(t.Context(), logging.Secret(code), "battery staple", here); errs.CodeOf(err) != "code_refused" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.o.Letters.Reset(t.Context(), logging.Secret(fresh), "short", here); errs.CodeOf(err) != "password_short" {
		t.Errorf("short password: %v", err)
	}
	if err := h.o.Letters.Reset(t.Context(), logging.Secret(fresh), "battery staple", here); err != nil {
		t.Fatal(err)
	}
	if l := h.one(t); l.to != ada || !strings.HasPrefix(l.subject, "Your password") {
		t.Errorf("she is told %+v", l)
	}
	if _, keys, err := h.Passkeys.Person(t.Context(), a.ID); err != nil || len(keys) > 0 {
		t.Errorf("passkeys after the reset (issue 28.10): %v, %v", keys, err)
	}
	if err := h.o.Letters.Reset(t.Context(), logging.Secret(fresh), "battery staple 2", here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("a code twice: %v", err)
	}
	if err := h.o.Letters.ChangeEmail(t.Context(), logging.Secret(change), here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("a change of e-mail begun before the reset: %v", err)
	}
	if _, _, err := h.Authenticate(t.Context(), login.Token, here); errs.CodeOf(err) != "session_over" {
		t.Errorf("old session: %v", err)
	}
	if _, err := h.o.Apps.Burn(t.Context(), app.Token, "vic:1"); errs.CodeOf(err) != "session_unknown" {
		t.Errorf("old app's session: %v", err)
	}
	if _, err := h.Login(t.Context(), ada, "battery staple", here); err != nil {
		t.Errorf("new password, lock forgiven: %v", err)
	}
	// A code is over after its hour.
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil {
		t.Fatal(err)
	}
	late := h.one(t).code
	h.sleep(time.Hour)
	if err := h.o.Letters.Reset(t.Context(), logging.Secret(late), "battery staple", here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("after an hour: %v", err)
	}
}

// Single use for robots, and every way to be refused has its code for the doctor and one text for the peer (VEC-AUTH-05).
func TestUserSessions(t *testing.T) {
	h := newHome(t)
	a := h.signUp(t, ada)
	issue := func() logging.Secret {
		t.Helper()
		s, _, err := h.o.Apps.Issue(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	used, expired, ended, disabled := issue(), issue(), issue(), issue()
	if id, err := h.o.Apps.Burn(t.Context(), used, "vic:00e20100"); err != nil || id != a.ID {
		t.Fatal(id, err)
	}
	if s, err := h.o.Apps.Session(t.Context(), used); err != nil || s.Record.Email != ada || !s.Session.Burned { // the app may still use it
		t.Errorf("%+v %v", s, err)
	}
	open, err := h.o.Apps.Session(t.Context(), ended)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.o.Apps.Logout(t.Context(), open, ended, false, here); err != nil {
		t.Fatal(err)
	}
	web, err := h.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	public := ""
	check := func(name string, token logging.Secret, want string) {
		t.Helper()
		_, err := h.o.Apps.Burn(t.Context(), token, "vic:00e20101")
		if errs.KindOf(err) != errs.Unauthenticated || errs.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if public == "" {
			public = errs.Public(err)
		}
		if errs.Public(err) != public {
			t.Errorf("%s: the peer hears %q, others %q", name, errs.Public(err), public)
		}
	}
	check("used", used, "session_used")
	check("ended", ended, "session_unknown")
	check("a browser's", web.Token, "session_unknown")
	check("empty", "", "session_unknown")
	check("long", logging.Secret("kus_"+strings.Repeat("x", 100_000)), "session_unknown")
	check("zero byte", "kus_\x00", "session_unknown")
	next, err := h.o.Apps.Renew(t.Context(), used, here)
	if err != nil {
		t.Fatal(err)
	}
	check("renewed", used, "session_unknown")
	if id, err := h.o.Apps.Burn(t.Context(), next.Token, "vic:00e20101"); err != nil || id != a.ID {
		t.Errorf("renewed: %v", err)
	}
	h.sleep(account.DefaultAppTTL)
	check("expired", expired, "session_expired")
	if _, err := h.o.Apps.Session(t.Context(), expired); errs.CodeOf(err) != "session_over" {
		t.Errorf("expired, for the app: %v", err)
	}
	_ = disabled
	last := issue()
	if err := h.SetDisabled(t.Context(), a.ID, true); err != nil {
		t.Fatal(err)
	}
	check("disabled", last, "session_unknown")
	if _, _, err := h.o.Apps.Issue(t.Context(), "00000000-0000-4000-8000-000000000000"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("for nobody: %v", err)
	}
}

func TestChangedPasswordIsTold(t *testing.T) {
	h := newHome(t)
	a := h.signUp(t, ada)
	app, _, err := h.o.Apps.Issue(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.ChangePassword(t.Context(), a.ID, password, "Battery Staple 1", "", here); err != nil {
		t.Fatal(err)
	}
	if l := h.one(t); l.to != ada || !strings.HasPrefix(l.subject, "Your password") {
		t.Errorf("%+v", l)
	}
	if _, err := h.o.Apps.Burn(t.Context(), app, "vic:1"); errs.CodeOf(err) != "session_unknown" {
		t.Errorf("a session from before: %v", err)
	}
	if r, err := h.Record(t.Context(), a.ID); err != nil || !r.PasswordIsComplex {
		t.Errorf("%+v %v", r, err)
	}
}

func TestBounceIsNoted(t *testing.T) {
	h := newHome(t)
	a := h.signUp(t, ada)
	for _, to := range []string{ada, "nobody@example.com"} {
		if err := h.Bounced(t.Context(), mail.Mail{To: to}, "smtp 550"); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := h.Record(t.Context(), a.ID); err != nil || r.EmailFailureCode == nil || *r.EmailFailureCode != "smtp 550" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestOwnersForget(t *testing.T) {
	h := newHome(t)
	if _, err := h.o.Apps.SignUp(t.Context(), account.NewOwner{Email: ada, Password: password}, here); err != nil {
		t.Fatal(err)
	}
	code := h.one(t).code
	h.sleep(account.DefaultSignupTTL)
	if _, err := h.o.Letters.Verify(t.Context(), logging.Secret(code), password, here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("after two days: %v", err)
	}
	if err := h.o.Privacy.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := h.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM account_signup) + (SELECT count(*) FROM account_ticket) + (SELECT count(*) FROM account_user_session)`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestOwnersConfig(t *testing.T) {
	h := newHome(t)
	good := ownersConfig{account.LettersConfig{Store: h.store, Mail: mail.Queue{}, ByAddr: ratelimit.NewByAddr(time.Hour, 1), PublicURL: "https://kennel.example"}, account.PrivacyConfig{Store: h.store}}
	for name, change := range map[string]func(*ownersConfig){
		"no store": func(c *ownersConfig) { c.LettersConfig.Store = nil }, "no URL": func(c *ownersConfig) { c.PublicURL = "" }, "a path": func(c *ownersConfig) { c.PublicURL = "https://a/b" },
		"a script": func(c *ownersConfig) { c.PublicURL = "javascript:alert(1)" }, "no domain": func(c *ownersConfig) { c.Personal = []account.Holder{{Name: "x"}} },
		"no place for deletions": func(c *ownersConfig) { c.PrivacyConfig.Store = nil },
		"own name":               func(c *ownersConfig) { c.Personal = []account.Holder{{Name: "account", Personal: h.mail}} },
		"twice": func(c *ownersConfig) {
			c.Personal = []account.Holder{{Name: "x", Personal: h.mail}, {Name: "x", Personal: h.mail}}
		},
		"a way out": func(c *ownersConfig) { c.Personal = []account.Holder{{Name: "../x", Personal: h.mail}} },
	} {
		c := good
		change(&c)
		_, letters := account.NewLetters(h.People, c.LettersConfig)
		_, privacy := account.NewPrivacy(h.People, h.Passkeys, c.PrivacyConfig)
		if letters == nil && privacy == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzParseLang(f *testing.F) {
	for _, s := range []string{"en-US", "de_at", "zh-Hant-TW", "es-419", "", "x", "en--US", "ſs-AB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := account.ParseLang(s)
		if err != nil {
			return
		}
		again, err := account.ParseLang(got)
		if err != nil || again != got || len(got) > 11 {
			t.Fatalf("%q became %q, then %q, %v", s, got, again, err)
		}
	})
}

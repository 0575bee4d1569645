package accountpg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime/quotedprintable"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// Whatever an e-mail is, the answers are the same; the letters tell the truth.
func TestNobodyLearnsWhoIsHere(t *testing.T) {
	h := newHome(t)
	h.signUp(t, ada)
	h.create(t, "op@example.com", auth.Admin)
	shape := func(s account.Signup) account.Signup {
		s.ID, s.Profile.PlayerID, s.Email = "", "", ""
		return s
	}
	taken, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: ada, Password: password}, here)
	if err != nil {
		t.Fatal(err)
	}
	free, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: "new@example.com", Password: password}, here)
	if err != nil || shape(taken) != shape(free) {
		t.Errorf("taken %+v, free %+v, %v", taken, free, err)
	}
	for _, f := range []func(context.Context, string, string) error{h.o.Letters.AskAgain, func(ctx context.Context, email, addr string) error {
		return h.o.Letters.AskReset(ctx, email, "en", addr)
	}} {
		for _, email := range []string{ada, "op@example.com", "nobody@example.com"} {
			if err := f(t.Context(), email, here); err != nil {
				t.Errorf("%s: %v", email, err)
			}
		}
	}
	got := map[string][]string{}
	for _, l := range h.letters(t) {
		got[l.to] = append(got[l.to], l.subject)
		if (l.code != "") != (strings.HasPrefix(l.subject, "Confirm") || strings.HasPrefix(l.subject, "A new password")) {
			t.Errorf("letter %q: code %q", l.subject, l.code)
		}
	}
	const already = "You already have an account at Kennel"
	want := map[string][]string{
		ada:                  {already, already, "A new password for Kennel"},
		"op@example.com":     {already, "Your password at Kennel cannot be changed by e-mail"},
		"new@example.com":    {"Confirm your e-mail address for Kennel"},
		"nobody@example.com": {"No sign-up at Kennel for this address", "No account at Kennel for this address"},
	}
	for to := range want {
		slices.Sort(want[to])
		slices.Sort(got[to])
		if !slices.Equal(got[to], want[to]) {
			t.Errorf("%s got %q, want %q", to, got[to], want[to])
		}
	}
}

// quick is a hasher that costs nothing and counts calls, so that the rest of an answer's time can be compared.
type quick struct{ hashes atomic.Int64 }

func (q *quick) Hash(_ context.Context, password string, _ account.Share) (string, error) {
	q.hashes.Add(1)
	return "quick " + password, nil
}

func (q *quick) Verify(_ context.Context, hash, password string, _ account.Share) (bool, error) {
	q.hashes.Add(1)
	return hash == "quick "+password, nil
}

// The time an answer takes says nothing either: known and unknown in turn cost as many hashes, and but for them as much time.
func TestTimeDoesNotTell(t *testing.T) {
	q := new(quick)
	h := newHome(t)
	svc := accounttest.New(t, h.pool, func(c *account.SignInConfig) {
		c.Hasher, c.ByAddr, c.Now = q, ratelimit.NewByAddr(time.Hour, 100_000), func() time.Time { return *h.now.Load() }
	})
	orders, err := jobs.NewOrders(h.pool)
	if err != nil {
		t.Fatal(err)
	}
	o := svc.WithLetters(t, account.LettersConfig{Mail: mail.Queue{Outbox: mailpg.New(h.pool, orders)}, ByAddr: ratelimit.NewByAddr(time.Hour, 100_000), PublicURL: "https://kennel.example"}, account.PrivacyConfig{})
	const n = 60
	for i := range n {
		if _, _, err := svc.CreateAccount(t.Context(), fmt.Sprintf("known%d@example.com", i), auth.Owner, password); err != nil {
			t.Fatal(err)
		}
	}
	median := func(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }
	for name, f := range map[string]func(email string) error{
		"sign-up": func(email string) error {
			_, err := o.Letters.SignUp(t.Context(), account.NewOwner{Email: email, Password: password}, here)
			return err
		},
		"reset": func(email string) error { return o.Letters.AskReset(t.Context(), email, "", here) },
		"again": func(email string) error { return o.Letters.AskAgain(t.Context(), email, here) },
		"login": func(email string) error {
			if _, err := svc.Login(t.Context(), email, "wrong password", here); errs.CodeOf(err) != "login_refused" {
				return fmt.Errorf("want a refusal, got %w", err)
			}
			return nil
		},
	} {
		var apart, bound time.Duration
		for try := range 5 { // a machine that is busy with other things may blur one comparison
			var took, difference []time.Duration
			var hashes [2]int64
			for i := range n {
				pair := [2]time.Duration{}
				for k, email := range []string{fmt.Sprintf("known%d@example.com", i), fmt.Sprintf("%s%d-%d@example.com", name, try, i)} {
					before, started := q.hashes.Load(), time.Now()
					if err := f(email); err != nil {
						t.Fatal(name, err)
					}
					pair[k] = time.Since(started)
					hashes[k] += q.hashes.Load() - before
				}
				took, difference = append(took, pair[0]), append(difference, pair[0]-pair[1])
			}
			h.sleep(25 * time.Hour) // every pause is over
			if hashes[0] != hashes[1] {
				t.Fatalf("%s: %d passwords hashed for known e-mails, %d for unknown ones", name, hashes[0], hashes[1])
			}
			// A fifth of the work, or half a millisecond: the spread of the database. A hash is 30 ms, a letter composed at once some milliseconds.
			if apart, bound = median(difference).Abs(), max(median(took)/5, 500*time.Microsecond); apart <= bound {
				break
			}
		}
		if apart > bound {
			t.Errorf("%s: known and unknown e-mails are %v apart, want at most %v", name, apart, bound)
		}
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

// One code used by many at the same moment works once.
func TestACodeWorksOnce(t *testing.T) {
	h := newHome(t)
	h.signUp(t, ada)
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil {
		t.Fatal(err)
	}
	code := logging.Secret(h.one(t).code)
	app, err := h.o.Apps.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	var burned, reset atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := h.o.Apps.Burn(t.Context(), app.Token, "vic:1"); err == nil {
				burned.Add(1)
			} else if c := errs.CodeOf(err); c != "session_used" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for range 10 {
		wg.Go(func() {
			if err := h.o.Letters.Reset(t.Context(), code, "battery staple", here); err == nil {
				reset.Add(1)
			} else if errs.CodeOf(err) != "code_refused" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if burned.Load() != 1 || reset.Load() != 1 {
		t.Errorf("burned %d times, reset %d times", burned.Load(), reset.Load())
	}
}

func TestChangeEmail(t *testing.T) {
	h := newHome(t)
	a := h.signUp(t, ada)
	h.signUp(t, "bob@example.com")
	if err := h.o.Letters.AskEmail(t.Context(), a.ID, "new@example.com", "wrong password", here); errs.CodeOf(err) != "wrong_password" {
		t.Errorf("without the password: %v", err)
	}
	if err := h.o.Letters.AskEmail(t.Context(), a.ID, ada, password, here); errs.KindOf(err) != errs.Invalid {
		t.Errorf("the same: %v", err)
	}
	// Taken or not, the answer is the same.
	for _, email := range []string{"bob@example.com", "New@example.com"} {
		if err := h.o.Letters.AskEmail(t.Context(), a.ID, email, password, here); err != nil {
			t.Errorf("%s: %v", email, err)
		}
	}
	var code string
	for _, l := range h.letters(t) {
		switch l.to {
		case "bob@example.com":
			if l.code != "" || !strings.Contains(l.subject, "already") || strings.Contains(l.text, ada) {
				t.Errorf("bob: %+v", l)
			}
		case "new@example.com":
			code = l.code
		}
	}
	if err := h.o.Letters.ChangeEmail(t.Context(), logging.Secret(code), here); err != nil {
		t.Fatal(err)
	}
	if l := h.one(t); l.to != ada || !strings.Contains(l.text, "new@example.com") {
		t.Errorf("the old address is told: %+v", l)
	}
	if _, err := h.Login(t.Context(), "new@example.com", password, here); err != nil {
		t.Error(err)
	}
	if _, err := h.Login(t.Context(), ada, password, here); errs.CodeOf(err) != "login_refused" {
		t.Error(err)
	}
	if err := h.o.Letters.ChangeEmail(t.Context(), logging.Secret(code), here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("twice: %v", err)
	}
	// Another person gets an account for it between letter and click.
	if err := h.o.Letters.AskEmail(t.Context(), a.ID, "third@example.com", password, here); err != nil {
		t.Fatal(err)
	}
	code = h.one(t).code
	h.create(t, "third@example.com", auth.Owner)
	if err := h.o.Letters.ChangeEmail(t.Context(), logging.Secret(code), here); errs.CodeOf(err) != "email_taken" {
		t.Errorf("taken meanwhile: %v", err)
	}
}

// Letters are paced by the address they go to, for all askers together, and by the asker.
func TestLettersArePaced(t *testing.T) {
	h := newHome(t, func(c *ownersConfig) { c.ByAddr = ratelimit.NewByAddr(time.Hour, 200) })
	h.signUp(t, ada)
	for _, email := range []string{ada, "nobody@example.com"} {
		sent := 0
		for i := range 100 {
			switch err := h.o.Letters.AskReset(t.Context(), email, "", fmt.Sprintf("198.51.100.%d", i)); errs.KindOf(err) {
			case errs.Exhausted:
				if errs.RetryOf(err) <= 0 {
					t.Fatal("no pause named")
				}
			default:
				if err != nil {
					t.Fatal(err)
				}
				sent++
			}
			h.sleep(time.Second)
		}
		if sent != 4 { // three at once, one after a minute
			t.Errorf("%s: %d letters in 100 s, want 4", email, sent)
		}
	}
	refused := 0
	for i := range 300 {
		if err := h.o.Letters.AskReset(t.Context(), fmt.Sprintf("p%d@example.com", i), "", "203.0.113.1"); errs.KindOf(err) == errs.Exhausted {
			refused++
		}
	}
	if refused != 100 {
		t.Errorf("%d of 300 from one address refused, want 100", refused)
	}
	var many atomic.Int64
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if h.o.Letters.AskReset(t.Context(), "flood@example.com", "", here) == nil {
				many.Add(1)
			}
		})
	}
	wg.Wait()
	if many.Load() > 6 {
		t.Errorf("%d letters at once", many.Load())
	}
}

func TestSessionsOfAnOwner(t *testing.T) {
	h := newHome(t)
	a, b := h.signUp(t, ada), h.signUp(t, "bob@example.com")
	var logins []account.Login
	for range 3 {
		l, err := h.Login(t.Context(), ada, password, here)
		if err != nil {
			t.Fatal(err)
		}
		logins = append(logins, l)
		h.sleep(time.Second)
	}
	app, until, err := h.o.Apps.Issue(t.Context(), a.ID)
	if err != nil || until.Sub(*h.now.Load()) != account.DefaultAppTTL || strings.Contains(fmt.Sprintf("%v%+v%#v", app, app, app), app.Reveal()) {
		t.Fatalf("%v %v", until, err)
	}
	if _, err := h.o.Apps.Burn(t.Context(), app, "vic:00e20100"); err != nil {
		t.Fatal(err)
	}
	list, mine, err := h.Sessions(t.Context(), a.ID, logins[2].Token)
	if err != nil || len(list) != 4 || !list[0].App || list[0].Used != "vic:00e20100" || list[1].ID != mine || list[1].Addr != here {
		t.Fatalf("%+v %q %v", list, mine, err)
	}
	if strings.Contains(logins[2].Token.Reveal(), mine) {
		t.Error("a session's name is part of its token")
	}
	if err := h.EndSession(t.Context(), b.ID, list[3].ID, here); errs.KindOf(err) != errs.NotFound {
		t.Errorf("somebody else's session: %v", err)
	}
	if err := h.EndSession(t.Context(), a.ID, list[3].ID, here); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Authenticate(t.Context(), logins[0].Token, here); errs.CodeOf(err) != "session_over" {
		t.Errorf("ended: %v", err)
	}
	if n, err := h.EndOtherSessions(t.Context(), a.ID, logins[2].Token, here); err != nil || n != 2 {
		t.Errorf("ended %d, %v", n, err)
	}
	if _, _, err := h.Authenticate(t.Context(), logins[2].Token, here); err != nil {
		t.Errorf("the one that asked: %v", err)
	}
	if _, err := h.o.Apps.Session(t.Context(), app); errs.CodeOf(err) != "session_over" {
		t.Errorf("the app's: %v", err)
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

// shelf is a domain with a table of its own, that can be made to fail.
type shelf struct {
	h     *home
	calls atomic.Int64
	fail  atomic.Bool
}

func (s *shelf) Export(ctx context.Context, id string) (any, error) {
	var n int
	err := s.h.pool.QueryRow(ctx, `SELECT count(*) FROM shelf WHERE account = $1`, id).Scan(&n)
	return map[string]int{"books": n}, err
}

func (s *shelf) Erase(ctx context.Context, id string) error {
	s.calls.Add(1)
	if _, err := s.h.pool.Exec(ctx, `DELETE FROM shelf WHERE account = $1`, id); err != nil {
		return err
	}
	if s.fail.Load() {
		return errors.New("the shelf collapsed")
	}
	return nil
}

// Files implements account.Filing.
func (s *shelf) Files(ctx context.Context, id string, add func(name string, write func(io.Writer) error) error) error {
	return add("diary.txt", func(w io.Writer) error {
		var title string
		err := s.h.pool.QueryRow(ctx, `SELECT title FROM shelf WHERE account = $1`, id).Scan(&title)
		_, _ = io.WriteString(w, title)
		return err
	})
}

// EraseCounting implements account.Counting.
func (s *shelf) EraseCounting(ctx context.Context, id string, note func(ctx context.Context, kind string, n int) error) error {
	var n int
	if err := s.h.pool.QueryRow(ctx, `SELECT count(*) FROM shelf WHERE account = $1`, id).Scan(&n); err != nil {
		return err
	}
	return errors.Join(s.Erase(ctx, id), note(ctx, "books", n))
}

// everywhere returns where a text is in the database: every column of every table.
func (h *home) everywhere(t *testing.T, text string) (found []string) {
	t.Helper()
	rows, err := h.pool.Query(t.Context(), `SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 20 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		var n int
		if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` x WHERE position(lower($1) IN lower(x::text)) > 0`, text).Scan(&n); err != nil {
			t.Fatal(table, err)
		}
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}

// A person leaves: nothing is left that names her, in tables or letters; the audit log has a random id in place of hers. A run that was cut off continues where it
// ended, also after her account is gone.
func TestDeletionReallyDeletes(t *testing.T) {
	var books *shelf
	h := newHome(t, func(c *ownersConfig) {
		books = &shelf{}
		c.Personal = append([]account.Holder{{Name: "shelf", Personal: books}}, c.Personal...)
	})
	books.h = h
	if _, err := h.pool.Exec(t.Context(), `CREATE TABLE shelf (account text, title text)`); err != nil {
		t.Fatal(err)
	}
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil { // a letter from before there is an account
		t.Fatal(err)
	}
	h.one(t)
	if _, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: ada, Password: password, Change: account.Change{Given: ptr("Augusta"), Family: ptr("Lovelace")}}, here); err != nil {
		t.Fatal(err)
	}
	a, err := h.o.Letters.Verify(t.Context(), logging.Secret(h.one(t).code), password, here)
	if err != nil {
		t.Fatal(err)
	}
	bob := h.signUp(t, "bob@example.com")
	for _, id := range []account.ID{a.ID, bob.ID} {
		if _, err := h.pool.Exec(t.Context(), `INSERT INTO shelf VALUES ($1, 'a diary')`, string(id)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := h.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	app, _, err := h.o.Apps.Issue(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = h.Login(t.Context(), ada, "wrong password", here)
	if _, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: ada, Password: password}, here); err != nil { // another person tries again
		t.Fatal(err)
	}
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	if err := h.o.Privacy.Export(t.Context(), a.ID, here, func(name string, write func(io.Writer) error) error {
		var b strings.Builder
		err := write(&b)
		files[name] = b.String()
		return err
	}); err != nil || len(files) != 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for name, want := range map[string]string{"account.json": `"given_name": "Augusta"`, "shelf.json": `"books": 1`, "shelf/diary.txt": "a diary", "mail.json": `"to": "` + ada + `"`} {
		if !strings.Contains(files[name], want) || strings.Contains(files[name], "bob@") || strings.Contains(files[name], "argon2") {
			t.Errorf("%s: want %s, and nothing of others:\n%s", name, want, files[name])
		}
	}
	if err := h.o.Privacy.Delete(t.Context(), a.ID, "wrong password", here); errs.CodeOf(err) != "wrong_password" {
		t.Errorf("without the password: %v", err)
	}
	op := h.create(t, "op@example.com", auth.Admin)
	if err := h.o.Privacy.Delete(t.Context(), op.ID, password, here); errs.KindOf(err) != errs.Denied {
		t.Errorf("an operator: %v", err)
	}
	if len(h.everywhere(t, ada)) == 0 || len(h.everywhere(t, "lovelace")) == 0 {
		t.Fatal("the search finds nothing even now")
	}
	if err := h.o.Privacy.Delete(t.Context(), a.ID, password, here); err != nil {
		t.Fatal(err)
	}
	// From this moment on no session of hers works.
	if _, _, err := h.Authenticate(t.Context(), l.Token, here); errs.CodeOf(err) != "session_over" {
		t.Errorf("session: %v", err)
	}
	if _, err := h.o.Apps.Burn(t.Context(), app, "vic:1"); errs.CodeOf(err) != "session_unknown" {
		t.Errorf("app: %v", err)
	}
	if _, err := h.Login(t.Context(), ada, password, here); errs.CodeOf(err) != "login_refused" {
		t.Errorf("login: %v", err)
	}
	books.fail.Store(true)
	if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err == nil || !strings.Contains(err.Error(), "erase shelf") || strings.Contains(err.Error(), ada) {
		t.Errorf("a domain that fails: %v", err)
	}
	books.fail.Store(false)
	// Cut off after the shelf: the letters' part ends with the context of a process that stops.
	ctx, cancel := context.WithCancel(t.Context())
	h.o.Privacy.Erase(ctx, string(bob.ID)) // not hers, and no deletion: nothing happens
	cancel()
	if err := h.o.Privacy.Erase(ctx, string(a.ID)); err == nil {
		t.Error("erased without a database")
	}
	calls := books.calls.Load()
	var wg sync.WaitGroup
	for range 3 { // three processes resume at once
		wg.Go(func() {
			if err := h.o.Privacy.Resume(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if books.calls.Load() == calls {
		t.Error("the shelf was never finished")
	}
	calls = books.calls.Load()
	if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err != nil || books.calls.Load() != calls { // done is done
		t.Errorf("once more: %v", err)
	}
	for _, text := range []string{ada, "Augusta", "Lovelace"} {
		if found := h.everywhere(t, text); len(found) > 0 {
			t.Errorf("%q is still in %v", text, found)
		}
	}
	if found := h.everywhere(t, string(a.ID)); len(found) > 0 {
		t.Errorf("her id is in %v", found)
	}
	var by, erased string
	var finished bool
	if err := h.pool.QueryRow(t.Context(), `SELECT asked_by, finished_at >= requested_at, erased::text FROM account_erasure`).Scan(&by, &finished, &erased); err != nil ||
		by != "owner" || !finished || !strings.Contains(erased, `"books": 1`) || !strings.Contains(erased, `"mail": 0`) {
		t.Errorf("record: %q %v %s %v", by, finished, erased, err)
	}
	if lines, err := h.Audit.Lines(t.Context(), 0, 1); err != nil || lines[0].Action != "account.deleted" || !strings.Contains(lines[0].Detail, "asked for by owner") ||
		!strings.Contains(lines[0].Detail, "books 1") || lines[0].OnName() != "deleted account" {
		t.Errorf("%+v %v", lines, err)
	}
	err = fs.WalkDir(os.DirFS(h.spool), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(h.spool, path))
		if strings.Contains(string(b), "ada@") || strings.Contains(path, string(a.ID)) {
			t.Errorf("letter %s:\n%s", path, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var attempts int
	if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM account_attempt`).Scan(&attempts); err != nil || attempts > 2 { // bob's pace, op's
		t.Errorf("%d counted attempts, %v", attempts, err)
	}
	if _, err := h.Login(t.Context(), "bob@example.com", password, here); err != nil || len(h.everywhere(t, "diary")) != 1 {
		t.Errorf("bob lost something: %v", err)
	}
	// The e-mail is free again.
	h.sleep(25 * time.Hour)
	h.letters(t)
	h.signUp(t, ada)
}

// A deletion survives the kill of its process between any two domains: River starts a stuck task again, and domains that are done are not asked again.
func TestDeletionGoesOn(t *testing.T) {
	var first, second *shelf
	h := newHome(t, func(c *ownersConfig) {
		first, second = &shelf{}, &shelf{}
		c.Personal = []account.Holder{{Name: "first", Personal: first}, {Name: "second", Personal: second}}
	})
	first.h, second.h = h, h
	if _, err := h.pool.Exec(t.Context(), `CREATE TABLE shelf (account text, title text)`); err != nil {
		t.Fatal(err)
	}
	a := h.signUp(t, ada)
	if err := h.o.Privacy.Delete(t.Context(), a.ID, password, here); err != nil {
		t.Fatal(err)
	}
	second.fail.Store(true)
	for range 3 {
		if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err == nil {
			t.Fatal("finished")
		}
	}
	second.fail.Store(false)
	if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err != nil {
		t.Fatal(err)
	}
	if first.calls.Load() != 1 || second.calls.Load() != 4 {
		t.Errorf("first was asked %d times, second %d; want 1 and 4", first.calls.Load(), second.calls.Load())
	}
}

// Through River: what Delete orders is done by whichever process works on tasks, and a domain that fails at first is asked again.
func TestDeletionByTask(t *testing.T) {
	var books *shelf
	var orders *jobs.Orders
	h := newHome(t, func(c *ownersConfig) {
		books = &shelf{}
		c.Personal = append([]account.Holder{{Name: "shelf", Personal: books}}, c.Personal...)
		c.Order = func(ctx context.Context, id string) error {
			d, err := books.h.store.Deletion(ctx, id)
			return errors.Join(err, orders.Add(ctx, account.TaskDelete, d.Ref))
		}
	})
	books.h = h
	var err error
	if orders, err = jobs.NewOrders(h.pool); err != nil {
		t.Fatal(err)
	}
	if _, err := h.pool.Exec(t.Context(), `CREATE TABLE shelf (account text, title text)`); err != nil {
		t.Fatal(err)
	}
	a := h.signUp(t, ada)
	if err := h.o.Privacy.Delete(t.Context(), a.ID, password, here); err != nil {
		t.Fatal(err)
	}
	if err := h.o.Privacy.Resume(t.Context()); err != nil { // ordered twice, done once
		t.Fatal(err)
	}
	books.fail.Store(true)
	done := make(chan struct{}, 8)
	r, err := jobs.New(h.pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	err = r.Handle(jobs.Task{Name: account.TaskDelete, Run: func(ctx context.Context, id string) error {
		err := h.o.Privacy.Erase(ctx, id)
		if err == nil {
			done <- struct{}{}
		}
		books.fail.Store(false)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Error("not deleted in 60 s")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if found := h.everywhere(t, ada); len(found) > 0 || books.calls.Load() != 2 {
		t.Errorf("still in %v, the shelf was asked %d times", found, books.calls.Load())
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

package accountpg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/certs/limit"
	"kennel/cloud/account"
	"kennel/cloud/account/accounttest"
	"kennel/cloud/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is the rules on Postgres, with a clock that the test moves.
type world struct {
	accounttest.Accounts
	pool *pgxpool.Pool
	now  *atomic.Pointer[time.Time]
}

func newWorld(t *testing.T, perAddr int) world {
	t.Helper()
	w := world{pool: pgtest.New(t), now: new(atomic.Pointer[time.Time])}
	start := time.Now().Truncate(time.Second)
	w.now.Store(&start)
	w.Accounts = w.process(t, w.pool, func(c *account.SignInConfig) { c.ByAddr = limit.NewByAddr(time.Hour, perAddr) })
	return w
}

// process is one more process on the same clock.
func (w world) process(t testing.TB, pool *pgxpool.Pool, change ...func(*account.SignInConfig)) accounttest.Accounts {
	now := func(c *account.SignInConfig) { c.Now = func() time.Time { return *w.now.Load() } }
	return accounttest.New(t, pool, append(change, now)...)
}

func (w world) sleep(d time.Duration) {
	t := w.now.Load().Add(d)
	w.now.Store(&t)
}

const (
	ada      = "ada@example.com"
	password = logging.Secret("correct horse")
	here     = "192.0.2.1"
)

func (w world) create(t *testing.T, email string, role auth.Role) account.Account {
	t.Helper()
	a, shown, err := w.CreateAccount(t.Context(), email, role, password)
	if err != nil || shown != "" {
		t.Fatal(shown.Reveal(), err)
	}
	return a
}

func TestLoginUntilLogout(t *testing.T) {
	w := newWorld(t, 1000)
	a := w.create(t, " Ada@Example.COM ", auth.Admin)
	if a.Email != ada || a.ID == "" || a.MustChange {
		t.Errorf("made %+v", a)
	}
	l, err := w.Login(t.Context(), "ADA@example.com", password, here)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", l, l, l), l.Token.Reveal()) {
		t.Error("the token prints itself")
	}
	w.sleep(2 * time.Minute)
	if _, _, err := w.Authenticate(t.Context(), l.Token, "192.0.2.2"); err != nil {
		t.Fatal(err)
	}
	got, s, err := w.Authenticate(t.Context(), l.Token, "192.0.2.2")
	if err != nil || got.ID != a.ID || got.Role != auth.Admin || s.Addr != "192.0.2.2" || !s.LastSeen.Equal(*w.now.Load()) {
		t.Errorf("%+v %+v %v", got, s, err)
	}
	for range 2 {
		if err := w.Logout(t.Context(), l.Token); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []logging.Secret{l.Token, "", "kst_", "kst_AAAAAAAAAAAAAAAAAAAAAAAAAA", logging.Secret("kst_" + strings.Repeat("x", 10_000)), "kst_\x00"} {
		if _, _, err := w.Authenticate(t.Context(), bad, here); errs.CodeOf(err) != "session_over" {
			t.Errorf("token after logout or made up: %v", err)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	w := newWorld(t, 1000)
	a := w.create(t, ada, auth.Viewer)
	open := func() logging.Secret {
		t.Helper()
		l, err := w.Login(t.Context(), ada, password, here)
		if err != nil {
			t.Fatal(err)
		}
		return l.Token
	}
	over := func(when string, tokens ...logging.Secret) {
		t.Helper()
		for _, tok := range tokens {
			if _, _, err := w.Authenticate(t.Context(), tok, here); errs.KindOf(err) != errs.Unauthenticated {
				t.Errorf("%s: session still good: %v", when, err)
			}
		}
	}
	mine, other := open(), open()
	if err := w.ChangePassword(t.Context(), a.ID, password, "battery staple", mine, here); err != nil {
		t.Fatal(err)
	}
	over("after a change of password elsewhere", other)
	if _, _, err := w.Authenticate(t.Context(), mine, here); err != nil {
		t.Errorf("the session that changed the password ended: %v", err)
	}
	if _, err := w.Login(t.Context(), ada, password, here); errs.CodeOf(err) != "login_refused" {
		t.Errorf("old password: %v", err)
	}
	if err := w.SetDisabled(t.Context(), a.ID, true); err != nil {
		t.Fatal(err)
	}
	over("after disabling", mine)
	if _, err := w.Login(t.Context(), ada, "battery staple", here); errs.CodeOf(err) != "login_refused" {
		t.Errorf("disabled account: %v", err)
	}
	if err := w.SetDisabled(t.Context(), a.ID, false); err != nil {
		t.Fatal(err)
	}
	l, err := w.IssueSession(t.Context(), a.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w.sleep(time.Hour)
	over("after an hour of one", l.Token)
	again, err := w.IssueSession(t.Context(), a.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Store.EndSessions(t.Context(), a.ID); err != nil || n != 2 { // the expired one is still stored
		t.Errorf("ended %d, %v", n, err)
	}
	over("after ending all", again.Token)
	if _, err := w.IssueSession(t.Context(), "not-an-id", time.Hour); errs.KindOf(err) != errs.NotFound {
		t.Errorf("session for no one: %v", err)
	}
}

func TestOneTimePassword(t *testing.T) {
	w := newWorld(t, 1000)
	a, shown, err := w.CreateAccount(t.Context(), ada, auth.Owner, "")
	if err != nil || len(shown.Reveal()) != 19 || !a.MustChange {
		t.Fatalf("%+v %q %v", a, shown.Reveal(), err)
	}
	l, err := w.Login(t.Context(), ada, shown, here)
	if err != nil || !l.Account.MustChange {
		t.Fatalf("%+v %v", l.Account, err)
	}
	if err := w.ChangePassword(t.Context(), a.ID, shown, password, l.Token, here); err != nil {
		t.Fatal(err)
	}
	if got, _, err := w.Authenticate(t.Context(), l.Token, here); err != nil || got.MustChange {
		t.Errorf("after the change: %+v %v", got, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	w := newWorld(t, 1000)
	a := w.create(t, ada, auth.Owner)
	for name, c := range map[string]struct {
		email    string
		role     auth.Role
		password logging.Secret
		kind     errs.Kind
	}{
		"taken":          {"ADA@example.com", auth.Owner, password, errs.Conflict},
		"no e-mail":      {"", auth.Owner, password, errs.Invalid},
		"a name with it": {"Ada <ada2@example.com>", auth.Owner, password, errs.Invalid},
		"long e-mail":    {strings.Repeat("a", 250) + "@example.com", auth.Owner, password, errs.Invalid},
		"role of things": {"b@example.com", "thing", password, errs.Invalid},
		"no role":        {"b@example.com", "", password, errs.Invalid},
		"short password": {"b@example.com", auth.Owner, "short", errs.Invalid},
		"long password":  {"b@example.com", auth.Owner, logging.Secret(strings.Repeat("x", 257)), errs.Invalid},
	} {
		if _, _, err := w.CreateAccount(t.Context(), c.email, c.role, c.password); errs.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	if err := w.ChangePassword(t.Context(), a.ID, "wrong", "battery staple", "", here); errs.CodeOf(err) != "wrong_password" {
		t.Errorf("wrong old password: %v", err)
	}
	if err := w.ChangePassword(t.Context(), a.ID, password, "short", "", here); errs.KindOf(err) != errs.Invalid {
		t.Errorf("short new password: %v", err)
	}
}

// Unknown e-mail, malformed e-mail, wrong password: the same answer for about the same work.
func TestLoginDoesNotTell(t *testing.T) {
	w := newWorld(t, 1000)
	w.create(t, ada, auth.Owner)
	var first *errs.Error
	for _, c := range []struct {
		email    string
		password logging.Secret
	}{
		{ada, "wrong password"}, {"bob@example.com", "wrong password"}, {"not an e-mail", "x"}, {"", ""}, {"a\x00b@example.com", "x"},
		{strings.Repeat("a", 10_000), "x"}, {ada, logging.Secret(strings.Repeat("x", 100_000))},
	} {
		_, err := w.Login(t.Context(), c.email, c.password, here)
		got, ok := errors.AsType[*errs.Error](err)
		if !ok || got.Kind != errs.Unauthenticated || first != nil && *got != *first {
			t.Errorf("%.40q: %v, want %v", c.email, err, first)
		}
		first = got
	}
}

// Guessing at one e-mail, known or not, from many addresses: five tries, then longer and longer pauses.
func TestBruteForceIsSlowed(t *testing.T) {
	w := newWorld(t, 1000)
	w.create(t, ada, auth.Admin)
	for _, email := range []string{ada, "bob@example.com"} {
		looked := 0
		for i := range 200 {
			_, err := w.Login(t.Context(), email, "wrong password", fmt.Sprintf("198.51.100.%d", i))
			switch errs.KindOf(err) {
			case errs.Unauthenticated:
				looked++
			case errs.Exhausted:
				if errs.RetryOf(err) <= 0 {
					t.Fatalf("no pause named: %v", err)
				}
			default:
				t.Fatal(err)
			}
			w.sleep(time.Second)
		}
		// 5 at once, then after 30, 60 and 120 s: within 200 s.
		if looked < 6 || looked > 8 {
			t.Errorf("%s: %d passwords were looked at in 200 s, want 6 to 8", email, looked)
		}
		if _, err := w.Login(t.Context(), email, password, here); errs.KindOf(err) != errs.Exhausted {
			t.Errorf("%s: right password while locked: %v", email, err)
		}
	}
	w.sleep(15 * time.Minute)
	if _, err := w.Login(t.Context(), ada, password, here); err != nil {
		t.Errorf("after the lock: %v", err)
	}
	if _, err := w.Login(t.Context(), ada, "wrong password", here); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("failures were not forgiven: %v", err)
	}
}

// Many guesses at the same moment gain little over one after the other.
func TestGuessesAtOnce(t *testing.T) {
	w := newWorld(t, 1000)
	w.create(t, ada, auth.Admin)
	var looked atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, err := w.Login(t.Context(), ada, "wrong password", here)
			if errs.KindOf(err) == errs.Unauthenticated {
				looked.Add(1)
			}
		})
	}
	wg.Wait()
	if n := looked.Load(); n > 2*5 {
		t.Errorf("%d passwords were looked at, want at most 10", n)
	}
}

func TestAddressIsSlowed(t *testing.T) {
	w := newWorld(t, 10)
	refused := 0
	for i := range 20 {
		_, err := w.Login(t.Context(), fmt.Sprintf("p%d@example.com", i), "x", here)
		if errs.KindOf(err) == errs.Exhausted {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d of 20 refused, want 10", refused)
	}
}

func TestAuditIsAppendOnly(t *testing.T) {
	w := newWorld(t, 1000)
	a := w.create(t, ada, auth.Admin)
	for i := range 5 {
		e := audit.Entry{Actor: string(a.ID), Role: a.Role, Addr: here, Action: "test", Object: fmt.Sprint("vic:", i), Detail: strings.Repeat("é", 3000) + "\xff\x00"}
		if err := w.Audit.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	page, err := w.Audit.Lines(t.Context(), 0, 2)
	if err != nil || len(page) != 2 || page[0].Object != "vic:4" || page[0].Name != ada || len(page[0].Detail) != 2000 {
		t.Fatalf("newest %+v, %v", page, err)
	}
	page, err = w.Audit.Lines(t.Context(), page[1].ID, 1000)
	if err != nil || len(page) != 3 || page[2].Object != "vic:0" {
		t.Errorf("older %+v, %v", page, err)
	}
	for _, sql := range []string{`UPDATE account_audit SET actor = 'someone else'`, `DELETE FROM account_audit`, `TRUNCATE account_audit`} {
		if _, err := w.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := w.Audit.Lines(t.Context(), 0, 1001); errs.KindOf(err) != errs.Invalid {
		t.Errorf("limit of 1001: %v", err)
	}
}

func TestRunForgets(t *testing.T) {
	w := newWorld(t, 1000)
	a := w.create(t, ada, auth.Owner)
	l, err := w.IssueSession(t.Context(), a.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Login(t.Context(), ada, "wrong password", here); err == nil {
		t.Fatal("signed in")
	}
	w.sleep(25 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for {
		var n int
		if err := w.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM account_session) + (SELECT count(*) FROM account_attempt)`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, _, err := w.Authenticate(t.Context(), l.Token, here); err == nil {
		t.Error("an expired session is good")
	}
}

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

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/mail"
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
	w.Accounts = w.process(t, w.pool, func(c *account.SignInConfig) { c.ByAddr = ratelimit.NewByAddr(time.Hour, perAddr) })
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

// Guessing at one e-mail, known or not, from one address: five tries, then longer and longer pauses. From many addresses: what strangers have at one
// account, however many they are. The right password from there waits too.
func TestBruteForceIsSlowed(t *testing.T) {
	for _, c := range []struct{ addresses, least, most int }{
		{1, 6, 8},       // 5 at once, then after 30, 60 and 120 s: within 200 s
		{200, 120, 132}, // strangers' tries, 3 of a minute each, and those of all
	} {
		w := newWorld(t, 1000)
		w.create(t, ada, auth.Admin)
		for _, email := range []string{ada, "bob@example.com"} {
			looked := 0
			for i := range 200 {
				_, err := w.Login(t.Context(), email, "wrong password", fmt.Sprintf("198.51.100.%d", i%c.addresses))
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
			if looked < c.least || looked > c.most {
				t.Errorf("%s from %d addresses: %d passwords were looked at in 200 s, want %d to %d", email, c.addresses, looked, c.least, c.most)
			}
			if _, err := w.Login(t.Context(), email, password, "198.51.100.0"); errs.KindOf(err) != errs.Exhausted {
				t.Errorf("%s: right password from there: %v", email, err)
			}
		}
		w.sleep(15 * time.Minute)
		if _, err := w.Login(t.Context(), ada, password, "198.51.100.0"); err != nil {
			t.Errorf("after the lock: %v", err)
		}
		if _, err := w.Login(t.Context(), ada, "wrong password", "198.51.100.0"); errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("failures were not forgiven: %v", err)
		}
	}
}

// TestStrangersDoNotLockOut: strangers guess all the time. The owner gets in at once from a browser and from an address that are known, and from a new
// browser at a new address within two minutes, unless hundreds of addresses guess: then a passkey or a letter is the way in, and the refusal says so.
func TestStrangersDoNotLockOut(t *testing.T) {
	const home, away = "2001:db8:1:1::7", "203.0.113.9"
	for _, c := range []struct {
		addresses int
		newGetsIn bool
	}{{1, true}, {50, true}, {400, false}} {
		t.Run(fmt.Sprint(c.addresses), func(t *testing.T) {
			w := newWorld(t, 1_000_000)
			a := w.create(t, ada, auth.Owner)
			first, err := w.Login(t.Context(), ada, password, home)
			if err != nil || first.Device == "" {
				t.Fatalf("%+v, %v", first, err)
			}
			guess := func(round int) {
				for i := range c.addresses {
					_, err := w.Login(t.Context(), ada, logging.Secret(fmt.Sprint("guess ", round)), fmt.Sprintf("198.51.%d.%d", 100+i/250, i%250))
					if k := errs.KindOf(err); k != errs.Unauthenticated && k != errs.Exhausted {
						t.Fatal(err)
					}
				}
			}
			for round := range 12 {
				w.sleep(20 * time.Second)
				guess(round)
				// Known browsers and addresses; the interface number of IPv6 does not count.
				for where, from := range map[string]account.From{
					"known browser":                    {Addr: away, Device: first.Device},
					"known browser among the guessers": {Addr: "198.51.100.0", Device: first.Device},
					"known address":                    {Addr: "2001:db8:1:1::8"},
				} {
					if _, err := w.LoginFrom(t.Context(), ada, password, from); err != nil {
						t.Fatalf("round %d, %s: %v", round, where, err)
					}
				}
			}
			// A device is one account's, and cannot be made up.
			for what, device := range map[string]logging.Secret{"changed": first.Device[:len(first.Device)-2] + "AA", "nonsense": "....", "none": ""} {
				if _, err := w.LoginFrom(t.Context(), ada, "wrong password", account.From{Addr: "198.51.100.0", Device: device}); errs.KindOf(err) != errs.Exhausted && c.addresses > 1 {
					t.Errorf("%s device gives a lane: %v", what, err)
				}
			}
			waited := time.Duration(0)
			for i := 0; ; i++ {
				_, err = w.LoginFrom(t.Context(), ada, password, account.From{Addr: "192.0.2.77"})
				if err == nil || waited > 5*time.Minute {
					break
				}
				w.sleep(20 * time.Second)
				waited += 20 * time.Second
				guess(100 + i)
			}
			switch {
			case c.newGetsIn && (err != nil || waited > 2*time.Minute):
				t.Errorf("a new browser waited %v: %v", waited, err)
			case !c.newGetsIn && (errs.KindOf(err) != errs.Exhausted || !strings.Contains(errs.Public(err), "passkey")):
				t.Errorf("a new browser beside %d guessers: %v", c.addresses, err)
			}
			// The mailbox is a way in from anywhere: afterwards the browser is known.
			o := w.WithLetters(t, account.LettersConfig{Mail: nowhere{}, ByAddr: ratelimit.NewByAddr(time.Hour, 1_000_000), PublicURL: "https://kennel.example"}, account.PrivacyConfig{})
			code := logging.Secret("CODEOFTHELETTER")
			if err := w.Store.PutTicket(t.Context(), account.Ticket{Hash: code.Sum(), Purpose: account.ForReset, Account: a.ID, Email: ada, Expires: w.now.Load().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			device, err := o.Letters.ResetFrom(t.Context(), code, "battery staple", account.From{Addr: "192.0.2.88"})
			if err != nil {
				t.Fatal(err)
			}
			guess(999)
			if _, err := w.LoginFrom(t.Context(), ada, "battery staple", account.From{Addr: "192.0.2.89", Device: device}); err != nil {
				t.Errorf("after the letter: %v", err)
			}
		})
	}
}

// TestKnownPlacesAreLimitedToo: a known browser has five tries in a row, and its pauses hold up no other place; it is forgotten in time.
func TestKnownPlacesAreLimitedToo(t *testing.T) {
	w := newWorld(t, 1000)
	w.create(t, ada, auth.Owner)
	w.create(t, "bob@example.com", auth.Owner)
	l, err := w.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	both, err := w.LoginFrom(t.Context(), "bob@example.com", password, account.From{Addr: here, Device: l.Device})
	if err != nil {
		t.Fatal(err)
	}
	thief := account.From{Addr: "198.51.100.1", Device: l.Device}
	for i := range 6 {
		_, err := w.LoginFrom(t.Context(), ada, "wrong password", thief)
		if want := map[bool]errs.Kind{true: errs.Unauthenticated, false: errs.Exhausted}[i < 5]; errs.KindOf(err) != want {
			t.Fatalf("try %d: %v, want %v", i+1, err, want)
		}
	}
	if _, err := w.Login(t.Context(), ada, password, here); err != nil {
		t.Errorf("at the known address: %v", err)
	}
	// One browser knows several people, each for themselves.
	for _, email := range []string{ada, "bob@example.com"} {
		got, err := w.LoginFrom(t.Context(), email, password, account.From{Addr: "203.0.113.1", Device: both.Device})
		if email == ada && errs.KindOf(err) != errs.Exhausted { // its lane is locked
			t.Errorf("%s: %v", email, err)
		} else if email != ada && (err != nil || strings.Count(string(got.Device), ".") != 1) {
			t.Errorf("%s: %d entries, %v", email, strings.Count(string(got.Device), ".")+1, err)
		}
	}
	w.sleep(account.DeviceTTL)
	for i := range 3 {
		if _, err := w.LoginFrom(t.Context(), ada, "wrong password", account.From{Addr: fmt.Sprint("198.51.100.", i), Device: l.Device}); err == nil {
			t.Error("a wrong password was let in")
		}
	}
	if _, err := w.LoginFrom(t.Context(), ada, password, account.From{Addr: "198.51.100.9", Device: l.Device}); err != nil {
		t.Errorf("an old device is a stranger, not refused: %v", err)
	}
}

// nowhere takes letters and sends none.
type nowhere struct{}

func (nowhere) Post(context.Context, mail.Mail) error { return nil }

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

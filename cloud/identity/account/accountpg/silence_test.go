package accountpg_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/mail/mailpg"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/ratelimit"
)

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

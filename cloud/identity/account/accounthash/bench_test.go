package accounthash

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"kennel/cloud/identity/account"
	"kennel/infra/bench"
	"kennel/infra/errs"
)

const floodLogins = 300 // at once: more than the waiting line takes

// BenchmarkPasswordsBesideHashes measures the cost of argon2id: the memory of a flood of logins, beside what the waiting line lets through at once, and
// hashes a second by way of the waiting line, beside bare argon2id.
func BenchmarkPasswordsBesideHashes(b *testing.B) { passwordsBesideHashes(b) }

func TestPasswordsBesideHashes(t *testing.T) {
	bench.Soak(t)
	passwordsBesideHashes(t)
}

func passwordsBesideHashes(tb testing.TB) {
	h := New()
	const right = "correct horse"
	stored, err := h.Hash(tb.Context(), right, account.Share{})
	if err != nil {
		tb.Fatal(err)
	}
	self := os.Getpid()
	before, err := bench.SettledRSS(tb.Context(), self) // of all turns: memory that a flood has left is not given back at once
	if err != nil {
		tb.Fatal(err)
	}
	var looked, refused atomic.Int64
	flood := func() (float64, error) {
		if err := bench.ForgetPeak(self); err != nil {
			return 0, err
		}
		if _, err := bench.Many(floodLogins, floodLogins, func(int) error {
			ok, err := h.Verify(tb.Context(), stored, "battery staple", account.Share{})
			switch {
			case errs.KindOf(err) == errs.Exhausted: // no place in line
				refused.Add(1)
				return nil
			case err == nil && ok:
				return errors.New("a wrong password is accepted")
			}
			looked.Add(1)
			return err
		}); err != nil {
			return 0, err
		}
		peak, err := bench.PeakRSS(self)
		return max(1, peak-before) / 1024, err
	}
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // never fails
	inLine := func(ctx context.Context, _ int) error {
		ok, err := h.Verify(ctx, stored, right, account.Share{})
		if err == nil && !ok {
			err = errors.New("the right password is refused")
		}
		return err
	}
	bare := func(context.Context, int) error {
		argon2.IDKey([]byte(right), salt, passes, memory, lanes, keyLen)
		return nil
	}
	var floods, rates []bench.Pair
	bench.Turns(tb, func() error {
		rise, err := flood()
		if err != nil {
			return err
		}
		turn := bench.Part(tb, 2*time.Second)
		rate, err1 := bench.During(tb.Context(), turn, Parallel+MaxWaiting, inLine)
		reference, err2 := bench.During(tb.Context(), turn, Parallel, bare)
		floods = append(floods, bench.Pair{Value: rise, Reference: Parallel * memory / 1024.})
		rates = append(rates, bench.Pair{Value: rate, Reference: reference})
		return errors.Join(err1, err2)
	})
	if looked.Load() == 0 {
		tb.Fatal("not one password of a flood was hashed")
	}
	cost := fmt.Sprintf("argon2id with m=%d KiB, t=%d, p=%d", memory, passes, lanes)
	// Garbage of earlier hashes waits for the collector: as much again as is in use, and again while it works.
	bench.Report(tb, bench.Line{Name: "passwords/memory", Unit: "MiB", Less: true, Bound: 0.25,
		Note: fmt.Sprintf("%s; rise of resident memory from %.0f MiB while %d logins come at once (in all turns %d hashed, %d told to come back); "+
			"reference: %d hashes, which are all that are computed at once; one for each login would be %.0f MiB",
			cost, before/1024, floodLogins, looked.Load(), refused.Load(), Parallel, float64(floodLogins)*memory/1024)}, floods)
	bench.Report(tb, bench.Line{Name: "passwords/rate", Unit: "hashes/s", Note: fmt.Sprintf("%s; %d callers, %d at work, the rest in line; reference: bare argon2id, %d at once",
		cost, Parallel+MaxWaiting, Parallel, Parallel)}, rates)
}

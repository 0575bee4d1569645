package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"kennel/infra/bench"
)

// TestMany: all of it once, or the first error and an early end.
func TestMany(t *testing.T) {
	var seen [100]atomic.Int64
	if rate, err := many(len(seen), 7, func(i int) error { seen[i].Add(1); return nil }); err != nil || rate <= 0 {
		t.Errorf("%v, %v", rate, err)
	}
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			t.Errorf("%d was done %d times", i, n)
		}
	}
	broken := errors.New("broken")
	var calls atomic.Int64
	if rate, err := many(1000, 4, func(int) error { calls.Add(1); return broken }); err != broken || rate != 0 || calls.Load() > 4 {
		t.Errorf("%v, %v after %d calls", rate, err, calls.Load())
	}
}

// TestDuring: what waits at the end does not count and is no error; anything else is.
func TestDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		rate, err := during(t.Context(), 2*time.Second, 8, func(ctx context.Context) error {
			if calls.Add(1) <= 10 {
				return nil
			}
			<-ctx.Done() // waits in a line
			return ctx.Err()
		})
		if err != nil || rate != 10/2.0 {
			t.Errorf("%v, %v: want 10 calls in 2 s", rate, err)
		}
		broken := errors.New("broken")
		began := time.Now()
		if rate, err := during(t.Context(), time.Minute, 8, func(context.Context) error { return broken }); err != broken || rate != 0 || time.Since(began) > 0 {
			t.Errorf("%v, %v after %v", rate, err, time.Since(began))
		}
	})
}

func TestCostOf(t *testing.T) {
	if c, err := costOf("$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFh"); err != nil || c != (argonCost{19456, 2, 1}) {
		t.Errorf("%v, %v", c, err)
	}
	for _, s := range []string{"", "$argon2id$v=19$", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFh", "$argon2id$v=19$m=0,t=2,p=1$", "$argon2id$v=19$m=19456,t=2,p=1000$"} {
		if c, err := costOf(s); err == nil {
			t.Errorf("%q: %v, want an error", s, c)
		}
	}
}

// TestPeakRSS: memory that was used and given back shows until it is forgotten.
func TestPeakRSS(t *testing.T) {
	pid := os.Getpid()
	peak := func() float64 {
		t.Helper()
		kib, err := peakRSS(pid)
		if err != nil || kib <= 0 {
			t.Fatalf("%v, %v", kib, err)
		}
		return kib
	}
	if err := forgetPeak(pid); err != nil {
		t.Fatal(err)
	}
	before := peak()
	big, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(big); i += 4096 {
		big[i] = 1
	}
	if err := unix.Munmap(big); err != nil {
		t.Fatal(err)
	}
	after := peak()
	if after < before+48<<10 {
		t.Errorf("%v KiB after 64 MiB more than %v", after, before)
	}
	if err := forgetPeak(pid); err != nil {
		t.Fatal(err)
	}
	if forgot := peak(); forgot > after-32<<10 {
		t.Errorf("%v KiB, %v before it was to be forgotten", forgot, after)
	}
	if _, err := peakRSS(1 << 30); err == nil {
		t.Error("a process that there is not has a peak")
	}
}

// TestCommonHouse: it is gone after the last bench that was to run, and benches that have their own do not count.
func TestCommonHouse(t *testing.T) {
	var c commonHouse
	all := table(&c)
	if !c.names["tokens"] || c.names["storm"] {
		t.Fatalf("shared by %v", c.names)
	}
	benches, err := bench.Select(all, "^(logins|tokens|storm)$")
	if err != nil {
		t.Fatal(err)
	}
	c.expect(benches)
	env := &bench.Env{Bin: t.TempDir(), Count: 1}
	for i, b := range benches[:2] {
		if _, err := b.Run(t.Context(), env); err == nil || !strings.Contains(err.Error(), "make build") {
			t.Errorf("%s without programs: %v", b.Name, err)
		}
		if want := 1 - i; c.open != want || c.house != nil {
			t.Errorf("after %s: %d are to come, want %d", b.Name, c.open, want)
		}
	}
	c.stop() // again is no harm
}

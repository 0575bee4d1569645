package accounthash

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

func TestHashAndVerify(t *testing.T) {
	h := New()
	a, err := h.Hash(t.Context(), "correct horse", account.Share{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Hash(t.Context(), "correct horse", account.Share{})
	if err != nil || a == b || !strings.HasPrefix(a, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("two hashes of one password: %s %s, %v", a, b, err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false} {
		if got, err := h.Verify(t.Context(), a, password, account.Share{}); err != nil || got != want {
			t.Errorf("%q: got %v, %v", password, got, err)
		}
	}
	// Made by the reference implementation's vector for argon2id v19: password "password", salt "somesalt", m=65536, t=2, p=1.
	const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, err := h.Verify(t.Context(), reference, "password", account.Share{}); err != nil || !ok {
		t.Errorf("reference vector: %v, %v", ok, err)
	}
}

func TestDamagedHashes(t *testing.T) {
	for _, s := range []string{"", "plain", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=99999999,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=1$$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$"} {
		if _, err := New().Verify(t.Context(), s, "x", account.Share{}); err == nil {
			t.Errorf("%q accepted", s)
		}
	}
}

// A login flood waits in a bounded queue; beyond it people are told to come back.
func TestLoadIsBounded(t *testing.T) {
	h := New()
	h.queue.running = Parallel // all at work
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 3*MaxWaiting)
	for range cap(got) {
		go func() { _, err := h.Hash(ctx, "x", account.Share{}); got <- err }()
	}
	refused := 0
	for refused < cap(got)-MaxWaiting {
		select {
		case err := <-got:
			if errs.KindOf(err) != errs.Exhausted || errs.RetryOf(err) == 0 {
				t.Fatalf("got %v", err)
			}
			refused++
		case <-time.After(10 * time.Second):
			t.Fatalf("%d refused, want %d", refused, cap(got)-MaxWaiting)
		}
	}
	cancel()
	for range cap(got) - refused {
		if err := <-got; err != context.Canceled {
			t.Errorf("got %v", err)
		}
	}
}

// TestAddressesTakeTurns: ten addresses that ask for more than there is room for do not fill the queue. Another one gets in, and its turn comes after
// one of each of them at most; a known place comes next.
func TestAddressesTakeTurns(t *testing.T) {
	h := New()
	q := &h.queue
	q.running = Parallel
	waiting := func() int {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.waiting)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range 200 {
		all.Go(func() { _ = q.enter(ctx, account.Share{Addr: fmt.Sprint("198.51.100.", i%10)}) })
	}
	testwait.Until(t, 30*time.Second, "a full queue", testwait.Holds(func() bool { return waiting() == MaxWaiting }))
	// in asks for a turn and returns after how many others it came.
	in := func(by account.Share) int {
		got := make(chan error, 1)
		all.Go(func() { got <- q.enter(ctx, by) })
		testwait.Until(t, 30*time.Second, "a place for the newcomer", testwait.Holds(func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			return slices.ContainsFunc(q.waiting, func(w *waiter) bool { return w.by == by })
		}))
		for before := range MaxWaiting {
			q.leave()
			select {
			case err := <-got:
				if err != nil {
					t.Errorf("%+v: %v", by, err)
				}
				return before
			case <-time.After(20 * time.Millisecond):
			}
		}
		t.Fatalf("%+v never had a turn", by)
		return 0
	}
	if n := in(account.Share{Addr: "203.0.113.1"}); n > 10 {
		t.Errorf("a newcomer waited for %d others, want at most one for each of the ten addresses", n)
	}
	if n := in(account.Share{Addr: "203.0.113.2", Known: true}); n != 0 {
		t.Errorf("a known place waited for %d others", n)
	}
	// More from one of the ten pushes out no one else.
	testwait.Until(t, 30*time.Second, "the others' share", testwait.Holds(func() bool { return waiting() > 0 }))
	for waiting() < MaxWaiting {
		n := waiting()
		all.Go(func() { _ = q.enter(ctx, account.Share{Addr: fmt.Sprint("192.0.2.", n)}) })
		testwait.Until(t, 30*time.Second, "one more", testwait.Holds(func() bool { return waiting() > n }))
	}
	if err := q.enter(ctx, account.Share{Addr: "198.51.100.1"}); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("one of the ten again: %v", err)
	}
}

// A flood of real logins takes the memory of a few: 300 at once would be 5.7 GB if each had its own. What is beyond the queue is refused.
func TestFloodTakesBoundedMemory(t *testing.T) {
	h := New()
	hash, err := h.Hash(t.Context(), "correct horse", account.Share{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	stop, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapInuse))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	const flood = 300
	var looked, refused atomic.Int64
	var start, done sync.WaitGroup
	start.Add(1)
	for range flood {
		done.Go(func() {
			start.Wait()
			switch ok, err := h.Verify(t.Context(), hash, "wrong horse", account.Share{}); {
			case err == nil && !ok:
				looked.Add(1)
			case errs.KindOf(err) == errs.Exhausted:
				refused.Add(1)
			default:
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
	start.Done()
	done.Wait()
	close(stop)
	<-sampled
	if looked.Load()+refused.Load() != flood || looked.Load() < MaxWaiting || refused.Load() == 0 {
		t.Errorf("%d looked at, %d refused of %d", looked.Load(), refused.Load(), flood)
	}
	// Parallel at work, and as much again that the collector has not taken yet, and again while it works.
	const bound = 4 * Parallel * memory << 10
	if grown := peak.Load() - before.HeapInuse; peak.Load() > before.HeapInuse && grown > bound {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, bound>>20)
	} else {
		t.Logf("%d looked at, %d refused, heap grew by at most %d MiB", looked.Load(), refused.Load(), int64(peak.Load()-before.HeapInuse)>>20)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parse(s)
		if err == nil && p.String() != s {
			t.Fatalf("%q came back as %q", s, p)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	h := New()
	hash, err := h.Hash(b.Context(), "correct horse", account.Share{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.Verify(b.Context(), hash, "correct horse", account.Share{}); err != nil {
			b.Fatal(err)
		}
	}
}

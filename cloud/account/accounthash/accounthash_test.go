package accounthash

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/infra/errs"
)

func TestHashAndVerify(t *testing.T) {
	h := New()
	a, err := h.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Hash(t.Context(), "correct horse")
	if err != nil || a == b || !strings.HasPrefix(a, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("two hashes of one password: %s %s, %v", a, b, err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false} {
		if got, err := h.Verify(t.Context(), a, password); err != nil || got != want {
			t.Errorf("%q: got %v, %v", password, got, err)
		}
	}
	// Made by the reference implementation's vector for argon2id v19: password "password", salt "somesalt", m=65536, t=2, p=1.
	const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, err := h.Verify(t.Context(), reference, "password"); err != nil || !ok {
		t.Errorf("reference vector: %v, %v", ok, err)
	}
}

func TestDamagedHashes(t *testing.T) {
	for _, s := range []string{"", "plain", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=99999999,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=1$$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$"} {
		if _, err := New().Verify(t.Context(), s, "x"); err == nil {
			t.Errorf("%q accepted", s)
		}
	}
}

// A login flood waits in a bounded queue; beyond it people are told to come back.
func TestLoadIsBounded(t *testing.T) {
	h := New()
	for range Parallel {
		h.slots <- struct{}{} // all at work
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 3*MaxWaiting)
	for range cap(got) {
		go func() { _, err := h.Hash(ctx, "x"); got <- err }()
	}
	refused := 0
	for refused < cap(got)-MaxWaiting-Parallel {
		select {
		case err := <-got:
			if errs.KindOf(err) != errs.Exhausted || errs.RetryOf(err) == 0 {
				t.Fatalf("got %v", err)
			}
			refused++
		case <-time.After(10 * time.Second):
			t.Fatalf("%d refused, want %d", refused, cap(got)-MaxWaiting-Parallel)
		}
	}
	cancel()
	for range cap(got) - refused {
		if err := <-got; err != context.Canceled {
			t.Errorf("got %v", err)
		}
	}
}

// A flood of real logins takes the memory of a few: 300 at once would be 5.7 GB if each had its own. What is beyond the queue is refused.
func TestFloodTakesBoundedMemory(t *testing.T) {
	h := New()
	hash, err := h.Hash(t.Context(), "correct horse")
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
			switch ok, err := h.Verify(t.Context(), hash, "wrong horse"); {
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
	hash, err := h.Hash(b.Context(), "correct horse")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.Verify(b.Context(), hash, "correct horse"); err != nil {
			b.Fatal(err)
		}
	}
}

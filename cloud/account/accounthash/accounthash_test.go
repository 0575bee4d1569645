package accounthash

import (
	"context"
	"strings"
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
			if errs.KindOf(err) != errs.Unavailable || errs.RetryOf(err) == 0 {
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

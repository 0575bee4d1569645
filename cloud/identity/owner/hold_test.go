package owner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/owner"
	"kennel/infra/errs"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// settings writes what an owner allows, and tells it, as the documents' wiring does.
func settings(t *testing.T, p process, account, text string) {
	t.Helper()
	key, err := jdocs.NewKey(account, "", jdocs.AccountSettings)
	must(t, err)
	old, err := p.docs.Get(t.Context(), key)
	if err != nil && !errors.Is(err, jdocs.ErrNotFound) {
		t.Fatal(err)
	}
	res, err := p.docs.Write(t.Context(), key, jdocs.Doc{Version: old.Version, FmtVersion: 1, JSON: text}, "owner")
	if err != nil || res.Status != jdocs.Accepted {
		t.Fatalf("%+v, %v", res, err)
	}
	must(t, p.store.Touch(t.Context(), account))
}

// TestHold: while a robot is held, each change of its owner and of the owner's settings waits, in every process; then what began to arrive before the change is refused. A
// change that waits lets no further Hold in, so that no stream of data keeps it waiting (must hold 3 of the issue of ownerships; VEC-FLE-06, VEC-DAS-08).
func TestHold(t *testing.T) {
	h := newHouse(t)
	p, other := h.process(), h.process()
	ctx := t.Context()
	hold := func(ids ...thing.ID) consent.Hold {
		t.Helper()
		held, err := p.Hold(ctx, ids...)
		must(t, err)
		t.Cleanup(held.Release)
		return held
	}
	// begun zero: now. What began just after a change may be taken for what began before it, as the database answers a moment after it was asked.
	check := func(what string, begun time.Time, account, code string) {
		t.Helper()
		testwait.Until(t, testwait.Long, what, func() error {
			began := begun
			if began.IsZero() {
				began = time.Now()
			}
			held := hold(rex)
			defer held.Release()
			got, err := held.Check(rex, began)
			if got == account && errs.CodeOf(err) == code {
				return nil
			}
			said := fmt.Errorf("account %q, %v; want %q, code %q", got, err, account, code)
			if !begun.IsZero() && errs.CodeOf(err) != "retry_after" { // that it surely began before is known when the database answers quickly
				t.Fatalf("%s: %v", what, said)
			}
			return said
		})
	}
	const yes, no = `{"DATA_COLLECTION":true}`, `{"DATA_COLLECTION":false}`
	start := time.Now()
	check("never owned", start, "", "")
	must(t, p.Associate(ctx, rex, "ann", owner.HowAssociate))
	check("an owner who was not asked", time.Time{}, "", consent.CodeOptedOut)
	check("begun without an owner", start, "", consent.CodeOwnerChanged)
	settings(t, p, "ann", yes)
	check("a yes while it arrived", h.lastOwned(p), "", "retry_after")
	check("a yes", time.Time{}, "ann", "")

	for _, c := range []struct {
		what          string
		change        func() error
		account, code string // of what began before
	}{
		{"an opt-out", func() error { settings(t, other, "ann", no); return nil }, "", consent.CodeOptedOut},
		{"an opt-in", func() error { settings(t, other, "ann", yes); return nil }, "", "retry_after"},
		{"a release", func() error { return other.Release(ctx, "ann", rex) }, "", consent.CodeOwnerChanged},
		{"a claim", func() error { return other.Associate(ctx, rex, "bob", owner.HowAssociate) }, "", consent.CodeOwnerChanged},
		{"a wipe", func() error { return other.Associate(ctx, rex, "ann", owner.HowWiped) }, "", consent.CodeOwnerChanged},
	} {
		held, done := hold(rex, ada), make(chan error, 1)
		begun := held.Asked
		before, err := held.Check(rex, begun)
		go func() { done <- c.change() }()
		testwait.Until(t, testwait.Long, c.what+" waits for the Hold", testwait.Holds(func() (waits bool) {
			must(t, p.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waits))
			return waits
		}))
		now, nowErr := held.Check(rex, begun)
		if t2, err := p.Tenure(ctx, rex); err == nil && before != "" && t2.Account != before {
			t.Errorf("%s happened while the robot was held", c.what)
		}
		select {
		case err := <-done:
			t.Errorf("%s ended while the robot was held: %v", c.what, err)
		default:
		}
		if now != before || errs.CodeOf(nowErr) != errs.CodeOf(err) {
			t.Errorf("%s: a Hold says %q, %v and then %q, %v", c.what, before, err, now, nowErr)
		}
		check(c.what+" waits", time.Time{}, "", "retry_after")
		held.Release()
		must(t, <-done)
		check(c.what, begun, c.account, c.code)
	}
	if held := hold(rex, ada); len(held.Permits) != 2 {
		t.Errorf("%+v: want both robots", held.Permits)
	}
}

// lastOwned returns a moment after rex got its owner and before the owner's settings changed.
func (h *house) lastOwned(p process) time.Time {
	h.t.Helper()
	held, err := p.Hold(h.t.Context(), rex)
	must(h.t, err)
	defer held.Release()
	return held.Asked.Add(-(held.Permits[rex].Owned + held.Permits[rex].Settled) / 2)
}

// TestHoldsAtOnce: Holds beyond the number wait, and end with their context.
func TestHoldsAtOnce(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	ask := consent.AtOnce(p.Hold, 1)
	first, err := ask(t.Context(), rex)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ask(ctx, ada); !errors.Is(err, ctx.Err()) {
		t.Errorf("a second Hold: %v", err)
	}
	first.Release()
	first.Release()
	second, err := ask(t.Context(), ada)
	must(t, err)
	second.Release()
}

// BenchmarkHold asks for the robots of a group of batches, each with an owner who said yes.
func BenchmarkHold(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := newHouse(b)
			p := h.process()
			ids := make([]thing.ID, n)
			for i := range ids {
				ids[i] = thing.ID(fmt.Sprint("vic:", i))
				must(b, p.Associate(b.Context(), ids[i], fmt.Sprint("account", i), owner.HowAssociate))
			}
			for b.Loop() {
				held, err := p.Hold(b.Context(), ids...)
				must(b, err)
				held.Release()
			}
		})
	}
}

package owner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/identity/owner"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

func TestClaim(t *testing.T) {
	h := newHouse(t)
	a, b := h.process(), h.process()
	a.has(t, "", rex)
	code := a.show(t, rex, "k1")
	if again := b.show(t, rex, "k1"); again != code {
		t.Errorf("asked again: %s, then %s", code, again)
	}
	if other := a.show(t, ada, "k1"); other == code {
		t.Errorf("two robots show %s", code)
	}
	st, err := a.Status(t.Context(), rex)
	if err != nil || st.Owned || st.CodeTriesLeft != owner.MaxTries || st.CodeExpiresInMS <= 0 || !st.DataCollection {
		t.Errorf("status %+v, %v", st, err)
	}
	got, err := b.Claim(t.Context(), "ann", "192.0.2.1", "", " "+strings.ToLower(code))
	if err != nil || got.Thing != rex || got.Account != "ann" || got.How != owner.HowCode {
		t.Fatalf("claim: %+v, %v", got, err)
	}
	a.has(t, "ann", rex)
	// The answer was lost: the same again is the same.
	if again, err := a.Claim(t.Context(), "ann", "192.0.2.1", rex, code); err != nil || again.ID != got.ID {
		t.Errorf("claimed again: %+v, %v", again, err)
	}
	is(t, "a used code", a.claim(t, "bob", "", code), errs.NotFound, "code_refused")
	_, _, err = a.OfferCode(t.Context(), rex, "k2")
	is(t, "code for a robot with an owner", err, errs.Conflict, "owned")
	if st, err := a.Status(t.Context(), rex); err != nil || !st.Owned || st.UserID != "ann" || st.CodeTriesLeft != 0 || st.DataCollection {
		t.Errorf("status %+v, %v", st, err)
	}
	if since, ok, err := a.Owns(t.Context(), "ann", rex); err != nil || !ok || !since.Equal(got.Since) {
		t.Errorf("owns: %v %v %v", since, ok, err)
	}
	for _, c := range []struct {
		account string
		id      thing.ID
	}{{"bob", rex}, {"", rex}, {"ann", ada}, {"", ada}, {"ann", "vic:nobody"}} {
		if _, ok, err := a.Owns(t.Context(), c.account, c.id); ok || err != nil {
			t.Errorf("%q owns %s: %v, %v", c.account, c.id, ok, err)
		}
	}
	want := []string{"claim code", "claim code", "claim", "claim", "claim code_over", "claim code owned"}
	if got := h.codes(rex); !slices.Equal(got, want) {
		t.Errorf("doctor heard %q, want %q", got, want)
	}
}

// A code is the last that was asked for, for ten minutes.
func TestCodesEnd(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	first, second := p.show(t, rex, "k1"), p.show(t, rex, "k2")
	is(t, "a replaced code", p.claim(t, "ann", "", first), errs.NotFound, "code_refused")
	if _, err := p.pool.Exec(t.Context(), `UPDATE owner_code SET expires_at = clock_timestamp() - interval '1 ms'`); err != nil {
		t.Fatal(err)
	}
	is(t, "an old code", p.claim(t, "ann", rex, second), errs.NotFound, "code_refused")
	_, _, err := p.OfferCode(t.Context(), rex, "k2")
	is(t, "the same code once more", err, errs.Conflict, "code_over")
	must(t, p.claim(t, "ann", rex, p.show(t, rex, "k3")))
	must(t, p.Release(t.Context(), "ann", rex))
	is(t, "the code of before", p.claim(t, "bob", rex, second), errs.NotFound, "code_refused")
	is(t, "no key", func() error { _, _, err := p.OfferCode(t.Context(), rex, ""); return err }(), errs.Invalid, "")
}

// TestGuessing: 5 tries of a code in all, from any account, in any process, one after the other or at once.
func TestGuessing(t *testing.T) {
	h := newHouse(t)
	a, b := h.process(), h.process()
	code := a.show(t, rex, "k1")

	// A thousand people at once, in two processes.
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32) // the database has so many connections
	for n := range 1000 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			p := []process{a, b}[n%2]
			id := rex
			if n%3 == 0 {
				id = "" // found by its first half
			}
			if err := p.claim(t, fmt.Sprint("guest", n), id, wrong(code, n)); errs.CodeOf(err) != "code_refused" {
				t.Errorf("guess %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if st, err := a.store.CodeStanding(t.Context(), rex); err != nil || st.Tries != owner.MaxTries {
		t.Errorf("%d tries were counted, %v; want %d", st.Tries, err, owner.MaxTries)
	}
	is(t, "the right one, too late", a.claim(t, "ann", "", code), errs.NotFound, "code_refused")
	a.has(t, "", rex)
	want := []string{"claim code", "claim code_wrong", "claim code_wrong", "claim code_wrong", "claim code_wrong", "claim code_dead"}
	got := h.codes(rex)
	slices.Sort(got[1:])
	slices.Sort(want[1:])
	if !slices.Equal(got, want) {
		t.Errorf("doctor heard %q, want %q", got, want)
	}

	// One person a thousand times, each time at another robot: held back in every process together.
	refused := 0
	for n := range 1000 {
		err := []process{a, b}[n%2].claim(t, "mallory", thing.ID(fmt.Sprint("vic:", n)), "0000-0000")
		switch errs.CodeOf(err) {
		case "code_refused":
			refused++
		case "too_many_attempts":
			if wait := errs.RetryOf(err); wait <= 0 || wait > time.Hour {
				t.Fatalf("wait %v", wait)
			}
		default:
			t.Fatalf("guess %d: %v", n, err)
		}
	}
	if refused != 20 {
		t.Errorf("%d guesses of one account were looked at, want 20", refused)
	}
	code = a.show(t, rex, "k2")
	is(t, "the right code of somebody who guessed too much", b.claim(t, "mallory", rex, code), errs.Exhausted, "too_many_attempts")
	must(t, b.claim(t, "ann", rex, code)) // and that cost the code nothing

	code = a.show(t, ada, "k1")
	for n := range 4 {
		is(t, "wrong", a.claim(t, fmt.Sprint("x", n), ada, wrong(code, n)), errs.NotFound, "code_refused")
	}
	must(t, a.claim(t, "bob", ada, code)) // the fifth try was right
	a.has(t, "bob", ada)
}

// Another robot's code opens only that robot.
func TestSomebodyElsesCode(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	rexs, adas := p.show(t, rex, "k"), p.show(t, ada, "k")
	is(t, "ada with rex's code", p.claim(t, "mallory", ada, rexs), errs.NotFound, "code_refused")
	is(t, "a robot that shows none", p.claim(t, "mallory", "vic:none", rexs), errs.NotFound, "code_refused")
	p.has(t, "", ada)
	must(t, p.claim(t, "ann", rex, rexs))
	must(t, p.claim(t, "bob", "", adas))
	p.has(t, "ann", rex)
	p.has(t, "bob", ada)
	// A robot that got an owner while its code was shown.
	p.show(t, "vic:3", "k")
	code := p.show(t, "vic:3", "k")
	must(t, p.Associate(t.Context(), "vic:3", "carol", owner.HowAssociate))
	is(t, "the code of before", p.claim(t, "mallory", "vic:3", code), errs.NotFound, "code_refused")
	for typed, want := range map[string]string{"": "code_malformed", "UUUU-UUUU": "code_malformed", strings.Repeat("A", 9): "code_malformed"} {
		is(t, "claim with "+typed, p.claim(t, "ann", "", typed), errs.Invalid, want)
	}
	is(t, "nobody", p.claim(t, "", "", rexs), errs.Invalid, "")
}

// Other people's robots answer as unknown ones: the same words for the same statements.
func TestOthersRobotsAreUnknown(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	must(t, p.Associate(t.Context(), rex, "ann", owner.HowAssociate))
	o, err := p.Offer(t.Context(), "ann", "ann@example.org", rex, "carol@example.org", owner.Proof{Password: "right"})
	must(t, err)
	ctx := t.Context()
	for name, do := range map[string]func(id thing.ID, offer string) error{
		"release": func(id thing.ID, _ string) error { return p.Release(ctx, "bob", id) },
		"rename":  func(id thing.ID, _ string) error { _, err := p.Rename(ctx, "bob", id, "mine"); return err },
		"transfer": func(id thing.ID, _ string) error {
			_, err := p.Offer(ctx, "bob", "bob@example.org", id, "eve@example.org", owner.Proof{Password: "right"})
			return err
		},
		"accept":   func(_ thing.ID, o string) error { _, err := p.Accept(ctx, "bob", "bob@example.org", o); return err },
		"drop":     func(_ thing.ID, o string) error { return p.Drop(ctx, "bob", "bob@example.org", o) },
		"nobody's": func(id thing.ID, _ string) error { return p.Release(ctx, "", id) },
	} {
		p.asked.take()
		others, cost := do(rex, o.ID), p.asked.take()
		unknown, cost2 := do("vic:00e20199", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"), p.asked.take()
		if errs.KindOf(others) != errs.NotFound || errs.KindOf(unknown) != errs.NotFound ||
			strings.ReplaceAll(others.Error(), string(rex), "vic:00e20199") != unknown.Error() {
			t.Errorf("%s: %v; unknown: %v; want one answer", name, others, unknown)
		}
		if !slices.Equal(cost, cost2) {
			t.Errorf("%s: another's robot costs %q, an unknown one %q", name, cost, cost2)
		}
	}
	p.has(t, "ann", rex)
	if all, err := p.Robots(ctx, "bob"); err != nil || len(all) != 0 {
		t.Errorf("bob's robots: %+v, %v", all, err)
	}
	if all, err := p.Offers(ctx, "bob", "bob@example.org"); err != nil || len(all) != 0 {
		t.Errorf("bob's offers: %+v, %v", all, err)
	}
	is(t, "an id that is none", p.Drop(ctx, "ann", "", "'; DROP TABLE owner_tenure"), errs.NotFound, "no_transfer")
}

// TestAssociate: the robot's own proof, as the token service uses it.
func TestAssociate(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	ctx := t.Context()
	must(t, p.Disassociate(ctx, rex)) // none is no error
	must(t, p.Associate(ctx, rex, "ann", owner.HowAssociate))
	before, err := p.Tenure(ctx, rex)
	must(t, err)
	must(t, p.Associate(ctx, rex, "ann", owner.HowWiped))
	if again, err := p.Tenure(ctx, rex); err != nil || again != before {
		t.Errorf("associated again: %+v, %v; want %+v", again, err, before)
	}
	is(t, "another account", p.Associate(ctx, rex, "bob", owner.HowAssociate), errs.Denied, "wrong_account")
	p.has(t, "ann", rex)
	must(t, p.Associate(ctx, rex, "bob", owner.HowWiped))
	p.has(t, "bob", rex)
	must(t, p.Disassociate(ctx, rex))
	p.has(t, "", rex)
	is(t, "no account", p.Associate(ctx, rex, "", owner.HowAssociate), errs.Invalid, "")
	is(t, "how?", p.Associate(ctx, rex, "ann", "Some how"), errs.Invalid, "")
	if len(h.told) != 2 || h.told[0].Account != "ann" || h.told[0].Ended != owner.EndWiped || h.told[1].Account != "bob" || h.told[1].Ended != owner.EndDisassociated {
		t.Errorf("told of %+v; want each end (issue 28.7)", h.told)
	}
	var got []string
	past, err := p.History(ctx, rex, 10)
	must(t, err)
	for _, x := range past {
		got = append(got, x.Account+" "+x.How+" "+x.Ended)
	}
	if want := []string{"bob wiped disassociated", "ann associate wiped"}; !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
	if got, want := h.codes(rex), []string{"owner", "owner", "owner wrong_account", "owner", "owner", "owner"}; !slices.Equal(got, want) {
		t.Errorf("doctor heard %q, want %q", got, want)
	}
}

// A wipe frees a robot, once: told again, however late, it does not take it from who has it then.
func TestWiped(t *testing.T) {
	h := newHouse(t)
	a, b := h.process(), h.process()
	ctx := t.Context()
	must(t, a.Wiped(ctx, rex, "w0")) // without an owner
	must(t, a.claim(t, "ann", rex, a.show(t, rex, "k1")))
	must(t, a.Wiped(ctx, rex, "w1"))
	a.has(t, "", rex)
	must(t, a.claim(t, "bob", rex, a.show(t, rex, "k2")))
	must(t, b.Wiped(ctx, rex, "w1"))
	a.has(t, "bob", rex)
	code := a.show(t, ada, "k1")
	must(t, a.Wiped(ctx, ada, "w1"))
	is(t, "a code from before the wipe", a.claim(t, "ann", ada, code), errs.NotFound, "code_refused")
	is(t, "no key", a.Wiped(ctx, rex, ""), errs.Invalid, "")
	if len(h.told) != 1 || h.told[0].Account != "ann" || h.told[0].Ended != owner.EndWiped {
		t.Errorf("told %+v, want ann's, wiped", h.told)
	}
}

func TestTransfer(t *testing.T) {
	h := newHouse(t)
	a, b := h.process(), h.process()
	ctx := t.Context()
	must(t, a.Associate(ctx, rex, "ann", owner.HowAssociate))
	_, err := a.Rename(ctx, "ann", rex, " Rex ")
	must(t, err)
	offer := func(to string) owner.Offer {
		t.Helper()
		o, err := a.Offer(ctx, "ann", "ann@example.org", rex, to, owner.Proof{Password: "right"})
		if err != nil || o.Thing != rex || !o.Mine || time.Until(o.Expires) > owner.TransferLife {
			t.Fatalf("offer to %s: %+v, %v", to, o, err)
		}
		return o
	}
	accept := func(account, id string) error {
		_, err := b.Accept(ctx, account, account+"@example.org", id)
		return err
	}
	first := offer("eve@example.org")
	o := offer("Bob@Example.org ")
	is(t, "an offer that another took the place of", accept("eve", first.ID), errs.NotFound, "no_transfer")
	is(t, "another's offer", accept("eve", o.ID), errs.NotFound, "no_transfer")
	is(t, "one's own offer", accept("ann", o.ID), errs.NotFound, "no_transfer")
	for account, mine := range map[string]bool{"ann": true, "bob": false} {
		all, err := b.Offers(ctx, account, account+"@example.org")
		if err != nil || len(all) != 1 || all[0].ID != o.ID || all[0].Mine != mine || all[0].Thing != rex {
			t.Errorf("%s sees %+v, %v", account, all, err)
		}
	}
	must(t, accept("bob", o.ID))
	a.has(t, "bob", rex)
	must(t, accept("bob", o.ID)) // the answer was lost
	if got, err := a.Tenure(ctx, rex); err != nil || got.Name != "" || got.How != owner.HowTransfer {
		t.Errorf("bob's: %+v, %v; want no name of ann's", got, err)
	}
	if len(h.told) != 1 || h.told[0].Account != "ann" || h.told[0].Ended != owner.EndTransferred {
		t.Errorf("told %+v, want ann's, transferred", h.told)
	}
	is(t, "what is not ann's any more", a.Release(ctx, "ann", rex), errs.NotFound, "not_yours")

	// To an account by its id; taken back, declined, too old, over with the ownership.
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	give := func() owner.Offer {
		t.Helper()
		o, err := a.Offer(ctx, "bob", "bob@example.org", rex, strings.ToUpper(id), owner.Proof{Password: "right"})
		must(t, err)
		return o
	}
	o = give()
	must(t, a.Drop(ctx, "bob", "bob@example.org", o.ID))
	is(t, "taken back", accept(id, o.ID), errs.NotFound, "no_transfer")
	o = give()
	must(t, a.Drop(ctx, id, "", o.ID))
	is(t, "declined", accept(id, o.ID), errs.NotFound, "no_transfer")
	o = give()
	_, err = a.pool.Exec(ctx, `UPDATE owner_transfer SET expires_at = clock_timestamp()`)
	must(t, err)
	is(t, "too old", accept(id, o.ID), errs.NotFound, "no_transfer")
	o = give()
	must(t, a.Release(ctx, "bob", rex))
	is(t, "of nobody's", accept(id, o.ID), errs.NotFound, "no_transfer")
	must(t, a.Associate(ctx, rex, "bob", owner.HowAssociate))
	is(t, "of an ownership that is over", accept(id, o.ID), errs.NotFound, "no_transfer")
	must(t, accept(id, give().ID))
	a.has(t, id, rex)

	for to, code := range map[string]string{"": "recipient_malformed", "a@": "email_malformed", "Ann <ann@example.com>": "email_malformed", id: "recipient_self",
		"ME@example.org": "recipient_self", strings.Repeat("x", 65): "recipient_malformed", strings.Repeat("x", 250) + "@example.org": "email_malformed"} {
		_, err := a.Offer(ctx, id, "me@example.org", rex, to, owner.Proof{Password: "right"})
		is(t, "to "+to, err, errs.Invalid, code)
	}
}

func TestRenameAndTakeAway(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	ctx := t.Context()
	must(t, p.Associate(ctx, rex, "ann", owner.HowAssociate))
	for name, want := range map[string]string{" Rex 🤖 ": "Rex 🤖", "👩\u200d🚀": "👩\u200d🚀", "": "", strings.Repeat("é", owner.MaxName): strings.Repeat("é", owner.MaxName)} {
		if got, err := p.Rename(ctx, "ann", rex, name); err != nil || got.Name != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{"a\x00b", "a\nb", "\xff", strings.Repeat("é", owner.MaxName+1), "a\x1b[2J", "\u202eabc"} {
		_, err := p.Rename(ctx, "ann", rex, name)
		is(t, fmt.Sprintf("%q", name), err, errs.Invalid, "name_malformed")
	}
	is(t, "not bob's", p.TakeAway(ctx, "bob", rex), errs.NotFound, "no_owner")
	must(t, p.TakeAway(ctx, "ann", rex))
	p.has(t, "", rex)
	is(t, "again", p.TakeAway(ctx, "ann", rex), errs.NotFound, "no_owner")
	is(t, "whoever's", p.TakeAway(ctx, "", rex), errs.NotFound, "no_owner")
}

// TestEndsAreTold: what an ownership gave is taken back within 2 s, also when the process that ended it could not.
func TestEndsAreTold(t *testing.T) {
	h := newHouse(t)
	a, b := h.process(), h.process()
	must(t, a.Associate(t.Context(), rex, "ann", owner.HowAssociate))
	h.setDeaf(errors.New("the token service is away"))
	must(t, a.Release(t.Context(), "ann", rex))
	a.has(t, "", rex)
	h.setDeaf(nil)
	start := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	for {
		if open, err := a.store.Unsettled(t.Context(), "", 10); err != nil {
			t.Fatal(err)
		} else if len(open) == 0 {
			break
		}
		if time.Since(start) > 5*2*time.Second {
			t.Fatal("the end is not told after five times 2 s")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.told) != 1 || h.told[0].Account != "ann" {
		t.Errorf("told %+v, want ann's once", h.told)
	}
}

// TestWatch: a change of owner or consent is known in another process within 2 s.
func TestWatch(t *testing.T) {
	h := newHouse(t)
	a, b := h.process(), h.process()
	heard := make(chan thing.ID, 100) // more than come
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- b.store.Watch(ctx, slog.New(slog.DiscardHandler), func(_ context.Context, id thing.ID) { heard <- id })
	}()
	await := func(what string, want ...thing.ID) {
		t.Helper()
		start := time.Now()
		for len(want) > 0 {
			select {
			case id := <-heard:
				want = slices.DeleteFunc(want, func(w thing.ID) bool { return w == id })
			case <-time.After(2*time.Second - time.Since(start)):
				t.Fatalf("%s: nothing of %v within 2 s", what, want)
			}
		}
		t.Logf("%s: known after %v", what, time.Since(start))
	}
	must(t, a.Associate(ctx, rex, "ann", owner.HowAssociate))
	await("owner", rex)
	must(t, a.Associate(ctx, ada, "ann", owner.HowAssociate))
	await("another robot", ada)
	key, err := jdocs.NewKey("ann", "", jdocs.AccountSettings)
	must(t, err)
	if _, err := a.docs.Write(ctx, key, jdocs.Doc{FmtVersion: 1, JSON: `{"data_collection":true}`}, "owner"); err != nil {
		t.Fatal(err)
	}
	must(t, a.store.Touch(ctx, "ann"))
	await("consent", rex, ada)
	must(t, a.Release(ctx, "ann", rex))
	await("release", rex)
	must(t, a.store.Touch(ctx, "nobody"))
	// Without the notification: by looking.
	if _, err := a.pool.Exec(ctx, `UPDATE owner_thing SET changed_at = clock_timestamp() WHERE thing = $1`, ada); err != nil {
		t.Fatal(err)
	}
	await("unnotified", ada)
	select {
	case id := <-heard:
		t.Errorf("%s was told of without a change", id)
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestConsent: VEC-FLE-06, VEC-DAS-08, VEC-DOC-05.
func TestConsent(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	ctx := t.Context()
	check := func(what string, id thing.ID, want bool) {
		t.Helper()
		if got, err := p.Allowed(ctx, id); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
		if st, err := p.Status(ctx, id); err != nil || st.DataCollection != want {
			t.Errorf("%s: the robot hears %+v, %v; want %v", what, st, err, want)
		}
	}
	key, err := jdocs.NewKey("ann", "", jdocs.AccountSettings)
	must(t, err)
	version := uint64(0)
	write := func(text string) {
		t.Helper()
		res, err := p.docs.Write(ctx, key, jdocs.Doc{Version: version, FmtVersion: 1, JSON: text}, "owner")
		if err != nil || res.Status != jdocs.Accepted {
			t.Fatalf("%+v, %v", res, err)
		}
		version = res.Latest
	}
	check("no owner", rex, true)
	must(t, p.Associate(ctx, rex, "ann", owner.HowAssociate))
	check("an owner who said nothing", rex, false)
	write(`{"APP_LOCALE":"en-US","DATA_COLLECTION":true}`)
	check("yes", rex, true)
	check("another robot", ada, true)
	write(`{"data_collection":false}`)
	check("no", rex, false)
	write(`{"data_collection":true}`)
	must(t, p.Release(ctx, "ann", rex))
	must(t, p.Associate(ctx, rex, "bob", owner.HowAssociate))
	check("what the owner before said is nothing", rex, false)
	if _, err := p.docs.Delete(ctx, key, "owner"); err != nil {
		t.Fatal(err)
	}
	must(t, p.Associate(ctx, ada, "ann", owner.HowAssociate))
	check("a deleted document", ada, false)
}

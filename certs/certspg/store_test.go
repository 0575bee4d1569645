package certspg_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestStore(t *testing.T) {
	for name, check := range map[string]func(*testing.T, *certspg.Store){
		"claims": runClaims, "inventory": runInventory, "race": runRace, "delivery": runDelivery, "release": runRelease, "batches": runBatches,
		"waiting": runWaiting, "approve": runApprove,
	} {
		t.Run(name, func(t *testing.T) { check(t, certspg.New(pgtest.New(t))) })
	}
}

const (
	a = thing.ID("vic:00e20100")
	b = thing.ID("pleo:7")
)

var (
	keyA, keyB = certs.Key{1}, certs.Key{2}
	now        = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// is checks an error that is one of the sentinels, or nil.
func is(t *testing.T, what string, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) || (sentinel == nil) != (err == nil) {
		t.Errorf("%s: got %v, want %v", what, err, sentinel)
	}
}

func standing(t *testing.T, s *certspg.Store, id thing.ID, key certs.Key) certs.Standing {
	t.Helper()
	st, err := s.Standing(t.Context(), id, key)
	must(t, err)
	return st
}

// record is a certificate's row; later ones have later serials.
func record(serial string, id thing.ID, key certs.Key) certs.Record {
	return certs.Record{Serial: serial, Thing: id, Key: key, NotBefore: now, NotAfter: now.Add(time.Hour), Method: certs.MethodEnroll}
}

func runClaims(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	want(t, "standing of an unknown thing", standing(t, s, a, keyA), certs.Standing{})
	_, err := s.ClaimOf(ctx, certs.Hash{9})
	is(t, "owner of an unknown secret", err, certs.ErrUnknown)
	must(t, s.SetClaim(ctx, a, certs.Hash{1}, now))
	must(t, s.SetClaim(ctx, a, certs.Hash{2}, now)) // never used: replaced
	must(t, s.SetClaim(ctx, b, certs.Hash{3}, now))
	claim := certs.Claim{Thing: a, Secret: certs.Hash{2}}
	want(t, "standing", standing(t, s, a, keyA), certs.Standing{Claim: claim, Known: true})
	_, err = s.ClaimOf(ctx, certs.Hash{1})
	is(t, "owner of a replaced secret", err, certs.ErrUnknown)
	id, err := s.ClaimOf(ctx, certs.Hash{3})
	must(t, err)
	want(t, "owner of a secret", id, b)

	must(t, s.Issue(ctx, record("a1", a, keyA), claim, now))
	is(t, "a second key on the claim as it was", s.Issue(ctx, record("a2", a, keyB), claim, now), certs.ErrMoved)
	claim.Key = keyA
	want(t, "bound", standing(t, s, a, keyB), certs.Standing{Claim: claim, Known: true})
	is(t, "register after use", s.SetClaim(ctx, a, certs.Hash{5}, now), certs.ErrBound)
	is(t, "the secret replaced between look and bind", s.Issue(ctx, record("b1", b, keyB), certs.Claim{Thing: b, Secret: certs.Hash{8}}, now),
		certs.ErrMoved)
	must(t, s.Issue(ctx, record("c1", "vic:00000001", keyB), certs.Claim{}, now))
	want(t, "a claim made with its certificate", standing(t, s, "vic:00000001", keyB),
		certs.Standing{Claim: certs.Claim{Thing: "vic:00000001", Key: keyB}, Known: true})
	is(t, "made twice", s.Issue(ctx, record("c2", "vic:00000001", certs.Key{9}), certs.Claim{}, now), certs.ErrMoved)
}

func runInventory(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	must(t, s.SetClaim(ctx, a, certs.Hash{1}, now))
	claim := certs.Claim{Thing: a, Secret: certs.Hash{1}}
	one, two := record("a1", a, keyA), record("a2", a, keyA)
	two.Method, two.NotBefore = certs.MethodRenew, now.Add(time.Minute)
	must(t, s.Issue(ctx, one, claim, now))
	claim.Key = keyA
	must(t, s.Issue(ctx, two, claim, now))
	rows, err := s.Certificates(ctx, a)
	must(t, err)
	if !slices.Equal(rows, []certs.Record{two, one}) {
		t.Errorf("inventory: got %+v, want newest first", rows)
	}
	rows, err = s.Certificates(ctx, b)
	must(t, err)
	want(t, "rows of another thing", len(rows), 0)

	n, err := s.Revoke(ctx, a, "stolen", now)
	must(t, err)
	want(t, "certificates revoked", n, 2)
	n, err = s.Revoke(ctx, a, "again", now.Add(time.Hour))
	must(t, err)
	want(t, "revoked twice", n, 0)
	claim.Revoked = now
	want(t, "standing after", standing(t, s, a, keyA), certs.Standing{Claim: claim, Known: true, KeyRevoked: true})
	want(t, "the key with another thing", standing(t, s, b, keyA), certs.Standing{KeyRevoked: true})
	is(t, "issue after", s.Issue(ctx, record("a3", a, keyA), claim, now), certs.ErrMoved)
	is(t, "register after", s.SetClaim(ctx, a, certs.Hash{7}, now), certs.ErrBound)
	rows, err = s.Certificates(ctx, a)
	must(t, err)
	want(t, "rows", len(rows), 2)
	want(t, "time of revocation", rows[0].Revoked, now)
	want(t, "reason", rows[1].Reason, "stolen")

	n, err = s.Revoke(ctx, b, "of a thing never seen", now.Add(time.Minute))
	must(t, err)
	want(t, "certificates of a thing never seen", n, 0)
	is(t, "register what was revoked before it was seen", s.SetClaim(ctx, b, certs.Hash{8}, now), certs.ErrBound)
	must(t, s.Issue(ctx, record("c1", "aibo:1", certs.Key{3}), certs.Claim{}, now))
	_, err = s.Revoke(ctx, "aibo:1", "later", now.Add(time.Minute))
	must(t, err)
	list := func(before time.Time, limit int) (out []string) {
		t.Helper()
		rows, err := s.Revocations(ctx, before, limit)
		must(t, err)
		for _, r := range rows {
			out = append(out, r.Serial+" "+string(r.Thing))
		}
		return out
	}
	for _, c := range []struct {
		before time.Time
		limit  int
		want   []string
	}{{time.Time{}, 10, []string{"c1 aibo:1", "a2 vic:00e20100", "a1 vic:00e20100"}}, {time.Time{}, 1, []string{"c1 aibo:1"}},
		{now.Add(time.Minute), 10, []string{"a2 vic:00e20100", "a1 vic:00e20100"}}, {now, 10, nil}} {
		if got := list(c.before, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("revocations before %v, at most %d: %v, want %v", c.before, c.limit, got, c.want)
		}
	}
}

// Many keys at once: one is bound, and the others are told that the claim moved. A revocation leaves no certificate behind in force.
func runRace(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	must(t, s.SetClaim(ctx, a, certs.Hash{1}, now))
	claim := certs.Claim{Thing: a, Secret: certs.Hash{1}}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = s.Issue(ctx, record(string(rune('a'+i)), a, certs.Key{byte(10 + i)}), claim, now) })
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			claim.Key = certs.Key{byte(10 + i)}
		} else {
			is(t, "a key that came second", err, certs.ErrMoved)
		}
	}
	want(t, "keys bound", won, 1)
	want(t, "the key bound", standing(t, s, a, certs.Key{99}).Key, claim.Key)

	results := make(chan error, 64)
	for i := range cap(results) {
		wg.Go(func() { results <- s.Issue(ctx, record("r"+string(rune('A'+i)), a, claim.Key), claim, now) })
		if i == cap(results)/2 {
			wg.Go(func() {
				if _, err := s.Revoke(ctx, a, "stolen", now); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	close(results)
	for err := range results {
		if err != nil {
			is(t, "issued after the revocation", err, certs.ErrMoved)
		}
	}
	rows, err := s.Certificates(ctx, a)
	must(t, err)
	for _, r := range rows {
		if r.Revoked.IsZero() {
			t.Errorf("certificate %s was issued while the thing was revoked, and is in force", r.Serial)
		}
	}
}

func runDelivery(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	must(t, s.SetClaim(ctx, a, certs.Hash{1}, now))
	must(t, s.SetClaim(ctx, b, certs.Hash{2}, now))
	must(t, s.Issue(ctx, record("b1", b, keyB), certs.Claim{Thing: b, Secret: certs.Hash{2}}, now))
	_, err := s.Revoke(ctx, "aibo:9", "lost on the way", now)
	must(t, err)
	problems, err := s.SetClaims(ctx, []certs.NewClaim{{Line: 1, Thing: "vic:00000001", Secret: certs.Hash{5}},
		{Line: 2, Thing: b, Secret: certs.Hash{6}},
		{Line: 3, Thing: "vic:00000003", Secret: certs.Hash{1}}, {Line: 7, Thing: "aibo:9", Secret: certs.Hash{7}}}, now, 10)
	must(t, err)
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
		if !strings.Contains(p.Problem, "vic:") && !strings.Contains(p.Problem, "pleo:") && !strings.Contains(p.Problem, "aibo:") {
			t.Errorf("line %d: %q names no thing", p.Line, p.Problem)
		}
	}
	if !slices.Equal(lines, []int{2, 3, 7}) {
		t.Errorf("problems on lines %v, want 2, 3, 7: %v", lines, problems)
	}
	want(t, "a good line beside bad ones", standing(t, s, "vic:00000001", keyA).Known, false)
	problems, err = s.SetClaims(ctx, []certs.NewClaim{{Line: 2, Thing: b, Secret: certs.Hash{6}},
		{Line: 3, Thing: "aibo:9", Secret: certs.Hash{1}}}, now, 1)
	must(t, err)
	want(t, "problems cut off", len(problems), 1)

	// One new, one whose secret was never used, one that has enrolled with the very secret.
	problems, err = s.SetClaims(ctx, []certs.NewClaim{{Line: 1, Thing: "vic:00000001", Secret: certs.Hash{5}},
		{Line: 2, Thing: a, Secret: certs.Hash{6}},
		{Line: 3, Thing: b, Secret: certs.Hash{2}}}, now, 10)
	must(t, err)
	if len(problems) > 0 {
		t.Fatalf("problems %v", problems)
	}
	want(t, "new", standing(t, s, "vic:00000001", keyA).Claim, certs.Claim{Thing: "vic:00000001", Secret: certs.Hash{5}})
	want(t, "replaced", standing(t, s, a, keyA).Claim, certs.Claim{Thing: a, Secret: certs.Hash{6}})
	want(t, "left as it is", standing(t, s, b, keyA).Claim, certs.Claim{Thing: b, Secret: certs.Hash{2}, Key: keyB})
}

func runRelease(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	_, err := s.Release(ctx, a, certs.Hash{1}, "board swap", now)
	is(t, "release of an unknown thing", err, certs.ErrUnknown)
	must(t, s.SetClaim(ctx, a, certs.Hash{1}, now))
	must(t, s.Issue(ctx, record("a1", a, keyA), certs.Claim{Thing: a, Secret: certs.Hash{1}}, now))
	n, err := s.Release(ctx, a, certs.Hash{2}, "board swap", now)
	must(t, err)
	want(t, "certificates ended", n, 1)
	claim := certs.Claim{Thing: a, Secret: certs.Hash{2}}
	want(t, "standing of the old key", standing(t, s, a, keyA), certs.Standing{Claim: claim, Known: true, KeyReleased: true})
	rows, err := s.Certificates(ctx, a)
	must(t, err)
	if len(rows) != 1 || !rows[0].Released || rows[0].Reason != "board swap" || !rows[0].Revoked.Equal(now) {
		t.Errorf("inventory %+v", rows)
	}
	must(t, s.Issue(ctx, record("a2", a, keyB), claim, now))

	// A release opens a revoked thing again.
	_, err = s.Revoke(ctx, a, "stolen", now)
	must(t, err)
	_, err = s.Release(ctx, a, certs.Hash{3}, "found", now)
	must(t, err)
	claim.Secret = certs.Hash{3}
	want(t, "standing of a revoked key", standing(t, s, a, keyB), certs.Standing{Claim: claim, Known: true, KeyRevoked: true})

	// A key that takes the place of another gives that up.
	must(t, s.Issue(ctx, record("a3", a, certs.Key{3}), claim, now))
	claim.Key = certs.Key{3}
	must(t, s.Issue(ctx, record("a4", a, certs.Key{4}), claim, now))
	claim.Key = certs.Key{4}
	want(t, "standing of the key replaced", standing(t, s, a, certs.Key{3}), certs.Standing{Claim: claim, Known: true, KeyReleased: true})
	want(t, "standing of the key in its place", standing(t, s, a, certs.Key{4}), certs.Standing{Claim: claim, Known: true})
}

func runBatches(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	state := func() certs.FactoryState {
		t.Helper()
		st, err := s.Factory(ctx, 0)
		must(t, err)
		return st
	}
	first := state()
	if len(first.Batches)+len(first.Revoked)+len(first.RevokedThis) > 0 {
		t.Errorf("an empty store has %+v", first)
	}
	batch := certs.Batch{
		Name: "lot-2018", Bundle: []byte("PEM"), Species: thing.Vector, Organization: "Anki Inc.",
		ValidAfter: certs.FactoryValidAfter, SerialFrom: "0", SerialTo: "9", Created: now,
	}
	must(t, s.PutBatch(ctx, batch))
	rev := first.Rev
	moved := func(what string) certs.FactoryState {
		t.Helper()
		st := state()
		if st.Rev <= rev {
			t.Errorf("%s: change number %d, before %d", what, st.Rev, rev)
		}
		rev = st.Rev
		if again, err := s.Factory(ctx, rev); err != nil || again.Rev != rev || again.Batches != nil {
			t.Errorf("%s: a reader who knows %d got %+v, %v", what, rev, again, err)
		}
		return st
	}
	equal := func(what string, got, want certs.Batch) {
		t.Helper()
		if string(got.Bundle) != string(want.Bundle) {
			t.Errorf("%s: bundle %q, want %q", what, got.Bundle, want.Bundle)
		}
		got.Bundle, want.Bundle = nil, nil
		if got.Name != want.Name || got.Species != want.Species || got.Organization != want.Organization ||
			!got.ValidAfter.Equal(want.ValidAfter) || got.SerialFrom != want.SerialFrom ||
			got.SerialTo != want.SerialTo || !got.Created.Equal(want.Created) || !got.Disabled.Equal(want.Disabled) || got.Reason != want.Reason {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	equal("new", moved("put").Batches[0], batch)
	is(t, "disable an unknown batch", s.DisableBatch(ctx, "other", "x", now), certs.ErrUnknown)
	must(t, s.DisableBatch(ctx, "lot-2018", "key leaked", now))
	batch.Disabled, batch.Reason = now, "key leaked"
	equal("disabled", moved("disable").Batches[0], batch)
	again := batch
	again.Bundle, again.Created, again.Disabled, again.Reason = []byte("PEM 2"), now.Add(time.Hour), time.Time{}, ""
	must(t, s.PutBatch(ctx, again))
	batch.Bundle = again.Bundle
	equal("put again: still disabled", moved("put again").Batches[0], batch)
	must(t, s.DisableBatch(ctx, "lot-2018", "", time.Time{}))
	batch.Disabled, batch.Reason = time.Time{}, ""
	equal("enabled", moved("enable").Batches[0], batch)

	must(t, s.RevokeFactory(ctx, certs.FactoryRevocation{CertificateID: "ab", Reason: "cloned", At: now}))
	must(t, s.RevokeFactory(ctx, certs.FactoryRevocation{CertificateID: "ab", Reason: "again", At: now}))
	if got := moved("revoke").Revoked; !slices.Equal(got, []certs.FactoryRevocation{{CertificateID: "ab", Reason: "cloned", At: now}}) {
		t.Errorf("revoked %+v", got)
	}
	_, err := s.Revoke(ctx, a, "stolen", now)
	must(t, err)
	if got := moved("revoked thing").RevokedThis; !slices.Equal(got, []thing.ID{a}) {
		t.Errorf("revoked things %v", got)
	}
	_, err = s.Release(ctx, a, certs.Hash{1}, "found", now)
	must(t, err)
	if got := moved("released thing").RevokedThis; len(got) > 0 {
		t.Errorf("revoked things after a release: %v", got)
	}
}

var limits = certs.WaitingLimits{Max: 4, PerNetwork: 3, PerThing: 2, Expire: 10 * time.Minute, Refused: time.Hour}

func ask(id thing.ID, key byte, network string, at time.Time) certs.Ask {
	return certs.Ask{Thing: id, Key: certs.Key{key}, Addr: network + ":1", Network: network, At: at}
}

func runWaiting(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	put := func(what string, q certs.Ask, fresh bool, sentinel error) certs.Waiting {
		t.Helper()
		w, isFresh, err := s.Ask(ctx, q, limits)
		is(t, what, err, sentinel)
		want(t, what+": new in the list", isFresh, fresh)
		return w
	}
	list := func(at time.Time) []certs.Waiting {
		t.Helper()
		all, err := s.Waiting(ctx, at, limits)
		must(t, err)
		return all
	}
	put("first", ask(a, 1, "192.0.2.1", now), true, nil)
	got := put("again", ask(a, 1, "192.0.2.9", now.Add(time.Minute)), false, nil)
	want(t, "row", got, certs.Waiting{Thing: a, Key: certs.Key{1}, Addr: "192.0.2.9:1", First: now, Last: now.Add(time.Minute), Times: 2})
	put("another key", ask(a, 2, "192.0.2.1", now.Add(time.Minute)), true, nil)
	put("a third key of one thing", ask(a, 3, "192.0.2.2", now.Add(time.Minute)), false, certs.ErrFull)
	put("third of a network", ask(b, 1, "192.0.2.1", now.Add(time.Minute)), true, nil)
	put("fourth of a network", ask("aibo:1", 1, "192.0.2.1", now.Add(time.Minute)), false, certs.ErrFull)
	put("fourth of all", ask("aibo:1", 1, "192.0.2.3", now.Add(time.Minute)), true, nil)
	put("fifth of all", ask("aibo:2", 1, "192.0.2.4", now.Add(time.Minute)), false, certs.ErrFull)
	want(t, "waiting", len(list(now.Add(time.Minute))), 4)
	is(t, "refuse what does not wait", s.Refuse(ctx, b, certs.Key{9}, "who?", now), certs.ErrUnknown)
	must(t, s.Refuse(ctx, b, certs.Key{1}, "not ours", now.Add(time.Minute)))
	w := put("refused asks again", ask(b, 1, "192.0.2.1", now.Add(2*time.Minute)), false, nil)
	want(t, "refused", w.Refused, now.Add(time.Minute))
	want(t, "reason", w.Reason, "not ours")

	// Requests that were not repeated are gone; the refusal stays.
	later := now.Add(11*time.Minute + time.Second)
	all := list(later)
	if len(all) != 1 || all[0].Thing != b {
		t.Errorf("after 11 minutes: %+v", all)
	}
	put("room again", ask("aibo:2", 1, "192.0.2.4", later), true, nil)
	w = put("a thing that was gone is new", ask(a, 1, "192.0.2.1", later), true, nil)
	want(t, "times", w.Times, 1)
	w = put("a refusal is forgotten", ask(b, 1, "192.0.2.1", now.Add(2*time.Hour)), true, nil)
	want(t, "refused", w.Refused.IsZero(), true)

	// At once, from everywhere: never more than the limit.
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			_, _, _ = s.Ask(ctx, ask("vic:0000000"+thing.ID(rune('0'+i%8)), byte(i), "198.51.100."+string(rune('a'+i)), now.Add(3*time.Hour)), limits)
		})
	}
	wg.Wait()
	want(t, "waiting after a flood", len(list(now.Add(3*time.Hour))), limits.Max)
}

func runApprove(t *testing.T, s *certspg.Store) {
	ctx := t.Context()
	wait := func(id thing.ID, key byte) {
		t.Helper()
		_, _, err := s.Ask(ctx, ask(id, key, "192.0.2.1", now), certs.WaitingLimits{
			Max: 100, PerNetwork: 100, PerThing: 100, Expire: time.Hour, Refused: time.Hour,
		})
		must(t, err)
	}
	is(t, "approve what does not wait", s.Approve(ctx, a, keyA, now), certs.ErrUnknown)
	wait(a, 1)
	wait(a, 2)
	must(t, s.Approve(ctx, a, keyA, now))
	want(t, "approved", standing(t, s, a, keyA), certs.Standing{Claim: certs.Claim{Thing: a, Key: keyA}, Known: true})
	is(t, "approve the other key of the thing", s.Approve(ctx, a, keyB, now), certs.ErrUnknown) // removed with the first

	must(t, s.SetClaim(ctx, b, certs.Hash{1}, now))
	must(t, s.Issue(ctx, record("b1", b, certs.Key{9}), certs.Claim{Thing: b, Secret: certs.Hash{1}}, now))
	_, err := s.Revoke(ctx, "aibo:1", "stolen", now)
	must(t, err)
	must(t, s.SetClaim(ctx, "aibo:2", certs.Hash{2}, now))
	for _, id := range []thing.ID{b, "aibo:1", "aibo:2"} {
		wait(id, 5)
	}
	all, err := s.Waiting(ctx, now, limits)
	must(t, err)
	flags := map[thing.ID][3]bool{}
	for _, w := range all {
		flags[w.Thing] = [3]bool{w.Known, w.Bound, w.Revoked}
	}
	want(t, "flags of a bound thing", flags[b], [3]bool{true, true, false})
	want(t, "flags of a revoked thing", flags["aibo:1"], [3]bool{true, false, true})
	want(t, "flags of a registered thing", flags["aibo:2"], [3]bool{true, false, false})
	is(t, "approve a bound thing", s.Approve(ctx, b, certs.Key{5}, now), certs.ErrBound)
	is(t, "approve a revoked thing", s.Approve(ctx, "aibo:1", certs.Key{5}, now), certs.ErrBound)
	must(t, s.Approve(ctx, "aibo:2", certs.Key{5}, now))
	all, err = s.Waiting(ctx, now, limits)
	must(t, err)
	want(t, "left waiting", len(all), 2)
}

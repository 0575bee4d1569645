package certs_test

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/certs"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// asks is one request without any proof.
func (w world) asks(t testing.TB, id thing.ID, key *ecdsa.PrivateKey, addr string) (certs.Certificate, error) {
	t.Helper()
	return w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(id), CSR: request(t, key, id), Addr: addr})
}

func fingerprint(t testing.TB, err error) string {
	t.Helper()
	wait, ok := errors.AsType[*certs.MustWait](err)
	if !ok || errs.CodeOf(err) != "waiting_approval" || errs.KindOf(err) != errs.Unavailable || errs.RetryOf(err) <= 0 ||
		!strings.Contains(errs.Public(err), wait.Fingerprint) {
		t.Fatalf("got %v, want to wait with a fingerprint and a pause", err)
	}
	return wait.Fingerprint
}

func TestApproval(t *testing.T) {
	w := newWorld(t)
	key, impostor := newKey(t), newKey(t)
	_, err := w.asks(t, vic, key, "192.0.2.1:5")
	shown := fingerprint(t, err)
	if got := w.steps.last(t); got.OK || got.Code != "waiting_approval" || !strings.Contains(got.Reason, shown) || got.Peer != "192.0.2.1:5" {
		t.Errorf("recorded %+v", got)
	}
	_, err = w.asks(t, vic, impostor, "198.51.100.1:5")
	if fingerprint(t, err) == shown {
		t.Error("two keys show the same fingerprint")
	}
	n := len(w.steps.all)
	for range 5 { // asking again leaves no records
		_, err = w.asks(t, vic, key, "192.0.2.1:6")
		fingerprint(t, err)
	}
	if len(w.steps.all) != n {
		t.Errorf("%d records of a robot that asks again", len(w.steps.all)-n)
	}
	list, err := w.svc.Waiting(t.Context())
	if err != nil || len(list) != 2 || list[0].Key.Short() != shown || list[0].Times != 6 || list[0].Addr != "192.0.2.1:6" || list[0].Known {
		t.Errorf("waiting: %+v, %v", list, err)
	}

	for _, wrong := range []string{"", "0000-0000-0000", shown[:9]} {
		if err := w.svc.Approve(t.Context(), vic, wrong); errs.CodeOf(err) != "not_waiting" {
			t.Errorf("approved fingerprint %q: %v", wrong, err)
		}
	}
	if err := w.svc.Approve(t.Context(), vic, strings.ToLower(strings.ReplaceAll(shown, "-", " "))); err != nil {
		t.Fatal(err)
	}
	if got := w.steps.last(t); got.Step != certs.StepApproval || !got.OK {
		t.Errorf("recorded %+v", got)
	}
	cert, err := w.asks(t, vic, key, "192.0.2.1:5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: cert.PEM(), CSR: request(t, key, vic)}); err != nil {
		t.Errorf("renewal: %v", err)
	}
	rows, err := w.svc.Certificates(t.Context(), vic)
	if err != nil || len(rows) != 2 || rows[1].Method != certs.MethodKey {
		t.Errorf("inventory %+v, %v", rows, err)
	}

	// The impostor waits on, and cannot be approved beside the robot.
	_, err = w.asks(t, vic, impostor, "198.51.100.1:5")
	if err := w.svc.Approve(t.Context(), vic, fingerprint(t, err)); errs.CodeOf(err) != "thing_exists" {
		t.Errorf("approved a second key: %v", err)
	}
	if err := w.svc.Refuse(t.Context(), vic, fingerprint(t, err), "who is that?"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.asks(t, vic, impostor, "198.51.100.1:5"); errs.CodeOf(err) != "approval_refused" || errs.KindOf(err) != errs.Denied {
		t.Errorf("refused: %v", err)
	}
}

// A stranger learns nothing of a thing by asking for it: unknown, registered, enrolled and revoked ones answer alike.
func TestWaitingTellsNothing(t *testing.T) {
	w := newWorld(t)
	registered, enrolled, revoked := thing.ID("vic:00000001"), thing.ID("vic:00000002"), thing.ID("vic:00000003")
	w.register(t, registered)
	for _, id := range []thing.ID{enrolled, revoked} {
		if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{
			Thing: string(id), Secret: w.register(t, id), CSR: request(t, newKey(t), id),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.svc.Revoke(t.Context(), revoked, "stolen"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []thing.ID{"vic:00000000", registered, enrolled, revoked} {
		_, err := w.asks(t, id, newKey(t), "192.0.2.1")
		got := strings.ReplaceAll(errs.Public(err), fingerprint(t, err), "F")
		if got != "waiting for an operator to approve the robot with fingerprint F" {
			t.Errorf("%s: %q", id, got)
		}
	}
}

func TestNoApproval(t *testing.T) {
	w := newWorld(t, func(c *certs.Config) { c.NoApproval = true })
	if _, err := w.asks(t, vic, newKey(t), "192.0.2.1"); errs.CodeOf(err) != "claim_refused" {
		t.Errorf("got %v", err)
	}
	if list, err := w.svc.Waiting(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("waiting: %v, %v", list, err)
	}
}

// A flood fills neither the list beyond its bound, nor it all from one network, nor the records; a robot that waits is not pushed out.
func TestWaitingListUnderFlood(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	w := newWorld(t, func(c *certs.Config) {
		c.ByAddr, c.ByThing = noLimit{}, ratelimit.New(time.Hour, 20)
		c.Waiting, c.Now = certs.WaitingLimits{Max: 30, PerNetwork: 10}, clock
	})
	key := newKey(t)
	_, err := w.asks(t, vic, key, "192.0.2.1:1")
	shown := fingerprint(t, err)
	flood := newKey(t)
	full := 0
	for i := range 1000 {
		_, err := w.asks(t, thing.ID(fmt.Sprintf("vic:%08x", i)), flood, fmt.Sprintf("[2001:db8:0:%x::%x]:1", i%3, i))
		switch errs.CodeOf(err) {
		case "waiting_approval":
		case "waiting_list_full":
			full++
			if errs.KindOf(err) != errs.Exhausted || errs.RetryOf(err) <= 0 {
				t.Fatal(err)
			}
		default:
			t.Fatal(err)
		}
	}
	list, err := w.svc.Waiting(t.Context())
	if err != nil || len(list) != 30 || full != 1000-29 {
		t.Errorf("%d wait, %d were turned away, %v; want 30 and 971", len(list), full, err)
	}
	if n := len(w.steps.all); n > 30+3*20 {
		t.Errorf("a flood of 1000 left %d records", n)
	}
	if err := w.svc.Approve(t.Context(), vic, shown); err != nil {
		t.Errorf("the robot that waited before the flood: %v", err)
	}
	if _, err := w.asks(t, vic, key, "192.0.2.1:1"); err != nil {
		t.Error(err)
	}
	// Half an hour later the flood is forgotten.
	now = now.Add(30 * time.Minute)
	if _, err := w.asks(t, other, newKey(t), "203.0.113.1:1"); errs.CodeOf(err) != "waiting_approval" {
		t.Errorf("half an hour later: %v", err)
	}
	if list, err := w.svc.Waiting(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("half an hour later %d wait, %v", len(list), err)
	}
}

func TestFingerprintsForPeople(t *testing.T) {
	k := certs.KeyOf([]byte("a key"))
	for _, text := range []string{k.Short(), strings.ToLower(k.Short()), strings.ReplaceAll(k.Short(), "-", ""), " " + k.Short() + "\n",
		k.String(), strings.ToUpper(k.String()),
		strings.NewReplacer("0", "O", "1", "l").Replace(k.Short())} {
		if !k.Is(text) {
			t.Errorf("%q is not recognised as %s", text, k.Short())
		}
	}
	for _, text := range []string{"", k.Short()[:13], k.String()[:12], certs.KeyOf([]byte("another")).Short()} {
		if k.Is(text) {
			t.Errorf("%q passes for %s", text, k.Short())
		}
	}
}

func FuzzFingerprint(f *testing.F) {
	k := certs.KeyOf([]byte("a key"))
	f.Add(k.Short())
	f.Add(k.String())
	f.Fuzz(func(t *testing.T, text string) {
		if k.Is(text) && len(strings.Map(func(r rune) rune {
			if r == '-' || r == ' ' {
				return -1
			}
			return r
		}, strings.TrimSpace(text))) < 12 {
			t.Fatalf("%q, fewer than 12 characters, passes for %s", text, k.Short())
		}
	})
}

// A wiped robot, another board: the old key is given up and never comes back, the new secret is for the next key alone.
func TestRelease(t *testing.T) {
	w := newWorld(t)
	if _, err := w.svc.Release(t.Context(), vic, "x"); errs.CodeOf(err) != "unknown_thing" || errs.KindOf(err) != errs.NotFound {
		t.Errorf("released an unknown thing: %v", err)
	}
	first, key := w.register(t, vic), newKey(t)
	cert, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: first, CSR: request(t, key, vic)})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := w.svc.Release(t.Context(), vic, "wiped")
	if err != nil || fresh == first || len(fresh.Reveal()) < 26 {
		t.Fatalf("%v, %v", fresh, err)
	}
	if got := w.steps.last(t); got.Step != certs.StepRelease || !got.OK || strings.Contains(got.Reason, fresh.Reveal()) ||
		!strings.Contains(got.Reason, "wiped") {
		t.Errorf("recorded %+v", got)
	}
	enroll := func(with logging.Secret, key *ecdsa.PrivateKey) error {
		_, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: with, CSR: request(t, key, vic)})
		return err
	}
	next := newKey(t)
	if err := enroll(first, next); errs.CodeOf(err) != "claim_refused" {
		t.Errorf("the old secret: %v", err)
	}
	if err := enroll(fresh, key); errs.CodeOf(err) != "key_released" {
		t.Errorf("the old key with the new secret: %v", err)
	}
	if _, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: cert.PEM(), CSR: request(t, key, vic)}); errs.CodeOf(err) != "key_released" {
		t.Errorf("renewal with the old key: %v", err)
	}
	if err := enroll(fresh, next); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if err := enroll(fresh, newKey(t)); errs.CodeOf(err) != "key_mismatch" {
		t.Errorf("a third key with the new secret: %v", err)
	}

	// Revoked by mistake: registering is not enough, releasing is.
	if _, err := w.svc.Revoke(t.Context(), vic, "oops"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Register(t.Context(), vic); errs.CodeOf(err) != "thing_exists" {
		t.Errorf("registered a revoked thing: %v", err)
	}
	again, err := w.svc.Release(t.Context(), vic, "was a mistake")
	if err != nil {
		t.Fatal(err)
	}
	if err := enroll(again, next); errs.CodeOf(err) != "revoked" {
		t.Errorf("the revoked key after the release: %v", err)
	}
	if err := enroll(again, newKey(t)); err != nil {
		t.Errorf("another key after the release: %v", err)
	}
	rows, err := w.svc.Revocations(t.Context(), time.Time{}, 0)
	if err != nil || len(rows) != 2 {
		t.Errorf("revocations %+v, %v", rows, err)
	}
}

// A claim that moves between look and row is looked at again: of two keys with one secret at once exactly one gets in.
func TestTwoKeysAtOnce(t *testing.T) {
	for range 20 {
		w := newWorld(t)
		secret := w.register(t, vic)
		var wg sync.WaitGroup
		codes := make([]string, 4)
		for i := range codes {
			csr := request(t, newKey(t), vic)
			wg.Go(func() {
				_, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: secret, CSR: csr})
				if codes[i] = "in"; err != nil {
					codes[i] = errs.CodeOf(err)
				}
			})
		}
		wg.Wait()
		in := 0
		for _, c := range codes {
			if c == "in" {
				in++
			} else if c != "key_mismatch" {
				t.Errorf("a key that came second: %s", c)
			}
		}
		if in != 1 {
			t.Fatalf("%d keys got in: %v", in, codes)
		}
	}
}

// A thousand tries of a secret: few are looked at, those and the pacing are recorded, the secret never.
func TestBruteForceIsRecorded(t *testing.T) {
	w := newWorld(t, func(c *certs.Config) {
		c.ByAddr, c.ByThing = ratelimit.NewByAddr(time.Minute, 10), ratelimit.New(time.Minute, 20)
	})
	genuine := w.register(t, vic)
	csr := request(t, newKey(t), vic)
	for i := range 1000 {
		tried := logging.Secret(fmt.Sprintf("GUESS%021d", i))
		_, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: tried, CSR: csr, Addr: "192.0.2.1:7"})
		if k := errs.KindOf(err); err == nil || k != errs.Unauthenticated && k != errs.Exhausted {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	text := fmt.Sprintf("%+v", w.steps.all)
	if n := strings.Count(text, "Code:secret_mismatch"); n != 10 {
		t.Errorf("%d refused secrets are recorded, want the 10 that were looked at", n)
	}
	if n := strings.Count(text, "Code:too_many_attempts"); n < 1 || n > 25 {
		t.Errorf("pacing is recorded %d times, want 1 to 25", n)
	}
	if !strings.Contains(text, "Peer:192.0.2.1:7") || strings.Contains(text, "GUESS") || strings.Contains(text, genuine.Reveal()) {
		t.Error("the record lacks the address, or holds a secret")
	}
	// The genuine robot, from elsewhere, is let in: the flood did not lock its serial number for good.
	if _, err := w.svc.Enroll(context.Background(), certs.EnrollRequest{Thing: string(vic), Secret: genuine, CSR: csr,
		Addr: "203.0.113.9"}); err != nil {
		t.Errorf("the genuine robot: %v", err)
	}
}

package certs_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/infra/errs"
	"kennel/infra/wake"
)

// feed is a certs.Feed in memory, which may fail.
type feed struct {
	mu   sync.Mutex
	rows []certs.Revocation
	err  error
	wake wake.Signal
	asks int
}

func (f *feed) Revocations(_ context.Context, after int64, now time.Time, limit int) ([]certs.Revocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks++
	if f.err != nil {
		return nil, f.err
	}
	var out []certs.Revocation
	for _, x := range f.rows {
		if x.Seq > after && x.NotAfter.After(now) && len(out) < limit {
			out = append(out, x)
		}
	}
	return out, nil
}

func (f *feed) Follow(ctx context.Context, every time.Duration, read func(context.Context) error) error {
	f.mu.Lock()
	f.wake = wake.New()
	f.mu.Unlock()
	f.wake.Each(ctx, every, func() { _ = read(ctx) }) // f.err
	return nil
}

func (f *feed) add(notify bool, rows ...certs.Revocation) {
	f.mu.Lock()
	for _, x := range rows {
		x.Seq = int64(len(f.rows) + 1)
		f.rows = append(f.rows, x)
	}
	f.mu.Unlock()
	if notify {
		f.wake.Set()
	}
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// leafOf is as much of a certificate as the set looks at.
func leafOf(key string) *x509.Certificate {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{SerialNumber: n, RawSubjectPublicKeyInfo: []byte(key)}
}

func revocationOf(leaf *x509.Certificate, until time.Time) certs.Revocation {
	return certs.Revocation{
		Serial: leaf.SerialNumber.Text(16), Key: certs.KeyOf(leaf.RawSubjectPublicKeyInfo), Thing: "vic:00e20100", NotAfter: until,
		At: time.Now(), Reason: "stolen",
	}
}

func TestRevocationsFollowTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r := certs.NewRevocations(f)
		known, other := leafOf("a"), leafOf("b")
		if err := r.Check(other); errs.KindOf(err) != errs.Unavailable || errs.CodeOf(err) != "revocations_unknown" {
			t.Errorf("a set that nobody has read lets in: %v", err)
		}
		if err := r.Ready(t.Context()); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("ready before it was read: %v", err)
		}
		f.add(false, revocationOf(known, time.Now().Add(time.Hour)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		if err := r.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if err := r.Check(known); errs.KindOf(err) != errs.Denied || errs.CodeOf(err) != "revoked" || !strings.Contains(err.Error(), "revoked") ||
			!strings.Contains(err.Error(), "stolen") {
			t.Errorf("revoked before the start: %v", err)
		}
		if err := r.Check(other); err != nil {
			t.Error(err)
		}
		// The same key in another certificate, and the same serial number with another key.
		again := leafOf("a")
		same := leafOf("c")
		same.SerialNumber = known.SerialNumber
		if !r.Revoked(again) || !r.Revoked(same) || r.Revoked(other) {
			t.Errorf("same key %v, same serial %v, other %v", r.Revoked(again), r.Revoked(same), r.Revoked(other))
		}

		changed := r.Changed()
		f.add(true, revocationOf(other, time.Now().Add(time.Hour))) // with a notification: at once
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("a change was not announced")
		}
		if !r.Revoked(other) {
			t.Error("a notification was not followed")
		}
		third := leafOf("d")
		f.add(false, revocationOf(third, time.Now().Add(time.Hour))) // the notification was lost: within a second
		time.Sleep(time.Second)
		synctest.Wait()
		if !r.Revoked(third) {
			t.Error("without a notification a revocation is not seen within a second")
		}
		if list, last := r.List(1); len(list) != 2 || last != 3 || list[0].Seq != 2 {
			t.Errorf("list after 1: %v, last %d", list, last)
		}

		f.fail(errors.New("away"))
		time.Sleep(time.Minute)
		if err := r.Ready(t.Context()); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("ready with a set a minute old: %v", err)
		}
		if r.Check(known) == nil || r.Check(leafOf("e")) != nil {
			t.Error("while the database is away the last state does not stand")
		}
		f.fail(nil)
		time.Sleep(2 * time.Second)
		if err := r.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRevocationsForgetWhatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r := certs.NewRevocations(f)
		short, long := leafOf("a"), leafOf("b")
		f.add(false, revocationOf(short, time.Now().Add(time.Minute)), revocationOf(long, time.Now().Add(time.Hour)))
		for i := range 2500 { // more than two pages
			f.add(false, revocationOf(leafOf(fmt.Sprint("x", i)), time.Now().Add(time.Minute)))
		}
		if err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, last := r.List(0); len(list) != 2502 || last != 2502 {
			t.Fatalf("%d revocations, last %d", len(list), last)
		}
		time.Sleep(2 * time.Minute)
		f.add(false, revocationOf(leafOf("c"), time.Now().Add(time.Hour)))
		if err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, last := r.List(0); len(list) != 2 || last != 2503 || !r.Revoked(long) || r.Revoked(short) {
			t.Errorf("%d left, last %d", len(list), last)
		}
	})
}

// TestTrustRefusesRevoked: every listener refuses a revoked certificate.
func TestTrustRefusesRevoked(t *testing.T) {
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := authority.IssueDevice(&x509.CertificateRequest{PublicKey: key.Public()}, "vic:00e20100", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{}
	r := certs.NewRevocations(f)
	trust := certs.Trust{Devices: authority.DevicePool(), Services: authority.ServicePool(), Check: r.Check}
	if err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := trust.Identify(chain, time.Now()); err != nil || p.Thing != "vic:00e20100" {
		t.Errorf("%v, %v", p, err)
	}
	f.add(false, revocationOf(chain[0], chain[0].NotAfter))
	if err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := trust.Identify(chain, time.Now()); p != (certs.Peer{}) || errs.CodeOf(err) != "revoked" || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("%v, %v", p, err)
	}
}

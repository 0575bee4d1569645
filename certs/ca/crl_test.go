package ca

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/certs"
	"kennel/infra/wake"
)

// feed is a certs.Feed in memory.
type feed struct {
	mu   sync.Mutex
	rows []certs.Revocation
	err  error
}

func (f *feed) Revocations(_ context.Context, after int64, now time.Time, limit int) ([]certs.Revocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []certs.Revocation
	for _, x := range f.rows {
		if x.Seq > after && x.NotAfter.After(now) && len(out) < limit {
			out = append(out, x)
		}
	}
	return out, f.err
}

func (f *feed) Follow(ctx context.Context, every time.Duration, read func(context.Context) error) error {
	wake.New().Each(ctx, every, func() { _ = read(ctx) }) // f.err
	return nil
}

func (f *feed) add(x ...certs.Revocation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range x {
		x.Seq = int64(len(f.rows) + 1)
		f.rows = append(f.rows, x)
	}
}

func counter() func(context.Context) (int64, error) {
	var n atomic.Int64
	return func(context.Context) (int64, error) { return n.Add(1), nil }
}

func parseCRL(t *testing.T, der []byte) *x509.RevocationList {
	t.Helper()
	l, err := x509.ParseRevocationList(der)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serials(l *x509.RevocationList) []string {
	var out []string
	for _, e := range l.RevokedCertificateEntries {
		out = append(out, e.SerialNumber.Text(16))
	}
	return out
}

func TestRevocationListSaysWhatIsRevoked(t *testing.T) {
	a := newAuthority(t)
	now := time.Now()
	at := now.Add(-time.Hour)
	lists, err := a.DeviceCRLs([]certs.Revocation{
		{Serial: "abc123", NotAfter: now.Add(time.Hour), At: at},
		{Serial: "abc123", NotAfter: now.Add(time.Hour), At: at}, // twice
		{Serial: "dead", NotAfter: now.Add(-time.Second), At: at},
		{Serial: "", NotAfter: now.Add(time.Hour), At: at}, // by key
	}, 42, now)
	if err != nil || len(lists) != 1 || lists[0].Name != "device" {
		t.Fatalf("%v, %v", lists, err)
	}
	l := parseCRL(t, lists[0].DER)
	if err := l.CheckSignatureFrom(a.now().device.current().cert()); err != nil {
		t.Error(err)
	}
	if got := serials(l); len(got) != 1 || got[0] != "abc123" || l.Number.Cmp(big.NewInt(42)) != 0 {
		t.Errorf("%v, number %v", got, l.Number)
	}
	if e := l.RevokedCertificateEntries[0]; e.RevocationTime.Sub(at).Abs() > time.Second {
		t.Errorf("revoked at %v, want %v", e.RevocationTime, at)
	}
	if l.NextUpdate.Sub(now) < 6*24*time.Hour || !l.ThisUpdate.Before(now) {
		t.Errorf("from %v to %v", l.ThisUpdate, l.NextUpdate)
	}
}

func TestPublishedLists(t *testing.T) {
	a, f := newAuthority(t), &feed{}
	set := certs.NewRevocations(f)
	c := NewCRLs(a, set, counter())
	mux := http.NewServeMux()
	c.Mount(mux)
	get := func(name string) (*http.Response, []byte) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, CRLPath+name, nil))
		b, err := io.ReadAll(w.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Result(), b
	}
	if resp, _ := get("device.crl"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("before anything was read: %s", resp.Status)
	}
	if err := set.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, first := get("device.crl")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/pkix-crl" || len(serials(parseCRL(t, first))) != 0 {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	if _, again := get("device.crl"); !bytes.Equal(first, again) {
		t.Error("signed again although nothing changed")
	}
	f.add(certs.Revocation{Serial: "beef", NotAfter: time.Now().Add(time.Hour), At: time.Now()})
	if err := set.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, second := get("device.crl")
	l1, l2 := parseCRL(t, first), parseCRL(t, second)
	if got := serials(l2); len(got) != 1 || got[0] != "beef" || l2.Number.Cmp(l1.Number) <= 0 {
		t.Errorf("%v, number %v after %v", got, l2.Number, l1.Number)
	}

	old := a.now().device.current().cert()
	if _, err := a.RotateDevice(); err != nil {
		t.Fatal(err)
	}
	_, third := get("device.crl")
	l3 := parseCRL(t, third)
	if err := l3.CheckSignatureFrom(a.now().device.current().cert()); err != nil || l3.Number.Cmp(l2.Number) <= 0 {
		t.Errorf("after a rotation: %v, number %v", err, l3.Number)
	}
	_, earlier := get("device-0.crl")
	if err := parseCRL(t, earlier).CheckSignatureFrom(old); err != nil {
		t.Error(err)
	}
	_, all := get("device.pem")
	n := 0
	for block, rest := pem.Decode(all); block != nil; block, rest = pem.Decode(rest) {
		if n++; block.Type != "X509 CRL" || len(serials(parseCRL(t, block.Bytes))) != 1 {
			t.Errorf("block %d is a %s", n, block.Type)
		}
	}
	if n != 2 {
		t.Errorf("%d lists, want 2", n)
	}
	for _, name := range []string{"server.crl", "device-7.crl", "device", "device.key"} {
		if resp, _ := get(name); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
}

func TestKeepsTheBrokersFile(t *testing.T) {
	a, f := newAuthority(t), &feed{}
	set := certs.NewRevocations(f)
	c := NewCRLs(a, set, counter())
	file := filepath.Join(t.TempDir(), "device.crl")
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan struct{}, 10)
	done := make(chan error, 2)
	go func() { done <- set.Run(ctx) }()
	go func() {
		done <- c.Keep(ctx, file, func(context.Context) { written <- struct{}{} }, func(err error) { t.Error(err) })
	}()
	read := func() []string {
		t.Helper()
		select {
		case <-written:
		case <-time.After(10 * time.Second):
			t.Fatal("no file within 10 s")
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(b)
		return serials(parseCRL(t, block.Bytes))
	}
	if got := read(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	f.add(certs.Revocation{Serial: "beef", NotAfter: time.Now().Add(time.Hour), At: time.Now()})
	if got := read(); len(got) != 1 || got[0] != "beef" {
		t.Errorf("%v", got)
	}
	cancel()
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
}

package stsapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/sts"
	"kennel/cloud/identity/sts/stspg"
	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokentest"
	"kennel/cloud/originals/stsapi"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/pg/pgtest"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	robot  = thing.ID("vic:00e20100")
	other  = thing.ID("vic:00e20101")
	user   = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	bucket = "anki-device-logs-prod"
	region = "us-west-2"
	awsS3  = "s3.us-west-2.amazonaws.com"
)

// folder is where robot may write: base64 of "vic:00e20100" is written out, as the original robot sends it.
const folder = "logs/" + user + "/dmljOjAwZTIwMTAw/"

// standing refuses what is in it.
type standing struct {
	mu  sync.Mutex
	bad map[thing.ID]error
}

func (s *standing) Check(_ context.Context, g sts.Grant, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad[g.Thing]
}

func (s *standing) refuse(id thing.ID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad[id] = err
}

// clock is set by the test; an offset of 0 is the real time.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) set(off time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = off
}

// rig is a door in front of the S3 gateway, within TLS.
type rig struct {
	store  *blob.Store
	config blob.Config
	grants *sts.Grants
	change atomic.Pointer[func(*consent.Permit)] // of what the owner is and allows; nil: user, who allows uploads
	held   atomic.Int64                          // Holds that have not ended
	door   *stsapi.Door
	steps  *tokentest.Recorder
	stand  *standing
	clock  *clock
	logs   *syncBuffer
	srv    *httptest.Server
	http   *http.Client // reaches the server under any host name
	roots  *x509.CertPool
}

func newRig(t testing.TB, change ...func(*stsapi.Config)) *rig {
	t.Helper()
	r := &rig{config: blobtest.Config(t), steps: &tokentest.Recorder{}, stand: &standing{bad: map[thing.ID]error{}}, clock: &clock{}, logs: &syncBuffer{}}
	var err error
	if r.store, err = blob.Open(t.Context(), r.config); err != nil {
		t.Fatal(err)
	}
	if err := r.store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.grants, err = sts.New(sts.Config{Seal: secretbox.New(), Standing: r.stand, Now: r.clock.now}); err != nil {
		t.Fatal(err)
	}
	ask := func(_ context.Context, ids ...thing.ID) (consent.Hold, error) {
		p := consent.Permit{Account: user, Allowed: true, Owned: time.Hour, Settled: time.Hour}
		if f := r.change.Load(); f != nil {
			(*f)(&p)
		}
		r.held.Add(1)
		return consent.Hold{At: time.Now(), Asked: time.Now(), Permits: map[thing.ID]consent.Permit{ids[0]: p}, Release: sync.OnceFunc(func() { r.held.Add(-1) })}, nil
	}
	c := stsapi.Config{Grants: r.grants, Consent: ask, Store: r.store, Usage: stspg.New(pgtest.New(t)), Recorder: r.steps, Now: r.clock.now,
		Log: slog.New(slog.NewJSONHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})), Buckets: []string{bucket}}
	for _, f := range change {
		f(&c)
	}
	if r.door, err = stsapi.New(c); err != nil {
		t.Fatal(err)
	}
	r.srv = httptest.NewUnstartedServer(r.door)
	cert := certificate(t, awsS3, "*."+awsS3, "127.0.0.1")
	r.srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	r.srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // broken connections are part of the tests
	r.srv.StartTLS()
	t.Cleanup(r.srv.Close)
	r.roots = x509.NewCertPool()
	r.roots.AddCert(cert.Leaf)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", r.srv.Listener.Addr().String())
	}}
	r.http = &http.Client{Transport: tr}
	t.Cleanup(tr.CloseIdleConnections)
	return r
}

func (r *rig) mint(t testing.TB, id thing.ID) token.Credentials {
	t.Helper()
	c, err := r.grants.Mint(t.Context(), id, user)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// has reads an object straight from the gateway.
func (r *rig) has(t testing.TB, key string) []byte {
	t.Helper()
	body, _, err := r.store.Get(t.Context(), key, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (r *rig) keys(t testing.TB) (keys []string) {
	t.Helper()
	for o, err := range r.store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

func (r *rig) missing(t testing.TB, key string) {
	t.Helper()
	if _, err := r.store.Head(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%s is stored: %v", key, err)
	}
}

func certificate(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "door"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// syncBuffer collects logs of several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = append(s.b, p...)
	return len(p), nil
}

func (s *syncBuffer) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.b)
}

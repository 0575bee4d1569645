package gatewaycert

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/tokenwire"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

func openRoot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// pool is a few small keys, handed out in turn: most tests are about files, and a real key takes long on an emulated robot.
var pool = sync.OnceValues(func() (keys []*rsa.PrivateKey, err error) {
	for range 3 {
		k, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
})

var handed atomic.Int64

func config(root *os.Root) Config {
	return Config{Root: root, Species: thing.Vector, Log: slog.New(slog.DiscardHandler), key: func() (*rsa.PrivateKey, error) {
		keys, err := pool()
		if err != nil {
			return nil, err
		}
		return keys[int(handed.Add(1))%len(keys)], nil
	}}
}

func open(t testing.TB, cfg Config) *Plate {
	t.Helper()
	p, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCertificate is VEC-AUTH-02 and VEC-TOK-03, field by field, and VEC-AUTH-01: it stays across restarts.
func TestCertificate(t *testing.T) {
	root := openRoot(t)
	made := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	cfg := config(root)
	cfg.key, cfg.Now = nil, func() time.Time { return made }
	p := open(t, cfg)
	c := p.TLSCertificate().Leaf
	if !ValidName(thing.Vector, p.Name()) {
		t.Errorf("name %q", p.Name())
	}
	key, err := readKey(root)
	if err != nil || key.N.BitLen() != 2048 {
		t.Fatalf("key of %d bits, %v", key.N.BitLen(), err)
	}
	if c.SignatureAlgorithm != x509.SHA256WithRSA {
		t.Errorf("signed with %v", c.SignatureAlgorithm)
	}
	if got, want := c.Subject.String(), "CN="+p.Name()+",O=Anki,L=SF,ST=California,C=US"; got != want || c.Issuer.String() != want {
		t.Errorf("subject %q, issuer %q, want %q", got, c.Issuer, want)
	}
	if len(c.DNSNames) != 1 || c.DNSNames[0] != p.Name() || len(c.IPAddresses) != 0 {
		t.Errorf("names %q %v", c.DNSNames, c.IPAddresses)
	}
	if !c.NotBefore.Equal(made) || !c.NotAfter.Equal(made.AddDate(100, 0, 0)) {
		t.Errorf("valid %v to %v", c.NotBefore, c.NotAfter)
	}
	if c.SerialNumber.Sign() <= 0 || c.SerialNumber.BitLen() > 65 {
		t.Errorf("serial number %v", c.SerialNumber)
	}
	if fi, err := root.Stat(KeyFile); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("key file %v, %v", fi.Mode(), err)
	}
	cfg.Now = func() time.Time { return made.AddDate(1, 0, 0) }
	again := open(t, cfg)
	if !bytes.Equal(again.PEM(), p.PEM()) || again.Name() != p.Name() {
		t.Error("a restart made another")
	}
	if b, err := root.ReadFile(CertFile); err != nil || !bytes.Equal(b, p.PEM()) {
		t.Errorf("file is not what is used: %v", err)
	}
}

// TestPinnedByAddress is part of VEC-AUTH-04: a client that pins the certificate and overrides the name connects by IP address; by any other name,
// or pinning another robot's, it does not.
func TestPinnedByAddress(t *testing.T) {
	p, other := open(t, config(openRoot(t))), open(t, config(openRoot(t)))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{p.TLSCertificate()}}
	srv.StartTLS()
	defer srv.Close()
	dial := func(pin []byte, name string) error {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pin) {
			t.Fatal("not PEM")
		}
		conn, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: name})
		if err != nil {
			return err
		}
		return conn.Close()
	}
	if err := dial(p.PEM(), p.Name()); err != nil {
		t.Errorf("pinned: %v", err)
	}
	if dial(p.PEM(), "127.0.0.1") == nil || dial(other.PEM(), p.Name()) == nil {
		t.Error("a wrong name or a wrong pin was accepted")
	}
}

var errCut = errors.New("power cut")

// The power goes before any write: the next start ends in a whole set, and keeps what was made before.
func TestCutAtEveryWrite(t *testing.T) {
	for _, at := range []string{"name", "key", "certificate"} {
		root := openRoot(t)
		cfg := config(root)
		cfg.step = func(s string) {
			if s == at {
				panic(errCut)
			}
		}
		func() {
			defer func() {
				if r := recover(); r != errCut {
					t.Fatalf("%s: %v", at, r)
				}
			}()
			_, _ = Open(cfg) // it never returns
		}()
		before := map[string]string{}
		for _, f := range []string{NameFile, KeyFile, CertFile} {
			if b, err := root.ReadFile(f); err == nil {
				before[f] = string(b)
			}
		}
		if _, ok := before[CertFile]; ok {
			t.Fatalf("%s: a certificate was written before its key", at)
		}
		p := open(t, config(root))
		for f, want := range before {
			if b, err := root.ReadFile(f); err != nil || string(b) != want {
				t.Errorf("cut at %s: %s was made again (%v)", at, f, err)
			}
		}
		if p2 := open(t, config(root)); !bytes.Equal(p2.PEM(), p.PEM()) {
			t.Errorf("cut at %s: the state after is not whole", at)
		}
	}
}

func TestDamage(t *testing.T) {
	for _, tc := range []struct {
		name               string
		file, content      string // content "": removed
		sameName, sameCert bool
	}{
		{"name gone", NameFile, "", true, true}, // the certificate still says it
		{"name damaged", NameFile, "Bob\n", true, true},
		{"name of another species", NameFile, "Pleo-AAAA\n", true, true},
		{"key gone", KeyFile, "", true, false},
		{"key damaged", KeyFile, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", true, false},
		{"key is empty", KeyFile, "\n", true, false},
		{"certificate gone", CertFile, "", true, false},
		{"certificate half written", CertFile, "-----BEGIN CERTIFICATE-----\nMIIB", true, false},
		{"name changed by a person", NameFile, "Vector-Q2Q2\n", false, false},
	} {
		root := openRoot(t)
		before := open(t, config(root))
		var err error
		if tc.content == "" {
			err = root.Remove(tc.file)
		} else {
			err = root.WriteFile(tc.file, []byte(tc.content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		after := open(t, config(root))
		if (after.Name() == before.Name()) != tc.sameName || bytes.Equal(after.PEM(), before.PEM()) != tc.sameCert {
			t.Errorf("%s: name %s -> %s, same certificate %v", tc.name, before.Name(), after.Name(), bytes.Equal(after.PEM(), before.PEM()))
		}
		if err := fits(after.TLSCertificate().Leaf, mustKey(t, root), after.Name()); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func mustKey(t *testing.T, root *os.Root) *rsa.PrivateKey {
	t.Helper()
	k, err := readKey(root)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A certificate that cannot be made is fault 920 (VEC-AUTH-01).
func TestFault(t *testing.T) {
	root := openRoot(t)
	if err := root.WriteFile("data", nil, 0o600); err != nil { // a file in the way
		t.Fatal(err)
	}
	if _, err := Open(config(root)); err == nil || !strings.Contains(err.Error(), "fault 920") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(Config{Root: root, Log: slog.New(slog.DiscardHandler), Species: "cat"}); err == nil {
		t.Error("a species without names was taken")
	}
}

func TestNamesOfSpecies(t *testing.T) {
	for _, s := range []thing.Species{thing.Vector, thing.AmigoBot, thing.Pleo, thing.AIBO} {
		seen := map[string]bool{}
		for range 50 {
			n := newName(s)
			if !ValidName(s, n) {
				t.Fatalf("%q is not a name of %s", n, s)
			}
			seen[n] = true
		}
		if len(seen) < 45 {
			t.Errorf("%s: %d names of 50 differ", s, len(seen))
		}
	}
	for _, bad := range []string{"", "Vector-", "Vector-E5S", "Vector-E5S66", "vector-E5S6", "Vector E5S6", "Vector-e5s6", "Vector-E5S/", "Pleo-E5S6"} {
		if ValidName(thing.Vector, bad) {
			t.Errorf("%q accepted", bad)
		}
	}
}

type asked struct {
	bodies [][]byte
	err    error
}

func (a *asked) Do(_ context.Context, service, method string, body []byte) ([]byte, error) {
	if service != "token" || method != "certificate" {
		return nil, errors.New("asked " + service + "/" + method)
	}
	a.bodies = append(a.bodies, body)
	return []byte("{}"), a.err
}

// TestPost is VEC-AUTH-03: until the cloud has it, once, and again for another certificate.
func TestPost(t *testing.T) {
	root := openRoot(t)
	p := open(t, config(root))
	cloud := &asked{err: errs.New(errs.Unavailable, "away")}
	if err := p.Post(t.Context(), cloud); errs.KindOf(err) != errs.Unavailable || p.Posted() {
		t.Errorf("%v, posted %v", err, p.Posted())
	}
	cloud.err = nil
	for range 2 {
		if err := p.Post(t.Context(), cloud); err != nil {
			t.Fatal(err)
		}
	}
	p = open(t, config(root))
	if !p.Posted() || len(cloud.bodies) != 2 {
		t.Errorf("posted %v, asked %d times", p.Posted(), len(cloud.bodies))
	}
	got, err := tokenwire.Parse[tokenwire.Certificate](cloud.bodies[1])
	if err != nil || got.SessionCertificate != string(p.PEM()) {
		t.Errorf("body %s, %v", cloud.bodies[1], err)
	}
	if err := root.Remove(CertFile); err != nil {
		t.Fatal(err)
	}
	if open(t, config(root)).Posted() {
		t.Error("a new certificate counts as posted")
	}
	if bytes.Contains(bytes.Join(cloud.bodies, nil), []byte("PRIVATE")) {
		t.Error("a private key went to the cloud")
	}
}

func FuzzParse(f *testing.F) {
	root := openRoot(f)
	open(f, config(root))
	for _, name := range []string{KeyFile, CertFile} {
		b, err := robotfs.ReadFile(root, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := ParseCertificate(b); err == nil {
			if again, err := ParseCertificate(encode(c)); err != nil || !again.Equal(c) {
				t.Fatalf("came back different: %v", err)
			}
		}
		if k, err := ParseKey(b); err == nil && k == nil {
			t.Fatal("no key and no error")
		}
	})
}

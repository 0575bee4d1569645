// Package mqtttest starts an embedded broker with its own small authorities, for tests that want the real wire: TLS sockets, certificates,
// authorisation.
package mqtttest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kennel/infra/freeaddr"
	"kennel/infra/mqtt/broker"
	"kennel/infra/thing"
)

// CA is an authority that lives as long as its test.
type CA struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes an authority.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	key := newKey(t)
	tmpl := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &CA{parse(t, der), key}
}

// Issue makes a leaf for clients and servers alike, valid from an hour ago to an hour from now; change alters it before it is signed.
func (ca *CA) Issue(t testing.TB, cn string, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	return ca.IssueFor(t, cn, newKey(t), change...)
}

// IssueFor is Issue for a key of the caller's.
func (ca *CA) IssueFor(t testing.TB, cn string, key crypto.Signer, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	tmpl := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: cn}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, f := range change {
		f(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.Cert, key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parse(t, der)}
}

// PEM returns the authority's certificate.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw})
}

// Broker is a broker, or a place for one, with its authorities.
type Broker struct {
	Device, Service, Server *CA
	Config                  broker.Config // Listen names a free port after New; the address once started
	URL                     string        // ssl://127.0.0.1:port

	stop func()
}

// New makes authorities, files and a port for a broker without starting it.
func New(t testing.TB) *Broker {
	t.Helper()
	b := &Broker{Device: NewCA(t, "Test Device CA"), Service: NewCA(t, "Test Service CA"), Server: NewCA(t, "Test Server CA")}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	leaf := b.Server.Issue(t, "localhost")
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	addr := freeaddr.For(t)
	b.URL = "ssl://" + addr
	b.Config = broker.Config{
		Listen:    addr,
		Cert:      write("server.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]})),
		Key:       write("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		DeviceCA:  write("device.crt", b.Device.PEM()),
		ServiceCA: write("service.crt", b.Service.PEM()),
	}
	return b
}

// Start makes and starts a broker that stops with the test.
func Start(t testing.TB) *Broker {
	t.Helper()
	b := New(t)
	b.Start(t)
	return b
}

// Start starts the broker and waits until it listens. After Stop it can be started again.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	listening := make(chan struct{})
	cfg := b.Config
	cfg.Listening = func(net.Addr) { close(listening) }
	done := make(chan error, 1)
	go func() { done <- broker.Run(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("broker: %v", err)
		}
	})
	t.Cleanup(b.stop)
	select {
	case <-listening:
	case err := <-done:
		done <- nil
		t.Fatalf("broker: %v", err)
	}
}

// Stop stops the broker and waits for its end.
func (b *Broker) Stop() { b.stop() }

// ConfigFile writes the configuration as the file a broker process reads.
func (b *Broker) ConfigFile(t testing.TB) string {
	t.Helper()
	data, err := json.Marshal(b.Config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "broker.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// With returns client settings that trust the broker and present certs.
func (b *Broker) With(certs ...tls.Certificate) func() (*tls.Config, error) {
	roots := x509.NewCertPool()
	roots.AddCert(b.Server.Cert)
	return func() (*tls.Config, error) { return &tls.Config{RootCAs: roots, Certificates: certs}, nil }
}

// Thing returns the client settings of a thing.
func (b *Broker) Thing(t testing.TB, id thing.ID) func() (*tls.Config, error) {
	t.Helper()
	return b.With(b.Device.Issue(t, string(id)))
}

// Cloud returns the client settings of a process of the cloud.
func (b *Broker) Cloud(t testing.TB) func() (*tls.Config, error) {
	t.Helper()
	return b.With(b.Service.Issue(t, "kenneld"))
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func parse(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

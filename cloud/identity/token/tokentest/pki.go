package tokentest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"kennel/infra/thing"
)

// anki is the O of every factory certificate.
const anki = "Anki Inc."

// Authority signs certificates of one kind.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t)}
	a.Cert = create(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, a.key, a.key)
	return a
}

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Cert)
	return p
}

// Leaf makes a certificate from a template, of which only what is not given is filled in.
func (a *Authority) Leaf(t testing.TB, tmpl x509.Certificate) tls.Certificate {
	t.Helper()
	key := newKey(t)
	c := create(t, &tmpl, a.Cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

// Factory makes a certificate as the original robots have it: O Anki Inc., CN the thing, valid beyond 2100.
func (a *Authority) Factory(t testing.TB, id thing.ID) tls.Certificate {
	t.Helper()
	return a.Leaf(t, x509.Certificate{Subject: pkix.Name{CommonName: string(id), Organization: []string{anki}}, NotAfter: time.Date(2118, 1, 1, 0, 0, 0, 0, time.UTC)})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func create(t testing.TB, tmpl, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	tmpl.SerialNumber = serial
	if tmpl.NotBefore.IsZero() {
		tmpl.NotBefore = time.Now().Add(-time.Hour)
	}
	if tmpl.NotAfter.IsZero() {
		tmpl.NotAfter = time.Now().Add(time.Hour)
	}
	if !tmpl.IsCA && tmpl.ExtKeyUsage == nil {
		tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	if parent == nil {
		parent = tmpl
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// GatewayCert makes a robot's self-signed SDK certificate (VEC-AUTH-02), as PEM.
func GatewayCert(t testing.TB, name string) []byte {
	t.Helper()
	key := newKey(t)
	c := create(t, &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{"Anki"}, Country: []string{"US"}}, DNSNames: []string{name}}, nil, key, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// Trust is token.Robots and token.Services over two authorities, with the original's checks of a factory certificate.
type Trust struct{ Robots, OurServices *x509.CertPool }

// Identify implements token.Robots.
func (r Trust) Identify(chain []*x509.Certificate) (thing.ID, error) {
	leaf := chain[0]
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: r.Robots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return "", fmt.Errorf("client certificate CN %.60q: %w", leaf.Subject.CommonName, err)
	}
	if !slices.Equal(leaf.Subject.Organization, []string{anki}) {
		return "", fmt.Errorf("client certificate of O %.60q: want exactly one, %q", leaf.Subject.Organization, anki)
	}
	return thing.Parse(leaf.Subject.CommonName)
}

// Service implements token.Services.
func (r Trust) Service(chain []*x509.Certificate) (string, error) {
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: r.OurServices, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return "", errors.New("client certificate does not belong to a service")
	}
	return chain[0].Subject.CommonName, nil
}

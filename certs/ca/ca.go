// Package ca is the certificate authority of one cloud: a root and three issuing authorities below it, as files in a folder.
//
//	root.crt root.key         signs the three below, and nothing else; robots trust it alone
//	device.crt device.key     device certificates: CN = thing id, client authentication only, no other name
//	server.crt server.key     the cloud's listeners: server authentication only
//	service.crt service.key   the cloud's own clients (the consumer of the broker): client authentication only
//
// An issuing authority carries the usage it may issue for, so that a verifier refuses a server certificate made by the device authority;
// and devices and services have separate authorities, so that a device certificate with a clever name is no service (see certs.Trust).
// After Init the root's key may be taken away to a safe place: Load works without it.
//
// Any of the four may be replaced with overlap (Prepare, Activate, Withdraw): device-1.crt beside device.crt, and so on. All of them are
// trusted. The one that device.current names signs; without that file, the oldest. An issuing file holds one certificate for each root that
// vouches for the authority, all with the same name and key, so that robots that know either root accept the cloud.
//
// Keys are ECDSA P-256, PKCS#8 PEM, mode 0600; or a file device.kms in place of device.key names a key in a key management service (see
// kms.go). Every key is on disk before the certificate that names it, and each file is whole or absent: a start that was killed at any
// point is completed by the next Init.
package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"go.step.sm/crypto/x509util"

	"kennel/certs/internal/pemfile"
)

const year = 365 * 24 * time.Hour

// Lifetimes of authorities: a robot may be switched off for years, and its root cannot be replaced from afar.
const (
	rootLife    = 30 * year
	issuingLife = 20 * year
)

// Authority issues certificates. Safe for concurrent use.
type Authority struct {
	dir string
	cur atomic.Pointer[state]
}

// state is the content of the folder at one moment.
type state struct {
	seen                          [sha256.Size]byte // of the files
	root, device, server, service line
	roots, devices, services      *x509.CertPool
}

func (a *Authority) now() *state { return a.cur.Load() }

// Kind is one of the four authorities: also the first word of its files' names.
type Kind string

// The authorities.
const (
	Root    Kind = "root"
	Device  Kind = "device"
	Server  Kind = "server"
	Service Kind = "service"
)

// kind holds an authority's name and rights.
type kind struct {
	file    Kind
	name    string
	life    time.Duration
	profile x509util.Certificate
}

// The authorities. EKU on an issuing authority bounds what verifiers accept from it.
var (
	rootKind    = kind{Root, "Kennel Root CA", rootLife, profile(`{"keyUsage":["certSign","crlSign"],"basicConstraints":{"isCA":true,"maxPathLen":1}}`)}
	deviceKind  = kind{Device, "Kennel Device CA", issuingLife, issuing("clientAuth")}
	serverKind  = kind{Server, "Kennel Server CA", issuingLife, issuing("serverAuth")}
	serviceKind = kind{Service, "Kennel Service CA", issuingLife, issuing("clientAuth")}
)

func newKey() (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// sign makes the authority's certificate. Its name ends in a piece of its key's fingerprint, so that people tell two clouds' roots apart.
func (k kind) sign(key crypto.Signer, parent *generation) (*x509.Certificate, error) {
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(spki)
	c := k.profile
	c.Subject = x509util.Subject{CommonName: k.name + " " + hex.EncodeToString(sum[:4]), Organization: x509util.MultiString{"Kennel"}}
	now := time.Now()
	c.NotBefore, c.NotAfter = now.Add(-24*time.Hour), now.Add(k.life)
	template := c.GetCertificate()
	if parent == nil {
		return x509util.CreateCertificate(template, template, key.Public(), key)
	}
	return x509util.CreateCertificate(template, parent.cert(), key.Public(), parent.key)
}

// Root returns the trusted roots as PEM, the signing one first, for robots and people to install.
func (a *Authority) Root() []byte { return pemfile.EncodeChain(a.now().root.each()...) }

// RootName returns the common name of the root that signs, such as "Kennel Root CA 3fa9c1d2".
func (a *Authority) RootName() string { return a.now().root.current().cert().Subject.CommonName }

// DeviceBundle returns the trusted device authorities as PEM, without the root: a verifier that trusts these trusts devices and nothing
// else. OpenSSL-based verifiers need partial chains allowed for that, or Anchors.
func (a *Authority) DeviceBundle() []byte { return pemfile.EncodeChain(a.now().device.each()...) }

// ServiceBundle returns the trusted service authorities as PEM, without the root.
func (a *Authority) ServiceBundle() []byte { return pemfile.EncodeChain(a.now().service.each()...) }

// DevicePool returns the current DeviceBundle as a pool. The pool is shared: do not add to it.
func (a *Authority) DevicePool() *x509.CertPool { return a.now().devices }

// ServicePool returns the current ServiceBundle as a pool. The pool is shared: do not add to it.
func (a *Authority) ServicePool() *x509.CertPool { return a.now().services }

// RootPool returns the current Root as a pool. The pool is shared: do not add to it.
func (a *Authority) RootPool() *x509.CertPool { return a.now().roots }

// Anchors applies anchor to each trusted authority of a kind and returns the results as PEM; see mosquitto.Anchor.
func (a *Authority) Anchors(k Kind, anchor func(cert *x509.Certificate, key crypto.Signer) ([]byte, error)) ([]byte, error) {
	l, err := a.now().line(k)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, g := range l.ordered() {
		if g.key == nil {
			return nil, fmt.Errorf("anchor of %s: its key is not in this folder", g.name)
		}
		b, err := anchor(g.cert(), g.key)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

func pool(certs ...*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}

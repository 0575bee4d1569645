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
// Keys are ECDSA P-256, PKCS#8 PEM, mode 0600. Every key is on disk before the certificate that names it, and each file is whole or
// absent: a start that was killed at any point is completed by the next Init.
package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.step.sm/crypto/x509util"

	"kennel/certs/internal/pemfile"
)

const year = 365 * 24 * time.Hour

// Lifetimes of authorities: a robot may lie in a drawer for years, and a root cannot be replaced on it from afar.
const (
	rootLife    = 30 * year
	issuingLife = 20 * year
)

// Authority issues certificates. Safe for concurrent use.
type Authority struct {
	root    *x509.Certificate
	device  *issuer
	server  *issuer
	service *issuer
}

// issuer is one authority that can sign.
type issuer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// kind says what an authority is called and what it may do.
type kind struct {
	file, name string
	life       time.Duration
	profile    x509util.Certificate
}

// The authorities. EKU on an issuing authority bounds what verifiers accept from it.
var (
	rootKind    = kind{"root", "Kennel Root CA", rootLife, profile(`{"keyUsage":["certSign","crlSign"],"basicConstraints":{"isCA":true,"maxPathLen":1}}`)}
	deviceKind  = kind{"device", "Kennel Device CA", issuingLife, issuing("clientAuth")}
	serverKind  = kind{"server", "Kennel Server CA", issuingLife, issuing("serverAuth")}
	serviceKind = kind{"service", "Kennel Service CA", issuingLife, issuing("clientAuth")}
)

// Init makes what is missing in dir and returns the authority: a new one in an empty folder, the rest of one whose making was interrupted,
// or the one that is there. One process at a time. What it cannot complete it names: a certificate whose key is gone, a key that does not fit.
func Init(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return open(dir, true)
}

// Load returns the authority that Init made in dir. The error names the file that is missing, damaged or does not fit.
func Load(dir string) (*Authority, error) { return open(dir, false) }

func open(dir string, create bool) (*Authority, error) {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	defer folder.Close() // everything was synced
	fail := func(err error) (*Authority, error) {
		return nil, fmt.Errorf("certificate authority in %s: %w", dir, err)
	}
	root, err := authority(folder, rootKind, nil, create)
	if err != nil {
		return fail(err)
	}
	a := &Authority{root: root.cert}
	for _, x := range []struct {
		kind kind
		to   **issuer
	}{{deviceKind, &a.device}, {serverKind, &a.server}, {serviceKind, &a.service}} {
		is, err := authority(folder, x.kind, root, create)
		if err != nil {
			return fail(err)
		}
		if err := is.cert.CheckSignatureFrom(root.cert); err != nil {
			return fail(fmt.Errorf("%s.crt was not signed by root.crt: %w", x.kind.file, err))
		}
		*x.to = is
	}
	return a, nil
}

// authority loads one authority, or makes it: key first, then certificate. parent is nil for the root, whose key is optional once it exists.
func authority(folder *os.Root, k kind, parent *issuer, create bool) (*issuer, error) {
	crtName, keyName := k.file+".crt", k.file+".key"
	key, err := readKey(folder, keyName)
	if err != nil {
		return nil, err
	}
	crt, err := pemfile.Read(folder, crtName)
	switch {
	case err == nil:
		chain, err := pemfile.ParseChain(crt)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", crtName, err)
		}
		cert := chain[0]
		switch {
		case key == nil && parent != nil:
			return nil, fmt.Errorf("%s is there but %s is not: restore it from a backup", crtName, keyName)
		case key != nil && !pemfile.SameKey(key, cert.PublicKey):
			return nil, fmt.Errorf("%s does not belong to %s", keyName, crtName)
		}
		return &issuer{cert, key}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !create:
		return nil, fmt.Errorf("%s is missing: it was never made here, or its making was interrupted", crtName)
	case parent != nil && parent.key == nil:
		return nil, fmt.Errorf("%s is missing and root.key, which would sign it, is not here", crtName)
	}
	if key == nil {
		if key, err = newKey(); err != nil {
			return nil, err
		}
		b, err := pemfile.EncodeKey(key)
		if err != nil {
			return nil, err
		}
		if err := pemfile.Write(folder, keyName, b, 0o600); err != nil {
			return nil, err
		}
	}
	cert, err := k.sign(key, parent)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", crtName, err)
	}
	if err := pemfile.Write(folder, crtName, pemfile.EncodeChain(cert), 0o644); err != nil {
		return nil, err
	}
	return &issuer{cert, key}, nil
}

// readKey returns nil if there is no such file.
func readKey(folder *os.Root, name string) (crypto.Signer, error) {
	b, err := pemfile.Read(folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := pemfile.ParseKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

func newKey() (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// sign makes the authority's certificate. Its name ends in a piece of its key's fingerprint, so that people tell two clouds' roots apart.
func (k kind) sign(key crypto.Signer, parent *issuer) (*x509.Certificate, error) {
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
	return x509util.CreateCertificate(template, parent.cert, key.Public(), parent.key)
}

// Root returns the root certificate as PEM: what robots and people install.
func (a *Authority) Root() []byte { return pemfile.EncodeChain(a.root) }

// RootName returns the root's common name, such as "Kennel Root CA 3fa9c1d2".
func (a *Authority) RootName() string { return a.root.Subject.CommonName }

// DeviceBundle returns the device authorities as PEM, without the root: a verifier that trusts these trusts devices and nothing else.
// OpenSSL-based verifiers need partial chains allowed for that.
func (a *Authority) DeviceBundle() []byte { return pemfile.EncodeChain(a.device.cert) }

// ServiceBundle returns the service authorities as PEM, without the root.
func (a *Authority) ServiceBundle() []byte { return pemfile.EncodeChain(a.service.cert) }

// DevicePool returns DeviceBundle as a pool.
func (a *Authority) DevicePool() *x509.CertPool { return pool(a.device.cert) }

// ServicePool returns ServiceBundle as a pool.
func (a *Authority) ServicePool() *x509.CertPool { return pool(a.service.cert) }

// RootPool returns Root as a pool.
func (a *Authority) RootPool() *x509.CertPool { return pool(a.root) }

func pool(c *x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c)
	return p
}

package broker

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
	"kennel/infra/tlsserver"
)

// minExponent is the smallest that enrolment takes (package certs); an earlier version took smaller ones.
const minExponent = 65537

// ServicePrefix begins the common name and the client id of the cloud's processes.
const ServicePrefix = "kenneld"

// identity is the client's identity, proved by its certificate.
type identity struct {
	cn       string
	issuer   string    // common name
	thing    thing.ID  // a thing
	service  bool      // the cloud
	notAfter time.Time // a session ends with its certificate
	serial   string    // of the certificate, hex
	key      [sha256.Size]byte
	refusal  *refusal // neither: why
}

type refusal struct{ code, reason string }

// refused returns a refusal of this client, with the certificate that it showed.
func (i identity) refused(addr, clientID, code, reason string) brokerapi.Refusal {
	return brokerapi.Refusal{
		Addr: addr, ClientID: clientID, CN: i.cn, Issuer: i.issuer, Serial: i.serial, NotAfter: i.notAfter, Code: code,
		Reason: reason,
	}
}

// trust is the content of the files: our certificate and the authorities that we trust.
type trust struct {
	raw               [][]byte // the files' bytes, to see a change
	server            *tls.Config
	devices, services *x509.CertPool
}

func loadTrust(cfg Config) (*trust, error) {
	t := &trust{}
	for _, f := range []string{cfg.Cert, cfg.Key, cfg.DeviceCA, cfg.ServiceCA} {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		t.raw = append(t.raw, b)
	}
	pair, err := tls.X509KeyPair(t.raw[0], t.raw[1])
	if err != nil {
		return nil, fmt.Errorf("server certificate %s with key %s: %w", cfg.Cert, cfg.Key, err)
	}
	if t.devices, err = pool(cfg.DeviceCA, t.raw[2]); err != nil {
		return nil, err
	}
	if t.services, err = pool(cfg.ServiceCA, t.raw[3]); err != nil {
		return nil, err
	}
	t.server = tlsserver.Config()
	t.server.Certificates, t.server.NextProtos = []tls.Certificate{pair}, []string{"mqtt", "x-amzn-mqtt-ca"}
	t.server.ClientAuth = tls.RequestClientCert // judged by identify, so that a refusal has a reason
	return t, nil
}

func pool(file string, pem []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate: want PEM", file)
	}
	return p, nil
}

// trustFiles keeps the trust of the files, reread while watch runs.
type trustFiles struct {
	cfg Config
	now atomic.Pointer[trust]
}

// watch looks at the files every ten seconds. Files that do not load, as while they are being replaced, leave the last trust in force.
func (f *trustFiles) watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.reload(ctx, log)
		}
	}
}

func (f *trustFiles) reload(ctx context.Context, log *slog.Logger) {
	t, err := loadTrust(f.cfg)
	if err != nil {
		log.WarnContext(ctx, "certificate files unreadable; keeping the loaded ones", logging.Err, err)
		return
	}
	for i, old := range f.now.Load().raw {
		if !bytes.Equal(old, t.raw[i]) {
			f.now.Store(t)
			log.InfoContext(ctx, "certificate files reloaded")
			return
		}
	}
}

// identify judges the chain that a client proved possession of, leaf first. A thing is believed by the device authority only, the cloud by
// the service authority only: never by its name alone (infra/adr/0005).
func (t *trust) identify(chain []*x509.Certificate, now time.Time) identity {
	if len(chain) == 0 {
		return identity{refusal: &refusal{brokerapi.CodeNoCertificate, "no client certificate: want one issued by the device authority"}}
	}
	leaf := chain[0]
	who := identity{
		cn: leaf.Subject.CommonName, issuer: leaf.Issuer.CommonName, notAfter: leaf.NotAfter, serial: leaf.SerialNumber.Text(16),
		key: sha256.Sum256(leaf.RawSubjectPublicKeyInfo),
	}
	id, notThing := thing.Parse(who.cn)
	service := strings.HasPrefix(who.cn, ServicePrefix)
	roots, authority := t.devices, "device authority"
	if service {
		roots, authority = t.services, "service authority"
	}
	if err := verify(chain, roots, now); err != nil {
		who.refusal = explain(leaf, err, authority, now)
		return who
	}
	rsaKey, _ := leaf.PublicKey.(*rsa.PublicKey)
	switch {
	case rsaKey != nil && rsaKey.E < minExponent:
		who.refusal = &refusal{brokerapi.CodeWeakKey, fmt.Sprintf("certificate for an RSA key with the public exponent %d: want at least %d", rsaKey.E, minExponent)}
	case service:
		who.service = true
	case notThing != nil:
		who.refusal = &refusal{brokerapi.CodeBadName, "certificate's common name: " + notThing.Error()}
	default:
		who.thing = id
	}
	return who
}

func verify(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

func explain(leaf *x509.Certificate, err error, authority string, now time.Time) *refusal {
	const layout = time.RFC3339
	now = now.UTC()
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil {
		if c := invalid.Cert; now.Before(c.NotBefore) {
			return &refusal{brokerapi.CodeNotYetValid, fmt.Sprintf("certificate %q is valid from %s and the time here is %s: check both clocks", c.Subject.CommonName,
				c.NotBefore.UTC().Format(layout), now.Format(layout))}
		}
		return &refusal{brokerapi.CodeExpired, fmt.Sprintf("certificate %q expired at %s and the time here is %s: renew it", invalid.Cert.Subject.CommonName,
			invalid.Cert.NotAfter.UTC().Format(layout), now.Format(layout))}
	}
	return &refusal{brokerapi.CodeForeign, fmt.Sprintf("certificate %q issued by %q: want one issued by our %s (%v)", leaf.Subject.CommonName,
		leaf.Issuer.CommonName, authority, err)}
}

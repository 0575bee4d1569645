// Package brokerauth decides which clients a broker lets in: by the chain of their certificate, and by the cloud's list of what was revoked
// or blocked. The embedded broker asks it at each CONNECT; so does the service that answers a NATS server (infra/mqtt/brokeradmin/natsserver).
package brokerauth

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
)

// minExponent is the smallest that enrolment takes (package certs); an earlier version took smaller ones.
const minExponent = 65537

// ServicePrefix begins the common name and the client id of the cloud's processes.
const ServicePrefix = "kenneld"

// Identity is who a client is, proved by its certificate.
type Identity struct {
	CN       string
	Issuer   string    // common name
	Thing    thing.ID  // a thing
	Service  bool      // the cloud
	NotAfter time.Time // a session ends with its certificate
	Serial   string    // of the certificate, hex
	Key      [sha256.Size]byte
	Refusal  *Refusal // neither: why
}

// Refusal says why a client may not come in: one of brokerapi's codes, and a sentence for people.
type Refusal struct{ Code, Reason string }

// Refused returns a refusal of this client, with the certificate that it showed.
func (i Identity) Refused(addr, clientID, code, reason string) brokerapi.Refusal {
	return brokerapi.Refusal{
		Addr: addr, ClientID: clientID, CN: i.CN, Issuer: i.Issuer, Serial: i.Serial, NotAfter: i.NotAfter, Code: code,
		Reason: reason,
	}
}

// Trust holds the authorities whose clients may come in.
type Trust struct{ Devices, Services *x509.CertPool }

// ClientID returns why a client that proved to be i may not call itself clientID, or nil: a thing has its own name, a service one that begins with
// ServicePrefix.
func (i Identity) ClientID(clientID string) *Refusal {
	switch {
	case i.Service && !strings.HasPrefix(clientID, ServicePrefix):
		return &Refusal{brokerapi.CodeClientID, fmt.Sprintf("client id %.64q of a service: want one that starts with %s", clientID, ServicePrefix)}
	case !i.Service && clientID != string(i.Thing):
		return &Refusal{brokerapi.CodeClientID, fmt.Sprintf("client id %.64q: the certificate is for %s", clientID, i.Thing)}
	}
	return nil
}

// Identify judges the chain that a client proved possession of, leaf first. A thing is believed by the device authority only, the cloud by
// the service authority only: never by its name alone (infra/adr/0005).
func (t Trust) Identify(chain []*x509.Certificate, now time.Time) Identity {
	if len(chain) == 0 {
		return Identity{Refusal: &Refusal{brokerapi.CodeNoCertificate, "no client certificate: want one issued by the device authority"}}
	}
	leaf := chain[0]
	who := Identity{
		CN: leaf.Subject.CommonName, Issuer: leaf.Issuer.CommonName, NotAfter: leaf.NotAfter, Serial: leaf.SerialNumber.Text(16),
		Key: sha256.Sum256(leaf.RawSubjectPublicKeyInfo),
	}
	id, notThing := thing.Parse(who.CN)
	service := strings.HasPrefix(who.CN, ServicePrefix)
	roots, authority := t.Devices, "device authority"
	if service {
		roots, authority = t.Services, "service authority"
	}
	if err := verify(chain, roots, now); err != nil {
		who.Refusal = explain(leaf, err, authority, now)
		return who
	}
	rsaKey, _ := leaf.PublicKey.(*rsa.PublicKey)
	switch {
	case rsaKey != nil && rsaKey.E < minExponent:
		who.Refusal = &Refusal{brokerapi.CodeWeakKey, fmt.Sprintf("certificate for an RSA key with the public exponent %d: want at least %d", rsaKey.E, minExponent)}
	case service:
		who.Service = true
	case notThing != nil:
		who.Refusal = &Refusal{brokerapi.CodeBadName, "certificate's common name: " + notThing.Error()}
	default:
		who.Thing = id
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

func explain(leaf *x509.Certificate, err error, authority string, now time.Time) *Refusal {
	const layout = time.RFC3339
	now = now.UTC()
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil {
		if c := invalid.Cert; now.Before(c.NotBefore) {
			return &Refusal{brokerapi.CodeNotYetValid, fmt.Sprintf("certificate %q is valid from %s and the time here is %s: check both clocks", c.Subject.CommonName,
				c.NotBefore.UTC().Format(layout), now.Format(layout))}
		}
		return &Refusal{brokerapi.CodeExpired, fmt.Sprintf("certificate %q expired at %s and the time here is %s: renew it", invalid.Cert.Subject.CommonName,
			invalid.Cert.NotAfter.UTC().Format(layout), now.Format(layout))}
	}
	return &Refusal{brokerapi.CodeForeign, fmt.Sprintf("certificate %q issued by %q: want one issued by our %s (%v)", leaf.Subject.CommonName,
		leaf.Issuer.CommonName, authority, err)}
}

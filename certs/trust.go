package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"kennel/infra/thing"
)

// Trust decides what the holder of a client certificate is, by the issuing authority and never by the name alone, so that a device
// authority cannot issue a service certificate.
type Trust struct {
	Devices  *x509.CertPool // device authorities
	Services *x509.CertPool // service authorities
	// Check, if set, is asked about every certificate that is good otherwise; its error is the refusal (Revocations.Check).
	Check func(leaf *x509.Certificate) error
}

// Peer is the thing or the service of ours that a client certificate names. Exactly one field is set.
type Peer struct {
	Thing   thing.ID
	Service string
}

// Identify checks a client's chain, leaf first, at time now, and returns the peer. The error says what is wrong with the certificate. It
// may be shown to the peer, because it contains only what the peer sent.
func (t Trust) Identify(chain []*x509.Certificate, now time.Time) (Peer, error) {
	if len(chain) == 0 {
		return Peer{}, errors.New("no client certificate")
	}
	leaf := chain[0]
	cn := leaf.Subject.CommonName
	opts := x509.VerifyOptions{CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	opts.Roots = t.Services
	if opts.Roots != nil {
		if _, err := leaf.Verify(opts); err == nil {
			return t.checked(leaf, Peer{Service: cn})
		}
	}
	opts.Roots = t.Devices
	if opts.Roots == nil {
		return Peer{}, errors.New("no device authority configured")
	}
	if _, err := leaf.Verify(opts); err != nil {
		return Peer{}, fmt.Errorf("client certificate CN %.60q of issuer %.60q: %w", cn, leaf.Issuer.CommonName, err)
	}
	id, err := thing.Parse(cn)
	if err != nil {
		return Peer{}, fmt.Errorf("client certificate: %w", err)
	}
	return t.checked(leaf, Peer{Thing: id})
}

func (t Trust) checked(leaf *x509.Certificate, p Peer) (Peer, error) {
	if err := checkKey(leaf.PublicKey); err != nil { // an earlier version issued for weaker ones
		return Peer{}, fmt.Errorf("client certificate: %w", err)
	}
	if t.Check != nil {
		if err := t.Check(leaf); err != nil {
			return Peer{}, fmt.Errorf("client certificate: %w", err)
		}
	}
	return p, nil
}

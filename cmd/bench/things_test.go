package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"kennel/certs/ca"
	"kennel/infra/thing"
)

// firstSerial is the serial number of the first invented thing; the robots of a house have others.
const firstSerial = 0x00b00000

// certLife is the life of our certificates: longer than any run.
const certLife = 24 * time.Hour

// issuer makes identities from the authorities of a house.
type issuer struct{ ca *ca.Authority }

func openIssuer(dir string) (issuer, error) {
	a, err := ca.Load(dir)
	return issuer{a}, err
}

// peer is a client with a certificate.
type peer struct {
	id  thing.ID // "": a service of the cloud
	tls *tls.Config
}

// thing makes the n-th thing.
func (i issuer) thing(n int) (peer, error) {
	id, err := thing.New(thing.Vector, fmt.Sprintf("%08x", firstSerial+n))
	if err != nil {
		return peer{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return peer{}, err
	}
	chain, err := i.ca.IssueDevice(&x509.CertificateRequest{PublicKey: key.Public()}, id, certLife)
	if err != nil {
		return peer{}, err
	}
	cert := tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, c := range chain {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	return peer{id, i.config(cert)}, nil
}

// things makes n things, from the first-th on.
func (i issuer) things(first, n int) ([]peer, error) {
	out := make([]peer, n)
	for k := range out {
		var err error
		if out[k], err = i.thing(first + k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// service makes the credentials of one of the cloud's programs.
func (i issuer) service() (peer, error) {
	pair, err := i.ca.IssueService("kenneld", certLife)
	if err != nil {
		return peer{}, err
	}
	cert, err := pair.TLS()
	return peer{tls: i.config(cert)}, err
}

func (i issuer) config(cert tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.ca.RootPool(), ServerName: "localhost", Certificates: []tls.Certificate{cert}}
}

// credentials is p for infra/mqtt.
func (p peer) credentials() (*tls.Config, error) { return p.tls, nil }

// loginTime bounds one login or handshake, on a machine that is busy with many.
const loginTime = time.Minute

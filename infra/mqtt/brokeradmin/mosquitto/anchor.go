package mosquitto

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// Anchor returns, as PEM, a certificate of the authority cert that is signed by its own key instead of its parent's: same name, same key,
// same validity, so that it vouches for the authority's certificates.
//
// Brokers built on OpenSSL need it. They accept a chain only when it ends in a self-signed certificate; given an issuing authority and the
// root above it they would also accept certificates of the root's other authorities, and a device certificate would be accepted at the
// services' listener (infra/adr/0005). With an anchor as the only trusted certificate only that authority counts.
func Anchor(cert *x509.Certificate, key crypto.Signer) ([]byte, error) {
	if !cert.IsCA {
		return nil, fmt.Errorf("anchor: %s: want an authority", cert.Subject)
	}
	if pub, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !pub.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("anchor: the key does not belong to %s", cert.Subject)
	}
	template := &x509.Certificate{
		SerialNumber: cert.SerialNumber, RawSubject: cert.RawSubject, SubjectKeyId: cert.SubjectKeyId, NotBefore: cert.NotBefore, NotAfter: cert.NotAfter,
		KeyUsage: cert.KeyUsage, ExtKeyUsage: cert.ExtKeyUsage, IsCA: true, BasicConstraintsValid: true, MaxPathLen: cert.MaxPathLen,
		MaxPathLenZero: cert.MaxPathLenZero,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("anchor of %s: %w", cert.Subject, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// MaxCSR is the largest certificate request read, in bytes.
const MaxCSR = 16 << 10

// Bounds of RSA keys, in bits. The upper one bounds the work of checking a stranger's signature.
const (
	minRSA = 2048
	maxRSA = 4096
	// minExponent is the exponent of every key of today. With a small exponent such as 3, flaws in how signatures are padded have let forgers in.
	minExponent = 65537
)

// CheckRequest parses a certificate request, PEM or DER, and returns it if a device certificate for id may be made of it: signed by its own
// key, of a kind we accept (P-256, P-384, Ed25519, RSA of 2048 to 4096 bits with an exponent from 65537 on), CN = id, and asking for nothing else. Errors are Invalid with
// one of the codes csr_malformed, csr_signature, csr_subject, csr_extra, key_weak; they contain only facts that the peer sent.
func CheckRequest(b []byte, id thing.ID) (*x509.CertificateRequest, error) {
	csr, err := parseRequest(b)
	if err != nil {
		return nil, err
	}
	if err := checkKey(csr.PublicKey); err != nil {
		return nil, err
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, errs.Coded(errs.Invalid, "csr_signature", "certificate request is not signed by its own key")
	}
	if csr.Subject.CommonName != string(id) {
		return nil, errs.Coded(errs.Invalid, "csr_subject", "certificate request is for CN %.60q: want %s", csr.Subject.CommonName, id)
	}
	if n := len(csr.Subject.Names); n != 1 {
		return nil, errs.Coded(errs.Invalid, "csr_extra", "certificate request has %d subject fields: want only CN", n)
	}
	if len(csr.Extensions) > 0 {
		return nil, errs.Coded(errs.Invalid, "csr_extra", "certificate request asks for extension %v: want none; a device certificate has no "+
			"other names", csr.Extensions[0].Id)
	}
	return csr, nil
}

func parseRequest(b []byte) (*x509.CertificateRequest, error) {
	if len(b) > MaxCSR {
		return nil, errs.Coded(errs.Invalid, "csr_malformed", "certificate request is larger than %d bytes", MaxCSR)
	}
	der := b
	if block, rest := pem.Decode(b); block != nil {
		if block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" {
			return nil, errs.Coded(errs.Invalid, "csr_malformed", "PEM block %.40q: want CERTIFICATE REQUEST", block.Type)
		}
		if len(bytes.TrimSpace(rest)) > 0 {
			return nil, errs.Coded(errs.Invalid, "csr_malformed", "data after the certificate request")
		}
		der = block.Bytes
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, errs.Coded(errs.Invalid, "csr_malformed", "parse certificate request: %w", err)
	}
	return csr, nil
}

func checkKey(pub any) error {
	switch k := pub.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return nil
		}
		return weak("ECDSA key on %s", k.Curve.Params().Name)
	case ed25519.PublicKey:
		return nil
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < minRSA || n > maxRSA {
			return weak("RSA key of %d bits", n)
		}
		if k.E < minExponent {
			return weak("RSA key with the public exponent %d", k.E)
		}
		return nil
	}
	return weak("key of an unknown kind")
}

func weak(format string, args ...any) error {
	return errs.Coded(errs.Invalid, "key_weak", format+": want P-256, P-384, Ed25519 or RSA of 2048 to 4096 bits with an exponent from 65537 on", args...)
}

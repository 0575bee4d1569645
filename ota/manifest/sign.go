package manifest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"kennel/ota"
)

// MaxSignature bounds a signature, in bytes. A key of 8192 bits makes one of this length.
const MaxSignature = 1024

// Sign returns the signature of a manifest, manifest.sha256 (VEC-OTA-05). The key must be an RSA key.
func Sign(key crypto.Signer, raw []byte) ([]byte, error) {
	if _, ok := key.Public().(*rsa.PublicKey); !ok {
		return nil, fmt.Errorf("sign the manifest: the key is a %T: want an RSA key", key.Public())
	}
	sum := sha256.Sum256(raw)
	sig, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("sign the manifest: %w", err)
	}
	return sig, nil
}

// Verify checks the signature of a manifest. The error has code ota.NotAuthentic.
func Verify(key *rsa.PublicKey, raw, signature []byte) error {
	sum := sha256.Sum256(raw)
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature); err != nil {
		return ota.Fail(ota.NotAuthentic, "manifest.sha256 is not the key's signature of manifest.ini: %w", err)
	}
	return nil
}

// ParseKey reads the public key that Verify needs, such as a robot's ota.pub, in PEM.
func ParseKey(text []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("want a public key in PEM, as openssl rsa -pubout writes it")
	}
	if block.Type == "RSA PUBLIC KEY" {
		return x509.ParsePKCS1PublicKey(block.Bytes)
	}
	if block.Type != "PUBLIC KEY" {
		return nil, fmt.Errorf("PEM block %.40q: want PUBLIC KEY", block.Type)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("public key is a %T: want an RSA key", key)
	}
	return public, nil
}

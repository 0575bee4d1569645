// Package pemfile keeps keys and certificates as PEM files that are whole or absent, for the authority in the cloud and for the identity
// on the robot. It stays lean, because both sides link it.
package pemfile

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kennel/infra/atomicfile"
)

// MaxFile is the largest file read, in bytes: a chain is under 8 KiB.
const MaxFile = 256 << 10

// MaxChain is how many certificates ParseChain takes.
const MaxChain = 16

// The types of PEM block written and read here.
const (
	certBlock = "CERTIFICATE"
	keyBlock  = "PRIVATE KEY" // PKCS#8
)

// Write replaces name with data, whole or not at all (infra/atomicfile). Missing folders are made 0700.
func Write(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	return atomicfile.Write(root, name, data, perm, 0o700)
}

// Read reads a file of at most MaxFile bytes. A missing file is fs.ErrNotExist.
func Read(root *os.Root, name string) ([]byte, error) {
	return atomicfile.Read(root, name, MaxFile)
}

// EncodeKey returns key as one PKCS#8 PEM block.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// ParseKey reads one private key: PKCS#8 as we write it, or the two older forms that openssl writes. Errors never quote the content.
func ParseKey(b []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, errors.New("no PEM block: want a private key")
	}
	var key any
	var err error
	switch block.Type {
	case keyBlock:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("PEM block %.40q: want a private key", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("private key is damaged: %w", err)
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key is a %T, which cannot sign", key)
	}
	return s, nil
}

// EncodeChain returns the certificates as PEM, in order.
func EncodeChain(chain ...*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, c := range chain {
		_ = pem.Encode(&b, &pem.Block{Type: certBlock, Bytes: c.Raw}) // a buffer takes everything
	}
	return b.Bytes()
}

// ParseChain reads 1 to MaxChain certificates. Anything else in b, apart from text between the blocks, is an error.
func ParseChain(b []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for {
		block, rest := pem.Decode(b)
		if block == nil {
			break
		}
		if block.Type != certBlock {
			return nil, fmt.Errorf("PEM block %d is %.40q: want CERTIFICATE", len(chain)+1, block.Type)
		}
		if len(chain) == MaxChain {
			return nil, fmt.Errorf("more than %d certificates", MaxChain)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d is damaged: %w", len(chain)+1, err)
		}
		chain, b = append(chain, c), rest
	}
	if len(chain) == 0 {
		return nil, errors.New("no certificate: want PEM blocks of type CERTIFICATE")
	}
	return chain, nil
}

// SameKey reports whether pub is the public half of key.
func SameKey(key crypto.Signer, pub crypto.PublicKey) bool {
	k, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(pub)
}

package onebox

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kennel/infra/atomicfile"
	"kennel/infra/onebox"
)

// Names of the development key that signs releases of a one-machine cloud: the private one is below secrets.
const (
	releaseKeyName = "release.key"
	releasePubName = "ota.pub"

	releaseRootName = "tuf/1.root.json" // below secrets: the first root of release metadata (vouchwire)
)

// releaseKey returns the file of the public key that verifies releases, which robots have as ota.pub. The first call makes the pair; a key that the operator
// put there is kept.
func releaseKey(inst *onebox.Instance) (public string, err error) {
	file := filepath.Join(inst.Paths.Secrets, releaseKeyName)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		key, err := rsa.GenerateKey(rand.Reader, 3072)
		if err != nil {
			return "", err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return "", err
		}
		if err := inst.PutSecret(releaseKeyName, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
			return "", err
		}
	}
	pair, err := readReleaseKey(file)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKIXPublicKey(&pair.PublicKey)
	if err != nil {
		return "", err
	}
	public = filepath.Join(inst.Paths.Root, releasePubName)
	return public, atomicfile.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// readReleaseKey reads the private key of the pair.
func readReleaseKey(file string) (*rsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("release key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("release key %s: want a private key in PEM", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("release key %s: %w", file, err)
	}
	pair, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("release key %s is a %T: want an RSA key", file, key)
	}
	return pair, nil
}

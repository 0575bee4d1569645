package tufrepowire

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kennel/infra/atomicfile"
	"kennel/ota/trust"
)

// Develop makes c sign with keys of a one-machine cloud: secrets/tuf-root.key signs root, and kenneld does not read it afterwards; secrets/tuf.key signs all other roles.
// The first call makes the keys, and the first metadata in secrets/tuf. put replaces a secret by its name.
func (c *Config) Develop(secrets string, put func(name string, b []byte) error) error {
	const rootKey, otherKey = "tuf-root.key", "tuf.key"
	c.First, c.Keys = filepath.Join(secrets, "tuf"), []string{filepath.Join(secrets, otherKey)}
	root := filepath.Join(c.First, "1.root.json") // comes last: it says that all is there
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var keys [2]crypto.Signer
	var who [2]trust.Role
	for i, name := range []string{rootKey, otherKey} {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		if err := put(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
			return err
		}
		keys[i], who[i] = key, trust.Role{Keys: []crypto.PublicKey{key.Public()}, Threshold: 1}
	}
	expires := time.Now().AddDate(10, 0, 0)
	first, e1 := trust.EditRoot(nil, map[string]trust.Role{"root": who[0], "targets": who[1], "snapshot": who[1], "timestamp": who[1]}, expires)
	targets, e2 := trust.EditTargets(1, nil, map[string]trust.Role{"prod": who[1], "beta": who[1], "dev": who[1]}, expires)
	if err := errors.Join(e1, e2, os.MkdirAll(c.First, 0o700)); err != nil {
		return err
	}
	first, e1 = trust.Sign(first, keys[0])
	targets, e2 = trust.Sign(targets, keys[1])
	if err := errors.Join(e1, e2); err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(c.First, "targets.json"), targets, 0o600); err != nil {
		return err
	}
	return atomicfile.WriteFile(root, first, 0o600)
}

package natsserver

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nkeys"

	"kennel/infra/errs"
)

// account is the NATS account of robots and cloud.
const account = "KENNEL"

// minSecret is the least length of a secret, in characters: 128 bits in hex.
const minSecret = 32

// Keys are what proves to the servers that a program is kenneld, in addition to its certificate. The servers know the public halves only. All keys
// are made of one secret, so that there is one file to keep and to copy to every kenneld.
type Keys struct {
	service nkeys.KeyPair // user in the robots' account
	system  nkeys.KeyPair // user in the system account
	issuer  nkeys.KeyPair // signs the answers about logins
}

// NewKeys derives the keys from secret, which has at least 32 characters and should be random (kind Invalid).
func NewKeys(secret string) (Keys, error) {
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecret {
		return Keys{}, errs.New(errs.Invalid, "nats secret of %d characters: want at least %d", len(secret), minSecret)
	}
	var k Keys
	for _, one := range []struct {
		to   *nkeys.KeyPair
		kind nkeys.PrefixByte
		use  string
	}{{&k.service, nkeys.PrefixByteUser, "service"}, {&k.system, nkeys.PrefixByteUser, "system"}, {&k.issuer, nkeys.PrefixByteAccount, "issuer"}} {
		seed, err := hkdf.Key(sha256.New, []byte(secret), nil, "kennel nats "+one.use, 32)
		if err != nil {
			return Keys{}, err
		}
		raw, err := nkeys.EncodeSeed(one.kind, seed)
		if err != nil {
			return Keys{}, err
		}
		if *one.to, err = nkeys.FromSeed(raw); err != nil {
			return Keys{}, err
		}
	}
	return k, nil
}

// ReadKeys is NewKeys with the content of a file.
func ReadKeys(file string) (Keys, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Keys{}, err
	}
	k, err := NewKeys(string(b))
	if err != nil {
		return Keys{}, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

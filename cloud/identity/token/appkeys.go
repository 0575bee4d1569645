package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Bounds of a file of app keys.
const (
	maxAppKeys = 1000
	maxAppKey  = 256 // bytes
)

// AppKeys is the app keys that are accepted: opaque strings that robots are configured with (VEC-CLD-01). Only their hashes are kept.
type AppKeys struct{ hashes [][sha256.Size]byte }

// ParseAppKeys reads a list: one key a line; empty lines and lines that begin with # do not count. The error names a line, never a key.
func ParseAppKeys(text string) (AppKeys, error) {
	var out AppKeys
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case len(line) > maxAppKey || strings.ContainsAny(line, " \t\x00") || !utf8.ValidString(line):
			return AppKeys{}, errs.New(errs.Invalid, "app keys: line %d: want one key without blanks, of at most %d bytes", i+1, maxAppKey)
		case len(out.hashes) == maxAppKeys:
			return AppKeys{}, errs.New(errs.Invalid, "app keys: line %d: want at most %d keys", i+1, maxAppKeys)
		}
		out.hashes = append(out.hashes, sha256.Sum256([]byte(line)))
	}
	return out, nil
}

// LoadAppKeys reads a file.
func LoadAppKeys(file string) (AppKeys, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return AppKeys{}, fmt.Errorf("app keys: %w", err)
	}
	keys, err := ParseAppKeys(string(b))
	if err != nil {
		return AppKeys{}, fmt.Errorf("%s: %w", file, err)
	}
	return keys, nil
}

// Len returns how many keys there are.
func (k AppKeys) Len() int { return len(k.hashes) }

// Has reports whether key is one of them. How long it takes does not depend on which.
func (k AppKeys) Has(key logging.Secret) bool {
	sum := sha256.Sum256([]byte(key))
	found := 0
	for _, h := range k.hashes {
		found |= subtle.ConstantTimeCompare(sum[:], h[:])
	}
	return found == 1
}

package das

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Profiles puts a keyed hash in place of profile ids. Robots make theirs of the owner's account id (VEC-TOK-09), and original ones always will; the
// hash ties the events of one profile together as well as the id does, and leads to no account without the key.
type Profiles struct{ key []byte }

// NewProfiles returns the hashes of a key of at least 32 bytes (infra/secretbox).
func NewProfiles(key []byte) Profiles { return Profiles{key} }

// hashed begins every hash, and with its length tells it from ids.
const hashed = "p."

const hashLength = len(hashed) + 24

// Key returns the hash of an id, of 144 bits; a hash is its own.
func (p Profiles) Key(id string) string {
	if p.Keyed(id) {
		return id
	}
	h := hmac.New(sha256.New, p.key)
	_, _ = h.Write([]byte(id)) // a hash takes everything
	return hashed + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// Keyed reports whether id has the form of a hash. An id in base64 has no dot.
func (p Profiles) Keyed(id string) bool {
	return len(id) == hashLength && strings.HasPrefix(id, hashed)
}

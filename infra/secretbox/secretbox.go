// Package secretbox keeps small secrets where others can read: a value sealed with the cloud's key file can lie in a table or travel through a
// stranger's hands, and comes back whole or not at all. Every process of one cloud has the same file.
//
// A value is sealed for one purpose ("token/key", "sts/grant"); each purpose has its own key, derived from the file's, so that what was
// sealed for one never opens for another.
package secretbox

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"kennel/infra/atomicfile"
)

// KeySize is the size of a key, in bytes.
const KeySize = 32

// ErrOpen says that a value was not sealed with this key for this purpose, or was changed since. It deliberately gives no details.
var ErrOpen = errors.New("secretbox: not sealed with this key for this purpose")

// Key is the cloud's key. It hides itself from logs and formatting.
type Key struct{ b [KeySize]byte }

// String hides the key.
func (Key) String() string { return "[secret]" }

// GoString hides the key from %#v.
func (Key) GoString() string { return "[secret]" }

// New makes a random key.
func New() Key {
	var k Key
	rand.Read(k.b[:])
	return k
}

// Parse reads what Text wrote. The error does not repeat the text.
func Parse(text string) (Key, error) {
	var k Key
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != KeySize {
		return Key{}, fmt.Errorf("sealing key: want %d bytes in base64 on one line", KeySize)
	}
	copy(k.b[:], b)
	return k, nil
}

// Text returns the key as one line, for its file alone.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k.b[:]) + "\n" }

// Load reads a key file. The error names the file.
func Load(file string) (Key, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Key{}, fmt.Errorf("sealing key: %w", err)
	}
	k, err := Parse(string(b))
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

// Init loads a key file, or makes one with mode 0600. A file is whole or absent: a start that was killed is completed by the next.
func Init(file string) (Key, error) {
	k, err := Load(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	k = New()
	tmp, err := os.CreateTemp(filepath.Dir(file), ".seal-*") // 0600
	if err != nil {
		return Key{}, fmt.Errorf("sealing key: %w", err)
	}
	defer os.Remove(tmp.Name()) // after the rename there is none
	if _, err := tmp.WriteString(k.Text()); err != nil {
		return Key{}, errors.Join(fmt.Errorf("sealing key: %w", err), tmp.Close())
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return Key{}, fmt.Errorf("sealing key: %w", err)
	}
	if err := os.Link(tmp.Name(), file); errors.Is(err, fs.ErrExist) { // another process was first: its key counts
		return Load(file)
	} else if err != nil {
		return Key{}, fmt.Errorf("sealing key: %w", err)
	}
	folder, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return Key{}, fmt.Errorf("sealing key: %w", err)
	}
	defer folder.Close()                                    // only read
	if err := atomicfile.SyncDir(folder, "."); err != nil { // what is sealed with a key that a power cut takes back is lost
		return Key{}, fmt.Errorf("sealing key: %w", err)
	}
	return k, nil
}

// Sealer seals and opens values of one purpose. Safe for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// For returns the sealer of a purpose.
func (k Key) For(purpose string) Sealer {
	b, err := hkdf.Key(sha256.New, k.b[:], nil, "kennel "+purpose, chacha20poly1305.KeySize)
	if err != nil {
		panic(err) // only for lengths that SHA-256 cannot give
	}
	aead, err := chacha20poly1305.NewX(b)
	if err != nil {
		panic(err) // only for another key length
	}
	return Sealer{aead}
}

// Secret returns 32 bytes that only holders of the key can compute from label: a key of its own for each label.
func (k Key) Secret(label string) []byte {
	b, err := hkdf.Key(sha256.New, k.b[:], nil, "kennel secret "+label, KeySize)
	if err != nil {
		panic(err) // as above
	}
	return b
}

// Seal returns plain encrypted, with a random nonce; about, which may be empty, is not in the result but must be the same at Open.
func (s Sealer) Seal(plain, about []byte) []byte {
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	rand.Read(nonce)
	return s.aead.Seal(nonce, nonce, plain, about)
}

// Open returns what Seal was given; ErrOpen.
func (s Sealer) Open(sealed, about []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, ErrOpen
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], about)
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

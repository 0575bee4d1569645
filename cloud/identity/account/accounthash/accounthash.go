// Package accounthash hashes passwords with argon2id (RFC 9106) in the usual text form, $argon2id$v=19$m=...,t=...,p=...$salt$hash.
//
// New hashes take 19 MiB, two passes, one lane: the second recommendation of OWASP's password storage guide, about 30 ms of one core.
// At most Parallel are computed at once, so a flood of logins costs at most Parallel x 19 MiB; a bounded number waits, the rest are told to
// come back. Addresses take turns, and when the queue is full the address with the most in it loses its last: who asks once waits for one turn of
// each of the others, however much they ask for. Known places come first.
package accounthash

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"

	"kennel/cloud/identity/account"
)

// Parameters of new hashes.
const (
	memory  = 19 * 1024 // KiB
	passes  = 2
	lanes   = 1
	saltLen = 16
	keyLen  = 32
)

// Parallel is how many hashes are computed at once; MaxWaiting how many callers wait for their turn.
const (
	Parallel   = 2
	MaxWaiting = 64
)

// Bounds of stored parameters: a damaged row must not take the machine down.
const (
	maxMemory = 256 * 1024 // KiB
	maxPasses = 16
	maxLanes  = 8
)

// Hasher is an account.Hasher. Safe for concurrent use.
type Hasher struct {
	cost  Cost
	queue queue
}

// Cost is the work of one new hash. Each stored hash says its own.
type Cost struct {
	Memory uint32 // KiB
	Passes uint32
}

// New returns a hasher that computes at most Parallel hashes at once, at the cost that the package's comment says.
func New() *Hasher { return NewAt(Cost{memory, passes}) }

// NewAt is New at another cost: a lower cost than New's protects no password, and is for tests of everything but the hashing.
func NewAt(c Cost) *Hasher { return &Hasher{cost: c} }

// Hash returns the hash of a password with a new salt.
func (h *Hasher) Hash(ctx context.Context, password string, by account.Share) (string, error) {
	p := params{h.cost.Memory, h.cost.Passes, lanes, make([]byte, saltLen), nil}
	_, _ = rand.Read(p.salt) // never fails
	key, err := h.compute(ctx, p, password, keyLen, by)
	if err != nil {
		return "", err
	}
	p.key = key
	return p.String(), nil
}

// Verify reports whether password is the one that was hashed. Errors: Exhausted "busy" with a pause if too many wait already; a damaged hash.
func (h *Hasher) Verify(ctx context.Context, hash, password string, by account.Share) (bool, error) {
	p, err := parse(hash)
	if err != nil {
		return false, fmt.Errorf("stored password hash: %w", err)
	}
	key, err := h.compute(ctx, p, password, len(p.key), by)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, p.key) == 1, nil
}

func (h *Hasher) compute(ctx context.Context, p params, password string, n int, by account.Share) ([]byte, error) {
	if err := h.queue.enter(ctx, by); err != nil {
		return nil, err
	}
	defer h.queue.leave()
	return argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.lanes, uint32(n)), nil
}

type params struct {
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
}

var b64 = base64.RawStdEncoding.Strict()

func (p params) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.passes, p.lanes, b64.EncodeToString(p.salt), b64.EncodeToString(p.key))
}

// parse reads the text form. Errors never quote it.
func parse(s string) (p params, err error) {
	f := strings.Split(s, "$")
	if len(f) != 6 || f[0] != "" || f[1] != "argon2id" || f[2] != "v="+strconv.Itoa(argon2.Version) {
		return p, errors.New("want $argon2id$v=19$m=,t=,p=$salt$hash")
	}
	var lanes uint32
	settings := strings.Split(f[3], ",")
	if len(settings) != 3 {
		return p, errors.New("want m, t and p")
	}
	for i, x := range []struct {
		name     string
		min, max uint64
		to       *uint32
	}{{"m=", 8, maxMemory, &p.memory}, {"t=", 1, maxPasses, &p.passes}, {"p=", 1, maxLanes, &lanes}} {
		digits, ok := strings.CutPrefix(settings[i], x.name)
		v, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || v < x.min || v > x.max || strconv.FormatUint(v, 10) != digits {
			return p, fmt.Errorf("parameter %s: want %d to %d", x.name, x.min, x.max)
		}
		*x.to = uint32(v)
	}
	p.lanes = uint8(lanes)
	if p.salt, err = b64.DecodeString(f[4]); err != nil || len(p.salt) < 8 || len(p.salt) > 64 {
		return p, errors.New("salt: want 8 to 64 bytes of base64")
	}
	if p.key, err = b64.DecodeString(f[5]); err != nil || len(p.key) < 16 || len(p.key) > 64 {
		return p, errors.New("hash: want 16 to 64 bytes of base64")
	}
	return p, nil
}

package account

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
)

// Bounds of guessing: ours, no source gives them. A person who signs in from a new place is a stranger too, so strangers at one account share
// strangerTries, few for each address: one address, or fifty, cannot use them up.
const (
	freeTries     = 5 // wrong passwords in a row before a lane is locked
	firstLock     = 30 * time.Second
	maxLock       = 15 * time.Minute
	newTries      = 2                   // of an address that is new at an account, beside the lane of all strangers
	strangerTries = 120                 // of all new addresses at one account
	strangerEvery = time.Minute         // and one more each minute
	attemptMemory = 24 * time.Hour      // after which a failure is forgotten
	NearMemory    = 30 * 24 * time.Hour // how long an address is known after a sign-in
)

// From is where an attempt to sign in comes from.
type From struct {
	Addr   string
	Device logging.Secret // what Login.Device gave this browser; "": nothing
}

// Share says whose turn a piece of slow work is: one address has one share of the queue, and known places come first.
type Share struct {
	Addr  string
	Known bool
}

// AttemptStore counts attempts, so that every process paces them together. Its methods are safe for concurrent use.
type AttemptStore interface {
	// Failures returns how often in a row this key failed, and when last; 0 if never.
	Failures(ctx context.Context, key Hash) (int, time.Time, error)
	// Fail counts one more failure of key and returns how many there are now.
	Fail(ctx context.Context, key Hash, at time.Time) (int, error)
	// Forgive forgets the failures of key.
	Forgive(ctx context.Context, key Hash) error
	// Take takes one of burst tokens of key, of which one comes back each interval, and reports whether there was one.
	Take(ctx context.Context, key Hash, at time.Time, every time.Duration, burst int) (bool, error)
	// Near reports whether an account signed in at a place after since.
	Near(ctx context.Context, id ID, place Hash, since time.Time) (bool, error)
	// Visit notes that an account signed in at a place.
	Visit(ctx context.Context, id ID, place Hash, at time.Time) error
}

// lane is a counter of wrong passwords. Who fails in one lane does not hold up another.
type lane struct {
	key      Hash
	stranger Hash // counter of this address; zero: the lane of a known place
}

// laneKey returns the key of a counter: its first half names what is aimed at, so that erasure finds all of it; its second half where from.
func laneKey(aim, from string) (h Hash) {
	a, f := sha256.Sum256([]byte(aim)), sha256.Sum256([]byte(from))
	copy(h[:16], a[:])
	copy(h[16:], f[:])
	return h
}

// loginKey is the counter of strangers' guesses at an e-mail.
func loginKey(email string) Hash { return laneKey("login "+emailKey(email), "") }

// place names an address at which an account signed in; who has the database alone cannot find the address.
func (s *SignIn) place(id ID, addr string) (h Hash) {
	copy(h[:], s.mac("place "+string(id)+" "+ratelimit.Network(addr), nil))
	return h
}

// laneOf finds the lane of an attempt at an e-mail. Known browsers have one each, and so have the addresses at which the account signed in lately;
// all others are strangers. Unknown e-mails are asked about alike.
func (s *SignIn) laneOf(ctx context.Context, id ID, email string, from From) (lane, error) {
	aim := "login " + emailKey(email)
	near, err := s.cfg.Attempts.Near(ctx, id, s.place(id, from.Addr), s.cfg.Now().Add(-NearMemory))
	if err != nil {
		return lane{}, fmt.Errorf("read known places: %w", err)
	}
	if nonce, ok := s.knows(id, from.Device); ok {
		return lane{key: laneKey(aim, "device "+nonce)}, nil
	}
	if near {
		return lane{key: laneKey(aim, "near "+ratelimit.Network(from.Addr))}, nil
	}
	return lane{key: loginKey(email), stranger: laneKey(aim, "from "+ratelimit.Network(from.Addr))}, nil
}

// guess checks one password, within the limits of its address and of its lane. It returns an error only if the password was not looked at.
func (s *SignIn) guess(ctx context.Context, l lane, hash string, password logging.Secret, addr string) (bool, error) {
	if wait := s.cfg.ByAddr.Allow(addr); wait > 0 {
		return false, slowDown(wait)
	}
	if fresh, err := s.fresh(ctx, l); err != nil {
		return false, err
	} else if !fresh {
		if err := s.enter(ctx, l); err != nil {
			return false, err
		}
	}
	if len(password) > MaxPassword {
		password = password[:MaxPassword] // wrong in any case: no account has one that long
	}
	ok, err := s.cfg.Hasher.Verify(ctx, hash, string(password), Share{ratelimit.Network(addr), l.stranger == Hash{}})
	if err != nil || !ok {
		return false, err
	}
	// Strangers who guessed are not forgiven, only the failures of who knows the password now.
	own := l.key
	if l.stranger != (Hash{}) {
		own = l.stranger
	}
	if err := s.cfg.Attempts.Forgive(ctx, own); err != nil {
		return false, fmt.Errorf("clear failures: %w", err)
	}
	return true, nil
}

// enter counts one attempt in a lane, unless it is locked. It is counted before the password is known, and forgiven after: many at once gain
// nothing.
func (s *SignIn) enter(ctx context.Context, l lane) error {
	now := s.cfg.Now()
	before, last, err := s.cfg.Attempts.Failures(ctx, l.key)
	if err != nil {
		return fmt.Errorf("read failures: %w", err)
	}
	wait := last.Add(lock(before)).Sub(now)
	if before > 0 && wait > 0 {
		return l.locked(wait)
	}
	n, err := s.cfg.Attempts.Fail(ctx, l.key, now)
	if err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	if n > freeTries && n > before+1 {
		return l.locked(lock(n))
	}
	return nil
}

// fresh reports whether an attempt is one of the few that an address has which is new at the account, whatever other strangers did. Such an attempt
// is counted in the strangers' lane too.
func (s *SignIn) fresh(ctx context.Context, l lane) (bool, error) {
	if l.stranger == (Hash{}) {
		return false, nil
	}
	now := s.cfg.Now()
	n, _, err := s.cfg.Attempts.Failures(ctx, l.stranger)
	if err != nil {
		return false, fmt.Errorf("read failures: %w", err)
	}
	if n >= newTries {
		return false, nil
	}
	pool := l.key
	pool[31] ^= 1 // beside the strangers' counter
	if ok, err := s.cfg.Attempts.Take(ctx, pool, now, strangerEvery, strangerTries); err != nil || !ok {
		return false, err
	}
	if n, err = s.cfg.Attempts.Fail(ctx, l.stranger, now); err != nil || n > newTries {
		return false, err // many at once gain nothing
	}
	if _, err := s.cfg.Attempts.Fail(ctx, l.key, now); err != nil {
		return false, fmt.Errorf("count attempt: %w", err)
	}
	return true, nil
}

// locked is the refusal of a lane. A stranger may be the owner at a new browser, who has other ways in.
func (l lane) locked(wait time.Duration) error {
	if l.stranger == (Hash{}) {
		return slowDown(wait)
	}
	return &errs.Error{Kind: errs.Exhausted, Code: "too_many_attempts", Retry: wait,
		Msg: "too many attempts from places where this account has never signed in; try again later, use a passkey or a browser that has signed in before, or reset the password by e-mail"}
}

// lock is how long a lane is locked after n failures in a row: not at all up to freeTries, then longer each time.
func lock(n int) time.Duration {
	if n < freeTries {
		return 0
	}
	return min(maxLock, firstLock<<min(n-freeTries, 16))
}

func slowDown(wait time.Duration) error {
	return &errs.Error{Kind: errs.Exhausted, Code: "too_many_attempts", Msg: "too many attempts; try again later", Retry: wait}
}

// visited notes where an account has just signed in, and returns what its browser shows next time.
func (s *SignIn) visited(ctx context.Context, id ID, from From) (logging.Secret, error) {
	if err := s.cfg.Attempts.Visit(ctx, id, s.place(id, from.Addr), s.cfg.Now()); err != nil {
		return "", fmt.Errorf("record the place: %w", err)
	}
	return s.device(id, from.Device), nil
}

// A browser shows its device to be known: for each of the last accounts that signed in there, 16 random bytes, the time in seconds, and
// a MAC over both and the account's id. It opens nothing; it only gives the browser a lane of its own.
const (
	DeviceTTL     = 400 * 24 * time.Hour // the longest that browsers keep a cookie
	deviceRenew   = 30 * 24 * time.Hour
	deviceEntries = 4
	deviceSize    = 16 + 8 + sha256.Size
)

func (s *SignIn) mac(label string, data []byte) []byte {
	m := hmac.New(sha256.New, s.cfg.Secret)
	m.Write([]byte(label + "\n"))
	m.Write(data)
	return m.Sum(nil)
}

// entry returns an account's entry of a device, and the time it was made.
func (s *SignIn) entry(id ID, device logging.Secret) (text string, nonce []byte, made time.Time) {
	parts := strings.SplitN(string(device), ".", deviceEntries+1)
	for _, p := range parts[:min(len(parts), deviceEntries)] {
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err == nil && id != "" && len(b) == deviceSize && hmac.Equal(b[24:], s.mac("device "+string(id), b[:24])) {
			return p, b[:16], time.Unix(int64(binary.BigEndian.Uint64(b[16:24])), 0)
		}
	}
	return "", nil, time.Time{}
}

// knows reports whether a browser signed in as the account, and a name of the browser that tells nothing.
func (s *SignIn) knows(id ID, device logging.Secret) (nonce string, ok bool) {
	_, n, made := s.entry(id, device)
	return string(n), n != nil && s.cfg.Now().Sub(made) < DeviceTTL
}

// device returns a device with an entry for the account first.
func (s *SignIn) device(id ID, old logging.Secret) logging.Secret {
	now := s.cfg.Now()
	mine, _, made := s.entry(id, old)
	list := []string{mine}
	if mine == "" || now.Sub(made) > deviceRenew {
		head := make([]byte, 24)
		_, _ = rand.Read(head[:16]) // never fails
		binary.BigEndian.PutUint64(head[16:], uint64(now.Unix()))
		list[0] = base64.RawURLEncoding.EncodeToString(append(head, s.mac("device "+string(id), head)...))
	}
	for _, p := range strings.SplitN(string(old), ".", deviceEntries+1) {
		if p != mine && len(p) == base64.RawURLEncoding.EncodedLen(deviceSize) && len(list) < deviceEntries {
			list = append(list, p)
		}
	}
	return logging.Secret(strings.Join(list, "."))
}

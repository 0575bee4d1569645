package token

import (
	"context"
	"crypto/ecdsa"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"kennel/infra/logging"
	"kennel/infra/secretbox"
	"kennel/infra/wake"
)

// keyStore is a KeyStore in memory that announces no changes.
type keyStore struct {
	mu    sync.Mutex
	keys  []Key
	reads atomic.Int64
	err   error
}

func (s *keyStore) Keys(context.Context) ([]Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads.Add(1)
	return slices.Clone(s.keys), s.err
}

func (s *keyStore) Change(_ context.Context, decide func([]Key) (KeyChange, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := decide(slices.Clone(s.keys))
	if err != nil {
		return err
	}
	for i := range s.keys {
		if slices.Contains(c.Retire, s.keys[i].ID) {
			s.keys[i].Private = nil
		}
	}
	s.keys = slices.DeleteFunc(s.keys, func(k Key) bool { return slices.Contains(c.Drop, k.ID) })
	if c.Add != nil {
		s.keys = append(s.keys, *c.Add)
	}
	return nil
}

func (s *keyStore) FollowKeys(ctx context.Context, _ *slog.Logger, every time.Duration, read func(context.Context) error) error {
	wake.New().Each(ctx, every, func() { _ = read(ctx) }) // its reader sees what follows
	return nil
}

func TestPlan(t *testing.T) {
	rot := Rotation{}.withDefaults()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	key := func(id string, from time.Duration, private bool) Key {
		k := Key{ID: id, Alg: ES256, SignFrom: start.Add(from)}
		if private {
			k.Private = []byte{1}
		}
		return k
	}
	one := []Key{key("a", 0, true)}
	two := []Key{key("b", 30*day, true), key("a", 0, true)} // in any order
	for _, tc := range []struct {
		name string
		keys []Key
		now  time.Duration
		add  bool
		from time.Duration
		want KeyChange
	}{
		{"none yet", nil, 0, true, 0, KeyChange{}},
		{"young", one, 29 * day, false, 0, KeyChange{}},
		{"just before its time", one, 30*day - 10*time.Minute - 1, false, 0, KeyChange{}},
		{"the next one is published", one, 30*day - 10*time.Minute, true, 30 * day, KeyChange{}},
		{"and waits", two, 30*day - time.Minute, false, 0, KeyChange{}},
		{"takes over", two, 30 * day, false, 0, KeyChange{}},
		{"the old one can sign no more", two, 30*day + 10*time.Minute, false, 0, KeyChange{Retire: []string{"a"}}},
		{"nobody ran for long", one, 100 * day, true, 100*day + 10*time.Minute, KeyChange{}},
		{"nothing alive is signed with it", two, 30*day + 372*day, true, 402*day + 10*time.Minute, KeyChange{Drop: []string{"a"}}},
	} {
		add, from, got := rot.plan(tc.keys, start.Add(tc.now))
		if add != tc.add || add && !from.Equal(start.Add(tc.from)) || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v %v %+v, want %v %v %+v", tc.name, add, from.Sub(start), got, tc.add, tc.from, tc.want)
		}
	}
	rs := rot
	rs.Alg = RS256
	if add, from, _ := rs.plan(one, start.Add(day)); !add || !from.Equal(start.Add(day+rot.Overlap)) {
		t.Errorf("another algorithm: %v %v", add, from)
	}
	for _, bad := range []Rotation{{Alg: "HS256"}, {Overlap: time.Hour, Period: time.Hour}, {Overlap: -1}, {Keep: time.Hour}} {
		if err := bad.withDefaults().validate(); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestRotation lives two years with two processes, of which the second sees every change late: at no time is there a token that the other
// does not take, and never are there two turns at once.
func TestRotation(t *testing.T) {
	ctx := t.Context()
	store, sealer := &keyStore{}, secretbox.New().For("token/key")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	log := slog.New(slog.DiscardHandler)
	a, err := NewKeyring(ctx, store, sealer, Rotation{}, log, clock)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewKeyring(ctx, store, sealer, Rotation{}, log, clock)
	if err != nil {
		t.Fatal(err)
	}
	none := &Revocations{ids: map[string]time.Time{}}
	va, vb := NewVerifier(a, none), NewVerifier(b, none)
	rot := Rotation{}.withDefaults()
	signers := map[string]bool{}
	seen := 0
	for step := 0; now.Before(time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)); step++ {
		if err := a.Rotate(ctx); err != nil {
			t.Fatal(err)
		}
		if step%2 == 1 { // b is two and a half minutes behind, which the overlap covers
			if err := b.load(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for name, pair := range map[string]struct {
			from *Keyring
			to   *Verifier
		}{"a to b": {a, vb}, "b to a": {b, va}} {
			b.last = time.Now() // no second look
			text, err := pair.from.Sign(Access{ID: uuid.NewString(), Thing: "vic:1", User: "u", Issued: now, Expires: now.Add(time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pair.to.Verify(ctx, logging.Secret(text)); err != nil {
				t.Fatalf("%v, %s: %v", now, name, err)
			}
			signers[strings.Split(text, ".")[0]] = true
		}
		set, err := a.JWKS()
		if err != nil || len(set.Keys) == 0 || len(set.Keys) > 3 {
			t.Fatalf("%v: %d keys published, %v", now, len(set.Keys), err)
		}
		private := 0
		for _, k := range store.keys {
			if k.Private != nil {
				private++
			}
		}
		if private > 2 {
			t.Fatalf("%v: %d private halves", now, private)
		}
		seen = max(seen, len(store.keys))
		// In strides of hours, but step by step where something happens: at the newest key's turn, and when the next one is published.
		stride := 6 * time.Hour
		newest := slices.MaxFunc(store.keys, func(a, b Key) int { return a.SignFrom.Compare(b.SignFrom) }).SignFrom
		for _, event := range []time.Time{newest, newest.Add(rot.Period - rot.Overlap)} {
			switch d := event.Sub(now); {
			case d > -20*time.Minute && d <= 20*time.Minute:
				stride = 150 * time.Second
			case d > 0:
				stride = min(stride, d-20*time.Minute)
			}
		}
		now = now.Add(stride)
	}
	if n := len(signers); n < 24 || n > 27 {
		t.Errorf("%d keys signed in two years, want about one a month", n)
	}
	if seen < 13 || seen > 16 {
		t.Errorf("up to %d keys were kept, want those of a year", seen)
	}
}

// TestManyProcessesOneKey: the process that starts first makes the key.
func TestManyProcessesOneKey(t *testing.T) {
	store, sealer := &keyStore{}, secretbox.New().For("token/key")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := NewKeyring(t.Context(), store, sealer, Rotation{}, slog.New(slog.DiscardHandler), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(store.keys) != 1 {
		t.Errorf("%d keys", len(store.keys))
	}
}

// TestUnknownKeyIsLookedForOnce: made-up key ids cost one reading a second, however many come.
func TestUnknownKeyIsLookedForOnce(t *testing.T) {
	ctx := t.Context()
	store, sealer := &keyStore{}, secretbox.New().For("token/key")
	log := slog.New(slog.DiscardHandler)
	a, err := NewKeyring(ctx, store, sealer, Rotation{}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := store.reads.Load()
	for i := range 1000 {
		if k, err := a.find(ctx, fmt.Sprint("made up ", i)); k != nil || err != nil {
			t.Fatal(k, err)
		}
	}
	if n := store.reads.Load() - before; n < 1 || n > 3 {
		t.Errorf("%d readings, want 1 a second", n)
	}
	// A key that another process has just made is found at once.
	b := &Keyring{store: store, seal: sealer, rot: a.rot, now: time.Now, log: log}
	next, err := b.newKey(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	store.keys = append(store.keys, next)
	a.last = time.Time{}
	if k, err := a.find(ctx, next.ID); k == nil || err != nil {
		t.Errorf("%v, %v", k, err)
	}
	store.err, a.last = errors.New("away"), time.Time{}
	if _, err := a.find(ctx, "x"); err == nil {
		t.Error("no error while the store is away")
	}
	_, err = NewVerifier(a, &Revocations{}).Verify(ctx, logging.Secret("e30.e30.x"))
	if why, ok := errors.AsType[*Refusal](err); !ok || why.Code != "token_malformed" {
		t.Errorf("%v", err)
	}
}

func TestOtherSealingKey(t *testing.T) {
	store := &keyStore{}
	log := slog.New(slog.DiscardHandler)
	if _, err := NewKeyring(t.Context(), store, secretbox.New().For("token/key"), Rotation{}, log, nil); err != nil {
		t.Fatal(err)
	}
	_, err := NewKeyring(t.Context(), store, secretbox.New().For("token/key"), Rotation{}, log, nil)
	if !errors.Is(err, secretbox.ErrOpen) || !strings.Contains(err.Error(), store.keys[0].ID) {
		t.Errorf("%v", err)
	}
	if len(store.keys) != 1 {
		t.Error("a process with another sealing key made a key")
	}
}

func TestJWKS(t *testing.T) {
	store := &keyStore{}
	k, err := NewKeyring(t.Context(), store, secretbox.New().For("token/key"), Rotation{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := k.JWKS()
	if err != nil || len(set.Keys) != 1 {
		t.Fatalf("%+v, %v", set, err)
	}
	jwk := set.Keys[0]
	x, _ := base64.RawURLEncoding.DecodeString(jwk.X)
	y, _ := base64.RawURLEncoding.DecodeString(jwk.Y)
	point, err := k.have()[0].public.(*ecdsa.PublicKey).Bytes()
	if err != nil || string(point) != "\x04"+string(x)+string(y) || len(x) != 32 || len(y) != 32 {
		t.Errorf("x %d bytes, y %d bytes, %v", len(x), len(y), err)
	}
	if jwk.Type != "EC" || jwk.Curve != "P-256" || jwk.Alg != ES256 || jwk.Use != "sig" || jwk.ID != store.keys[0].ID {
		t.Errorf("%+v", jwk)
	}
}

// revokedStore is a RevocationStore whose notifications are all lost.
type revokedStore struct {
	mu   sync.Mutex
	list []Revoked
	err  error
	read chan time.Time // since, of each reading
}

func (s *revokedStore) RevokedSince(_ context.Context, since time.Time) (out []Revoked, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.read <- since:
	default: // no read happens
	}
	for _, r := range s.list {
		if !r.At.Before(since) {
			out = append(out, r)
		}
	}
	return out, s.err
}

func (s *revokedStore) FollowRevoked(ctx context.Context, _ *slog.Logger, every time.Duration, read func(context.Context) error) error {
	wake.New().Each(ctx, every, func() { _ = read(ctx) }) // s.err
	return nil
}

// TestRevokedWithoutBeingTold: a reading each second, of what is new; what is known stays while the store is away.
func TestRevokedWithoutBeingTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	store := &revokedStore{read: make(chan time.Time)}
	at := time.Now()
	store.list = []Revoked{{"one", at, at.Add(time.Hour)}, {"gone", at, at.Add(-time.Minute)}}
	now := at
	r, err := NewRevocations(ctx, store, slog.New(slog.DiscardHandler), func() time.Time { return now })
	if err != nil || !r.Has("one") || r.Has("two") {
		t.Fatalf("at the start: %v %v, %v", r.Has("one"), r.Has("two"), err)
	}
	if r.Has("gone") || r.Len() != 1 {
		t.Error("an expired one is remembered")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	store.mu.Lock()
	store.list = append(store.list, Revoked{"two", at, at.Add(time.Hour)})
	store.mu.Unlock()
	began := time.Now()
	if since := <-store.read; !since.Equal(at.Add(-overlapRevoked)) {
		t.Errorf("read since %v, want a minute before the latest one known", at.Sub(since))
	}
	<-store.read // the reading before has ended
	if !r.Has("two") {
		t.Error("not seen")
	}
	if d := time.Since(began); d > 4*time.Second {
		t.Errorf("two readings took %v", d)
	}
	store.mu.Lock()
	store.err = errors.New("away")
	store.mu.Unlock()
	<-store.read
	<-store.read
	if !r.Has("one") || !r.Has("two") {
		t.Error("forgotten while the store is away")
	}
	stop()
	wg.Wait()
}

func FuzzVerify(f *testing.F) {
	k, err := NewKeyring(f.Context(), &keyStore{}, secretbox.New().For("token/key"), Rotation{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		f.Fatal(err)
	}
	v := NewVerifier(k, &Revocations{})
	now := time.Now().Truncate(time.Second)
	good, err := k.Sign(Access{ID: uuid.NewString(), Thing: "vic:1", User: "u", Issued: now, Expires: now.Add(time.Hour)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, raw string) {
		_, full := v.Verify(t.Context(), logging.Secret(raw))
		_, old := v.old(t.Context(), logging.Secret(raw), "vic:1")
		if raw != good && (full == nil || old == nil) {
			t.Fatalf("%q is taken", raw)
		}
	})
}

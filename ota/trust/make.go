package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"

	"kennel/ota"
)

// How long metadata that a Publisher signs are good; it signs again after half of it. The life of the timestamp bounds how long a robot can be kept from newer releases.
const (
	timestampLife = 48 * time.Hour
	snapshotLife  = 14 * 24 * time.Hour
	channelLife   = 90 * 24 * time.Hour
)

// Role says who signs a role: Threshold of Keys.
type Role struct {
	Keys      []crypto.PublicKey
	Threshold int
}

// keys returns the keys of r by their ids.
func (r Role) keys() (ids []string, byID map[string]*metadata.Key, err error) {
	byID = map[string]*metadata.Key{}
	for _, k := range r.Keys {
		key, id, err := tufKey(k)
		if err != nil {
			return nil, nil, err
		}
		if byID[id] == nil {
			ids, byID[id] = append(ids, id), key
		}
	}
	if r.Threshold < 1 || r.Threshold > len(ids) {
		return nil, nil, fmt.Errorf("threshold %d of %d keys: want 1 to %d", r.Threshold, len(ids), len(ids))
	}
	return ids, byID, nil
}

// KeyID names a key in metadata.
func KeyID(k crypto.PublicKey) (string, error) {
	_, id, err := tufKey(k)
	return id, err
}

func tufKey(k crypto.PublicKey) (*metadata.Key, string, error) {
	if e, ok := k.(*ecdsa.PublicKey); ok && e.Curve != elliptic.P256() {
		return nil, "", fmt.Errorf("key on curve %s: want P-256, Ed25519 or RSA", e.Curve.Params().Name)
	}
	key, err := metadata.KeyFromPublicKey(k)
	if err != nil {
		return nil, "", fmt.Errorf("key is a %T: want Ed25519, ECDSA or RSA", k)
	}
	id, err := key.ID()
	return key, id, err
}

// EditRoot returns the version of root after old that has other roles, unsigned. Roles that are not named stay as they are; old nil is none.
func EditRoot(old []byte, roles map[string]Role, expires time.Time) ([]byte, error) {
	m := metadata.Root(expires.UTC().Truncate(time.Second))
	if old != nil {
		last, err := metadata.Root().FromBytes(old)
		if err != nil {
			return nil, err
		}
		m.Signed.Version, m.Signed.Keys, m.Signed.Roles = last.Signed.Version+1, last.Signed.Keys, last.Signed.Roles
	}
	for name, r := range roles {
		if m.Signed.Roles[name] == nil {
			return nil, fmt.Errorf("role %.40q: want root, targets, snapshot or timestamp", name)
		}
		ids, keys, err := r.keys()
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", name, err)
		}
		maps.Copy(m.Signed.Keys, keys)
		m.Signed.Roles[name] = &metadata.Role{KeyIDs: ids, Threshold: r.Threshold}
	}
	maps.DeleteFunc(m.Signed.Keys, func(id string, _ *metadata.Key) bool {
		for _, r := range m.Signed.Roles {
			if slices.Contains(r.KeyIDs, id) {
				return false
			}
		}
		return true
	})
	return m.ToBytes(false)
}

// EditTargets returns a version of targets that gives channels to other keys than old, unsigned. Channels that are not named stay as they are.
func EditTargets(version int64, old []byte, channels map[string]Role, expires time.Time) ([]byte, error) {
	m := metadata.Targets(expires.UTC().Truncate(time.Second))
	m.Signed.Version = version
	m.Signed.Delegations = &metadata.Delegations{Keys: map[string]*metadata.Key{}}
	if old != nil {
		last, err := metadata.Targets().FromBytes(old)
		if err != nil {
			return nil, err
		}
		if last.Signed.Delegations != nil {
			m.Signed.Delegations = last.Signed.Delegations
		}
	}
	d := m.Signed.Delegations
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		if !slices.Contains(Channels, name) {
			return nil, fmt.Errorf("channel %.40q: want one of %s", name, strings.Join(Channels, ", "))
		}
		ids, keys, err := channels[name].keys()
		if err != nil {
			return nil, fmt.Errorf("channel %s: %w", name, err)
		}
		maps.Copy(d.Keys, keys)
		d.Roles = slices.DeleteFunc(d.Roles, func(r metadata.DelegatedRole) bool { return r.Name == name })
		d.Roles = append(d.Roles, metadata.DelegatedRole{Name: name, KeyIDs: ids, Threshold: channels[name].Threshold, Paths: []string{"*/*/*"}})
	}
	maps.DeleteFunc(d.Keys, func(id string, _ *metadata.Key) bool {
		return !slices.ContainsFunc(d.Roles, func(r metadata.DelegatedRole) bool { return slices.Contains(r.KeyIDs, id) })
	})
	return m.ToBytes(false)
}

// EditChannel returns a version of a channel that names targets by path, unsigned.
func EditChannel(version int64, targets map[string]Target, expires time.Time) ([]byte, error) {
	m := metadata.Targets(expires.UTC().Truncate(time.Second))
	m.Signed.Version = version
	for path, t := range targets {
		m.Signed.Targets[path] = &metadata.TargetFiles{Length: t.Length, Hashes: metadata.Hashes{"sha256": t.SHA256[:]}}
	}
	return m.ToBytes(false)
}

// ChannelTargets returns what a channel names.
func ChannelTargets(channel []byte) (map[string]Target, error) {
	m, err := metadata.Targets().FromBytes(channel)
	if err != nil {
		return nil, err
	}
	out := map[string]Target{}
	for path, f := range m.Signed.Targets {
		if f == nil {
			return nil, fmt.Errorf("archive %.100q is null", path)
		}
		t := Target{Length: f.Length}
		copy(t.SHA256[:], f.Hashes["sha256"])
		out[path] = t
	}
	return out, nil
}

// Sign adds a signature to metadata of any role, in place of an earlier one with the same key.
func Sign(b []byte, key crypto.Signer) ([]byte, error) {
	if _, _, err := tufKey(key.Public()); err != nil {
		return nil, err
	}
	switch HeadOf(b).Signed.Type {
	case metadata.ROOT:
		return sign(metadata.Root(), b, key)
	case metadata.TARGETS:
		return sign(metadata.Targets(), b, key)
	case metadata.SNAPSHOT:
		return sign(metadata.Snapshot(), b, key)
	case metadata.TIMESTAMP:
		return sign(metadata.Timestamp(), b, key)
	}
	return nil, fmt.Errorf("release metadata of type %.40q: want root, targets, snapshot or timestamp", HeadOf(b).Signed.Type)
}

func sign[T metadata.Roles](m *metadata.Metadata[T], b []byte, key crypto.Signer) ([]byte, error) {
	if _, err := m.FromBytes(b); err != nil {
		return nil, err
	}
	id, err := KeyID(key.Public())
	if err != nil {
		return nil, err
	}
	m.Signatures = slices.DeleteFunc(m.Signatures, func(s metadata.Signature) bool { return s.KeyID == id })
	if _, err := m.Sign(signer{key}); err != nil {
		return nil, err
	}
	return m.ToBytes(false)
}

// signer is a key as go-tuf uses one. Keys of its own sigstore signers cannot be in a key management service.
type signer struct{ crypto.Signer }

func (s signer) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return s.Public(), nil
}

func (s signer) SignMessage(r io.Reader, _ ...signature.SignOption) ([]byte, error) {
	msg, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if _, ok := s.Public().(ed25519.PublicKey); ok {
		return s.Sign(rand.Reader, msg, crypto.Hash(0))
	}
	sum := sha256.Sum256(msg)
	var opts crypto.SignerOpts = crypto.SHA256
	if _, ok := s.Public().(*rsa.PublicKey); ok {
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	}
	return s.Sign(rand.Reader, sum[:], opts)
}

// Head holds the fields that all metadata share.
type Head struct {
	Signed struct {
		Type    string    `json:"_type"`
		Version int64     `json:"version"`
		Expires time.Time `json:"expires"`
	} `json:"signed"`
	Signatures []struct {
		KeyID string `json:"keyid"`
	} `json:"signatures"`
}

// HeadOf reads the head of metadata; it is empty if they cannot be read.
func HeadOf(b []byte) (h Head) {
	if json.Unmarshal(b, &h) != nil {
		return Head{}
	}
	return h
}

// signed counts the signatures of keys.
func (h Head) signed(ids []string) (n int) {
	for _, s := range h.Signatures {
		if slices.Contains(ids, s.KeyID) {
			n++
		}
	}
	return n
}

// Signers returns the ids of the keys that sign a role, and how many of them must; none if the role has no keys.
func (k *Known) Signers(role string) (ids []string, threshold int) {
	if !slices.Contains(Channels, role) {
		if m, err := metadata.Root().FromBytes(k.Root); err == nil && m.Signed.Roles[role] != nil {
			return m.Signed.Roles[role].KeyIDs, m.Signed.Roles[role].Threshold
		}
		return nil, 0
	}
	m, err := metadata.Targets().FromBytes(k.Roles[metadata.TARGETS])
	if err != nil || m.Signed.Delegations == nil {
		return nil, 0
	}
	for _, r := range m.Signed.Delegations.Roles {
		if r.Name == role {
			return r.KeyIDs, r.Threshold
		}
	}
	return nil, 0
}

// Publisher signs what the keys at hand can sign.
type Publisher struct{ Keys []crypto.Signer }

// Can reports whether the keys sign a role.
func (p Publisher) Can(k *Known, role string) bool {
	ids, threshold := k.Signers(role)
	return len(ids) > 0 && len(p.of(ids)) >= threshold
}

func (p Publisher) of(ids []string) (keys []crypto.Signer) {
	for _, key := range p.Keys {
		if id, err := KeyID(key.Public()); err == nil && slices.Contains(ids, id) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Next returns what is published after k; it equals k if there is nothing to change. uploads are signed metadata, by role; those of root are called 2.root and so
// on, after their version. A channel that the keys can sign names all of targets. Robots that know k accept what Next returns; an upload that they would refuse
// is an error.
func (p Publisher) Next(k *Known, uploads map[string][]byte, targets map[string]Target, now time.Time) (next *Known, roots [][]byte, err error) {
	defer func() { caught(recover(), &err) }()
	next = k.Clone()
	if roots, err = next.upload(uploads, now); err != nil || next.Root == nil {
		return next, roots, err
	}
	e := edit{p, next, now}
	err = e.renew(metadata.TARGETS, channelLife, false, func(v int64, expires time.Time) ([]byte, error) {
		return EditTargets(v, next.Roles[metadata.TARGETS], nil, expires)
	})
	for _, c := range Channels {
		have, unread := ChannelTargets(next.Roles[c])
		err = errors.Join(err, e.renew(c, channelLife, unread != nil || !maps.Equal(have, targets), func(v int64, expires time.Time) ([]byte, error) {
			return EditChannel(v, targets, expires)
		}))
	}
	metas := map[string]*metadata.MetaFiles{}
	for role, b := range next.Roles {
		if role != metadata.SNAPSHOT && role != metadata.TIMESTAMP {
			metas[role+".json"] = metaOf(b)
		}
	}
	last, unread := metadata.Snapshot().FromBytes(next.Roles[metadata.SNAPSHOT])
	err = errors.Join(err, e.renew(metadata.SNAPSHOT, snapshotLife, unread != nil || !maps.EqualFunc(last.Signed.Meta, metas, sameMeta), func(v int64, expires time.Time) ([]byte, error) {
		m := metadata.Snapshot(expires)
		m.Signed.Version, m.Signed.Meta = v, metas
		return m.ToBytes(false)
	}))
	metas = map[string]*metadata.MetaFiles{"snapshot.json": metaOf(next.Roles[metadata.SNAPSHOT])}
	stamp, unread := metadata.Timestamp().FromBytes(next.Roles[metadata.TIMESTAMP])
	err = errors.Join(err, e.renew(metadata.TIMESTAMP, timestampLife, unread != nil || !maps.EqualFunc(stamp.Signed.Meta, metas, sameMeta), func(v int64, expires time.Time) ([]byte, error) {
		m := metadata.Timestamp(expires)
		m.Signed.Version, m.Signed.Meta = v, metas
		return m.ToBytes(false)
	}))
	if err != nil || next.Equal(k) {
		return next, nil, err
	}
	robot, news := k.Clone(), roots
	if robot.Root == nil {
		robot.Root, news = roots[0], roots[1:]
	}
	v, err := robot.Update(Answer{Roots: news, Roles: next.Roles}, now)
	if err != nil {
		return nil, nil, err
	}
	if v == nil {
		return nil, nil, fmt.Errorf("%d versions of root at once: want at most %d", len(roots), MaxRoots-1)
	}
	for c, bad := range v.bad {
		if bad != nil && HeadOf(next.Roles[c]).Signed.Expires.After(now) { // one that has expired keeps no other from being published
			return nil, nil, fmt.Errorf("release metadata, role %s: %w", c, bad)
		}
	}
	return next, roots, nil
}

// upload takes uploads into k, and returns the versions of root among them. Signatures below root are not verified.
func (k *Known) upload(files map[string][]byte, now time.Time) (roots [][]byte, err error) {
	left := maps.Clone(files)
	versions := map[int64][]byte{}
	for name, b := range files {
		if n, ok := strings.CutSuffix(name, ".root"); ok {
			v, _ := strconv.ParseInt(n, 10, 64) // 0 has no file
			versions[v] = b
			delete(left, name)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		b := versions[v]
		if Version(b) != v {
			return nil, fmt.Errorf("%d.root contains version %d", v, Version(b))
		}
		if v <= Version(k.Root) {
			continue // uploaded before
		}
		trusted := k.Root
		if trusted == nil {
			trusted = b // the first one: the operator who uploads it chooses it
		}
		set, err := trustedmetadata.New(trusted)
		if err == nil && k.Root != nil {
			_, err = set.UpdateRoot(b)
		}
		if err != nil {
			return nil, fmt.Errorf("%d.root: %w", v, err)
		}
		k.Root, roots = b, append(roots, b)
	}
	for name, b := range left {
		old, h := HeadOf(k.Roles[name]), HeadOf(b)
		switch {
		case name != metadata.TARGETS && !slices.Contains(Channels, name):
			return nil, fmt.Errorf("upload %.40q: want N.root, targets, or a channel: %s", name, strings.Join(Channels, ", "))
		case bytes.Equal(b, k.Roles[name]):
			continue
		case h.Signed.Type != metadata.TARGETS || h.Signed.Version <= old.Signed.Version:
			return nil, fmt.Errorf("%s has type %.40q and version %d: want type targets and a version after %d", name, h.Signed.Type, h.Signed.Version, old.Signed.Version)
		case !h.Signed.Expires.After(now):
			return nil, fmt.Errorf("%s: %w", name, expired(h.Signed.Version, h.Signed.Expires, now))
		}
		k.Roles[name] = b
	}
	if len(files) > 0 && (k.Root == nil || k.Roles[metadata.TARGETS] == nil) {
		return nil, errors.New("want root and targets first: upload 1.root and targets together")
	}
	return roots, nil
}

// edit is one publication.
type edit struct {
	Publisher
	next *Known
	now  time.Time
}

// renew signs a new version of a role that is stale, has half its life behind it, or lacks signatures since its keys changed. What others sign stays as it is.
func (e edit) renew(role string, life time.Duration, stale bool, make func(version int64, expires time.Time) ([]byte, error)) error {
	ids, threshold := e.next.Signers(role)
	h := HeadOf(e.next.Roles[role])
	due := stale || h.signed(ids) < threshold || h.Signed.Expires.Sub(e.now) < life/2
	if !due || !e.Can(e.next, role) {
		if stale && (role == metadata.SNAPSHOT || role == metadata.TIMESTAMP) {
			return fmt.Errorf("release metadata, role %s: %d of its keys available, want %d", role, len(e.of(ids)), threshold)
		}
		return nil
	}
	// The version grows with time too, so that robots accept new metadata after the database was restored from a backup.
	b, err := make(max(h.Signed.Version+1, e.now.Unix()), e.now.Add(life).UTC().Truncate(time.Second))
	for _, key := range e.of(ids) {
		if err == nil {
			b, err = Sign(b, key)
		}
	}
	if err != nil {
		return fmt.Errorf("release metadata, role %s: %w", role, err)
	}
	e.next.Roles[role] = b
	return nil
}

func metaOf(b []byte) *metadata.MetaFiles {
	sum := sha256.Sum256(b)
	return &metadata.MetaFiles{Length: int64(len(b)), Hashes: metadata.Hashes{"sha256": sum[:]}, Version: Version(b)}
}

func sameMeta(a, b *metadata.MetaFiles) bool {
	return a.Version == b.Version && a.Hashes.Equal(b.Hashes)
}

// notice is how long before its end a role that people sign needs them.
const notice = 30 * 24 * time.Hour

// States returns the state of each role, root first.
func (p Publisher) States(k *Known, now time.Time) (out []ota.RoleState) {
	for _, role := range append([]string{metadata.ROOT, metadata.TIMESTAMP, metadata.SNAPSHOT, metadata.TARGETS}, Channels...) {
		b := k.Roles[role]
		if role == metadata.ROOT {
			b = k.Root
		}
		if b == nil {
			continue
		}
		h := HeadOf(b)
		s := ota.RoleState{Role: role, Version: h.Signed.Version, Expires: h.Signed.Expires, Here: p.Can(k, role)}
		s.Keys, s.Threshold = k.Signers(role)
		if list, err := ChannelTargets(b); err == nil {
			s.Archives = len(list)
		}
		warn := notice
		switch role {
		case metadata.TIMESTAMP:
			warn = timestampLife / 4
		case metadata.SNAPSHOT:
			warn = snapshotLife / 4
		}
		switch left := s.Expires.Sub(now); {
		case left <= 0:
			s.Problem = fmt.Sprintf("release metadata of role %s expired at %s: robots refuse updates", role, s.Expires.UTC().Format(time.RFC3339))
		case left < warn:
			s.Problem = fmt.Sprintf("release metadata of role %s expire at %s: sign a new version, or robots refuse updates", role, s.Expires.UTC().Format(time.RFC3339))
		case h.signed(s.Keys) < s.Threshold:
			s.Problem = fmt.Sprintf("release metadata of role %s are signed by %d of its keys, want %d", role, h.signed(s.Keys), s.Threshold)
		}
		out = append(out, s)
	}
	return out
}

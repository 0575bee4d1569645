package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func named(paths ...string) map[string]Target {
	out := map[string]Target{}
	for _, p := range paths {
		out[p] = Target{int64(len(p)), sha256.Sum256([]byte(p))}
	}
	return out
}

// world is a cloud, the people who sign for it, and the time.
type world struct {
	t     *testing.T
	keys  map[string]crypto.Signer
	known *Known
	roots [][]byte
	dev   map[string]Target // what the cloud names by itself
	now   time.Time
}

// newWorld has a root that two of three people sign, a cloud that holds the keys of timestamp, snapshot and dev, and offline keys for all else. prod names old.
func newWorld(t *testing.T) *world {
	w := &world{t: t, keys: map[string]crypto.Signer{}, known: &Known{}, now: noon, dev: named(old)}
	for _, name := range []string{"root1", "root2", "root3", "stamp", "snap", "top", "prod", "beta", "dev", "next"} {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[name] = key
	}
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w.keys["root2"] = p256
	root := w.root(nil, map[string]Role{"root": w.role(2, "root1", "root2", "root3"), "timestamp": w.role(1, "stamp"), "snapshot": w.role(1, "snap"),
		"targets": w.role(1, "top")}, "root1", "root2")
	w.publish(map[string][]byte{"1.root": root, "targets": w.top(nil, map[string]Role{"prod": w.role(1, "prod"), "beta": w.role(1, "beta"), "dev": w.role(1, "dev")}),
		"prod": w.channel(1, "prod", old)})
	return w
}

func (w *world) role(threshold int, names ...string) (r Role) {
	for _, n := range names {
		r.Keys = append(r.Keys, w.keys[n].Public())
	}
	r.Threshold = threshold
	return r
}

func (w *world) signed(b []byte, err error, names ...string) []byte {
	w.t.Helper()
	for _, n := range names {
		if err == nil {
			b, err = Sign(b, w.keys[n])
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) root(old []byte, roles map[string]Role, by ...string) []byte {
	w.t.Helper()
	b, err := EditRoot(old, roles, w.now.AddDate(1, 0, 0))
	return w.signed(b, err, by...)
}

func (w *world) top(old []byte, channels map[string]Role) []byte {
	w.t.Helper()
	b, err := EditTargets(Version(old)+1, old, channels, w.now.AddDate(1, 0, 0))
	return w.signed(b, err, "top")
}

func (w *world) channel(version int64, by string, paths ...string) []byte {
	w.t.Helper()
	b, err := EditChannel(version, named(paths...), w.now.AddDate(0, 3, 0))
	return w.signed(b, err, by)
}

func (w *world) try(uploads map[string][]byte) error {
	var keys []crypto.Signer
	for _, n := range []string{"stamp", "snap", "dev", "next"} {
		keys = append(keys, w.keys[n])
	}
	next, roots, err := Publisher{keys}.Next(w.known, uploads, w.dev, w.now)
	if err == nil {
		w.known = next
		w.roots = append(w.roots, roots...)
	}
	return err
}

func (w *world) publish(uploads map[string][]byte) {
	w.t.Helper()
	if err := w.try(uploads); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) answer(q Question) Answer {
	roots := w.roots[q.Root:]
	return w.known.Answer(q, roots[:min(len(roots), MaxRoots)])
}

func (w *world) honest(q Question) (Answer, error) {
	b, err := w.answer(q).Encode()
	if err != nil {
		return Answer{}, err
	}
	return ParseAnswer(b)
}

// robot is one that was made with the first root and asked once.
func (w *world) robot() *Known {
	w.t.Helper()
	k := &Known{Root: w.roots[0]}
	w.installs(k, old)
	return k
}

func (w *world) installs(k *Known, path string) {
	w.t.Helper()
	v, err := k.Refresh(w.honest, w.now, "prod")
	if err != nil {
		w.t.Fatal(err)
	}
	if got, err := v.Target(path, "prod"); err != nil || got != named(path)[path] {
		w.t.Fatalf("%s: %+v, %v", path, got, err)
	}
}

// forge changes signed metadata and signs them again with the keys that are named: none keeps the old signatures.
func forge[T metadata.Roles](w *world, m *metadata.Metadata[T], b []byte, change func(*T), by ...string) []byte {
	w.t.Helper()
	if _, err := m.FromBytes(b); err != nil {
		w.t.Fatal(err)
	}
	change(&m.Signed)
	if len(by) > 0 {
		m.Signatures = nil
	}
	b, err := m.ToBytes(false)
	return w.signed(b, err, by...)
}

// chain signs a timestamp and a snapshot of roles, as an attacker with both keys can.
func (w *world) chain(roles map[string][]byte) {
	w.t.Helper()
	roles["snapshot"] = forge(w, metadata.Snapshot(), w.known.Roles["snapshot"], func(s *metadata.SnapshotType) {
		s.Version++
		for role, b := range roles {
			if role != "snapshot" && role != "timestamp" {
				s.Meta[role+".json"] = metaOf(b)
			}
		}
	}, "snap")
	roles["timestamp"] = forge(w, metadata.Timestamp(), w.known.Roles["timestamp"], func(s *metadata.TimestampType) {
		s.Version++
		s.Meta["snapshot.json"] = metaOf(roles["snapshot"])
	}, "stamp")
}

// stamp is a timestamp of any version; with a snapshot it is signed.
func (w *world) stamp(version int64, snapshot []byte) []byte {
	var by []string
	if snapshot != nil {
		by = []string{"stamp"}
	}
	return forge(w, metadata.Timestamp(), w.known.Roles["timestamp"], func(s *metadata.TimestampType) {
		s.Version = version
		if snapshot != nil {
			s.Meta["snapshot.json"] = metaOf(snapshot)
		}
	}, by...)
}

func (w *world) robotOf(root int) *Known { return &Known{Root: w.roots[root]} }

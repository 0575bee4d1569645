package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

const (
	old   = "vic/2.0.1.6076/production"
	newer = "vic/2.0.1.6077/production"
	evil  = "vic/6.6.6.6666/production"
)

// TestAttacks is issue 17, "what must hold" 4: rollback, freeze, mix-and-match, metadata that are too long and stolen keys are refused with a reason, and leave
// a robot with what it had. Each attacker has the way to the robot, and what the name of the case says.
func TestAttacks(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world, k *Known, a *Answer)
		want string // of the refusal
	}{
		"rollback of timestamp": {func(w *world, k *Known, a *Answer) {
			a.Roles["timestamp"] = forge(w, metadata.Timestamp(), w.known.Roles["timestamp"], func(s *metadata.TimestampType) { s.Version = 1 }, "stamp")
		}, "role timestamp: bad version number error: new timestamp version 1 must be >= "},
		"rollback of snapshot": {func(w *world, k *Known, a *Answer) {
			a.Roles["timestamp"] = forge(w, metadata.Timestamp(), w.known.Roles["timestamp"], func(s *metadata.TimestampType) {
				s.Version++
				s.Meta["snapshot.json"].Version = 1
			}, "stamp")
		}, "role timestamp: bad version number error: new snapshot version 1 must be >= "},
		"rollback of targets": {func(w *world, k *Known, a *Answer) {
			top := w.top(nil, map[string]Role{"prod": w.role(1, "prod")}) // version 1 again
			w.publish(map[string][]byte{"targets": w.top(w.known.Roles["targets"], nil)})
			if _, err := k.Refresh(w.honest, w.now); err != nil {
				w.t.Fatal(err)
			}
			a.Roles["targets"] = top
			w.chain(a.Roles)
		}, "role snapshot: bad version number error: expected targets.json version 1, got 2"},
		"rollback of a channel": {func(w *world, k *Known, a *Answer) {
			a.Roles["prod"] = w.channel(1, "prod", old)
			w.chain(a.Roles)
		}, "role snapshot: bad version number error: expected prod.json version 1, got 2"},
		"removal of a channel": {func(w *world, k *Known, a *Answer) {
			a.Roles["snapshot"] = forge(w, metadata.Snapshot(), w.known.Roles["snapshot"], func(s *metadata.SnapshotType) {
				s.Version++
				delete(s.Meta, "prod.json")
			}, "snap")
			a.Roles["timestamp"] = forge(w, metadata.Timestamp(), w.known.Roles["timestamp"], func(s *metadata.TimestampType) {
				s.Version++
				s.Meta["snapshot.json"] = metaOf(a.Roles["snapshot"])
			}, "stamp")
		}, "role snapshot: repository error: new snapshot is missing info for prod.json"},
		"freeze, the same for ever": {func(w *world, k *Known, a *Answer) { w.now = w.now.Add(timestampLife + time.Second) },
			"role timestamp: version 1777636801 expired at 2026-05-03T12:00:01Z; it is now 2026-05-03T12:00:02Z"},
		"freeze, silence about all roles": {func(w *world, k *Known, a *Answer) { w.now, a.Roles = w.now.Add(timestampLife+time.Second), nil },
			"role timestamp: version 1777636801 expired"},
		"freeze, root expired": {func(w *world, k *Known, a *Answer) { w.now = w.now.AddDate(2, 0, 0) }, "role root: version 1 expired at 2027-05-01T12:00:00Z"},
		"mix-and-match, older snapshot": {func(w *world, k *Known, a *Answer) {
			before := bytes.Clone(w.known.Roles["snapshot"])
			w.publish(map[string][]byte{"prod": w.channel(3, "prod", newer)})
			*a = w.answer(Question{V: 1, Root: 1, Roles: map[string]int64{"targets": 0, "prod": 0}})
			a.Roles["snapshot"] = before
		}, "role snapshot: length/hash verification error"},
		"mix-and-match, a channel of another snapshot": {func(w *world, k *Known, a *Answer) {
			delete(k.Roles, "prod") // else the robot uses its own copy
			a.Roles["prod"] = w.channel(3, "prod", old, newer)
		}, "role prod: length/hash verification error"},
		"mix-and-match, one channel as another": {func(w *world, k *Known, a *Answer) {
			a.Roles["prod"] = w.known.Roles["dev"]
			w.chain(a.Roles)
		}, "role prod: unsigned metadata error: Verifying prod failed"},
		"a part withheld": {func(w *world, k *Known, a *Answer) {
			w.publish(map[string][]byte{"prod": w.channel(3, "prod", newer)})
			*a = w.answer(Question{V: 1, Root: 1, Roles: map[string]int64{"targets": 1}})
		}, "role prod: "},
		"timestamp too long": {func(w *world, k *Known, a *Answer) { a.Roles["timestamp"] = bytes.Repeat([]byte(" "), maxSmall+1) }, "role timestamp: 65537 bytes: want at most 65536"},
		"snapshot too long": {func(w *world, k *Known, a *Answer) {
			a.Roles["snapshot"] = append(bytes.Repeat([]byte(" "), maxSmall), w.known.Roles["snapshot"]...)
			a.Roles["timestamp"] = forge(w, metadata.Timestamp(), w.known.Roles["timestamp"], func(s *metadata.TimestampType) {
				s.Version++
				s.Meta["snapshot.json"] = metaOf(a.Roles["snapshot"])
				s.Meta["snapshot.json"].Version = s.Version
			}, "stamp")
		}, "role snapshot: 6"},
		"channel too long": {func(w *world, k *Known, a *Answer) {
			a.Roles["prod"] = append(bytes.Repeat([]byte(" "), maxTargets), a.Roles["prod"]...)
			w.chain(a.Roles)
		}, "role prod: 1"},
		"root too long":      {func(w *world, k *Known, a *Answer) { a.Roots = [][]byte{bytes.Repeat([]byte(" "), maxSmall+1)} }, "role root: 65537 bytes"},
		"timestamp unsigned": {func(w *world, k *Known, a *Answer) { a.Roles["timestamp"] = w.stamp(1<<40, nil) }, "role timestamp: unsigned metadata error"},
		"entries that are null": {func(w *world, k *Known, a *Answer) {
			a.Roles["timestamp"] = forge(w, metadata.Timestamp(), w.known.Roles["timestamp"], func(s *metadata.TimestampType) { s.Version++; s.Meta["snapshot.json"] = nil }, "stamp")
		}, "nil pointer"},

		// Stolen keys. What they cannot do is name an archive to a robot of prod.
		"key of timestamp": {func(w *world, k *Known, a *Answer) {
			a.Roles["snapshot"] = forge(w, metadata.Snapshot(), w.known.Roles["snapshot"], func(s *metadata.SnapshotType) { s.Version++ }, "stamp")
			a.Roles["timestamp"] = w.stamp(1<<40, a.Roles["snapshot"])
		}, "role snapshot: unsigned metadata error"},
		"keys of timestamp and snapshot": {func(w *world, k *Known, a *Answer) {
			a.Roles["prod"] = w.channel(3, "snap", evil)
			w.chain(a.Roles)
		}, "role prod: unsigned metadata error"},
		"keys of the cloud, and of dev": {func(w *world, k *Known, a *Answer) {
			a.Roles["dev"], a.Roles["prod"] = w.channel(1<<40, "dev", evil), w.channel(3, "dev", evil)
			w.chain(a.Roles)
		}, "role prod: unsigned metadata error"},
		"key of prod alone": {func(w *world, k *Known, a *Answer) {
			delete(k.Roles, "prod")
			a.Roles["prod"] = w.channel(3, "prod", evil)
		}, "role prod: length/hash verification error"},
		"key of targets alone": {func(w *world, k *Known, a *Answer) {
			delete(k.Roles, "targets")
			a.Roles["targets"] = w.top(w.known.Roles["targets"], map[string]Role{"prod": w.role(1, "dev")})
		}, "role targets: length/hash verification error"},
		"archives in targets itself": {func(w *world, k *Known, a *Answer) {
			a.Roles["targets"] = forge(w, metadata.Targets(), w.known.Roles["targets"], func(s *metadata.TargetsType) {
				s.Version++
				s.Targets[evil] = &metadata.TargetFiles{Length: 1, Hashes: metadata.Hashes{"sha256": make([]byte, 32)}}
			}, "top")
			w.chain(a.Roles)
		}, "archive vic/6.6.6.6666/production is in no channel (checked: prod version 2)"},
		"one key of root": {func(w *world, k *Known, a *Answer) {
			a.Roots = [][]byte{w.root(w.roots[0], map[string]Role{"targets": w.role(1, "next")}, "root1")}
		}, "role root: version 2: unsigned metadata error: Verifying root failed, not enough signatures, got 1, want 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.now = w.now.Add(time.Second)
			w.publish(map[string][]byte{"prod": w.channel(2, "prod", old)})
			k := w.robot()
			a := w.answer(Question{V: 1, Root: 1, Roles: map[string]int64{"targets": 0, "prod": 0}})
			c.do(w, k, &a)
			before := versions(k)
			v, err := k.Update(a, w.now)
			if err == nil {
				_, err = v.Target(evil, "prod")
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v\nwant ...%s...", err, c.want)
			}
			t.Log(err)
			for role, n := range before {
				if got := versions(k)[role]; got < n && got != 0 {
					t.Errorf("%s was lowered from version %d to %d", role, n, got)
				}
			}
		})
	}
}

func versions(k *Known) map[string]int64 {
	out := map[string]int64{"root": Version(k.Root)}
	for role, b := range k.Roles {
		out[role] = Version(b)
	}
	return out
}

// TestStolenKeysCan shows what an attacker can do with stolen keys: with the key of a channel and the cloud's keys he names archives in that channel and in no
// other; with the cloud's keys alone he only keeps robots as they are.
func TestStolenKeysCan(t *testing.T) {
	w := newWorld(t)
	k := w.robot()
	roles := map[string][]byte{"targets": w.known.Roles["targets"], "prod": w.known.Roles["prod"], "dev": w.channel(1<<40, "dev", evil)}
	w.chain(roles)
	v, err := k.Update(Answer{Roles: roles}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Target(evil, "prod", "beta", "dev"); err != nil {
		t.Errorf("dev: %v", err)
	}
	if _, err := v.Target(evil, "prod", "beta"); err == nil {
		t.Error("a robot of beta takes what dev names")
	}
}

// TestRootRotation: each wrong version of root is refused, and leaves the one that is trusted.
func TestRootRotation(t *testing.T) {
	w := newWorld(t)
	first := w.roots[0]
	change := map[string]Role{"root": w.role(2, "next", "root2", "root3")}
	second := w.root(first, change, "root2", "root3")
	for name, c := range map[string]struct {
		root []byte
		want string
	}{
		"skipped version":                      {forge(w, metadata.Root(), second, func(r *metadata.RootType) { r.Version = 3 }, "root2", "root3"), "expected 2, got 3"},
		"the same version":                     {first, "expected 2, got 1"},
		"not signed by the old keys":           {w.root(first, map[string]Role{"root": w.role(1, "next")}, "next"), "not enough signatures, got 0, want 2"},
		"not signed by the new keys":           {w.root(first, map[string]Role{"root": w.role(1, "next")}, "root1", "root2"), "not enough signatures, got 0, want 1"},
		"threshold of the old not met":         {w.root(first, change, "root2", "next"), "got 1, want 2"},
		"threshold of the new not met":         {w.root(first, map[string]Role{"root": w.role(3, "next", "root2", "root3")}, "root2", "root3"), "got 2, want 3"},
		"changed after it was signed":          {forge(w, metadata.Root(), second, func(r *metadata.RootType) { r.Expires = noon.AddDate(99, 0, 0) }), "got 0, want 2"},
		"one person twice":                     {twice(w, w.root(first, change, "root2")), "multiple signatures found"},
		"a threshold of none":                  {forge(w, metadata.Root(), second, func(r *metadata.RootType) { r.Roles["root"].Threshold = 0 }, "root2", "root3"), "insufficient threshold"},
		"no root":                              {[]byte(`{"signed":{"_type":"root","version":2}}`), "role root: version 2: "},
		"a role that is null":                  {forge(w, metadata.Root(), second, func(r *metadata.RootType) { r.Roles["root"] = nil }, "root2", "root3"), "nil pointer"},
		"another role's metadata, well signed": {w.known.Roles["timestamp"], "expected metadata type root, got - timestamp"},
	} {
		t.Run(name, func(t *testing.T) {
			k := w.robot()
			before := k.Clone()
			_, err := k.Update(Answer{Roots: [][]byte{c.root}, Roles: w.known.Roles}, w.now)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant ...%s...", err, c.want)
			}
			if !k.Equal(before) {
				t.Error("it changed what is trusted")
			}
			if err := w.try(map[string][]byte{fmt.Sprintf("%d.root", Version(c.root)): c.root}); err == nil && !bytes.Equal(c.root, first) {
				t.Error("the cloud published it")
			}
		})
	}
}

func twice(w *world, b []byte) []byte {
	m := map[string]any{}
	if err := json.Unmarshal(b, &m); err != nil {
		w.t.Fatal(err)
	}
	m["signatures"] = append(m["signatures"].([]any), m["signatures"].([]any)...)
	b, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// TestRotations: each role gets other keys and each robot goes along, also one that was off while root changed often. A stolen key of the cloud that was used to
// send the versions to their end is cured by other keys.
func TestRotations(t *testing.T) {
	w := newWorld(t)
	off, early := w.robot(), &Known{Root: w.roots[0]}
	rotate := func(role Role, name string, by ...string) []byte {
		return w.root(w.known.Root, map[string]Role{name: role}, by...)
	}
	for i := range 20 { // more than one answer holds
		by := []string{"root1", "root2"}
		if i%2 == 1 {
			by = []string{"root2", "root3"}
		}
		w.now = w.now.Add(time.Hour)
		b := rotate(w.role(2, "root1", "root2", "root3"), "root", by...)
		w.publish(map[string][]byte{fmt.Sprintf("%d.root", Version(b)): b})
	}
	w.installs(off, old)
	if Version(off.Root) != 21 {
		t.Errorf("root %d, want 21", Version(off.Root))
	}

	// the end of all versions, by who has both keys of the cloud
	k := w.robot()
	roles := map[string][]byte{"targets": w.known.Roles["targets"], "prod": w.known.Roles["prod"], "dev": w.known.Roles["dev"]}
	const last = 1<<53 - 1
	roles["snapshot"] = forge(w, metadata.Snapshot(), w.known.Roles["snapshot"], func(s *metadata.SnapshotType) { s.Version = last }, "snap")
	roles["timestamp"] = w.stamp(last, roles["snapshot"])
	if _, err := k.Update(Answer{Roles: roles}, w.now); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	w.publish(map[string][]byte{"prod": w.channel(2, "prod", newer)})
	if _, err := k.Refresh(w.honest, w.now, "prod"); err == nil || !strings.Contains(err.Error(), "must be >= 9007199254740991") {
		t.Fatalf("%v, want a refusal", err)
	}
	b := w.root(w.known.Root, map[string]Role{"timestamp": w.role(1, "next"), "snapshot": w.role(1, "next")}, "root1", "root3")
	w.publish(map[string][]byte{"22.root": b})
	for _, robot := range []*Known{k, off, early} {
		w.installs(robot, newer)
	}

	// targets, then a channel, then the same channel to two of two
	b = w.root(w.known.Root, map[string]Role{"targets": w.role(1, "beta")}, "root1", "root3")
	top, err := EditTargets(2, w.known.Roles["targets"], map[string]Role{"prod": w.role(1, "root2")}, w.now.AddDate(1, 0, 0))
	top = w.signed(top, err, "beta")
	if err := w.try(map[string][]byte{"23.root": b}); err == nil || !strings.Contains(err.Error(), "role targets: ") {
		t.Errorf("root without the targets that it needs: %v", err)
	}
	if err := w.try(map[string][]byte{"23.root": b, "targets": top}); err == nil || !strings.Contains(err.Error(), "role prod: ") {
		t.Errorf("targets without the channel that it needs: %v", err)
	}
	w.publish(map[string][]byte{"23.root": b, "targets": top, "prod": w.channel(3, "root2", newer)})
	for _, robot := range []*Known{k, off, early, w.robotOf(0)} {
		w.installs(robot, newer)
	}
}

// TestEndlessRoots: a chain without an end is given up; what it had stays.
func TestEndlessRoots(t *testing.T) {
	w := newWorld(t)
	k := w.robot()
	asked := 0
	last := w.known.Root
	_, err := k.Refresh(func(Question) (a Answer, _ error) {
		asked++
		for range MaxRoots {
			last = w.root(last, nil, "root1", "root2")
			a.Roots = append(a.Roots, last)
		}
		return a, nil
	}, w.now, "prod")
	if err == nil || !strings.Contains(err.Error(), "more than 128 new versions at once; version 129") || asked != MaxRounds {
		t.Errorf("%v after %d answers", err, asked)
	}
}

// TestPublisher: the cloud signs again what it can before it expires, and what changes; nothing otherwise. Versions grow with time, so that they are past
// those that robots know after a backup was restored. A channel that expired does not stop the others.
func TestPublisher(t *testing.T) {
	w := newWorld(t)
	publisher := Publisher{}
	for _, n := range []string{"stamp", "snap", "dev"} {
		publisher.Keys = append(publisher.Keys, w.keys[n])
	}
	first := w.known.Clone()
	w.now = w.now.Add(timestampLife/2 - time.Minute)
	w.publish(nil)
	if !w.known.Equal(first) {
		t.Errorf("published without a reason: %v, had %v", versions(w.known), versions(first))
	}
	w.now = w.now.Add(2 * time.Minute)
	w.publish(nil)
	if got, want := versions(w.known), versions(first); got["timestamp"] != w.now.Unix() || got["snapshot"] != want["snapshot"] {
		t.Errorf("%v after half the life of a timestamp, had %v", got, want)
	}
	k := w.robot()
	w.dev = named(old, newer)
	w.publish(nil)
	v, err := k.Refresh(w.honest, w.now, "prod", "dev")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Target(newer, "prod", "dev"); err != nil {
		t.Error(err)
	}

	// a backup of the beginning is restored
	w.known, w.now = first, w.now.Add(time.Hour)
	w.publish(nil)
	w.installs(k, old)

	if err := w.try(map[string][]byte{"prod": w.channel(1, "prod", newer)}); err == nil || !strings.Contains(err.Error(), "want type targets and a version after 1") {
		t.Errorf("%v for a second version 1", err)
	}
	if err := w.try(map[string][]byte{"prod": w.channel(2, "dev", newer)}); err == nil || !strings.Contains(err.Error(), "role prod: unsigned") {
		t.Errorf("%v for a channel signed by a stranger", err)
	}
	if err := w.try(map[string][]byte{"nightly": w.channel(2, "dev", newer)}); err == nil || !strings.Contains(err.Error(), `upload "nightly": want N.root`) {
		t.Errorf("%v for a channel that there is not", err)
	}

	// prod was not signed for three months
	w.now = w.now.AddDate(0, 2, 10)
	problem := func(role string) (s string) {
		for _, st := range publisher.States(w.known, w.now) {
			if st.Role == role {
				s = st.Problem
			}
		}
		return s
	}
	w.publish(nil)
	if p := problem("prod"); !strings.Contains(p, "role prod expire at 2026-08-01T12:00:00Z: sign a new version") || problem("dev") != "" || problem("timestamp") != "" {
		t.Errorf("problems %+v", publisher.States(w.known, w.now))
	}
	w.now = w.now.AddDate(0, 0, 30)
	w.publish(nil)
	if _, err := k.Refresh(w.honest, w.now, "prod"); err != nil {
		t.Error(err)
	}
	v, err = k.Refresh(w.honest, w.now, "prod", "dev")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Target(old, "prod"); err == nil || !strings.Contains(err.Error(), "role prod: version 1 expired at 2026-08-01T12:00:00Z") {
		t.Errorf("%v, want that prod expired", err)
	}
	if _, err := v.Target(old, "dev"); err != nil {
		t.Error(err)
	}
	if p := problem("prod"); !strings.Contains(p, "role prod expired at") {
		t.Errorf("problem %q", p)
	}
	if _, _, err := (Publisher{}).Next(w.known, map[string][]byte{"prod": w.channel(2, "prod", newer)}, nil, w.now); err == nil || !strings.Contains(err.Error(), "role snapshot: 0 of its keys available, want 1") {
		t.Errorf("%v without keys", err)
	}
}

// TestPath: the parts of a path cannot be confused.
func TestPath(t *testing.T) {
	for want, got := range map[string]string{
		"vic/2.0.1.6076/production":          Path("vic", "2.0.1.6076", "production", "", ""),
		"vic/2.0.1.6077/delta-2.0.1.6076":    Path("vic", "2.0.1.6077", "delta", "2.0.1.6076", ""),
		"vic/1.0.0.1/factory-00e2%2F..%2F..": Path("vic", "1.0.0.1", "factory", "", "00e2/../.."),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// FuzzAnswer: whatever comes, a robot keeps what it had or has something newer that is signed, and does not panic.
func FuzzAnswer(f *testing.F) {
	w := newWorld(&testing.T{})
	k := w.robot()
	a := w.answer(Question{V: 1, Root: 1, Roles: map[string]int64{"targets": 0, "prod": 0}})
	good, err := a.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"v":1,"roots":[null,"bnVsbA=="],"roles":{"timestamp":"eyJzaWduZWQiOm51bGx9"}}`))
	for _, b := range a.Roles {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		robot := k.Clone()
		if a, err := ParseAnswer(b); err == nil {
			_, _ = robot.Update(a, noon) // the answer is any
		}
		// the same bytes as each role
		_, _ = robot.Update(Answer{Roots: [][]byte{b}}, noon)
		_, _ = robot.Update(Answer{Roles: map[string][]byte{"timestamp": b, "snapshot": b, "targets": b, "prod": b}}, noon)
		for role, n := range versions(k) {
			if got := versions(robot)[role]; got != n && !(got == 0 && (role == "targets" || role == "prod" || role == "dev")) {
				t.Errorf("%s has version %d, had %d", role, got, n)
			}
		}
	})
}

// FuzzQuestion: the cloud reads what robots ask, and answers what it could read.
func FuzzQuestion(f *testing.F) {
	w := newWorld(&testing.T{})
	q, err := w.robot().Question("prod").Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(q)
	f.Add([]byte(`{"v":1,"root":9223372036854775807,"roles":{"root":-1,"timestamp":0}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := ParseQuestion(b)
		if err != nil {
			return
		}
		if a := w.known.Answer(q, nil); len(a.Roles) > 2+len(q.Roles) || a.Roles["root"] != nil {
			t.Errorf("%d roles for %d that were asked", len(a.Roles), len(q.Roles))
		}
	})
}

package trust

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"

	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota/manifest"
)

// Channels are the channels, the most trusted first. A robot of one takes releases of those before it too.
var Channels = []string{"prod", "beta", "dev"}

// Bounds of what is read.
const (
	maxSmall   = 64 << 10 // bytes of root, timestamp and snapshot
	maxTargets = 1 << 20  // bytes of targets and of a channel
	MaxRoots   = 16       // in an answer; one with fewer has the last
	MaxRounds  = 8        // answers that one refresh takes
)

// Known holds the newest metadata of each role that was verified. Later metadata are compared with it, so it must not be lost.
type Known struct {
	Root  []byte            `json:"root"`
	Roles map[string][]byte `json:"roles,omitempty"` // all others, by role
}

// Question is the body of req/ota/trust.
type Question struct {
	V     int              `json:"v"`
	Root  int64            `json:"root"`  // the version that the robot has
	Roles map[string]int64 `json:"roles"` // targets and channels that it wants, with the version that it has
}

// Answer holds what the robot lacks. The versions of root come in order; while more of them follow, it has nothing else.
type Answer struct {
	V     int               `json:"v"`
	Roots [][]byte          `json:"roots,omitempty"`
	Roles map[string][]byte `json:"roles,omitempty"`
}

// ParseQuestion reads and checks a question.
func ParseQuestion(b []byte) (q Question, err error) {
	if err := json.Unmarshal(b, &q); err != nil {
		return q, errs.New(errs.Invalid, "release metadata request: %w", err)
	}
	if q.V != 1 || q.Root < 1 || len(q.Roles) > len(Channels)+1 {
		return q, errs.New(errs.Invalid, "release metadata request: version %d, root %d, %d roles: want version 1, a root and at most %d roles", q.V, q.Root, len(q.Roles), len(Channels)+1)
	}
	return q, nil
}

// ParseAnswer reads an answer. What is in it is not verified.
func ParseAnswer(b []byte) (a Answer, err error) {
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("response of the cloud: %w", err)
	}
	if a.V != 1 || len(a.Roots) > MaxRoots {
		return a, fmt.Errorf("response of the cloud: version %d with %d roots: want version 1 and at most %d", a.V, len(a.Roots), MaxRoots)
	}
	return a, nil
}

// Encode returns the question as JSON.
func (q Question) Encode() ([]byte, error) { q.V = 1; return json.Marshal(q) }

// Encode returns the answer as JSON.
func (a Answer) Encode() ([]byte, error) { a.V = 1; return json.Marshal(a) }

// Question asks for what k lacks of the channels.
func (k *Known) Question(channels ...string) Question {
	q := Question{Root: Version(k.Root), Roles: map[string]int64{}}
	for _, role := range append([]string{metadata.TARGETS}, channels...) {
		q.Roles[role] = Version(k.Roles[role])
	}
	return q
}

// Version returns the version that metadata say they have; 0 if they cannot be read.
func Version(b []byte) int64 { return HeadOf(b).Signed.Version }

// View holds verified metadata at one time.
type View struct {
	set *trustedmetadata.TrustedMetadata
	bad map[string]error // why a channel cannot be used
}

// Refresh asks until k is up to date. The caller stores k afterwards, also after an error, before it uses the View.
func (k *Known) Refresh(ask func(Question) (Answer, error), now time.Time, channels ...string) (*View, error) {
	for range MaxRounds {
		a, err := ask(k.Question(channels...))
		if err != nil {
			return nil, err
		}
		if v, err := k.Update(a, now); v != nil || err != nil {
			return v, err
		}
	}
	return nil, fmt.Errorf("release metadata, role root: more than %d new versions at once; version %d was read last", MaxRounds*MaxRoots, Version(k.Root))
}

// Answer returns what a robot that asks q lacks of k. roots are the versions of root after its own, the first MaxRoots of them or all.
func (k *Known) Answer(q Question, roots [][]byte) Answer {
	a := Answer{Roots: roots}
	if len(roots) == MaxRoots {
		return a
	}
	a.Roles = map[string][]byte{metadata.TIMESTAMP: k.Roles[metadata.TIMESTAMP], metadata.SNAPSHOT: k.Roles[metadata.SNAPSHOT]}
	for role, has := range q.Roles {
		if b := k.Roles[role]; b != nil && Version(b) != has {
			a.Roles[role] = b
		}
	}
	return a
}

// Update verifies an answer against k at a time, by the client workflow of the specification. What is newer and right is in k afterwards, even if something else
// is wrong. An error says which role is wrong, and why. The View is nil without one if more versions of root follow.
func (k *Known) Update(a Answer, now time.Time) (v *View, err error) {
	role := metadata.ROOT
	defer func() {
		caught(recover(), &err)
		if err != nil {
			v, err = nil, fmt.Errorf("release metadata, role %s: %w", role, err)
		}
	}()
	set, err := trustedmetadata.New(k.Root)
	if err != nil {
		return nil, fmt.Errorf("trusted root: %w", err)
	}
	set.RefTime = now
	for _, b := range a.Roots {
		if err := limit(b, maxSmall); err != nil {
			return nil, err
		}
		if _, err := set.UpdateRoot(b); err != nil {
			return nil, fmt.Errorf("version %d: %w", set.Root.Signed.Version+1, err)
		}
		k.Root = b
	}
	if len(a.Roots) == MaxRoots {
		return nil, nil
	}
	if k.Roles == nil {
		k.Roles = map[string][]byte{}
	}
	if set.Root.Signed.IsExpired(now) {
		return nil, expired(set.Root.Signed.Version, set.Root.Signed.Expires, now)
	}

	role = metadata.TIMESTAMP
	if old := k.Roles[role]; old != nil {
		_, _ = set.UpdateTimestamp(old) // it counts even if it has expired, but not if a new root took its key away
	}
	if b := a.Roles[role]; b != nil {
		if err := limit(b, maxSmall); err != nil {
			return nil, err
		}
		_, err := set.UpdateTimestamp(b)
		_, same := errors.AsType[*metadata.ErrEqualVersionNumber](err)
		_, late := errors.AsType[*metadata.ErrExpiredMetadata](err)
		switch {
		case err == nil:
			k.Roles[role] = b
		case !same && !late:
			return nil, err
		}
	}
	if set.Timestamp == nil {
		return nil, errors.New("not in the response")
	}
	if t := set.Timestamp; t.Signed.IsExpired(now) {
		return nil, expired(t.Signed.Version, t.Signed.Expires, now)
	}

	role = metadata.SNAPSHOT
	err = errors.New("not in the response")
	if old := k.Roles[role]; old != nil {
		_, err = set.UpdateSnapshot(old, true)
	}
	if b := a.Roles[role]; b != nil && err != nil {
		if err = limit(b, maxSmall); err == nil {
			_, err = set.UpdateSnapshot(b, false)
		}
		if err == nil {
			k.Roles[role] = b
		}
	}
	if s := set.Snapshot; s != nil && s.Signed.IsExpired(now) {
		return nil, expired(s.Signed.Version, s.Signed.Expires, now)
	}
	if err != nil {
		return nil, err
	}

	role = metadata.TARGETS
	if err := k.targets(set, a, role, metadata.ROOT); err != nil {
		return nil, err
	}
	v = &View{set, map[string]error{}}
	for _, c := range Channels {
		if _, published := set.Snapshot.Signed.Meta[c+".json"]; published && v.delegation(c) != nil {
			v.bad[c] = k.targets(set, a, c, metadata.TARGETS)
		}
	}
	return v, nil
}

// targets verifies targets or a channel, which the snapshot names: the version that is known, or else the one in the answer.
func (k *Known) targets(set *trustedmetadata.TrustedMetadata, a Answer, role, parent string) error {
	err := errors.New("not in the response")
	if old := k.Roles[role]; old != nil {
		if _, err = set.UpdateDelegatedTargets(old, role, parent); err == nil {
			return nil
		}
	}
	b := a.Roles[role]
	if b == nil {
		delete(k.Roles, role) // the next question asks for it; the snapshot guards its version
		return err
	}
	if err := limit(b, maxTargets); err != nil {
		return err
	}
	_, err = set.UpdateDelegatedTargets(b, role, parent)
	if _, late := errors.AsType[*metadata.ErrExpiredMetadata](err); late {
		h := HeadOf(b)
		return expired(h.Signed.Version, h.Signed.Expires, set.RefTime)
	}
	if err == nil {
		k.Roles[role] = b
	}
	return err
}

func limit(b []byte, most int) error {
	if len(b) > most {
		return fmt.Errorf("%d bytes: want at most %d", len(b), most)
	}
	return nil
}

func expired(version int64, at, now time.Time) error {
	return fmt.Errorf("version %d expired at %s; it is now %s", version, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

// caught makes an error of a panic: go-tuf follows entries of signed metadata that are null.
func caught(panicked any, err *error) {
	if panicked != nil {
		*err = fmt.Errorf("malformed metadata: %v", panicked)
	}
}

// Clone returns a copy that can be updated apart from k.
func (k *Known) Clone() *Known {
	c := &Known{k.Root, map[string][]byte{}}
	maps.Copy(c.Roles, k.Roles)
	return c
}

func (v *View) delegation(channel string) *metadata.DelegatedRole {
	d := v.set.Targets[metadata.TARGETS].Signed.Delegations
	if d == nil {
		return nil
	}
	if i := slices.IndexFunc(d.Roles, func(r metadata.DelegatedRole) bool { return r.Name == channel }); i >= 0 {
		return &d.Roles[i]
	}
	return nil
}

// Target is an archive that a channel names.
type Target struct {
	Length int64
	SHA256 manifest.Sum
}

// Path names an archive among the targets: species, version, and its kind with the base of a delta or the only robot that it is for.
func Path(species thing.Species, version, kind, base, qsn string) string {
	name := kind
	if more := base + qsn; more != "" {
		name += "-" + url.PathEscape(more)
	}
	return strings.Join([]string{string(species), version, name}, "/")
}

// Target returns the archive at a path, from the first of the channels that names it.
func (v *View) Target(path string, channels ...string) (t Target, err error) {
	defer func() { caught(recover(), &err) }()
	var asked []string
	for _, c := range channels {
		if err := v.bad[c]; err != nil {
			return t, fmt.Errorf("release metadata, role %s: %w", c, err)
		}
		m := v.set.Targets[c]
		if m == nil {
			continue
		}
		asked = append(asked, c+" version "+strconv.FormatInt(m.Signed.Version, 10))
		if ok, err := v.delegation(c).IsDelegatedPath(path); err != nil || !ok || m.Signed.Targets[path] == nil {
			continue
		}
		f := m.Signed.Targets[path]
		if len(f.Hashes["sha256"]) != len(t.SHA256) {
			return t, fmt.Errorf("release metadata, role %s: archive %s has no SHA-256", c, path)
		}
		t.Length = f.Length
		copy(t.SHA256[:], f.Hashes["sha256"])
		return t, nil
	}
	return t, fmt.Errorf("release metadata: archive %s is in no channel (checked: %s)", path, cmp.Or(strings.Join(asked, ", "), "none is published"))
}

// Equal reports whether both know the same.
func (k *Known) Equal(o *Known) bool {
	return bytes.Equal(k.Root, o.Root) && maps.EqualFunc(k.Roles, o.Roles, bytes.Equal)
}

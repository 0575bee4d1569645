package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/update"
	"kennel/edge/update/disk"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/manifest"
	"kennel/ota/trust"
)

// Files of a robot that uses release metadata, below its root. A robot without RootFile installs every archive that the release key signed, as original robots
// do.
const (
	RootFile    = "anki/etc/tuf/root.json" // the first root to trust
	ChannelFile = "anki/etc/tuf/channel"   // the channel that the robot takes releases of: prod, or one word that is here
	knownFile   = "data/update-engine/tuf.json"
)

// plain is the reason that a robot without RootFile reports once it has installed a release.
const plain = "installed on the signature of its archive alone: this robot has no " + RootFile + " to check release metadata with"

// errUnvouched ends an update that may succeed later: what is wrong is not the archive.
var errUnvouched = errors.New("not allowed by release metadata")

// vouching asks the cloud's metadata about archives.
type vouching struct {
	disk     disk.Disk
	root     []byte
	channels []string
	species  thing.Species
	ask      kitmqtt.Requester
	now      func() time.Time // never before a time that was proven
	log      *slog.Logger
	one      sync.Mutex
}

// voucher returns nil for a robot without RootFile.
func voucher(robot host.Robot, ask kitmqtt.Requester, now func() time.Time) (update.Voucher, error) {
	root, err := robot.Root.ReadFile(RootFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && trust.Version(root) < 1 {
		err = fmt.Errorf("%s: no root metadata", RootFile)
	}
	if err != nil {
		return nil, err
	}
	channels, err := channelsOf(robot.Root)
	if err != nil {
		return nil, err
	}
	v := &vouching{disk: disk.Of(robot.Root), root: root, channels: channels, species: robot.Thing.Species(), ask: ask, now: now, log: robot.Log}
	return v.vouch, nil
}

// channelsOf returns the robot's channel and those before it.
func channelsOf(root *os.Root) ([]string, error) {
	b, err := root.ReadFile(ChannelFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	name := strings.TrimSpace(string(b))
	if name == "" {
		return trust.Channels[:1], nil
	}
	for i, c := range trust.Channels {
		if c == name {
			return trust.Channels[:i+1], nil
		}
	}
	return nil, fmt.Errorf("%s: channel %.40q: want one of %s", ChannelFile, name, strings.Join(trust.Channels, ", "))
}

// vouch is update.Voucher.
func (v *vouching) vouch(ctx context.Context, m *manifest.Manifest) (int64, manifest.Sum, error) {
	v.one.Lock()
	defer v.one.Unlock()
	known, err := v.known()
	if err != nil {
		return 0, manifest.Sum{}, ota.Fail(ota.DiskFailed, "%w", err)
	}
	before := known.Clone()
	var silent error
	view, err := known.Refresh(func(q trust.Question) (a trust.Answer, err error) {
		a, silent, err = v.answer(ctx, q)
		return a, errors.Join(silent, err)
	}, v.now(), v.channels...)
	if !known.Equal(before) {
		if err := v.keep(known); err != nil {
			return 0, manifest.Sum{}, ota.Fail(ota.DiskFailed, "%w", err)
		}
	}
	if silent != nil { // nothing is wrong with what the robot knows
		return 0, manifest.Sum{}, ota.Fail(ota.Other, "ask for release metadata: %w", silent)
	}
	var t trust.Target
	if err == nil {
		t, err = view.Target(trust.Path(v.species, string(m.Version), string(m.Kind()), string(m.Images[0].Base), m.QSN), v.channels...)
	}
	if err != nil {
		return 0, manifest.Sum{}, ota.Fail(ota.NotAuthentic, "%w: %w", errUnvouched, err)
	}
	return t.Length, t.SHA256, nil
}

// answer returns the cloud's answer; silent is why there is none.
func (v *vouching) answer(ctx context.Context, q trust.Question) (a trust.Answer, silent, err error) {
	body, err := q.Encode()
	if err != nil {
		return a, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	b, silent := v.ask.Do(ctx, "ota", "trust", body)
	if silent == nil {
		a, err = trust.ParseAnswer(b)
	}
	return a, silent, err
}

// known returns what the robot knows. A newer system may bring a newer root.
func (v *vouching) known() (*trust.Known, error) {
	k := &trust.Known{Root: v.root}
	b, err := disk.Get(v.disk, knownFile, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, k); err != nil {
		v.log.Error("known release metadata unreadable; starting with the system's root", logging.Err, err) // a power cut leaves it whole
		return &trust.Known{Root: v.root}, nil
	}
	if trust.Version(v.root) > trust.Version(k.Root) {
		k.Root = v.root
	}
	return k, nil
}

func (v *vouching) keep(k *trust.Known) error {
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return disk.Put(v.disk, knownFile, b)
}

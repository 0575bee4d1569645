package release

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/env/envtest"
	"kennel/edge/update/disk"
	"kennel/edge/update/disktest"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/manifest"
	"kennel/ota/trust"
)

// signers is a cloud that signs all roles.
type signers struct {
	t      *testing.T
	root   []byte
	key    crypto.Signer
	known  *trust.Known
	silent bool
	now    time.Time
}

func newSigners(t *testing.T) *signers {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signers{t: t, key: key, known: &trust.Known{}, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	who := trust.Role{Keys: []crypto.PublicKey{key.Public()}, Threshold: 1}
	root, err := trust.EditRoot(nil, map[string]trust.Role{"root": who, "targets": who, "snapshot": who, "timestamp": who}, s.now.AddDate(1, 0, 0))
	if err == nil {
		root, err = trust.Sign(root, key)
	}
	targets, e2 := trust.EditTargets(1, nil, map[string]trust.Role{"prod": who, "beta": who}, s.now.AddDate(1, 0, 0))
	if e2 == nil {
		targets, e2 = trust.Sign(targets, key)
	}
	if err := errors.Join(err, e2); err != nil {
		t.Fatal(err)
	}
	s.root = root
	s.publish(map[string][]byte{"1.root": root, "targets": targets}, "vic/2.0.1.6076/production")
	return s
}

func (s *signers) publish(uploads map[string][]byte, paths ...string) {
	s.t.Helper()
	targets := map[string]trust.Target{}
	for _, p := range paths {
		targets[p] = trust.Target{Length: int64(len(p)), SHA256: sha256.Sum256([]byte(p))}
	}
	var err error
	if s.known, _, err = (trust.Publisher{Keys: []crypto.Signer{s.key}}).Next(s.known, uploads, targets, s.now); err != nil {
		s.t.Fatal(err)
	}
}

func (s *signers) Do(_ context.Context, service, method string, body []byte) ([]byte, error) {
	if s.silent {
		return nil, errs.New(errs.Unavailable, "no answer")
	}
	q, err := trust.ParseQuestion(body)
	if err != nil || service+"/"+method != "ota/trust" {
		s.t.Errorf("asked %s/%s: %v", service, method, err)
	}
	return s.known.Answer(q, nil).Encode()
}

func (s *signers) robot(d disk.Disk) *vouching {
	return &vouching{disk: d, root: s.root, channels: trust.Channels[:1], species: thing.Vector, ask: s, now: func() time.Time { return s.now }, log: slog.New(slog.DiscardHandler)}
}

func release(v ota.Version, base ota.Version) *manifest.Manifest {
	m := &manifest.Manifest{Version: v, Images: []manifest.Image{{Part: manifest.Boot}, {Part: manifest.System}}}
	if base != "" {
		m.Images = []manifest.Image{{Part: manifest.Changes, Base: base}}
	}
	return m
}

// TestVouch: who is asked about which archive, and with which code and words a robot refuses.
func TestVouch(t *testing.T) {
	s := newSigners(t)
	v := s.robot(disktest.New())
	s.publish(nil, "vic/2.0.1.6076/production", "vic/2.0.1.6077/delta-2.0.1.6076")
	for _, m := range []*manifest.Manifest{release("2.0.1.6076", ""), release("2.0.1.6077", "2.0.1.6076")} {
		if n, _, err := v.vouch(t.Context(), m); err != nil || n == 0 {
			t.Errorf("%s: %d, %v", m.Version, n, err)
		}
	}
	for want, m := range map[string]*manifest.Manifest{
		"archive vic/2.0.1.6077/production is in no channel (checked: prod version ": release("2.0.1.6077", ""),
		"archive vic/2.0.1.6077/delta-1.0.0.1 is in no channel":                      release("2.0.1.6077", "1.0.0.1"),
	} {
		if _, _, err := v.vouch(t.Context(), m); ota.CodeOf(err) != ota.NotAuthentic || !passes(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want code 209 and %s", err, want)
		}
	}
	s.silent = true
	if _, _, err := v.vouch(t.Context(), release("2.0.1.6076", "")); ota.CodeOf(err) != ota.Other || !strings.Contains(err.Error(), "ask for release metadata: no answer") {
		t.Errorf("%v without an answer", err)
	}
	s.silent, s.now = false, s.now.AddDate(0, 0, 3)
	if _, _, err := v.vouch(t.Context(), release("2.0.1.6076", "")); ota.CodeOf(err) != ota.NotAuthentic || !strings.Contains(err.Error(), "role timestamp: version") {
		t.Errorf("%v from a cloud that is frozen", err)
	}
}

// TestKnownPowerCut cuts the power at each call of a refresh: the robot knows what it knew or all that is new, and still refuses what is older than that.
func TestKnownPowerCut(t *testing.T) {
	s := newSigners(t)
	first := s.known.Clone()
	s.now = s.now.Add(time.Hour)
	s.publish(nil, "vic/2.0.1.6077/production")
	second := s.known.Clone()
	cuts := 0
	for _, loss := range disktest.Losses {
		for n := 1; ; n++ {
			d := disktest.New()
			s.known = first
			if _, _, err := s.robot(d).vouch(t.Context(), release("2.0.1.6076", "")); err != nil {
				t.Fatal(err)
			}
			s.known = second
			d.CutAt(n)
			_, _, err := s.robot(d).vouch(t.Context(), release("2.0.1.6077", ""))
			done := d.Calls() < n
			d.Power(loss)
			if !done {
				cuts++
				if ota.CodeOf(err) != ota.DiskFailed {
					t.Fatalf("cut at %d: %v, want code %d", n, err, ota.DiskFailed)
				}
			}
			k, err := s.robot(d).known()
			if err != nil {
				t.Fatal(err)
			}
			_, old := k.Roles["timestamp"], slices.Equal(k.Roles["timestamp"], first.Roles["timestamp"])
			switch is := slices.Equal(k.Roles["timestamp"], second.Roles["timestamp"]); {
			case is == old, done && !is:
				t.Fatalf("loss %d, cut at %d: knows neither what it knew nor what is new", loss, n)
			case is:
				s.known = first
				if _, _, err := s.robot(d).vouch(t.Context(), release("2.0.1.6076", "")); !strings.Contains(err.Error(), "new timestamp version") {
					t.Fatalf("loss %d, cut at %d: %v for what is older", loss, n, err)
				}
			}
			if done {
				break
			}
		}
	}
	if cuts < 9 {
		t.Errorf("%d cuts", cuts)
	}
}

// TestVoucher: what a robot's files make of it.
func TestVoucher(t *testing.T) {
	s := newSigners(t)
	for name, c := range map[string]struct {
		root, channel string
		want          string
		vouch         bool
	}{
		"no root":       {"", "", "", false},
		"root":          {string(s.root), "", "", true},
		"beta":          {string(s.root), "beta\n", "", true},
		"no metadata":   {"-----BEGIN", "", "root.json: no root metadata", false},
		"other channel": {string(s.root), "nightly", `channel "nightly": want one of prod, beta, dev`, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{RootFile: c.root, ChannelFile: c.channel} {
				if text == "" {
					continue
				}
				file = filepath.Join(dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			v, err := voucher(host.Robot{Root: root, Hardware: envtest.Hardware{}, Thing: "vic:00e20100", Log: slog.New(slog.DiscardHandler)}, s, func() time.Time { return s.now })
			if (v != nil) != c.vouch || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("voucher %v, %v", v != nil, err)
			}
			if v == nil {
				return
			}
			if _, _, err := v(t.Context(), release("2.0.1.6076", "")); err != nil {
				t.Error(err)
			}
		})
	}
}

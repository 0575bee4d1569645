// Package artifactwire wires the slice of releases' archives and channels.
package artifactwire

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"os"
	"time"

	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/cloud/updates/artifact/artifactpg"
	"kennel/cloud/updates/tufrepo/tufrepowire"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
	"kennel/infra/telemetry"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/manifest"
)

// Config says which archives are taken.
type Config struct {
	Keys         []string `koanf:"keys"`          // files that each hold a public key in PEM, such as robots' ota.pub; an archive must be signed with one of these keys. Empty: no archive is accepted
	PasswordFile string   `koanf:"password_file"` // whose first line is the password of encrypted images, as robots' ota.pas; "": those are refused

	Metadata tufrepowire.Config `koanf:"metadata"` // of releases: what the cloud signs by itself
}

// open reads the files.
func (c Config) open() (keys []*rsa.PublicKey, password []byte, err error) {
	for _, name := range c.Keys {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, fmt.Errorf("releases.keys: %w", err)
		}
		key, err := manifest.ParseKey(b)
		if err != nil {
			return nil, nil, fmt.Errorf("releases.keys: %s: %w", name, err)
		}
		keys = append(keys, key)
	}
	if c.PasswordFile != "" {
		b, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return nil, nil, fmt.Errorf("releases.password_file: %w", err)
		}
		if password, err = archive.Password(b); err != nil {
			return nil, nil, fmt.Errorf("releases.password_file: %s: %w", c.PasswordFile, err)
		}
	}
	return keys, password, nil
}

// Wire wires them. releases is told of the releases that archives make known, and asks for their archives.
func Wire(b wire.Base, cfg Config, releases *ota.Service) (*artifact.Service, *artifactapi.Files, wire.Slice, error) {
	keys, password, err := cfg.open()
	if err != nil {
		return nil, nil, wire.Slice{}, err
	}
	svc := artifact.New(artifact.Config{Store: artifactpg.New(b.Pool), Objects: b.Blobs, Add: releases.AddRelease, Next: releases.Next, Keys: keys, Password: password, Log: b.Log})
	releases.Supply(svc)
	svc.Users = append(svc.Users, releases.Used)
	asked, e1 := b.Meters.Count(telemetry.Metric{Name: "kennel_artifact_requests_total",
		Help: "Requests of original robots for archives, by what the robot says that it is (victortarget)."}, "channel", "version", "target", "answer")
	sent, e2 := b.Meters.Count(telemetry.Metric{Name: "kennel_artifact_sent_bytes_total", Help: "Bytes of archives sent to original robots."}, "channel", "version")
	if err := errors.Join(e1, e2); err != nil {
		return nil, nil, wire.Slice{}, err
	}
	files := artifactapi.NewFiles(svc, artifactapi.MaxDownloads,
		func(channel, version, target, answer string) {
			asked.WithLabelValues(channel, version, target, answer).Inc()
		},
		func(channel, version string, n int) { sent.WithLabelValues(channel, version).Add(float64(n)) }, b.Log)
	return svc, files, wire.Slice{
		Operations: func(d wire.Doors) wire.Operations { return artifactapi.Operations(svc, d.Audit) },
		Jobs: []jobs.Job{{Name: "artifact.sweep", Every: time.Hour, Run: func(ctx context.Context) error {
			n, err := svc.Sweep(ctx)
			if n > 0 {
				b.Log.InfoContext(ctx, "archives of broken uploads deleted", "objects", n)
			}
			return err
		}}},
	}, nil
}

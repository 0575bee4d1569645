// Package uploadswire wires what original robots upload: the credentials for it, the door through which it comes, and the list of it.
package uploadswire

import (
	"context"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/sts"
	"kennel/cloud/identity/sts/stspg"
	"kennel/cloud/identity/token"
	"kennel/cloud/originals/stsapi"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/telemetry/uploads/uploadsapi"
	"kennel/cloud/telemetry/uploads/uploadspg"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// Config holds the settings of uploads and the services that they need.
type Config struct {
	Bucket   string   // ours
	Domains  []string // names under which robots call it beside those of AWS
	KeepDays int      // logs are deleted after so many days
	Robots   *registry.Service
	Owner    func(ctx context.Context, id thing.ID) (account string, err error)
	Allowed  func(ctx context.Context, id thing.ID) (bool, error) // before a body; Consent decides
	Consent  consent.Ask
	Revoked  func(ctx context.Context, id thing.ID) (bool, error)
	Acts     func(ctx context.Context, id thing.ID, user string, at time.Time) (bool, error)
	Recorder token.Recorder
}

// Uploads are the credentials and the door for what original robots upload, and the list of it.
type Uploads struct {
	Grants *sts.Grants
	Door   *stsapi.Door
	Logs   *uploads.Service
}

// mendEvery is how often the list of logs is compared with the bucket, whose keys are all read for it.
const mendEvery = 6 * time.Hour

// Wire wires them.
func Wire(b wire.Base, cfg Config) (u Uploads, s wire.Slice, err error) {
	u.Logs, err = uploads.New(uploads.Config{Store: uploadspg.New(b.Pool), Objects: b.Blobs, Prefixes: []string{sts.DefaultPrefix}, Keep: time.Duration(cfg.KeepDays) * 24 * time.Hour,
		OS: func(ctx context.Context, id thing.ID) string {
			t, err := cfg.Robots.Thing(ctx, id)
			if err != nil { // a log without it is better than none
				return ""
			}
			return t.Facets.Version
		}})
	if err != nil {
		return u, s, err
	}
	u.Grants, err = sts.New(sts.Config{Seal: b.Seal, Standing: sts.Owned(cfg.Owner, cfg.Allowed, cfg.Revoked, cfg.Acts)})
	if err != nil {
		return u, s, err
	}
	u.Door, err = stsapi.New(stsapi.Config{
		Grants: u.Grants, Consent: cfg.Consent, Store: b.Blobs, Usage: stspg.New(b.Pool), Limiter: ratelimit.New(50*time.Millisecond, 200), Peers: ratelimit.NewByAddr(time.Second, 60),
		Recorder: cfg.Recorder, Log: b.Log, Buckets: []string{cfg.Bucket}, Domains: cfg.Domains, Stored: u.Logs.Uploaded,
	})
	return u, wire.Slice{
		Operations: func(d wire.Doors) wire.Operations {
			return uploadsapi.Operations(u.Logs, uploadsapi.Config{Known: d.Known, Log: b.Log})
		},
		Jobs: []jobs.Job{
			{Name: "uploads.sweep", Every: time.Hour, Run: func(ctx context.Context) error { _, err := u.Door.Sweep(ctx); return err }},
			{Name: "uploads.expire", Every: time.Hour, Run: func(ctx context.Context) error {
				n, err := u.Logs.Expire(ctx)
				if n > 0 {
					b.Log.InfoContext(ctx, "expired logs deleted", "logs", n)
				}
				return err
			}},
			{Name: "uploads.mend", Every: mendEvery, Run: func(ctx context.Context) error {
				added, removed, err := u.Logs.Mend(ctx)
				if added+removed > 0 {
					b.Log.InfoContext(ctx, "list of logs repaired", "added", added, "removed", removed)
				}
				return err
			}},
		},
		Pages:    uploadsapi.Pages(u.Logs),
		Personal: []wire.Holding{{Name: "uploads", Keeps: []string{"uploads_log", "s3 logs/"}, Data: u.Logs}},
	}, err
}

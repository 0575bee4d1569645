// Package uploadswire wires the logs that robots uploaded. The door through which they come is wired beside the tokens (cloud/app/identity).
package uploadswire

import (
	"context"
	"net/http"
	"time"

	"kennel/cloud/account"
	"kennel/cloud/registry"
	"kennel/cloud/sts"
	"kennel/cloud/uploads"
	"kennel/cloud/uploads/uploadsapi"
	"kennel/cloud/uploads/uploadspg"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
	"kennel/infra/thing"
)

// mendEvery is how often the list of logs is compared with the bucket, whose keys are all read for it.
const mendEvery = 6 * time.Hour

// Wire wires the list of logs; those older than keepDays are deleted.
func Wire(b wire.Base, robots *registry.Service, keepDays int) (*uploads.Service, wire.Slice, error) {
	svc, err := uploads.New(uploads.Config{Store: uploadspg.New(b.Pool), Objects: b.Blobs, Prefixes: []string{sts.DefaultPrefix}, Keep: time.Duration(keepDays) * 24 * time.Hour,
		OS: func(ctx context.Context, id thing.ID) string {
			t, err := robots.Thing(ctx, id)
			if err != nil || t.Status == nil { // a log without it is better than none
				return ""
			}
			return t.Status.OS
		}})
	return svc, wire.Slice{
		Routes: wire.Routes(func(mux *http.ServeMux, d wire.Doors) {
			uploadsapi.Mount(mux, svc, uploadsapi.Config{Known: d.Known, Owns: d.Owns, Log: b.Log})
		}),
		Jobs: []jobs.Job{
			{Name: "uploads.expire", Every: time.Hour, Run: func(ctx context.Context) error {
				n, err := svc.Expire(ctx)
				if n > 0 {
					b.Log.InfoContext(ctx, "expired logs deleted", "logs", n)
				}
				return err
			}},
			{Name: "uploads.mend", Every: mendEvery, Run: func(ctx context.Context) error {
				added, removed, err := svc.Mend(ctx)
				if added+removed > 0 {
					b.Log.InfoContext(ctx, "list of logs mended", "added", added, "removed", removed)
				}
				return err
			}},
		},
		Personal: []account.Holder{{Name: "uploads", Personal: svc}},
	}, err
}

// Package crashwire wires the slice of crashes.
package crashwire

import (
	"context"
	"net/http"
	"time"

	"kennel/cloud/account"
	"kennel/cloud/crash"
	"kennel/cloud/crash/crashapi"
	"kennel/cloud/crash/crashpg"
	"kennel/cloud/owner"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
)

// Wire wires crashes, whose dumps are kept for some days.
func Wire(b wire.Base, keepDays int, owners *owner.Service, audit crashapi.Audit, tell func(ctx context.Context, c crash.Crash, signature string) error) (*crash.Service, wire.Slice, error) {
	store := crashpg.New(b.Pool)
	svc, err := crash.New(crash.Config{Store: store, Symbols: store, Objects: b.Blobs, Keep: time.Duration(keepDays) * 24 * time.Hour, Log: b.Log, Tell: tell})
	if err != nil {
		return nil, wire.Slice{}, err
	}
	return svc, wire.Slice{
		Routes: wire.Routes(func(mux *http.ServeMux, d wire.Doors) { crashapi.Mount(mux, svc, d.Audit, b.Log) }),
		Pages:  crashapi.Pages(svc, audit),
		Jobs: []jobs.Job{{Name: "crash.expire", Every: time.Hour, Run: func(ctx context.Context) error {
			n, err := svc.Expire(ctx)
			if n > 0 {
				b.Log.InfoContext(ctx, "expired crashes deleted", "crashes", n)
			}
			return err
		}}, {Name: "crash.symbolise", Every: time.Minute, Run: func(ctx context.Context) error {
			n, err := svc.Symbolise(ctx)
			if n > 0 {
				b.Log.InfoContext(ctx, "crashes looked at with new symbols", "crashes", n)
			}
			return err
		}}},
		Personal: []account.Holder{{Name: "crashes", Personal: owner.Held{Kind: "crashes", Owners: owners, List: svc.List, Drop: svc.Erase}}},
	}, nil
}

// Package crashwire wires the slice of crashes.
package crashwire

import (
	"context"
	"strings"
	"time"

	"kennel/cloud/identity/owner"
	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashapi"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/wire"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/errs"
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
		Operations: func(d wire.Doors) wire.Operations { return crashapi.Operations(svc, d.Audit, b.Log) },
		Pages:      crashapi.Pages(svc, audit),
		Jobs: []jobs.Job{{Name: "crash.expire", Every: time.Hour, Run: func(ctx context.Context) error {
			n, err := svc.Expire(ctx)
			if n > 0 {
				b.Log.InfoContext(ctx, "expired crashes deleted", "crashes", n)
			}
			return err
		}}, {Name: "crash.symbolise", Every: time.Minute, Run: func(ctx context.Context) error {
			n, err := svc.Symbolise(ctx)
			if n > 0 {
				b.Log.InfoContext(ctx, "crashes analysed again with new symbols", "crashes", n)
			}
			return err
		}}},
		Personal: []wire.Holding{{Name: "crashes", Keeps: []string{"crash_crash", "crash_group", "s3 crash/"}, Data: owner.Filed{
			Held: owner.Held{Kind: "crashes", Owners: owners, List: svc.List, Drop: svc.Erase}, Each: svc.Files}}},
	}, nil
}

// Tell stores the event robot.crash of a crash (VEC-CRS-06), once however often it is told of: its boot is named by the crash. What the owner does not
// consent to is left out.
func Tell(ctx context.Context, in *das.Ingester, c crash.Crash, signature string) error {
	batch, err := events.EncodeBatch(c.ID, []events.Event{{Source: "kenneld", TS: c.At.UnixMilli(), Seq: 1, Level: events.Error, RobotID: c.Thing.Serial(), RobotVersion: strings.ToValidUTF8(c.OS[:min(len(c.OS), events.MaxWord)], ""), BootID: events.CrashBoot + c.ID,
		Name: "robot.crash", S1: c.Program, S2: strings.ToValidUTF8(signature[:min(len(signature), events.MaxText)], ""), S3: c.Version, I1: events.Num(c.At.UnixMilli())}})
	if err != nil {
		return err
	}
	answers := make(chan ack.Ack, 1) // the ingester does not wait for who asked
	in.HandleFrom(ctx, c.Thing, das.Claimed, time.Now(), batch, func(a ack.Ack) { answers <- a })
	select {
	case a := <-answers:
		if a.Status == ack.RetryAfter {
			return errs.RetryLater(time.Duration(a.After), "the event of the crash cannot be stored at the moment", nil)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package records

import (
	"context"
	"slices"
	"time"

	"kennel/cloud/app/link"
	"kennel/cloud/fleet/liveview"
	"kennel/cloud/fleet/liveview/liveviewapi"
	"kennel/cloud/fleet/liveview/liveviewpg"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/vitals"
	"kennel/cloud/fleet/vitals/vitalspg"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/sts/stspg"
	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashapi"
	"kennel/cloud/telemetry/crash/crashwire"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/archive"
	"kennel/cloud/telemetry/das/dasapi"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/cloud/telemetry/das/parquet"
	"kennel/cloud/telemetry/storage"
	"kennel/cloud/telemetry/storage/storageapi"
	"kennel/cloud/wire"
	"kennel/infra/api/topics"
	"kennel/infra/jobs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/jdocs/jdocsapi"
)

// EventsConfig says how long events are kept.
type EventsConfig struct {
	KeepDays    int `koanf:"keep_days"`     // days after which events are deleted, counted in whole days of receipt
	RawKeepDays int `koanf:"raw_keep_days"` // days after which raw batches in S3 are deleted
	ParquetDays int `koanf:"parquet_days"`  // days for which events are also kept as Parquet files in S3, at most KeepDays; 0: none
}

const day = 24 * time.Hour

// Events are the events and the crashes of robots.
type Events struct {
	*das.Service
	Ingester *das.Ingester
	Crashes  *crash.Service
}

// WireEvents wires the robots' events and crashes, and the count of what is stored; dumps are kept for some days. others erase the data of other domains in a stretch of time that was
// erased a while ago. paused is told of robots that must wait because of what they send.
func WireEvents(b wire.Base, cfg EventsConfig, dumpDays int, owners *owner.Service, paused func(ctx context.Context, id thing.ID, code, detail string), audit func(ctx context.Context, action, object, detail string) error, others ...func(context.Context, thing.Stretch) (int, error)) (Events, wire.Slices, error) {
	store := daspg.Open(b.Pool)
	var ingester *das.Ingester
	crashes, crashSlice, err := crashwire.Wire(b, dumpDays, owners, audit, func(ctx context.Context, c crash.Crash, signature string) error {
		return crashwire.Tell(ctx, ingester, c, signature)
	})
	if err != nil {
		return Events{}, nil, err
	}
	others = append(others, crashes.Erase)
	svc := das.NewService(store)
	profiles := das.NewProfiles(b.Seal.Secret("das/profile"))
	raw, files := archive.New(b.Blobs, store, b.Log), parquet.New(b.Blobs, store, cfg.ParquetDays, b.Log)
	ingester, err = das.NewIngester(das.Config{Writer: b.Meters.Writer(store), Blobs: raw, Consent: owners.Hold, Usage: stspg.NewOf(b.Pool, "intake_usage"),
		Profile: profiles.Key, Paused: paused, Log: b.Log})
	if err != nil {
		return Events{}, nil, err
	}
	storage, err := wireStorage(b)
	if err != nil {
		return Events{}, nil, err
	}
	personal := das.Personal{Eraser: store, Archive: raw, Copies: files, Reader: store, Owned: owners.Owned, Left: owners.Leave, Now: time.Now}
	return Events{svc, ingester, crashes}, wire.Slices{crashSlice, storage, {
		Personal: []wire.Holding{{Name: "events", Keeps: []string{"das_event", "das_raw", "das_robot", "s3 das/", "s3 parquet/"}, Data: personal}},
		Ups:      map[string]kitmqtt.UpHandler{topics.DAS: ingester.Handle},
		Operations: func(d wire.Doors) wire.Operations {
			return dasapi.Operations(svc, dasapi.Config{Owns: d.Owns, Audit: d.Audit})
		},
		Runs: []wire.Run{
			{Name: "events", Run: ingester.Run}, // original robots send them by HTTP, to processes without the bridge
			{Name: "event tails", Run: func(ctx context.Context) error { return store.Listen(ctx, b.Log, svc.Wake) }},
		},
		Jobs: []jobs.Job{{Name: "das.partitions", Every: time.Hour, Run: func(ctx context.Context) error {
			dropped, err := store.Keep(ctx, time.Now(), cfg.KeepDays)
			if len(dropped) > 0 {
				b.Log.InfoContext(ctx, "expired events dropped", "days", dropped)
			}
			return err
		}}, {Name: "das.raw", Every: 10 * time.Minute, Run: func(ctx context.Context) error {
			r, err := raw.Keep(ctx, time.Now(), time.Now().Add(-time.Duration(cfg.RawKeepDays)*day))
			if r != (archive.Report{}) {
				b.Log.InfoContext(ctx, "raw objects merged and expired", "joined", r.Joined, "made", r.Made, "expired", r.Expired)
			}
			return err
		}}, {Name: "das.parquet", Every: 10 * time.Minute, Run: func(ctx context.Context) error { return files.Keep(ctx, time.Now()) }}, {Name: "das.erase", Every: time.Minute, Run: func(ctx context.Context) error { return personal.Sweep(ctx, others...) }},
			{Name: "das.profiles", Every: time.Hour, Run: func(ctx context.Context) error {
				n, err := store.KeyProfiles(ctx, time.Now(), profiles.Key, profiles.Keyed)
				if n > 0 {
					b.Log.InfoContext(ctx, "profile ids keyed", "values", n)
				}
				return err
			}}},
	}}, b.Meters.Events(ingester)
}

// WireVitals wires the curves of robots' vitals, which statuses bring.
func WireVitals(b wire.Base, fleet *registry.Service, owners *owner.Service) (*vitalspg.Store, wire.Slice) {
	store := vitalspg.New(b.Pool)
	list := func(ctx context.Context, of thing.Stretch) (any, error) {
		return store.List(ctx, of.Thing, vitals.Coarse, of.Since, of.Until)
	}
	curves := vitals.NewRecorder(store, b.Log)
	return store, wire.Slice{
		Ups:  map[string]kitmqtt.UpHandler{"status": curves.Handle(fleet.HandleStatus)},
		Runs: []wire.Run{{Name: "curves", Run: curves.Run, Role: wire.Bridge}},
		Jobs: []jobs.Job{{Name: "vitals.forget", Every: time.Hour, Run: store.Forget}},

		Personal: []wire.Holding{{Name: "curves", Keeps: []string{"vitals_sample"}, Data: owner.Held{Kind: "samples of curves", Owners: owners, List: list, Drop: store.Erase}}},
	}
}

// wireStorage wires the count of the objects in the bucket.
func wireStorage(b wire.Base) (wire.Slice, error) {
	book := storage.New(b.Pool, b.Blobs)
	s := wire.Slice{Jobs: []jobs.Job{{Name: "storage.measure", Every: time.Hour, Run: book.Measure}}, Operations: func(wire.Doors) wire.Operations { return storageapi.Operations(book) }, Pages: storageapi.Pages(book)}
	if !b.Has(wire.Jobs) {
		return s, nil
	}
	return s, b.Meters.Bucket(book)
}

// WireLook wires the live look at a robot. allowed says for which robots the display may be seen.
func WireLook(b wire.Base, l *link.Link, allowed liveview.Allowed) (*liveview.Service, wire.Slice) {
	svc := liveview.New(liveviewpg.New(b.Pool), l.Send, allowed, b.Log)
	return svc, wire.Slice{
		Ups:        map[string]kitmqtt.UpHandler{topics.Live: svc.Handle},
		Operations: func(d wire.Doors) wire.Operations { return liveviewapi.Operations(svc, d.Known) },
		Jobs:       []jobs.Job{{Name: "look.forget", Every: time.Hour, Run: svc.Forget}},
	}
}

// Operations lists the operations of documents, events, crashes, the object store and the look at a robot, for their declarations alone.
func Operations() op.List {
	return slices.Concat(
		jdocsapi.Operations(nil),
		dasapi.Operations(nil, dasapi.Config{}),
		crashapi.Operations(nil, nil, nil),
		liveviewapi.Operations(nil, nil),
		storageapi.Operations(nil),
	)
}

package records

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"kennel/cloud/app/link"
	"kennel/cloud/das"
	"kennel/cloud/das/dasapi"
	"kennel/cloud/das/daspg"
	"kennel/cloud/look"
	"kennel/cloud/look/lookapi"
	"kennel/cloud/look/lookpg"
	"kennel/cloud/owner/ownerpg"
	"kennel/cloud/registry"
	"kennel/cloud/vitals"
	"kennel/cloud/vitals/vitalspg"
	"kennel/cloud/wire"
	"kennel/infra/api/topics"
	"kennel/infra/blob"
	"kennel/infra/jobs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otaapi"
	"kennel/ota/otapg"
)

// WireReleases wires the releases that robots are to run.
func WireReleases(b wire.Base, l *link.Link) (*ota.Service, wire.Slice) {
	svc := ota.New(otapg.New(b.Pool), l)
	robots := otaapi.NewMQTT(svc, b.Log)
	return svc, wire.Slice{
		Requests: map[string]kitmqtt.ReqHandler{"ota/desired": robots.Desired()},
		Ups:      map[string]kitmqtt.UpHandler{"ota": robots.Report},
		Routes:   wire.Routes(func(mux *http.ServeMux, d wire.Doors) { otaapi.Mount(mux, svc, d.Audit) }),
	}
}

// WireEvents wires the robots' events; those older than keepDays are dropped.
func WireEvents(b wire.Base, keepDays int, consent das.Consent) (*das.Service, wire.Slice, error) {
	store := daspg.Open(b.Pool)
	svc := das.NewService(store)
	ingester, err := das.NewIngester(das.Config{Writer: b.Meters.Writer(store), Blobs: rawBlobs{b.Blobs}, Consent: consent, Log: b.Log})
	if err != nil {
		return nil, wire.Slice{}, err
	}
	return svc, wire.Slice{
		Ups:    map[string]kitmqtt.UpHandler{topics.DAS: ingester.Handle},
		Routes: wire.Routes(func(mux *http.ServeMux, d wire.Doors) { dasapi.Mount(mux, svc, dasapi.WithOwns(d.Owns)) }),
		Runs: []wire.Run{
			{Name: "events", Run: ingester.Run, Role: wire.Bridge},
			{Name: "consents", Role: wire.Bridge, Run: func(ctx context.Context) error {
				return ownerpg.New(b.Pool).Watch(ctx, b.Log, func(_ context.Context, id thing.ID) { ingester.ConsentChanged(id) })
			}},
			{Name: "event tails", Run: func(ctx context.Context) error { return store.Listen(ctx, b.Log, svc.Wake) }},
		},
		Jobs: []jobs.Job{{Name: "das.partitions", Every: time.Hour, Run: func(ctx context.Context) error {
			dropped, err := store.Keep(ctx, time.Now(), keepDays)
			if len(dropped) > 0 {
				b.Log.InfoContext(ctx, "expired events dropped", "days", dropped)
			}
			return err
		}}},
	}, b.Meters.Events(ingester)
}

// rawBlobs keeps raw event batches in the bucket.
type rawBlobs struct{ store *blob.Store }

func (r rawBlobs) Put(ctx context.Context, key string, body []byte) error {
	return r.store.Put(ctx, key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{})
}

// WireVitals wires the curves of robots' vitals, which statuses bring.
func WireVitals(b wire.Base, fleet *registry.Service) (*vitalspg.Store, wire.Slice) {
	store := vitalspg.New(b.Pool)
	curves := vitals.NewRecorder(store, b.Log)
	return store, wire.Slice{
		Ups:  map[string]kitmqtt.UpHandler{"status": curves.Handle(fleet.HandleStatus)},
		Runs: []wire.Run{{Name: "curves", Run: curves.Run, Role: wire.Bridge}},
		Jobs: []jobs.Job{{Name: "vitals.forget", Every: time.Hour, Run: store.Forget}},
	}
}

// WireLook wires the live look at a robot.
func WireLook(b wire.Base, l *link.Link) (*look.Service, wire.Slice) {
	svc := look.New(lookpg.New(b.Pool), l.Send, b.Log)
	return svc, wire.Slice{
		Ups: map[string]kitmqtt.UpHandler{topics.Live: svc.Handle},
		Routes: wire.Routes(func(mux *http.ServeMux, d wire.Doors) {
			lookapi.Mount(mux, svc, lookapi.Config{Known: d.Known, Owns: d.Owns, Log: b.Log})
		}),
		Jobs: []jobs.Job{{Name: "look.forget", Every: time.Hour, Run: svc.Forget}},
	}
}

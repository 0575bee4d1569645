// Package intakewire wires what takes files and events of robots over HTTP.
package intakewire

import (
	"context"
	"net/http"
	"time"

	"kennel/certs/limit"
	"kennel/cloud/intake"
	"kennel/cloud/sts/stspg"
	"kennel/cloud/wire"
	"kennel/infra/api/files"
	"kennel/infra/thing"
)

// Uploads of one robot: an outbox that was offline for days, and then one now and again.
const (
	byThingEvery = time.Second
	byThingBurst = 120
)

// Needs holds the services that robots' files go to, and those that say whose they are.
type Needs struct {
	Logs    intake.Logs
	Consent func(ctx context.Context, id thing.ID) (bool, error)
	Owner   func(ctx context.Context, id thing.ID) (account string, err error)
	Thing   intake.Whose // by the device certificate
}

// Wire wires it.
func Wire(b wire.Base, n Needs) wire.Slice {
	svc := intake.New(intake.Config{Logs: n.Logs, Usage: stspg.New(b.Pool), Consent: n.Consent, Owner: n.Owner, Limiter: limit.New(byThingEvery, byThingBurst), Log: b.Log})
	return wire.Slice{Routes: wire.Routes(func(mux *http.ServeMux, _ wire.Doors) {
		mux.Handle("PUT "+files.Logs+"{name}", svc.Log(n.Thing))
	})}
}

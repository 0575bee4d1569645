// Package intakewire wires what takes files and events of robots over HTTP.
package intakewire

import (
	"context"
	"net/http"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/sts/stspg"
	"kennel/cloud/originals/door"
	"kennel/cloud/originals/intake"
	"kennel/cloud/wire"
	"kennel/infra/api/files"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// Uploads of one robot: an outbox that was offline for days, and then one now and again. Of one address: a house.
const (
	byThingEvery = time.Second
	byThingBurst = 120
	byAddrEvery  = 500 * time.Millisecond
	byAddrBurst  = 240
)

// Paths are where original robots send files and events.
type Paths = intake.Paths

// Needs holds the services that robots' files and events go to, and those that say whose they are.
type Needs struct {
	Logs    intake.Logs
	Events  intake.Events
	Crashes intake.Crashes
	Allowed func(ctx context.Context, id thing.ID) (bool, error)
	Consent consent.Ask
	Thing   intake.Certificate
	Robots  intake.Robots
	Grants  intake.Grants
	Door    *door.Door
	Paths   intake.Paths
}

// Intake serves the listener of original robots. It has places of its own: who is a stranger there holds up no robot with a certificate.
type Intake struct {
	svc  *intake.Service
	door *intake.Door
}

// Handler serves the original's forms, and next everything else.
func (i *Intake) Handler(next http.Handler) http.Handler { return i.door.Handler(i.svc, next) }

// Wire wires both listeners.
func Wire(b wire.Base, n Needs) (*Intake, wire.Slice) {
	cfg := intake.Config{Logs: n.Logs, Events: n.Events, Crashes: n.Crashes, Usage: stspg.New(b.Pool),
		Allowed: n.Allowed, Consent: n.Consent, Limiter: ratelimit.New(byThingEvery, byThingBurst), Log: b.Log}
	svc := intake.New(cfg)
	originals := &intake.Door{Robots: n.Robots, Grants: n.Grants, ByAddr: ratelimit.NewByAddr(byAddrEvery, byAddrBurst), Paths: n.Paths.Or(intake.DefaultPaths),
		Refused: func(ctx context.Context, addr string, claim thing.ID, code, detail string) {
			n.Door.Refused(ctx, door.Refusal{Addr: addr, Claim: claim, Step: intake.Step, Code: code, Detail: detail})
		}}
	return &Intake{intake.New(cfg), originals}, wire.Slice{Routes: wire.Routes(func(mux *http.ServeMux, _ wire.Doors) {
		mux.Handle("PUT "+files.Logs+"{name}", svc.Log(n.Thing))
		mux.Handle("POST "+files.Crash, svc.Crash(n.Thing))
	})}
}

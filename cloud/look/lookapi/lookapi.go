// Package lookapi is look over HTTP.
//
//	GET /v1/things/{thing}/live -> the structure tree with its values
//
// Who asks sees what the robot said last, and makes it say more for some seconds: ask again for what is newer. An owner sees an own robot.
package lookapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/look"
	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const timeout = 10 * time.Second

// Config holds what the endpoint needs besides the rules.
type Config struct {
	// Known returns NotFound for an unregistered thing.
	Known func(ctx context.Context, id thing.ID) error
	// Owns lets owners through to their own robots; nil: operators alone.
	Owns auth.Owns
	Log  *slog.Logger
}

// Mount adds the HTTP endpoint to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *look.Service, cfg Config) {
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout), auth.RequireOwn(cfg.Owns, func(id thing.ID) thing.ID { return id }, auth.Staff...))
	mux.Handle("GET /v1/things/{thing}/live", kithttp.Handler(wrap(kit.Typed(func(ctx context.Context, id thing.ID) (look.Robot, error) {
		if err := cfg.Known(ctx, id); err != nil {
			return look.Robot{}, err
		}
		r, err := svc.Look(ctx, id)
		if since, mine := auth.OwnedSince(ctx); mine && r.Received != nil && r.Received.Before(since) { // what the former owner saw
			r = look.Robot{Thing: id, Devices: []look.Device{}}
		}
		return r, err
	})), func(r *http.Request) (any, error) { return kithttp.Thing(r) }))
}

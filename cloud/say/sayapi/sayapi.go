// Package sayapi is say over HTTP.
//
//	POST /v1/my/robots/{thing}/intents {text} or {intent, params} -> the intent and its command   owner
//	POST /v1/things/{thing}/intents    the same                                                   operator, admin
//
// GET /v1/things/{thing}/commands/{id} has the robot's answer.
package sayapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/command"
	"kennel/cloud/say"
	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const (
	timeout = 10 * time.Second
	maxBody = 8 << 10 // bytes
)

// Config holds what the endpoints need besides the rules.
type Config struct {
	Known func(ctx context.Context, id thing.ID) error // NotFound for an unregistered thing
	Owns  auth.Owns
	// Audit writes one line about what the caller in ctx does, without their words; what cannot be written down is not done.
	Audit func(ctx context.Context, action, object, detail string) error
	Log   *slog.Logger
}

type request struct {
	id   thing.ID
	wish say.Saying
}

// Mount adds the endpoints to mux. The caller comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *say.Service, cfg Config) {
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	of := func(q request) thing.ID { return q.id }
	tell := func(ctx context.Context, q request) (say.Said, error) {
		by := auth.CallerFrom(ctx).Subject()
		if _, mine := auth.OwnedSince(ctx); mine {
			by = command.ByOwner
		}
		if err := cfg.Known(ctx, q.id); err != nil {
			return say.Said{}, err
		}
		m, err := svc.Find(ctx, q.id, q.wish)
		if err != nil {
			return say.Said{}, err
		}
		if err := cfg.Audit(ctx, "intent.send", string(q.id), m.UserIntent); err != nil {
			return say.Said{}, err
		}
		return svc.Say(ctx, q.id, by, m)
	}
	mux.Handle("POST /v1/my/robots/{thing}/intents", kithttp.Handler(endpoint.Chain(wrap, auth.Require(auth.Owner),
		auth.RequireOwn(cfg.Owns, of))(kit.Typed(tell)), decode))
	mux.Handle("POST /v1/things/{thing}/intents", kithttp.Handler(endpoint.Chain(wrap, auth.RequireOwn(cfg.Owns, of, auth.Changers...))(kit.Typed(tell)), decode))
}

func decode(r *http.Request) (any, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return nil, err
	}
	q := request{id: id}
	if err := kithttp.ReadJSON(r, &q.wish, maxBody); err != nil {
		return nil, err
	}
	return q, nil
}

package voiceapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/customs"
	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const maxCustom = 64 << 10

// Custom intents.
type (
	Custom       = customs.Custom
	CustomWanted = customs.Wanted
)

// mountCustoms adds the endpoints of custom intents to mux.
func mountCustoms(mux *http.ServeMux, c Config) {
	svc, wrap := c.Customs, endpoint.Chain(kit.Recover(c.Log), kit.Timeout(timeout))
	reads, writes := endpoint.Chain(wrap, auth.Require(auth.Staff...)), endpoint.Chain(wrap, auth.Require(auth.Changers...))
	mux.Handle("GET /v1/intents/custom", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, id thing.ID) ([]Custom, error) {
		out, err := svc.List(ctx, id)
		if out == nil {
			out = []Custom{}
		}
		return out, err
	})), func(r *http.Request) (any, error) {
		if r.URL.Query().Get("thing") == "" {
			return thing.ID(""), nil
		}
		return thing.Parse(r.URL.Query().Get("thing"))
	}))
	mux.Handle("POST /v1/intents/custom", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, w CustomWanted) (Custom, error) {
		if w.Thing != "" {
			if err := c.Known(ctx, w.Thing); err != nil {
				return Custom{}, err
			}
		}
		if err := w.Check(); err != nil {
			return Custom{}, err
		}
		if err := c.Audit(ctx, customs.AuditAdd, w.Name, w.Words()); err != nil {
			return Custom{}, err
		}
		return svc.Add(ctx, w, auth.CallerFrom(ctx).Subject())
	})), func(r *http.Request) (any, error) {
		var w CustomWanted
		err := kithttp.ReadJSON(r, &w, maxCustom)
		return w, err
	}))
	mux.Handle("DELETE /v1/intents/custom/{id}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, id int64) (any, error) {
		if err := c.Audit(ctx, customs.AuditDrop, strconv.FormatInt(id, 10), ""); err != nil {
			return nil, err
		}
		return nil, svc.Drop(ctx, id)
	})), func(r *http.Request) (any, error) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			return nil, customs.Missing(strconv.Quote(r.PathValue("id")))
		}
		return id, nil
	}))
}

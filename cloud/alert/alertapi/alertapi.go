// Package alertapi is alerts over HTTP, for operators:
//
//	GET /v1/alerts                        those that fire, then the latest resolved
//	GET /v1/alerts/rule                   when an alert fires
//	PUT /v1/alerts/rule {robots, share}   changes that
package alertapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/alert"
	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

const (
	timeout = 10 * time.Second
	maxBody = 4 << 10
)

// Mount adds the endpoints to mux. audit writes one line about what the caller in ctx does; what cannot be written down is not done.
func Mount(mux *http.ServeMux, svc *alert.Service, audit func(ctx context.Context, action, object, detail string) error, log *slog.Logger) {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	reads := endpoint.Chain(wrap, auth.Require(auth.Staff...))
	none := func(*http.Request) (any, error) { return struct{}{}, nil }
	mux.Handle("GET /v1/alerts", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ struct{}) ([]alert.Alert, error) {
		out, err := svc.Alerts(ctx)
		if out == nil {
			out = []alert.Alert{}
		}
		return out, err
	})), none))
	mux.Handle("GET /v1/alerts/rule", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ struct{}) (alert.Rule, error) { return svc.Rule(ctx) })), none))
	writes := endpoint.Chain(wrap, auth.Require(auth.Changers...))
	mux.Handle("PUT /v1/alerts/rule", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, r alert.Wanted) (alert.Rule, error) {
		if err := (alert.Rule{Robots: r.Robots, Share: r.Share}).Check(); err != nil {
			return alert.Rule{}, err
		}
		if err := audit(ctx, alert.AuditRule, "", alert.Rule{Robots: r.Robots, Share: r.Share}.Words()); err != nil {
			return alert.Rule{}, err
		}
		return svc.SetRule(ctx, r.Robots, r.Share, auth.CallerFrom(ctx).Subject())
	})), func(r *http.Request) (any, error) {
		var rule alert.Wanted
		err := kithttp.ReadJSON(r, &rule, maxBody)
		return rule, err
	}))
}

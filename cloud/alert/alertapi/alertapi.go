// Package alertapi is alerts over HTTP, for operators:
//
//	GET /v1/alerts                        those that fire, then the latest resolved
//	GET /v1/alerts/rule                   when an alert fires
//	PUT /v1/alerts/rule {robots, share}   changes that
//	GET /v1/alerts/thresholds             limits on crashes, faults and events of a version
//	POST /v1/alerts/thresholds {kind, of, level, robots, hours}
//	DELETE /v1/alerts/thresholds/{id}
//	GET, PUT /v1/alerts/mail {to}         who gets letters about alerts
package alertapi

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/alert"
	"kennel/infra/auth"
	"kennel/infra/errs"
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
	})), body[alert.Wanted]))
	mux.Handle("GET /v1/alerts/thresholds", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ struct{}) ([]alert.Threshold, error) {
		out, err := svc.Thresholds(ctx)
		if out == nil {
			out = []alert.Threshold{}
		}
		return out, err
	})), none))
	mux.Handle("POST /v1/alerts/thresholds", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, w alert.Limit) (alert.Threshold, error) {
		if err := w.Check(); err != nil {
			return alert.Threshold{}, err
		}
		if err := audit(ctx, alert.AuditLimit, "", w.Words()); err != nil {
			return alert.Threshold{}, err
		}
		return svc.AddThreshold(ctx, w, auth.CallerFrom(ctx).Subject())
	})), body[alert.Limit]))
	mux.Handle("DELETE /v1/alerts/thresholds/{id}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, id int64) (any, error) {
		if err := audit(ctx, alert.AuditUnset, strconv.FormatInt(id, 10), ""); err != nil {
			return nil, err
		}
		return nil, svc.DropThreshold(ctx, id)
	})), func(r *http.Request) (any, error) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			return nil, errs.New(errs.NotFound, "there is no threshold %.20s", r.PathValue("id"))
		}
		return id, nil
	}))
	mux.Handle("GET /v1/alerts/mail", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ struct{}) (alert.Mailing, error) { return svc.Mailing(ctx) })), none))
	mux.Handle("PUT /v1/alerts/mail", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, m alert.Mailing) (alert.Mailing, error) {
		if err := m.Check(); err != nil {
			return m, err
		}
		if err := audit(ctx, alert.AuditLetter, "", m.Words()); err != nil {
			return m, err
		}
		return svc.SetMailing(ctx, m)
	})), body[alert.Mailing]))
}

func body[T any](r *http.Request) (any, error) {
	var v T
	err := kithttp.ReadJSON(r, &v, maxBody)
	return v, err
}

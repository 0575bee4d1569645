// Package alertapi is alerts over HTTP, for operators:
//
//	GET /v1/alerts                        those that fire, then the latest resolved
//	GET /v1/alerts/rule                   when an alert fires
//	PUT /v1/alerts/rule {robots, share, floor_robots, floor_share, excess}
//	                                      changes that
//	GET /v1/alerts/thresholds             limits on crashes, faults and events of a version
//	POST /v1/alerts/thresholds {kind, of, level, robots, hours}
//	DELETE /v1/alerts/thresholds/{id}
//	GET, PUT /v1/alerts/mail {to}         who gets letters about alerts
//	PUT /v1/alerts/acks/{id} {why}        says that the caller takes care of an alert
//	DELETE /v1/alerts/acks/{id}
//	GET /v1/alerts/silences               about what no letters are posted
//	POST /v1/alerts/silences {alert, minutes, why}
//	DELETE /v1/alerts/silences/{id}
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
		if err := r.Rule().Check(); err != nil {
			return alert.Rule{}, err
		}
		if err := audit(ctx, alert.AuditRule, "", r.Rule().Words()); err != nil {
			return alert.Rule{}, err
		}
		return svc.SetRule(ctx, r, auth.CallerFrom(ctx).Subject())
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
	})), numbered("threshold")))
	mountTend(mux, svc, audit, reads, writes)
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

// acked is a request about an acknowledgement.
type acked struct {
	id int64
	alert.Note
}

// mountTend adds what people do about alerts.
func mountTend(mux *http.ServeMux, svc *alert.Service, audit func(ctx context.Context, action, object, detail string) error, reads, writes endpoint.Middleware) {
	mux.Handle("PUT /v1/alerts/acks/{id}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, a acked) (any, error) {
		if err := a.Check(); err != nil {
			return nil, err
		}
		if err := audit(ctx, alert.AuditAck, strconv.FormatInt(a.id, 10), a.Why); err != nil {
			return nil, err
		}
		return nil, svc.Ack(ctx, a.id, a.Note, auth.CallerFrom(ctx).Subject())
	})), func(r *http.Request) (any, error) {
		id, err := number(r, "alert")
		if err != nil {
			return nil, err
		}
		a := acked{id: id}
		return a, kithttp.ReadJSON(r, &a.Note, maxBody)
	}))
	mux.Handle("DELETE /v1/alerts/acks/{id}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, id int64) (any, error) {
		if err := audit(ctx, alert.AuditUnack, strconv.FormatInt(id, 10), ""); err != nil {
			return nil, err
		}
		return nil, svc.Unack(ctx, id)
	})), numbered("alert")))
	mux.Handle("GET /v1/alerts/silences", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ struct{}) ([]alert.Silence, error) {
		out, err := svc.Silences(ctx)
		if out == nil {
			out = []alert.Silence{}
		}
		return out, err
	})), func(*http.Request) (any, error) { return struct{}{}, nil }))
	mux.Handle("POST /v1/alerts/silences", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, h alert.Hush) (alert.Silence, error) {
		if err := h.Check(); err != nil {
			return alert.Silence{}, err
		}
		if err := audit(ctx, alert.AuditHush, strconv.FormatInt(h.Alert, 10), h.Words()); err != nil {
			return alert.Silence{}, err
		}
		return svc.Silence(ctx, h, auth.CallerFrom(ctx).Subject())
	})), body[alert.Hush]))
	mux.Handle("DELETE /v1/alerts/silences/{id}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, id int64) (any, error) {
		if err := audit(ctx, alert.AuditUnhush, strconv.FormatInt(id, 10), ""); err != nil {
			return nil, err
		}
		return nil, svc.Unsilence(ctx, id)
	})), numbered("silence")))
}

// number returns the number in a request's path of a thing of some kind.
func number(r *http.Request, what string) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, errs.New(errs.NotFound, "there is no %s %.20s", what, r.PathValue("id"))
	}
	return id, nil
}

func numbered(what string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) { return number(r, what) }
}

func body[T any](r *http.Request) (any, error) {
	var v T
	err := kithttp.ReadJSON(r, &v, maxBody)
	return v, err
}

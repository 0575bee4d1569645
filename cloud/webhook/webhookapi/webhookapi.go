// Package webhookapi is webhooks over HTTP, for administrators: a URL may hold another party's secret.
//
//	GET    /v1/webhooks
//	POST   /v1/webhooks                 {url, kinds, filter?, note?, secret?} -> {webhook, secret}; the secret is shown this once
//	GET    /v1/webhooks/{id}
//	PATCH  /v1/webhooks/{id}            {url?, kinds?, filter?, note?, disabled?}
//	DELETE /v1/webhooks/{id}
//	POST   /v1/webhooks/{id}/secret     -> {secret}; the one before signs too, for a day
//	POST   /v1/webhooks/{id}/ping       -> the delivery, as it went
//	GET    /v1/webhooks/{id}/deliveries?state=&before=&limit=
//	POST   /v1/webhooks/{id}/replay     {delivery} or {dead: true} -> {replayed}
package webhookapi

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/webhook"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

const (
	timeout = 15 * time.Second // a ping takes up to 10
	maxBody = 64 << 10         // bytes
)

// Draft is the body of POST /v1/webhooks.
type Draft struct {
	URL    string         `json:"url"`
	Kinds  []webhook.Kind `json:"kinds"`
	Filter string         `json:"filter,omitempty"` // robots it is about, in the language of the fleet's table; "": all
	Note   string         `json:"note,omitempty"`
	Secret string         `json:"secret,omitempty"` // whsec_ and base64; "": one is made
}

// Added answers it.
type Added struct {
	Webhook webhook.Hook `json:"webhook"`
	Secret  string       `json:"secret"` // shown this once
}

// NewSecret answers POST /v1/webhooks/{id}/secret.
type NewSecret struct {
	Secret string `json:"secret"` // shown this once
}

// Replay is the body of POST /v1/webhooks/{id}/replay: one delivery, or all dead ones.
type Replay struct {
	Delivery int64 `json:"delivery,omitempty"`
	Dead     bool  `json:"dead,omitempty"`
}

// Replayed answers it.
type Replayed struct {
	Replayed int `json:"replayed"`
}

// Config holds what the endpoints need besides the rules.
type Config struct {
	// Audit writes one line about what the caller in ctx does; what cannot be written is not done. URLs are not in it beyond their host.
	Audit func(ctx context.Context, action, object, detail string) error
	Log   *slog.Logger
}

type request struct {
	id     string
	change webhook.Draft
	query  webhook.Query
	replay Replay
}

type api struct{ svc webhook.Audited }

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *webhook.Service, cfg Config) {
	a := api{webhook.Audited{Service: svc, Audit: cfg.Audit}}
	admin := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout), auth.Require(auth.Admins...))
	mux.Handle("GET /v1/webhooks", kithttp.Handler(admin(kit.Typed(a.list)), decode))
	mux.Handle("POST /v1/webhooks", kithttp.Handler(admin(kit.Typed(a.add)), func(r *http.Request) (any, error) {
		var d Draft
		err := kithttp.ReadJSON(r, &d, maxBody)
		return d, err
	}))
	mux.Handle("GET /v1/webhooks/{id}", kithttp.Handler(admin(kit.Typed(func(ctx context.Context, r request) (webhook.Hook, error) { return svc.Hook(ctx, r.id) })), decode))
	mux.Handle("PATCH /v1/webhooks/{id}", kithttp.Handler(admin(kit.Typed(a.change)), func(r *http.Request) (any, error) {
		q := request{id: r.PathValue("id")}
		err := kithttp.ReadJSON(r, &q.change, maxBody)
		return q, err
	}))
	mux.Handle("DELETE /v1/webhooks/{id}", kithttp.Handler(admin(a.remove), decode))
	mux.Handle("POST /v1/webhooks/{id}/secret", kithttp.Handler(admin(kit.Typed(a.secret)), decode))
	mux.Handle("POST /v1/webhooks/{id}/ping", kithttp.Handler(admin(kit.Typed(a.ping)), decode))
	mux.Handle("GET /v1/webhooks/{id}/deliveries", kithttp.Handler(admin(kit.Typed(a.deliveries)), decodeQuery))
	mux.Handle("POST /v1/webhooks/{id}/replay", kithttp.Handler(admin(kit.Typed(a.replay)), func(r *http.Request) (any, error) {
		q := request{id: r.PathValue("id")}
		err := kithttp.ReadJSON(r, &q.replay, maxBody)
		if err == nil && (q.replay.Delivery > 0) == q.replay.Dead || q.replay.Delivery < 0 {
			err = errs.New(errs.Invalid, "want the id of a delivery, or dead: true")
		}
		return q, err
	}))
}

func decode(r *http.Request) (any, error) { return request{id: r.PathValue("id")}, nil }

func decodeQuery(r *http.Request) (any, error) {
	v := r.URL.Query()
	q := request{id: r.PathValue("id"), query: webhook.Query{State: webhook.State(v.Get("state")), Limit: webhook.DefaultLimit}}
	var err error
	if s := v.Get("limit"); s != "" {
		if q.query.Limit, err = strconv.Atoi(s); err != nil {
			return nil, errs.New(errs.Invalid, "limit %.20q: want 1 to %d", s, webhook.MaxLimit)
		}
	}
	if s := v.Get("before"); s != "" {
		if q.query.Before, err = strconv.ParseInt(s, 10, 64); err != nil {
			return nil, errs.New(errs.Invalid, "before %.20q: want the id of a delivery", s)
		}
	}
	return q, nil
}

func (a api) list(ctx context.Context, _ request) ([]webhook.Hook, error) {
	out, err := a.svc.Hooks(ctx)
	if out == nil {
		out = []webhook.Hook{}
	}
	return out, err
}

func (a api) add(ctx context.Context, d Draft) (Added, error) {
	h, secret, err := a.svc.Add(ctx, auth.CallerFrom(ctx).Subject(), webhook.Draft{URL: &d.URL, Kinds: &d.Kinds, Filter: &d.Filter, Note: &d.Note}, d.Secret)
	return Added{h, secret}, err
}

func (a api) change(ctx context.Context, r request) (webhook.Hook, error) {
	return a.svc.Change(ctx, r.id, r.change)
}

func (a api) remove(ctx context.Context, req any) (any, error) {
	return nil, a.svc.Remove(ctx, req.(request).id) // what decode makes
}

func (a api) secret(ctx context.Context, r request) (NewSecret, error) {
	secret, err := a.svc.NewSecret(ctx, r.id)
	return NewSecret{secret}, err
}

func (a api) ping(ctx context.Context, r request) (webhook.Delivery, error) {
	return a.svc.Ping(ctx, r.id)
}

func (a api) deliveries(ctx context.Context, r request) ([]webhook.Delivery, error) {
	out, err := a.svc.Deliveries(ctx, r.id, r.query)
	if out == nil {
		out = []webhook.Delivery{}
	}
	return out, err
}

func (a api) replay(ctx context.Context, r request) (Replayed, error) {
	n, err := a.svc.Replay(ctx, r.id, r.replay.Delivery)
	return Replayed{n}, err
}

// Package webhookapi is webhooks over HTTP, for administrators: a URL may hold another party's secret.
package webhookapi

import (
	"context"
	"strconv"
	"time"

	"kennel/cloud/fleet/webhook"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
)

const timeout = 15 * time.Second // a ping takes up to 10

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

type (
	hook struct {
		ID string `path:"id"`
	}
	change struct {
		hook
		Draft webhook.Draft `body:""`
	}
	replay struct {
		hook
		Replay Replay `body:""`
	}
	deliveries struct {
		hook
		State  string `query:"state" about:"Only those." enum:"open,done,dead"`
		Limit  int    `query:"limit" about:"At most so many." min:"1" max:"500" default:"50"`
		Before int64  `query:"before" about:"Only those before this one."`
	}
)

// Operations returns the operations on webhooks. audit writes one line about what the caller in ctx does; what cannot be written is not done. URLs are not in
// it beyond their host.
func Operations(svc *webhook.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	a := webhook.Audited{Service: svc, Audit: audit}
	admins := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Webhooks", Summary: summary, Roles: auth.Admins, Timeout: timeout}
	}
	return op.List{
		op.New(admins("GET /v1/webhooks", "Programs elsewhere that are told what happens."),
			func(ctx context.Context, _ op.None) ([]webhook.Hook, error) { return a.Hooks(ctx) }),
		op.New(admins("POST /v1/webhooks", "Register one; its secret is shown this once. problem.raised comes at once, problem.gone when the problem has not been back for 30 s."),
			func(ctx context.Context, d Draft) (Added, error) {
				h, secret, err := a.Add(ctx, auth.CallerFrom(ctx).Subject(), webhook.Draft{URL: &d.URL, Kinds: &d.Kinds, Filter: &d.Filter, Note: &d.Note}, d.Secret)
				return Added{h, secret}, err
			}),
		op.New(admins("GET /v1/webhooks/{id}", "One, and how its endpoint does."),
			func(ctx context.Context, r hook) (webhook.Hook, error) { return a.Hook(ctx, r.ID) }),
		op.New(admins("PATCH /v1/webhooks/{id}", "Change one, stop it, start it again; what is left out stays."),
			func(ctx context.Context, r change) (webhook.Hook, error) { return a.Change(ctx, r.ID, r.Draft) }),
		op.New(admins("DELETE /v1/webhooks/{id}", "Forget one and what waits for it."),
			func(ctx context.Context, r hook) (op.None, error) { return op.None{}, a.Remove(ctx, r.ID) }),
		op.New(admins("POST /v1/webhooks/{id}/secret", "Make another secret, shown this once; the one before signs too, for a day."),
			func(ctx context.Context, r hook) (NewSecret, error) {
				secret, err := a.NewSecret(ctx, r.ID)
				return NewSecret{secret}, err
			}),
		op.New(admins("POST /v1/webhooks/{id}/ping", "Send a test at once, and say how it went."),
			func(ctx context.Context, r hook) (webhook.Delivery, error) { return a.Ping(ctx, r.ID) }),
		op.New(admins("GET /v1/webhooks/{id}/deliveries", "What was sent, the newest first; Link rel=\"next\" leads on."),
			func(ctx context.Context, r deliveries) (op.Page[webhook.Delivery], error) {
				list, err := a.Deliveries(ctx, r.ID, webhook.Query{State: webhook.State(r.State), Limit: r.Limit, Before: r.Before})
				return op.Before(list, r.Limit, func(d webhook.Delivery) string { return strconv.FormatInt(d.ID, 10) }), err
			}),
		op.New(admins("POST /v1/webhooks/{id}/replay", "Send one once more, or all that were given up."),
			func(ctx context.Context, r replay) (Replayed, error) {
				if (r.Replay.Delivery > 0) == r.Replay.Dead || r.Replay.Delivery < 0 {
					return Replayed{}, errs.New(errs.Invalid, "want the id of a delivery, or dead: true")
				}
				n, err := a.Replay(ctx, r.ID, r.Replay.Delivery)
				return Replayed{n}, err
			}),
	}
}

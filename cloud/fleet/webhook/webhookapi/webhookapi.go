// Package webhookapi is webhooks over HTTP. Administrators change them; other operators see them with the host of the URL alone, because the rest may be another
// party's secret.
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
	Kinds  []webhook.Kind `json:"kinds"`            // kinds of events to send (kennelctl webhooks -help lists them)
	Filter string         `json:"filter,omitempty"` // filter of robots (default: all)
	Note   string         `json:"note,omitempty"`   // note for other operators
	Secret string         `json:"secret,omitempty"` // secret, whsec_ and base64 (default: a new one)
}

// Added answers it.
type Added struct {
	Webhook webhook.Hook `json:"webhook"`
	Secret  string       `json:"secret"` // shown only once
}

// NewSecret answers POST /v1/webhooks/{id}/secret.
type NewSecret struct {
	Secret string `json:"secret"` // shown only once
}

// Replay is the body of POST /v1/webhooks/{id}/replay: one delivery, or all dead ones.
type Replay struct {
	Delivery int64 `json:"delivery,omitempty"`
	Dead     bool  `json:"dead,omitempty"` // all dead deliveries
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
		State  string `query:"state" about:"Only deliveries in this state." enum:"open,done,dead"`
		Limit  int    `query:"limit" about:"Maximum number of results." min:"1" max:"500" default:"50"`
		Before int64  `query:"before" about:"Only deliveries before this one."`
	}
)

// shownHook is how kennelctl shows a webhook.
const shownHook = "webhook=.id; url; kinds=join .kinds `,`; filter; note; created={{.created}} by {{.by}}; state={{if .disabled}}off{{else if .failures}}failing{{else if .last_ok}}ok{{else}}new{{end}}; " +
	"disabled?={{with .disabled}}{{since .}}: {{or $.disabled_why `disabled by an operator`}}{{end}}; failing?={{with .failing_since}}{{since .}}, {{count $.failures `time`}} in a row{{end}}; " +
	"next try?=.retry_at; last ok; last error; waiting=.open; dead"

// Operations returns the operations on webhooks. audit writes one line about what the caller in ctx does; what cannot be written is not done. URLs are not in
// it beyond their host.
func Operations(svc *webhook.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	a := webhook.Audited{Service: svc, Audit: audit}
	admins := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Webhooks", Summary: summary, Roles: auth.Admins, Timeout: timeout}
	}
	staff := func(route, summary string) op.Spec {
		s := admins(route, summary)
		s.Roles = auth.Staff
		return s
	}
	return op.List{
		op.New(staff("GET /v1/webhooks", "List webhooks.").With(
			op.Command{Use: "webhooks list", Short: "List webhooks and their state", Table: "WEBHOOK=.id; STATE={{if .disabled}}off{{else if .failures}}failing{{else if .last_ok}}ok{{else}}new{{end}}; URL; KINDS=join .kinds `,`; FILTER; WAITING=.open; DEAD; LAST OK; NOTE"}),
			func(ctx context.Context, _ op.None) ([]webhook.Hook, error) { return a.Hooks(ctx) }),
		op.New(admins("POST /v1/webhooks", "Add a webhook. The answer has its secret, shown only once. problem.raised is sent at once, problem.gone after 30 s without the problem.").With(
			op.Command{Use: "webhooks add URL -kind:kinds! -filter -note -secret-file:secret@", Short: "Add a webhook and print its secret", Long: "URL must be https. Private addresses are refused unless the cloud's setting webhooks.allow names their network.", Example: "webhooks add https://example.org/kennel -kind thing.present,thing.absent\nwebhooks add https://example.org/kennel -kind setting.changed -filter 'species:vic tag:lab' -note 'home automation'", Table: "webhook=.webhook.id; secret\n=Shown only once. The receiver verifies signatures with it."}),
			func(ctx context.Context, d Draft) (Added, error) {
				h, secret, err := a.Add(ctx, auth.CallerFrom(ctx).Subject(), webhook.Draft{URL: &d.URL, Kinds: &d.Kinds, Filter: &d.Filter, Note: &d.Note}, d.Secret)
				return Added{h, secret}, err
			}),
		op.New(staff("GET /v1/webhooks/{id}", "Show a webhook and the state of its endpoint. Only an admin sees more of its URL than the host.").With(
			op.Command{Use: "webhooks show WEBHOOK", Short: "Show a webhook and the state of its endpoint", Table: shownHook}),
			func(ctx context.Context, r hook) (webhook.Hook, error) { return a.Hook(ctx, r.ID) }),
		op.New(admins("PATCH /v1/webhooks/{id}", "Change, disable or enable a webhook. Absent fields stay as they are.").With(
			op.Command{Use: "webhooks change WEBHOOK -url -kind:kinds -filter -note", Short: "Change a webhook", Example: "webhooks change WEBHOOK -kind command.finished\nwebhooks change WEBHOOK -url https://example.org/new -filter ''", Table: shownHook},
			op.Command{Use: "webhooks disable WEBHOOK disabled:=true", Short: "Disable a webhook; its deliveries wait", Table: shownHook},
			op.Command{Use: "webhooks enable WEBHOOK disabled:=false", Short: "Enable a disabled webhook", Table: shownHook}),
			func(ctx context.Context, r change) (webhook.Hook, error) { return a.Change(ctx, r.ID, r.Draft) }),
		op.New(admins("DELETE /v1/webhooks/{id}", "Remove a webhook and its waiting deliveries.").With(
			op.Command{Use: "webhooks remove WEBHOOK", Short: "Remove a webhook and its waiting deliveries", Says: "{{.WEBHOOK}} removed"}),
			func(ctx context.Context, r hook) (op.None, error) { return op.None{}, a.Remove(ctx, r.ID) }),
		op.New(admins("POST /v1/webhooks/{id}/secret", "Create a new secret, shown only once. The old one is also used for signing for a day.").With(
			op.Command{Use: "webhooks secret WEBHOOK", Short: "Create a new secret for a webhook and print it", Long: "For a day requests are signed with both secrets, so that the receiver can switch.", Table: "webhook=.WEBHOOK; secret\n=Shown only once. The receiver verifies signatures with it."}),
			func(ctx context.Context, r hook) (NewSecret, error) {
				secret, err := a.NewSecret(ctx, r.ID)
				return NewSecret{secret}, err
			}),
		op.New(admins("POST /v1/webhooks/{id}/ping", "Send a test event and return the response."),
			func(ctx context.Context, r hook) (webhook.Delivery, error) { return a.Ping(ctx, r.ID) }),
		op.New(staff("GET /v1/webhooks/{id}/deliveries", "List deliveries, the newest first. Link rel=\"next\" leads to the next page.").With(
			op.Command{Use: "webhooks deliveries WEBHOOK -state -limit=50 -before", Short: "List deliveries, the newest first", Long: "Successful deliveries are kept for a week, dead ones for 30 days.", Example: "webhooks deliveries WEBHOOK\nwebhooks deliveries WEBHOOK -state dead -limit 500 -o json", Table: "DELIVERY=.id; KIND; THING; CREATED; STATE; ATTEMPTS; LAST; STATUS; TOOK=took (or .latency_us 0); NEXT={{if eq .state `open`}}{{.next}}{{end}}; ERROR"}),
			func(ctx context.Context, r deliveries) (op.Page[webhook.Delivery], error) {
				list, err := a.Deliveries(ctx, r.ID, webhook.Query{State: webhook.State(r.State), Limit: r.Limit, Before: r.Before})
				return op.Before(list, r.Limit, func(d webhook.Delivery) string { return strconv.FormatInt(d.ID, 10) }), err
			}),
		op.New(admins("POST /v1/webhooks/{id}/replay", "Send a delivery again, or all dead ones.").With(
			op.Command{Use: "webhooks replay WEBHOOK [DELIVERY] -dead?", Short: "Send a delivery again, or all dead ones", Long: "They are queued behind waiting deliveries and keep their ids, so that a receiver recognises duplicates.", Example: "webhooks replay WEBHOOK 4711\nwebhooks replay WEBHOOK -dead", Table: "={{.replayed}} queued for delivery"}),
			func(ctx context.Context, r replay) (Replayed, error) {
				if (r.Replay.Delivery > 0) == r.Replay.Dead || r.Replay.Delivery < 0 {
					return Replayed{}, errs.New(errs.Invalid, "want the id of a delivery, or dead: true")
				}
				n, err := a.Replay(ctx, r.ID, r.Replay.Delivery)
				return Replayed{n}, err
			}),
	}
}

// Package rolloutapi is rollouts over HTTP, for operators:
//
//	GET  /v1/rollouts                    the newest first, with their progress
//	POST /v1/rollouts {species, version, ...}   starts one, unless it is a draft or waits for approval
//	GET  /v1/rollouts/{id}               one with its history
//	GET  /v1/rollouts/{id}/robots?why=&after=&limit=   why each robot does not update, or what it does
//	POST /v1/rollouts/{id}/{action}      approve, pause, resume, release, abort, rollback or retry
//	GET  /v1/things/{thing}/rollouts     why one robot does not update
package rolloutapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/rollout"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const (
	timeout = 20 * time.Second
	maxBody = 32 << 10
	// MaxLimit bounds a page of robots.
	MaxLimit = 10_000
)

// AuditPrefix begins the actions of the audit log: rollout.create, and rollout. with each of rollout.Actions.
const AuditPrefix = "rollout."

// The answers besides Told.
type (
	Rollout  = rollout.Rollout
	Why      = rollout.Why
	RobotWhy = rollout.RobotWhy
)

// Request is the body of POST /v1/rollouts.
type Request struct {
	rollout.Spec
	Draft bool `json:"draft,omitempty"` // it is started by resume
}

// Because is the body of POST /v1/rollouts/{id}/{action}.
type Because struct {
	Why string `json:"why,omitempty"` // for people
}

// Told is a rollout with its history.
type Told struct {
	rollout.Rollout
	Turns []rollout.Turn `json:"turns"` // the newest first
}

type robots struct {
	id    string
	code  rollout.WhyCode
	after thing.ID
	limit int
}

type act struct {
	id     string
	action rollout.Action
	Because
}

// Mount adds the endpoints to mux. audit writes one line about what the caller in ctx does; what cannot be written down is not done.
func Mount(mux *http.ServeMux, svc *rollout.Service, audit func(ctx context.Context, action, object, detail string) error, log *slog.Logger) {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	reads, writes := endpoint.Chain(wrap, auth.Require(auth.Staff...)), endpoint.Chain(wrap, auth.Require(auth.ReleaseManager, auth.Admin))
	id := func(r *http.Request) (any, error) { return r.PathValue("id"), nil }

	mux.Handle("GET /v1/rollouts", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ string) ([]rollout.Rollout, error) {
		out, err := svc.List(ctx)
		return append([]rollout.Rollout{}, out...), err
	})), id))
	mux.Handle("POST /v1/rollouts", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, q Request) (rollout.Rollout, error) {
		return create(ctx, svc, audit, q)
	})), func(r *http.Request) (any, error) {
		var q Request
		err := kithttp.ReadJSON(r, &q, maxBody)
		return q, err
	}))
	mux.Handle("GET /v1/rollouts/{id}", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, id string) (Told, error) {
		r, err := svc.Get(ctx, id)
		if err != nil {
			return Told{}, err
		}
		turns, err := svc.Turns(ctx, id)
		return Told{r, append([]rollout.Turn{}, turns...)}, err
	})), id))
	mux.Handle("GET /v1/rollouts/{id}/robots", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, q robots) ([]rollout.Why, error) {
		return svc.Robots(ctx, q.id, q.code, q.after, q.limit)
	})), func(r *http.Request) (any, error) {
		v := r.URL.Query()
		q := robots{r.PathValue("id"), rollout.WhyCode(v.Get("why")), thing.ID(v.Get("after")), 100}
		if s := v.Get("limit"); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > MaxLimit {
				return nil, errs.New(errs.Invalid, "limit %.20q: want 1 to %d", s, MaxLimit)
			}
			q.limit = n
		}
		return q, nil
	}))
	mux.Handle("POST /v1/rollouts/{id}/{action}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, q act) (rollout.Rollout, error) {
		if err := audit(ctx, AuditPrefix+string(q.action), q.id, q.Why); err != nil {
			return rollout.Rollout{}, err
		}
		return svc.Do(ctx, q.id, q.action, q.Why, auth.CallerFrom(ctx).Subject())
	})), func(r *http.Request) (any, error) {
		q := act{id: r.PathValue("id"), action: rollout.Action(r.PathValue("action"))}
		if !slices.Contains(rollout.Actions, q.action) {
			return nil, errs.New(errs.Invalid, "action %.20q: want one of %s", q.action, errs.List(rollout.Actions))
		}
		err := kithttp.ReadJSON(r, &q.Because, maxBody)
		return q, err
	}))
	mux.Handle("GET /v1/things/{thing}/rollouts", kithttp.Handler(reads(kit.Typed(svc.Explain)), func(r *http.Request) (any, error) { return kithttp.Thing(r) }))
}

// Package registryapi is the fleet over HTTP, for operators; what is marked *, for the owner of the thing too (WithOwns):
//
//	GET /v1/things?filter=&sort=&limit=&after=   a page of things (package filter; registry.ParseSort); Link rel="next" if there are more;
//	                                            presence= and q= are terms more. With format=csv or ndjson, or Accept text/csv or
//	                                            application/x-ndjson, all of them as a stream
//	GET /v1/things/{thing}                      one thing with its last status *
//	PATCH /v1/things/{thing}/tags {add, remove} -> its tags
//	GET /v1/things/{thing}/doctor               what is wrong with it, and what to do
//	GET /v1/things/{thing}/history?limit=       when it came and went; for the owner, since it is theirs *
//	GET /v1/fleet                               how many are present and absent
//	GET /v1/fleet/counts?filter=                how many of each version, species, problem, tag and so on
//	GET /v1/watch?filter=&counts=               server-sent events: each thing as it changes
package registryapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"kennel/cloud/registry"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

type thingRequest struct {
	id    thing.ID
	limit int
}

// Option changes who may see what.
type Option func(*options)

type options struct {
	owns  auth.Owns
	audit func(ctx context.Context, action, object, detail string) error
}

// WithAudit has a line written about what the caller in ctx does: tags, and exports of the fleet. What cannot be written down is not done.
func WithAudit(audit func(ctx context.Context, action, object, detail string) error) Option {
	return func(o *options) { o.audit = audit }
}

// WithOwns lets the owner of a thing see its status, and when it came and went. Without it owners are refused.
func WithOwns(owns auth.Owns) Option { return func(o *options) { o.owns = owns } }

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *registry.Service, opts ...Option) {
	o := options{audit: func(context.Context, string, string, string) error { return nil }}
	for _, f := range opts {
		f(&o)
	}
	staff := auth.Require(auth.Staff...)
	own := auth.RequireOwn(o.owns, func(q thingRequest) thing.ID { return q.id }, auth.Staff...)

	a := &api{svc, o.audit}
	mux.HandleFunc("GET /v1/things", a.list)
	mux.Handle("PATCH /v1/things/{thing}/tags", kithttp.Handler(auth.Require(auth.Changers...)(kit.Typed(a.tag)), decodeTags))
	mux.Handle("GET /v1/fleet/counts", kithttp.Handler(staff(kit.Typed(svc.Counts)), func(r *http.Request) (any, error) { return filterOf(r.URL.Query()) }))
	mux.Handle("GET /v1/things/{thing}", kithttp.Handler(own(kit.Typed(func(ctx context.Context, q thingRequest) (registry.Thing, error) {
		t, err := svc.Thing(ctx, q.id)
		if _, mine := auth.OwnedSince(ctx); mine {
			t.Tags = nil // words of the staff among themselves
		}
		return t, err
	})), decodeThing))
	mux.Handle("GET /v1/things/{thing}/doctor", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, q thingRequest) (registry.Report, error) {
		return svc.Doctor(ctx, q.id)
	})), decodeThing))
	mux.Handle("GET /v1/things/{thing}/history", kithttp.Handler(own(kit.Typed(func(ctx context.Context, q thingRequest) ([]registry.Change, error) {
		out, err := svc.History(ctx, q.id, q.limit)
		if out == nil {
			out = []registry.Change{}
		}
		if since, mine := auth.OwnedSince(ctx); mine {
			out = slices.DeleteFunc(out, func(c registry.Change) bool { return c.At.Before(since) })
		}
		return out, err
	})), decodeThing))
	mux.Handle("GET /v1/fleet", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, _ struct{}) (registry.Count, error) {
		return svc.Count(ctx)
	})), func(*http.Request) (any, error) { return struct{}{}, nil }))
	mux.HandleFunc("GET /v1/watch", a.watch)
}

// maxBody bounds what is sent.
const maxBody = 16 << 10 // bytes

// api holds what the streaming handlers share, which are no endpoints.
type api struct {
	svc   *registry.Service
	audit func(ctx context.Context, action, object, detail string) error
}

// allow refuses callers of other roles.
func (a *api) allow(ctx context.Context, roles ...auth.Role) error {
	_, err := auth.Require(roles...)(func(context.Context, any) (any, error) { return nil, nil })(ctx, nil)
	return err
}

func decodeThing(r *http.Request) (any, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(r.URL.Query())
	return thingRequest{id, limit}, err
}

func limitOf(v url.Values) (int, error) {
	s := v.Get("limit")
	if s == "" {
		return registry.DefaultLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > registry.MaxLimit {
		return 0, errs.New(errs.Invalid, "limit %.20q: want 1 to %d", s, registry.MaxLimit)
	}
	return n, nil
}

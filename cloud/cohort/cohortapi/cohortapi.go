// Package cohortapi is cohorts over HTTP, for operators:
//
//	GET    /v1/cohorts                                    all, in the order of their names
//	POST   /v1/cohorts {cohort, filter, note}             a new one; 409 if there is one of that name
//	GET    /v1/cohorts/{cohort}                           one, with how many robots it has now
//	PUT    /v1/cohorts/{cohort} {filter, note, rev}       changed, or made; with rev, only if no other change was first
//	DELETE /v1/cohorts/{cohort}                           409 while another cohort asks for it
package cohortapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/cohort"
	"kennel/cloud/registry/filter"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

// Cohort is the answer of most.
type Cohort = cohort.Cohort

const (
	timeout = 10 * time.Second
	maxBody = 16 << 10
)

// Config holds what the endpoints need besides the rules.
type Config struct {
	// Count returns how many robots a filter selects.
	Count func(ctx context.Context, f filter.Filter) (int, error)
	// Audit writes one line about what the caller in ctx does; what cannot be written down is not done.
	Audit func(ctx context.Context, action, object, detail string) error
	Log   *slog.Logger
}

// Request is the body of POST and PUT. Filter is text, so that what is wrong with it is said.
type Request struct {
	Name   string `json:"cohort,omitempty"` // POST
	Filter string `json:"filter"`
	Note   string `json:"note,omitempty"`
	Rev    int64  `json:"rev,omitempty"` // PUT: the revision that the caller saw; 0: any
}

// Counted is a cohort with how many robots it has now.
type Counted struct {
	cohort.Cohort
	Robots int `json:"robots"`
}

type putRequest struct {
	c   cohort.Cohort
	rev int64
}

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *cohort.Service, cfg Config) {
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	reads := endpoint.Chain(wrap, auth.Require(auth.Staff...))
	writes := endpoint.Chain(wrap, auth.Require(auth.Changers...))
	name := func(r *http.Request) (any, error) { return r.PathValue("cohort"), nil }

	mux.Handle("GET /v1/cohorts", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ struct{}) ([]cohort.Cohort, error) {
		out, err := svc.List(ctx)
		if out == nil {
			out = []cohort.Cohort{}
		}
		return out, err
	})), func(*http.Request) (any, error) { return struct{}{}, nil }))
	mux.Handle("GET /v1/cohorts/{cohort}", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, name string) (Counted, error) {
		c, err := svc.Get(ctx, name)
		if err != nil {
			return Counted{}, err
		}
		n, err := cfg.Count(ctx, c.Filter)
		return Counted{c, n}, err
	})), name))
	write := writes(kit.Typed(func(ctx context.Context, q putRequest) (cohort.Cohort, error) {
		if err := cohort.CheckName(q.c.Name); err != nil {
			return cohort.Cohort{}, err
		}
		if err := cfg.Audit(ctx, "cohort.put", q.c.Name, q.c.Filter.Nameless()); err != nil {
			return cohort.Cohort{}, err
		}
		return svc.Put(ctx, q.c, auth.CallerFrom(ctx).Subject(), q.rev)
	}))
	mux.Handle("POST /v1/cohorts", kithttp.Handler(write, func(r *http.Request) (any, error) {
		q, err := decode(r)
		if q.rev != 0 {
			return nil, errs.New(errs.Invalid, "rev is for a cohort that exists: want PUT /v1/cohorts/{cohort}")
		}
		return q, err
	}))
	mux.Handle("PUT /v1/cohorts/{cohort}", kithttp.Handler(write, func(r *http.Request) (any, error) {
		q, err := decode(r)
		if err != nil {
			return nil, err
		}
		if path := r.PathValue("cohort"); q.c.Name == "" {
			q.c.Name = path
		} else if q.c.Name != path {
			return nil, errs.New(errs.Invalid, "cohort %.60q in the body, %.60q in the path: want the same, or none in the body", q.c.Name, path)
		}
		if q.rev == 0 {
			q.rev = cohort.Whatever
		}
		return q, nil
	}))
	mux.Handle("DELETE /v1/cohorts/{cohort}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, name string) (any, error) {
		if err := cohort.CheckName(name); err != nil {
			return nil, err
		}
		if err := cfg.Audit(ctx, "cohort.delete", name, ""); err != nil {
			return nil, err
		}
		return nil, svc.Delete(ctx, name)
	})), name))
}

func decode(r *http.Request) (putRequest, error) {
	var body Request
	if err := kithttp.ReadJSON(r, &body, maxBody); err != nil {
		return putRequest{}, err
	}
	f, err := filter.Parse(body.Filter)
	if body.Rev < 0 {
		err = errs.New(errs.Invalid, "rev %d: want the revision of the cohort as shown", body.Rev)
	}
	return putRequest{cohort.Cohort{Name: body.Name, Filter: f, Note: body.Note}, body.Rev}, err
}

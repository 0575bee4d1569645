// Package bulkapi is bulk jobs over HTTP, for operators:
//
//	POST /v1/bulk/preview {filter | things, action}                 what would be done, and to how many
//	POST /v1/bulk {filter | things, action, key, expect}            -> the job; the same key again is the same job
//	GET  /v1/bulk?limit=                                            the newest first
//	GET  /v1/bulk/{id}                                              one with its progress
//	GET  /v1/bulk/{id}/results?state=&limit=&after=                 what became of each robot; Link rel="next" if there may be more
//	POST /v1/bulk/{id}/cancel                                       -> the job; what was not done yet is dropped
package bulkapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/bulk"
	"kennel/cloud/registry/filter"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const (
	timeout = 30 * time.Second // a job of 100,000 robots is kept in some seconds
	maxBody = 1 << 20          // bulk.MaxNamed ids
)

// Config holds what the endpoints need besides the rules.
type Config struct {
	// Audit writes one line about what the caller in ctx does; a job whose line cannot be written is not begun.
	Audit func(ctx context.Context, action, object, detail string) error
	Log   *slog.Logger
}

// Request is the body of POST /v1/bulk and /v1/bulk/preview. Filter is text, so that what is wrong with it is said; the empty one is the
// whole fleet, none means Things.
type Request struct {
	Filter *string     `json:"filter,omitempty"`
	Things []thing.ID  `json:"things,omitempty"`
	Action bulk.Action `json:"action"`
	Key    string      `json:"key,omitempty"`
	Expect *int        `json:"expect,omitempty"` // what the preview counted
}

type listRequest struct {
	id    string
	state bulk.ItemState
	after thing.ID
	limit int
}

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *bulk.Service, cfg Config) {
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	reads := endpoint.Chain(wrap, auth.Require(auth.Staff...))
	writes := endpoint.Chain(wrap, auth.Require(auth.Changers...))
	id := func(r *http.Request) (any, error) { return r.PathValue("id"), nil }

	mux.Handle("POST /v1/bulk/preview", kithttp.Handler(writes(kit.Typed(svc.Preview)), decode))
	mux.Handle("POST /v1/bulk", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, d bulk.Draft) (bulk.Job, error) {
		d.By = auth.CallerFrom(ctx).Subject()
		// Checked before, so that the log tells of jobs and not of mistakes; the count is the current one.
		p, err := svc.Preview(ctx, d)
		if err != nil {
			return bulk.Job{}, err
		}
		if err := cfg.Audit(ctx, "bulk.start", fmt.Sprintf("%d robots", p.Count), p.Entry(d)); err != nil {
			return bulk.Job{}, err
		}
		return svc.Start(ctx, d)
	})), decode))
	mux.Handle("GET /v1/bulk", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, q listRequest) ([]bulk.Job, error) {
		out, err := svc.Jobs(ctx, q.limit)
		if out == nil {
			out = []bulk.Job{}
		}
		return out, err
	})), decodeList))
	mux.Handle("GET /v1/bulk/{id}", kithttp.Handler(reads(kit.Typed(svc.Job)), id))
	mux.Handle("POST /v1/bulk/{id}/cancel", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, id string) (bulk.Job, error) {
		if _, err := svc.Job(ctx, id); err != nil {
			return bulk.Job{}, err
		}
		if err := cfg.Audit(ctx, "bulk.cancel", id, ""); err != nil {
			return bulk.Job{}, err
		}
		return svc.Cancel(ctx, id)
	})), id))
	results := reads(kit.Typed(func(ctx context.Context, q listRequest) ([]bulk.Result, error) {
		out, err := svc.Results(ctx, q.id, q.state, q.after, q.limit)
		if out == nil {
			out = []bulk.Result{}
		}
		return out, err
	}))
	mux.HandleFunc("GET /v1/bulk/{id}/results", func(w http.ResponseWriter, r *http.Request) {
		q, err := decodeList(r)
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		resp, err := results(r.Context(), q)
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		out := resp.([]bulk.Result) // what results is made of
		if n := len(out); n > 0 && n == q.(listRequest).limit {
			next := url.Values{}
			for k, v := range r.URL.Query() {
				next[k] = v
			}
			next.Set("after", string(out[n-1].Thing))
			w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", r.URL.Path, next.Encode()))
		}
		kithttp.WriteJSON(w, http.StatusOK, out)
	})
}

func decode(r *http.Request) (any, error) {
	var body Request
	if err := kithttp.ReadJSON(r, &body, maxBody); err != nil {
		return nil, err
	}
	d := bulk.Draft{Things: body.Things, Action: body.Action, Key: body.Key, Expect: body.Expect}
	if body.Filter != nil {
		f, err := filter.Parse(*body.Filter)
		if err != nil {
			return nil, err
		}
		d.Filter = &f
	}
	return d, nil
}

func decodeList(r *http.Request) (any, error) {
	v := r.URL.Query()
	q := listRequest{id: r.PathValue("id"), state: bulk.ItemState(v.Get("state")), limit: bulk.DefaultLimit}
	if after := v.Get("after"); after != "" {
		id, err := thing.Parse(after)
		if err != nil {
			return nil, errs.New(errs.Invalid, "after: %w", err)
		}
		q.after = id
	}
	if s := v.Get("limit"); s != "" {
		var err error
		if q.limit, err = strconv.Atoi(s); err != nil || q.limit < 1 || q.limit > bulk.MaxLimit {
			return nil, errs.New(errs.Invalid, "limit %.20q: want 1 to %d", s, bulk.MaxLimit)
		}
	}
	return q, nil
}

// Package bulkapi is bulk jobs over HTTP, for operators.
package bulkapi

import (
	"context"
	"fmt"
	"time"

	"kennel/cloud/fleet/bulk"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/thing"
)

// Request is the body of POST /v1/bulk and /v1/bulk/preview. Filter is text, so that what is wrong with it is said; the empty one is the
// whole fleet, none means Things.
type Request struct {
	Filter *string     `json:"filter,omitempty"`
	Things []thing.ID  `json:"things,omitempty"`
	Action bulk.Action `json:"action"`
	Key    string      `json:"key,omitempty"`
	Expect *int        `json:"expect,omitempty"` // what the preview counted
}

// draft returns what is asked for.
func (r Request) draft() (bulk.Draft, error) {
	d := bulk.Draft{Things: r.Things, Action: r.Action, Key: r.Key, Expect: r.Expect}
	if r.Filter == nil {
		return d, nil
	}
	f, err := filter.Parse(*r.Filter)
	d.Filter = &f
	return d, err
}

type (
	list struct {
		Limit int `query:"limit" about:"Maximum number of results." min:"1" max:"1000" default:"100"`
	}
	one struct {
		ID string `path:"id"`
	}
	results struct {
		one
		State string `query:"state" about:"Only robots in this state."`
		list
		After thing.ID `query:"after" about:"Where the previous page ended."`
	}
)

func spec(route, summary string, roles []auth.Role) op.Spec {
	// A job of 100,000 robots is kept in some seconds; bulk.MaxNamed ids take a megabyte.
	return op.Spec{Route: route, Tag: "Bulk jobs", Summary: summary, Roles: roles, Timeout: 30 * time.Second, MaxBody: 1 << 20}
}

// Operations returns the operations on bulk jobs. audit writes one line about what the caller in ctx does; a job whose line cannot be written is not begun.
func Operations(svc *bulk.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	preview := spec("POST /v1/bulk/preview", "Preview a bulk job: what it would do to how many robots.", auth.Changers)
	preview.Quiet = true
	return op.List{
		op.New(preview, func(ctx context.Context, r Request) (bulk.Preview, error) {
			d, err := r.draft()
			if err != nil {
				return bulk.Preview{}, err
			}
			return svc.Preview(ctx, d)
		}),
		op.New(spec("POST /v1/bulk", "Start a bulk job. Repeating its key does not start a second one.", auth.Changers), func(ctx context.Context, r Request) (bulk.Job, error) {
			d, err := r.draft()
			if err != nil {
				return bulk.Job{}, err
			}
			d.By = auth.CallerFrom(ctx).Subject()
			// Checked before, so that the log tells of jobs and not of mistakes; the count is the current one.
			p, err := svc.Preview(ctx, d)
			if err != nil {
				return bulk.Job{}, err
			}
			if err := audit(ctx, "bulk.start", fmt.Sprintf("%d robots", p.Count), p.Entry(d)); err != nil {
				return bulk.Job{}, err
			}
			return svc.Start(ctx, d)
		}),
		op.New(spec("GET /v1/bulk", "List bulk jobs, the newest first.", auth.Staff), func(ctx context.Context, r list) ([]bulk.Job, error) { return svc.Jobs(ctx, r.Limit) }),
		op.New(spec("GET /v1/bulk/{id}", "Show a bulk job and its progress.", auth.Staff), func(ctx context.Context, r one) (bulk.Job, error) { return svc.Job(ctx, r.ID) }),
		op.New(spec("GET /v1/bulk/{id}/results", "List a bulk job's result for each robot.", auth.Staff), func(ctx context.Context, r results) (op.Page[bulk.Result], error) {
			out, err := svc.Results(ctx, r.ID, bulk.ItemState(r.State), r.After, r.Limit)
			return op.Of(out, r.Limit, func(r bulk.Result) string { return string(r.Thing) }), err
		}),
		op.New(spec("POST /v1/bulk/{id}/cancel", "Cancel a bulk job; robots still open are skipped.", auth.Changers), func(ctx context.Context, r one) (bulk.Job, error) {
			if _, err := svc.Job(ctx, r.ID); err != nil {
				return bulk.Job{}, err
			}
			if err := audit(ctx, "bulk.cancel", r.ID, ""); err != nil {
				return bulk.Job{}, err
			}
			return svc.Cancel(ctx, r.ID)
		}),
	}
}

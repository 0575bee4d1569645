// Package cohortapi is cohorts over HTTP, for operators.
package cohortapi

import (
	"cmp"
	"context"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
)

// Cohort is the answer of most.
type Cohort = cohort.Cohort

// Config holds what the endpoints need besides the rules.
type Config struct {
	// Count returns how many robots a filter selects.
	Count func(ctx context.Context, f filter.Filter) (int, error)
	// Audit writes one line about what the caller in ctx does; what cannot be written down is not done.
	Audit func(ctx context.Context, action, object, detail string) error
}

// Request is the body of POST and PUT. Filter is text, so that what is wrong with it is said.
type Request struct {
	Name   string `json:"cohort,omitempty"` // POST
	Filter string `json:"filter"`
	Note   string `json:"note,omitempty"` // what it is for
	Rev    int64  `json:"rev,omitempty"`  // only if it still has this revision; 0: any; with PUT
}

// Counted is a cohort with how many robots it has now.
type Counted struct {
	cohort.Cohort
	Robots int `json:"robots"`
}

type (
	named struct {
		Name string `path:"cohort"`
	}
	put struct {
		named
		Request Request `body:""`
	}
)

// shownCohort is how kennelctl shows a cohort.
const shownCohort = "cohort; filter; note; by; changed; revision=.rev"

// Operations returns the operations on cohorts.
func Operations(svc *cohort.Service, cfg Config) op.List {
	staff := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Cohorts", Summary: summary, Roles: auth.Staff}
	}
	changers := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Cohorts", Summary: summary, Roles: auth.Changers}
	}
	write := func(ctx context.Context, name string, q Request, rev int64) (Cohort, error) {
		f, err := filter.Parse(q.Filter)
		if q.Rev < 0 {
			err = errs.New(errs.Invalid, "rev %d: want the revision of the cohort as shown", q.Rev)
		}
		if err == nil {
			err = cohort.CheckName(name)
		}
		if err == nil {
			err = cfg.Audit(ctx, "cohort.put", name, f.Nameless())
		}
		if err != nil {
			return Cohort{}, err
		}
		return svc.Put(ctx, Cohort{Name: name, Filter: f, Note: q.Note}, auth.CallerFrom(ctx).Subject(), rev)
	}
	return op.List{
		op.New(staff("GET /v1/cohorts", "Saved filters.").With(
			op.Command{Use: "cohorts list", Short: "List cohorts", Table: "COHORT; FILTER; BY; CHANGED; NOTE"}), func(ctx context.Context, _ op.None) ([]Cohort, error) { return svc.List(ctx) }),
		op.New(changers("POST /v1/cohorts", "Save a filter under a new name.").With(
			op.Command{Use: "cohorts create COHORT FILTER... -note", Short: "Save a filter under a name", Example: "cohorts create beta tag:beta -note \"owners who asked for it\"\ncohorts create old \"version:<2.1 species:vic\"", Table: shownCohort}), func(ctx context.Context, q Request) (Cohort, error) {
			if q.Rev != 0 {
				return Cohort{}, errs.New(errs.Invalid, "rev is only for an existing cohort: want PUT /v1/cohorts/{cohort}")
			}
			return write(ctx, q.Name, q, 0)
		}),
		op.New(staff("GET /v1/cohorts/{cohort}", "One, with how many robots it has now.").With(
			op.Command{Use: "cohorts show COHORT", Short: "Show a cohort and how many robots it has now", Table: shownCohort + "; robots"}), func(ctx context.Context, r named) (Counted, error) {
			c, err := svc.Get(ctx, r.Name)
			if err != nil {
				return Counted{}, err
			}
			n, err := cfg.Count(ctx, c.Filter)
			return Counted{c, n}, err
		}),
		op.New(changers("PUT /v1/cohorts/{cohort}", "Create or change a cohort; with rev, only if it has not changed since.").With(
			op.Command{Use: "cohorts change COHORT FILTER... -note -rev", Short: "Give a cohort another filter, or make it", Example: "cohorts change beta \"tag:beta species:vic\"\ncohorts change beta tag:beta -rev 3", Table: shownCohort}), func(ctx context.Context, r put) (Cohort, error) {
			if n := r.Request.Name; n != "" && n != r.Name {
				return Cohort{}, errs.New(errs.Invalid, "cohort %.60q in the body, %.60q in the path: want the same, or none in the body", n, r.Name)
			}
			return write(ctx, r.Name, r.Request, cmp.Or(r.Request.Rev, cohort.Whatever))
		}),
		op.New(changers("DELETE /v1/cohorts/{cohort}", "Forget one; refused while another asks for it.").With(
			op.Command{Use: "cohorts delete COHORT", Short: "Delete a cohort; its robots stay", Long: "Delete a cohort, after asking. Its robots stay, with their tags. Filters that name the cohort become errors.", Example: "cohorts delete beta\ncohorts delete beta -yes", Says: "cohort {{.COHORT}} is deleted", Asks: "Delete cohort {{.COHORT}}?"}), func(ctx context.Context, r named) (op.None, error) {
			if err := cohort.CheckName(r.Name); err != nil {
				return op.None{}, err
			}
			if err := cfg.Audit(ctx, "cohort.delete", r.Name, ""); err != nil {
				return op.None{}, err
			}
			return op.None{}, svc.Delete(ctx, r.Name)
		}),
	}
}

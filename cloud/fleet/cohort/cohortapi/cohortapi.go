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
	Note   string `json:"note,omitempty"` // purpose of the cohort
	Rev    int64  `json:"rev,omitempty"`  // change only if the cohort has this revision (0: any)
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
		op.New(staff("GET /v1/cohorts", "List cohorts.").With(
			op.Command{Use: "cohorts list", Short: "List cohorts", Table: "COHORT; FILTER; BY; CHANGED; NOTE"}), func(ctx context.Context, _ op.None) ([]Cohort, error) { return svc.List(ctx) }),
		op.New(changers("POST /v1/cohorts", "Create a cohort, a saved filter.").With(
			op.Command{Use: "cohorts create COHORT FILTER... -note", Short: "Create a cohort, a saved filter", Example: "cohorts create beta tag:beta -note \"owners who asked for it\"\ncohorts create old \"version:<2.1 species:vic\"", Table: shownCohort}), func(ctx context.Context, q Request) (Cohort, error) {
			if q.Rev != 0 {
				return Cohort{}, errs.New(errs.Invalid, "rev is only for an existing cohort: want PUT /v1/cohorts/{cohort}")
			}
			return write(ctx, q.Name, q, 0)
		}),
		op.New(staff("GET /v1/cohorts/{cohort}", "Show a cohort and its number of robots.").With(
			op.Command{Use: "cohorts show COHORT", Short: "Show a cohort and its number of robots", Table: shownCohort + "; robots"}), func(ctx context.Context, r named) (Counted, error) {
			c, err := svc.Get(ctx, r.Name)
			if err != nil {
				return Counted{}, err
			}
			n, err := cfg.Count(ctx, c.Filter)
			return Counted{c, n}, err
		}),
		op.New(changers("PUT /v1/cohorts/{cohort}", "Create or change a cohort; with rev, only if it has that revision.").With(
			op.Command{Use: "cohorts change COHORT FILTER... -note -rev", Short: "Change a cohort's filter, or create the cohort", Example: "cohorts change beta \"tag:beta species:vic\"\ncohorts change beta tag:beta -rev 3", Table: shownCohort}), func(ctx context.Context, r put) (Cohort, error) {
			if n := r.Request.Name; n != "" && n != r.Name {
				return Cohort{}, errs.New(errs.Invalid, "cohort %.60q in the body, %.60q in the path: want the same, or none in the body", n, r.Name)
			}
			return write(ctx, r.Name, r.Request, cmp.Or(r.Request.Rev, cohort.Whatever))
		}),
		op.New(changers("DELETE /v1/cohorts/{cohort}", "Delete a cohort. Refused while another cohort uses it.").With(
			op.Command{Use: "cohorts delete COHORT", Short: "Delete a cohort; its robots stay", Long: "Prompts for confirmation. The robots stay, with their tags. Filters that use the cohort become errors.", Example: "cohorts delete beta\ncohorts delete beta -yes", Says: "cohort {{.COHORT}} deleted", Asks: "Delete cohort {{.COHORT}}?"}), func(ctx context.Context, r named) (op.None, error) {
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

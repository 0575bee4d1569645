// Package rolloutapi is rollouts over HTTP and as pages, for operators.
package rolloutapi

import (
	"context"
	"slices"
	"time"

	"kennel/cloud/updates/rollout"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/thing"
)

const timeout = 20 * time.Second

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
	Why string `json:"why,omitempty"` // reason for the history and the audit log
}

// Told is a rollout with its history.
type Told struct {
	rollout.Rollout
	Turns []rollout.Turn `json:"turns"` // the newest first
}

type (
	one struct {
		ID string `path:"id"`
	}
	robots struct {
		one
		Why   rollout.WhyCode `query:"why" about:"Only robots with this code."`
		Phase int             `query:"phase" about:"Only robots of this phase, from 1." min:"0" max:"21" default:"0"`
		After thing.ID        `query:"after" about:"Only robots after this id."`
		Limit int             `query:"limit" about:"Maximum number of results." min:"1" max:"10000" default:"100"`
	}
	act struct {
		one
		Action  rollout.Action `path:"action"`
		Because Because        `body:""`
	}
	robot struct {
		Thing thing.ID `path:"thing"`
	}
)

// Operations returns the operations on rollouts. audit writes one line about what the caller in ctx does; what cannot be written down is not done.
func Operations(svc *rollout.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	spec := func(route, summary string, roles ...auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Releases", Summary: summary, Roles: roles, Timeout: timeout}
	}
	return op.List{
		op.New(spec("GET /v1/rollouts", "List rollouts with their progress, the newest first.", auth.Staff...),
			func(ctx context.Context, _ op.None) ([]Rollout, error) { return svc.List(ctx) }),
		op.New(spec("POST /v1/rollouts", "Create a rollout, which installs a release in phases. One for prod needs approval by a second person.", auth.ReleaseManager, auth.Admin),
			func(ctx context.Context, q Request) (Rollout, error) { return create(ctx, svc, audit, q) }),
		op.New(spec("GET /v1/rollouts/{id}", "Show a rollout with its history.", auth.Staff...), func(ctx context.Context, q one) (Told, error) {
			r, err := svc.Get(ctx, q.ID)
			if err != nil {
				return Told{}, err
			}
			turns, err := svc.Turns(ctx, q.ID)
			return Told{r, append([]rollout.Turn{}, turns...)}, err
		}),
		op.New(spec("GET /v1/rollouts/{id}/robots", "List the robots of a rollout with their states and reasons.", auth.Staff...),
			func(ctx context.Context, q robots) ([]Why, error) {
				return svc.Robots(ctx, q.ID, rollout.Which{Code: q.Why, Phase: q.Phase, After: q.After, Limit: q.Limit})
			}),
		op.New(spec("POST /v1/rollouts/{id}/{action}", "Approve, pause, resume, release, abort, retry or roll back a rollout.", auth.ReleaseManager, auth.Admin).With(
			op.Command{Use: "rollout approve ROLLOUT action:=approve -why", Short: "Approve a rollout that another person created", Says: "{{.species}} {{.version}} is {{.state}}"},
			op.Command{Use: "rollout pause ROLLOUT action:=pause -why", Short: "Pause a rollout; updates already running continue", Says: "{{.species}} {{.version}} is {{.state}}"},
			op.Command{Use: "rollout resume ROLLOUT action:=resume -why", Short: "Start a draft, or continue a paused or stopped rollout", Says: "{{.species}} {{.version}} is {{.state}}"},
			op.Command{Use: "rollout release ROLLOUT action:=release -why", Short: "Release a held rollout: open the next phase, or continue despite bad robots", Says: "{{.species}} {{.version}} is {{.state}}"},
			op.Command{Use: "rollout abort ROLLOUT action:=abort -why", Short: "End a rollout; updated robots keep the release", Says: "{{.species}} {{.version}} is {{.state}}"},
			op.Command{Use: "rollout rollback ROLLOUT action:=rollback -why", Short: "End a rollout and return updated robots to their previous release", Says: "{{.species}} {{.version}} is {{.state}}"},
			op.Command{Use: "rollout retry ROLLOUT action:=retry -why", Short: "Retry failed updates", Says: "{{.species}} {{.version}} is {{.state}}"}),
			func(ctx context.Context, q act) (Rollout, error) {
				if !slices.Contains(rollout.Actions, q.Action) {
					return Rollout{}, errs.New(errs.Invalid, "action %.20q: want one of %s", q.Action, errs.List(rollout.Actions))
				}
				if err := audit(ctx, AuditPrefix+string(q.Action), q.ID, q.Because.Why); err != nil {
					return Rollout{}, err
				}
				return svc.Do(ctx, q.ID, q.Action, q.Because.Why, auth.CallerFrom(ctx).Subject())
			}),
		op.New(spec("GET /v1/things/{thing}/rollouts", "Explain why a robot does not update: its place in each relevant rollout.", auth.Staff...).With(
			op.Command{Use: "rollout why THING", Short: "Explain why a robot does not update", Table: "ROLLOUT; RELEASE=.version; STATE; REASON=.words"}),
			func(ctx context.Context, q robot) ([]RobotWhy, error) { return svc.Explain(ctx, q.Thing) }),
	}
}

// Package rolloutwire wires the slice of rollouts.
package rolloutwire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"kennel/cloud/alert"
	"kennel/cloud/alert/alertpg"
	"kennel/cloud/artifact"
	"kennel/cloud/crash/crashpg"
	"kennel/cloud/registry"
	"kennel/cloud/registry/filter"
	"kennel/cloud/rollout"
	"kennel/cloud/rollout/rolloutapi"
	"kennel/cloud/rollout/rolloutpg"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
	"kennel/infra/thing"
	"kennel/ota"
)

// crashedFor is how long a crash counts as a problem of its robot.
const crashedFor = 6 * time.Hour

// Fleet tells rollouts what the registry knows about robots, and which of them have crashed (nil: not known) in the version that they run: a problem of the
// kind crash, whose code is that version, so that a crash after the update is one that the robot did not have before.
func Fleet(briefs func(ctx context.Context, f filter.Filter, also []thing.ID) ([]registry.Brief, error),
	crashed func(ctx context.Context, since time.Time) (map[thing.ID][]string, error)) func(context.Context, filter.Filter, []thing.ID) ([]rollout.Fact, error) {
	return func(ctx context.Context, f filter.Filter, also []thing.ID) ([]rollout.Fact, error) {
		var crashes map[thing.ID][]string
		if crashed != nil {
			var err error
			if crashes, err = crashed(ctx, time.Now().Add(-crashedFor)); err != nil {
				return nil, err
			}
		}
		list, err := briefs(ctx, f, also)
		out := make([]rollout.Fact, len(list))
		for i, x := range list {
			if slices.Contains(crashes[x.Thing], x.Version) {
				x.Codes = append(slices.Clip(x.Codes), "crash/"+x.Version)
			}
			out[i] = rollout.Fact{Thing: x.Thing, In: x.In, Running: x.Version, Present: x.Present, Since: x.Since, LowPower: x.Level == "low", Problems: x.Codes}
		}
		return out, err
	}
}

// Wire wires rollouts, by which releases then decide. archives (nil: none) keeps what they use.
func Wire(b wire.Base, robots *registry.Service, releases *ota.Service, archives *artifact.Service, hint ota.Hinter) wire.Slice {
	svc := rollout.New(rollout.Config{Store: rolloutpg.New(b.Pool), Fleet: Fleet(robots.Briefs, crashpg.New(b.Pool).Crashed), Known: releases.Known, Path: releases.Path, Wishes: releases.Wishes, Hint: hint, Now: time.Now})
	releases.Follow(svc)
	if archives != nil {
		archives.Users = append(archives.Users, svc.Used)
	}
	alarms := alertpg.New(b.Pool)
	var audit func(ctx context.Context, action, object, detail string) error // routes are mounted before pages are served
	return wire.Slice{
		Routes: wire.Routes(func(mux *http.ServeMux, d wire.Doors) {
			audit = d.Audit
			rolloutapi.Mount(mux, svc, d.Audit, b.Log)
		}),
		Pages: rolloutapi.Pages(svc, releases, func(ctx context.Context, action, object, detail string) error {
			return audit(ctx, action, object, detail)
		}),
		Jobs: []jobs.Job{{Name: "rollout.step", Every: rollout.StepEvery, Run: func(ctx context.Context) error {
			return errors.Join(svc.Step(ctx), tell(ctx, svc, alarms))
		}}},
	}
}

// tell makes an alert of each rollout that a guard stopped, until an operator decides what becomes of it.
func tell(ctx context.Context, svc *rollout.Service, alarms *alertpg.Store) error {
	list, err := svc.List(ctx)
	var parts []alert.Part
	for _, r := range list {
		if r.State == rollout.Stopped {
			parts = append(parts, alert.Part{Name: fmt.Sprintf("rollout of %s %s", r.Species, r.Version), Failing: true, Reason: r.Why, Since: r.Changed})
		}
	}
	if len(parts) == 0 {
		return err
	}
	return alarms.Told(ctx, "rollouts", parts)
}

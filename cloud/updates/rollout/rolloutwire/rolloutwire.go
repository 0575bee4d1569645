// Package rolloutwire wires the slice of rollouts.
package rolloutwire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutapi"
	"kennel/cloud/updates/rollout/rolloutpg"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
	"kennel/infra/thing"
	"kennel/ota"
)

// crashedFor is how long a crash counts as a problem of its robot, so that a crash that it had in the day before its update is none of the release.
const crashedFor = 24 * time.Hour

// Crashed finds the crashes of robots since a time; things nil: of all.
type Crashed func(ctx context.Context, since time.Time, things []thing.ID) (map[thing.ID][]crashpg.CrashedIn, error)

// fewRobots is how many robots are looked up by name instead of reading all crashes.
const fewRobots = 16

// Fleet tells rollouts what the registry knows about robots, and in which groups they crashed (nil: not known) in the version that they run: a problem of the
// kind crash, whose code is the group, so that a cause that the robot crashed for before its update is no new one.
func Fleet(briefs func(ctx context.Context, f filter.Filter, also []thing.ID) ([]registry.Brief, error), crashed Crashed) func(context.Context, filter.Filter, []thing.ID) ([]rollout.Fact, error) {
	return func(ctx context.Context, f filter.Filter, also []thing.ID) ([]rollout.Fact, error) {
		list, err := briefs(ctx, f, also)
		if err != nil {
			return nil, err
		}
		var few []thing.ID
		if len(list) <= fewRobots {
			few = []thing.ID{}
			for _, x := range list {
				few = append(few, x.Thing)
			}
		}
		var crashes map[thing.ID][]crashpg.CrashedIn
		if crashed != nil {
			if crashes, err = crashed(ctx, time.Now().Add(-crashedFor), few); err != nil {
				return nil, err
			}
		}
		out := make([]rollout.Fact, len(list))
		for i, x := range list {
			if slices.ContainsFunc(x.Codes, isCrash) { // the registry's own account of crashes knows no groups
				x.Codes = slices.DeleteFunc(slices.Clone(x.Codes), isCrash)
			}
			for _, c := range crashes[x.Thing] {
				if c.OS == x.Version || c.Version == x.Version {
					x.Codes = append(slices.Clip(x.Codes), "crash/"+c.Group)
				}
			}
			out[i] = rollout.Fact{Thing: x.Thing, In: x.In, Running: x.Version, Present: x.Present, Since: x.Since, LowPower: x.Level == "low", Problems: x.Codes}
		}
		return out, nil
	}
}

func isCrash(code string) bool { return code == "crash" || strings.HasPrefix(code, "crash/") }

// Wire wires rollouts, by which releases then decide. archives (nil: none) keeps what they use.
func Wire(b wire.Base, robots *registry.Service, cohorts *cohort.Service, releases *ota.Service, archives *artifact.Service, hint ota.Hinter) wire.Slice {
	svc := rollout.New(rollout.Config{Store: rolloutpg.New(b.Pool), Fleet: Fleet(robots.Briefs, crashpg.New(b.Pool).Crashed), Known: releases.Known, Path: releases.Path, Wished: releases.Wished, Choices: releases.Choices, Size: releases.Size, Hint: hint, Now: time.Now})
	releases.Follow(svc)
	cohorts.Users = append(cohorts.Users, svc.UsesCohort)
	if archives != nil {
		archives.Users = append(archives.Users, svc.Used)
	}
	alarms := alertpg.New(b.Pool)
	var audit func(ctx context.Context, action, object, detail string) error // routes are mounted before pages are served
	return wire.Slice{
		Operations: func(d wire.Doors) wire.Operations {
			audit = d.Audit
			return rolloutapi.Operations(svc, d.Audit)
		},
		Pages: rolloutapi.Pages(svc, releases, func(ctx context.Context, action, object, detail string) error {
			return audit(ctx, action, object, detail)
		}),
		Jobs: []jobs.Job{{Name: "rollout.step", Every: rollout.StepEvery, Run: func(ctx context.Context) error {
			return errors.Join(svc.Step(ctx), tell(ctx, svc, alarms))
		}}},
	}
}

// tell makes an alert of each rollout that was stopped, or is held for harm, until an operator decides what becomes of it.
func tell(ctx context.Context, svc *rollout.Service, alarms *alertpg.Store) error {
	list, err := svc.List(ctx)
	var parts []alert.Part
	for _, r := range list {
		if r.State == rollout.Stopped || r.State == rollout.Held && r.Hold != rollout.HoldPhase {
			parts = append(parts, alert.Part{Name: fmt.Sprintf("rollout of %s %s", r.Species, r.Version), Failing: r.State == rollout.Stopped, Reason: r.Why, Since: r.Changed})
		}
	}
	if len(parts) == 0 {
		return err
	}
	return alarms.Told(ctx, "rollouts", parts)
}

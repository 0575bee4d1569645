// Package rolloutwire wires the slice of rollouts.
package rolloutwire

import (
	"context"
	"net/http"
	"time"

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

// Fleet tells rollouts what the registry knows about robots.
func Fleet(briefs func(ctx context.Context, f filter.Filter, also []thing.ID) ([]registry.Brief, error)) func(context.Context, filter.Filter, []thing.ID) ([]rollout.Fact, error) {
	return func(ctx context.Context, f filter.Filter, also []thing.ID) ([]rollout.Fact, error) {
		list, err := briefs(ctx, f, also)
		out := make([]rollout.Fact, len(list))
		for i, x := range list {
			out[i] = rollout.Fact{Thing: x.Thing, In: x.In, Running: x.Version, Present: x.Present, Since: x.Since, LowPower: x.Level == "low", Problems: x.Codes}
		}
		return out, err
	}
}

// Wire wires rollouts, by which releases then decide.
func Wire(b wire.Base, robots *registry.Service, releases *ota.Service, hint ota.Hinter) wire.Slice {
	svc := rollout.New(rollout.Config{Store: rolloutpg.New(b.Pool), Fleet: Fleet(robots.Briefs), Known: releases.Known, Hint: hint, Now: time.Now})
	releases.Follow(svc)
	return wire.Slice{
		Routes: wire.Routes(func(mux *http.ServeMux, d wire.Doors) { rolloutapi.Mount(mux, svc, d.Audit, b.Log) }),
		Jobs:   []jobs.Job{{Name: "rollout.step", Every: rollout.StepEvery, Run: svc.Step}},
	}
}

package fleet

import (
	"context"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otapg"
)

// announce lets the present robots of a species hear of a wish for a release.
func announce(b wire.Base, releases *ota.Service, robots *registry.Service) ([]jobs.Job, []jobs.Task) {
	releases.Announce(ota.Crowd{Rounds: otapg.New(b.Pool), Order: b.Orders.Add,
		Present: func(ctx context.Context, species thing.Species, after thing.ID, limit int) ([]thing.ID, error) {
			f, err := filter.Parse("presence:present species:" + string(species))
			if err != nil {
				return nil, err
			}
			p, err := robots.Table(ctx, registry.Selection{Filter: f, After: registry.Place{Sort: registry.ByID, Thing: after}.Cursor(), Limit: limit})
			out := make([]thing.ID, len(p.Things))
			for i := range p.Things {
				out[i] = p.Things[i].ID
			}
			return out, err
		}})
	return []jobs.Job{{Name: "ota.hints", Every: time.Minute, Run: releases.ResumeHints}}, []jobs.Task{{Name: ota.TaskHint, Run: releases.HintSpecies}}
}

// Package fleet wires the slices that are about the fleet as a whole: the registry, cohorts and webhooks.
package fleet

import (
	"context"
	"maps"
	"slices"
	"time"

	"kennel/certs/certspg"
	"kennel/cloud/access"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/cohort/cohortapi"
	"kennel/cloud/fleet/cohort/cohortpg"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/registry/registryapi"
	"kennel/cloud/fleet/registry/registrycerts"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/fleet/webhook/webhookapi"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/preflight/preflightapi"
	"kennel/cloud/preflight/preflightwire"
	"kennel/cloud/wire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/ota"
)

// WireRegistry wires the list of robots. It reads the stores of certificates, owners and accounts: their services need the registry.
func WireRegistry(b wire.Base, docs jdocs.Service, releases *ota.Service, cohorts *cohort.Service) (*registry.Service, wire.Slice, error) {
	store, certificates, owners := registrypg.New(b.Pool, b.Log), certspg.New(b.Pool), ownerpg.New(b.Pool)
	accounts, whose := accountpg.New(b.Pool), owner.NewWhose(owners)
	svc := registry.New(store, store, registry.Sources{
		Certificate: registrycerts.Newest(certificates),
		Docs: func(ctx context.Context, id thing.ID) (map[string]uint64, error) {
			return jdocs.Versions(ctx, docs, id)
		},
		Zone: func(ctx context.Context, id thing.ID) (string, error) { return jdocs.Zone(ctx, docs, id) },
		Owner: func(ctx context.Context, id thing.ID) (time.Time, bool, error) {
			t, err := whose.Tenure(ctx, id)
			if errs.KindOf(err) == errs.NotFound {
				return time.Time{}, false, nil
			}
			return t.Since, err == nil, err
		},
		Release: func(ctx context.Context, id thing.ID) (string, time.Time, error) {
			d, err := releases.Desired(ctx, id)
			return string(d.Release), d.Since, err
		},
		Names: owners.Names, Owners: emails(owners, accounts), Filter: filterSources(cohorts, owners, accounts),
	}, b.Log)
	table := registrycerts.Fleet{Registry: svc, Store: certificates, Log: b.Log}
	s := wire.Slice{
		Operations: func(d wire.Doors) wire.Operations { return registryapi.Operations(svc, d.Audit) },

		Runs: []wire.Run{{Name: "registry", Run: svc.Run}},
		Jobs: []jobs.Job{{Name: "registry.certificates", Every: time.Hour, Run: table.Compare}},
	}
	hints, tasks := announce(b, releases, svc)
	s.Jobs, s.Tasks = append(s.Jobs, hints...), tasks
	if !b.Has(wire.Jobs) {
		return svc, s, nil
	}
	return svc, s, b.Meters.Fleet(store)
}

// maxFound bounds the robots that a person's word finds by what their owners are called or call them.
const maxFound = 1000

// filterSources says who answers filters of the fleet.
func filterSources(cohorts *cohort.Service, owners *ownerpg.Store, accounts *accountpg.Store) filter.Sources {
	return filter.Sources{
		Cohort: cohorts.Filter,
		Named: func(ctx context.Context, texts []string) (map[string][]thing.ID, error) {
			return owners.Named(ctx, texts, maxFound)
		},
		OwnedBy: func(ctx context.Context, text string) ([]thing.ID, error) {
			if err := seesOwners(ctx); err != nil {
				return nil, err
			}
			found, err := accounts.OwnersLike(ctx, text, maxFound)
			if err != nil || len(found) == 0 {
				return nil, err
			}
			return owners.OwnedBy(ctx, found)
		},
	}
}

func seesOwners(ctx context.Context) error {
	if role := auth.CallerFrom(ctx).Role; !access.SeesOwners(role) {
		return errs.New(errs.Denied, "role %s may not look for owners: it needs %s or %s", role, auth.Support, auth.Admin)
	}
	return nil
}

// emails returns the lookup of owners' e-mails: two queries, however many robots it is asked about.
func emails(owners *ownerpg.Store, accounts *accountpg.Store) func(context.Context, []thing.ID) (map[thing.ID]string, error) {
	return func(ctx context.Context, ids []thing.ID) (map[thing.ID]string, error) {
		if err := seesOwners(ctx); err != nil {
			return nil, err
		}
		out, err := owners.Accounts(ctx, ids)
		if err != nil {
			return nil, err
		}
		known, err := accounts.Emails(ctx, slices.Collect(maps.Values(out)))
		for id, account := range out {
			out[id] = known[account]
		}
		return out, err
	}
}

// Cohorts returns the named parts of the fleet, which the registry's filters ask for.
func Cohorts(b wire.Base) *cohort.Service { return cohort.New(cohortpg.New(b.Pool)) }

// Wire wires cohorts, and the checks of the page "Ready for the internet?": slices of the fleet that no other asks.
func Wire(b wire.Base, cohorts *cohort.Service, robots *registry.Service, c ReadyConfig) wire.Slices {
	count := func(ctx context.Context, f filter.Filter) (int, error) {
		n, err := robots.Counts(ctx, f)
		return n.Total, err
	}
	return wire.Slices{
		{Operations: func(d wire.Doors) wire.Operations {
			return cohortapi.Operations(cohorts, cohortapi.Config{Audit: d.Audit, Count: count})
		}},
		preflightwire.Wire(b, c),
	}
}

// Operations lists the operations of the fleet, for their declarations alone.
func Operations() op.List {
	return slices.Concat(
		registryapi.Operations(nil, nil),
		cohortapi.Operations(nil, cohortapi.Config{}),
		webhookapi.Operations(nil, nil),
		preflightapi.Operations(nil),
	)
}

// Package healthwire wires the slice of the fleet's health, and keeps the sums of events that it and the alerts read.
package healthwire

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/vitals/vitalspg"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/metrics"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/cloud/telemetry/health"
	"kennel/cloud/telemetry/health/healthapi"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

const (
	maxRobots = 1_000_000
	lowest    = 5 // robots with the lowest batteries
)

// Wire wires the slice. eventDays is how long events are kept; alarms is told when crashes or faults came.
func Wire(b wire.Base, events *das.Service, eventDays int, robots *registry.Service, cohorts *cohort.Service, alarms *alert.Service) (wire.Slice, error) {
	sums := daspg.Open(b.Pool)
	member := func(ctx context.Context, name string) ([]thing.ID, error) {
		if _, err := cohorts.Get(ctx, name); err != nil {
			return nil, err
		}
		ids, err := robots.Select(ctx, of(name), maxRobots)
		if ids == nil {
			ids = []thing.ID{}
		}
		return ids, err
	}
	svc := &health.Service{Sums: sums, Now: time.Now, Fleet: health.Fleet{Cohort: member, Battery: battery(robots, vitalspg.New(b.Pool)),
		Funnel: funnel(robots, ownerpg.New(b.Pool), jdocspg.New(b.Pool))}}
	crashes, err := b.Meters.Count(telemetry.Metric{Name: "kennel_das_crashes_total", Help: "Crashes that robots reported, by this process's sums."})
	if err != nil {
		return wire.Slice{}, err
	}
	crashes.WithLabelValues() // a rate begins at 0, not at the first event
	roll := func(ctx context.Context) (das.Rolled, error) {
		r, err := sums.Roll(ctx)
		crashes.WithLabelValues().Add(float64(r.Crashes))
		return r, err
	}
	s := wire.Slice{
		Operations: func(wire.Doors) wire.Operations { return healthapi.Operations(svc) },
		Pages:      []page.Extra{healthapi.Page(svc, cohorts.List)},
		Runs: []wire.Run{{Name: "event sums", Role: wire.Jobs, Run: func(ctx context.Context) error {
			failed := func(err error) { b.Log.WarnContext(ctx, "events not summed up", logging.Err, err) }
			return events.KeepSums(ctx, roll, func(ctx context.Context) {
				if err := alarms.LookAtSums(ctx); err != nil && ctx.Err() == nil {
					failed(err)
				}
			}, failed)
		}}},
		Jobs: []jobs.Job{{Name: "das.sums", Every: time.Hour, Run: func(ctx context.Context) error {
			now := time.Now().UTC()
			return sums.ForgetRobots(ctx, now.Add(-das.KeepHours), now.Add(-min(das.KeepDays, time.Duration(eventDays)*das.Day)).Truncate(das.Day), func(ctx context.Context) (map[string][]thing.ID, error) {
				list, err := cohorts.List(ctx)
				if err != nil {
					return nil, err
				}
				return membersOf(ctx, list, member, b.Log)
			})
		}}},
	}
	if !b.Has(wire.Jobs) {
		return s, nil
	}
	return s, observe(b.Meters, sums)
}

// observe shows how many robots were heard of and crashed in a day, and how far the sums are behind.
func observe(tel *metrics.Meters, sums *daspg.Store) error {
	const whole = " Every process with the role jobs reports the whole fleet."
	return errors.Join(
		tel.Asked(telemetry.Metric{Name: "kennel_health_robots", Help: "Robots that sent events in the last 24 hours, and those of them that crashed." + whole}, []string{"state"}, 4*metrics.AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				until := time.Now().UTC().Truncate(das.Hour).Add(das.Hour)
				all, err := sums.Tallies(ctx, das.Slots{Every: das.Hour, Since: until.Add(-das.Day), Until: until, Whole: true})
				n := map[das.Class]int{}
				for _, t := range all {
					n[t.Class] = t.Robots
				}
				return []telemetry.Sample{{Labels: []string{"heard"}, Value: float64(n[das.All])}, {Labels: []string{"crashed"}, Value: float64(n[das.Crash])}}, err
			}),
		tel.Asked(telemetry.Metric{Name: "kennel_das_unsummed_commits", Help: "Commits of events that are not in the sums of the fleet yet." + whole}, nil, metrics.AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				n, err := sums.Unsummed(ctx)
				return []telemetry.Sample{{Value: float64(n)}}, err
			}))
}

// membersOf returns the robots of each cohort; one that cannot be asked is left out, for the others' sake.
func membersOf(ctx context.Context, list []cohort.Cohort, member func(context.Context, string) ([]thing.ID, error), log *slog.Logger) (map[string][]thing.ID, error) {
	out := map[string][]thing.ID{}
	for _, c := range list {
		ids, err := member(ctx, c.Name)
		switch kind := errs.KindOf(err); {
		case err == nil:
			out[c.Name] = ids
		case kind == errs.NotFound || kind == errs.Invalid || kind == errs.Exhausted:
			log.WarnContext(ctx, "sums of a cohort missing for expired days", "cohort", c.Name, logging.Err, err)
		default:
			return nil, err
		}
	}
	return out, nil
}

// of is the filter of a cohort; "" is the whole fleet.
func of(cohort string) filter.Filter {
	if cohort == "" {
		return filter.Filter{}
	}
	return filter.MustParse(string(filter.Cohort) + ":" + cohort) // its name was found
}

func battery(robots *registry.Service, curves *vitalspg.Store) func(context.Context, string, []thing.ID) (health.Battery, error) {
	return func(ctx context.Context, cohort string, things []thing.ID) (out health.Battery, err error) {
		counts, err := robots.Counts(ctx, of(cohort))
		if err != nil {
			return out, err
		}
		out.Levels, out.Lowest = []health.Count{}, []health.Lowest{}
		for _, l := range counts.Battery {
			out.Levels = append(out.Levels, health.Count{Name: l.Value, Robots: l.Count})
		}
		ids, volts, err := curves.Lowest(ctx, time.Now().Add(-24*time.Hour), things, lowest)
		for i, id := range ids {
			out.Lowest = append(out.Lowest, health.Lowest{Thing: id, Volts: volts[i]})
		}
		return out, err
	}
}

func funnel(robots *registry.Service, owners *ownerpg.Store, docs *jdocspg.Store) func(context.Context, string, []thing.ID) ([]health.Count, error) {
	return func(ctx context.Context, cohort string, things []thing.ID) ([]health.Count, error) {
		f := of(cohort)
		if things == nil {
			var err error
			if things, err = robots.Select(ctx, f, maxRobots); err != nil {
				return nil, err
			}
		}
		never, err := filter.Of(filter.Presence, filter.Never)
		if err != nil {
			return nil, err
		}
		never.Not = true
		online, err := robots.Counts(ctx, f.With(never))
		if err != nil {
			return nil, err
		}
		claimed, err := owners.Owned(ctx, things)
		if err != nil {
			return nil, err
		}
		set, err := docs.Having(ctx, jdocs.Settings(), things)
		return []health.Count{{Name: "registered", Robots: len(things)}, {Name: "claimed by an owner", Robots: claimed},
			{Name: "online at least once", Robots: online.Total}, {Name: "with settings", Robots: set}}, err
	}
}

// Package alertwire wires the slice of alerts, and the metrics of problems.
package alertwire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/mail/mailpg"
	"kennel/cloud/metrics"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertapi"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/cloud/wire"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/telemetry"
)

// Wire wires what notices that many robots of one release have the same problem, and that parts of this process need attention.
func Wire(b wire.Base, robots *registry.Service, parts func(context.Context) []alert.Part) (*alert.Service, wire.Slice, error) {
	store, fleet := alertpg.New(b.Pool), registrypg.New(b.Pool, b.Log)
	svc := alert.New(store, fleet.ProblemsByRelease)
	svc.Presence, svc.History, svc.Desk = fleet, store, store
	svc.Sums, svc.Mail = daspg.Open(b.Pool), mail.Queue{Outbox: mailpg.New(b.Pool, b.Orders)}
	s := wire.Slice{
		Operations: func(d wire.Doors) wire.Operations { return alertapi.Operations(svc, d.Audit) },
		Jobs:       []jobs.Job{{Name: "alert.look", Every: alert.LookEvery, Run: svc.Look}},
		Runs: []wire.Run{{Name: "alerts of parts", Run: func(ctx context.Context) error {
			return svc.Watch(ctx, place(b.Roles), parts, func(err error) { b.Log.WarnContext(ctx, "alerts of parts not stored", logging.Err, err) })
		}}},
	}
	if !b.Has(wire.Jobs) {
		return svc, s, nil
	}
	return svc, s, observe(b.Meters, svc, robots.Counts)
}

// observe shows problems by kind and how many alerts fire. Kinds that this release does not know
// count as other, so that no robot makes series.
func observe(tel *metrics.Meters, svc *alert.Service, counts func(context.Context, filter.Filter) (registry.Counts, error)) error {
	const whole = " Every process with the role jobs reports the whole fleet."
	return errors.Join(
		tel.Asked(telemetry.Metric{Name: "kennel_registry_problems", Help: "Present robots by kind of problem; one robot may have several." + whole}, []string{"kind"}, metrics.AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				n, err := counts(ctx, filter.MustParse("presence:present"))
				if err != nil {
					return nil, err
				}
				robots := map[string]int{}
				for _, b := range n.Problem {
					kind := b.Value
					if !slices.Contains(status.Kinds, kind) {
						kind = status.KindOther
					}
					robots[kind] += b.Count
				}
				var out []telemetry.Sample
				for _, kind := range status.Kinds { // none is a number too
					out = append(out, telemetry.Sample{Labels: []string{kind}, Value: float64(robots[kind])})
				}
				return out, nil
			}),
		tel.Asked(telemetry.Metric{Name: "kennel_alert_firing_alerts", Help: "Alerts that fire: many robots of one release have the same problem, or a part of the cloud needs attention." + whole}, nil, metrics.AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				list, err := svc.Alerts(ctx)
				firing := 0
				for _, a := range list {
					if a.Resolved == nil {
						firing++
					}
				}
				return []telemetry.Sample{{Value: float64(firing)}}, err
			}),
	)
}

// place names this process for people: its machine, and its roles where processes have different ones.
func place(roles []wire.Role) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s (%s)", host, errs.List(roles))
}

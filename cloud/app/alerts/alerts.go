// Package alerts wires the slice of alerts, and the metrics of problems.
package alerts

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/alert"
	"kennel/cloud/alert/alertapi"
	"kennel/cloud/alert/alertpg"
	"kennel/cloud/registry"
	"kennel/cloud/registry/filter"
	"kennel/infra/api/status"
	"kennel/infra/jobs"
	"kennel/infra/telemetry"
)

// Slice notices that many robots of one release have the same problem.
type Slice struct {
	*alert.Service
	audit func(ctx context.Context, action, object, detail string) error
	log   *slog.Logger
}

// Wire returns the slice. count counts present robots by release and problem.
func Wire(pool *pgxpool.Pool, count func(ctx context.Context, atLeast int) ([]registry.ProblemCount, error),
	audit func(ctx context.Context, action, object, detail string) error, log *slog.Logger) Slice {
	return Slice{alert.New(alertpg.New(pool), count), audit, log}
}

// Mount adds the endpoints.
func (s Slice) Mount(mux *http.ServeMux) { alertapi.Mount(mux, s.Service, s.audit, s.log) }

// Jobs lists the periodic tasks.
func (s Slice) Jobs() []jobs.Job {
	return []jobs.Job{{Name: "alert.look", Every: alert.LookEvery, Run: s.Look}}
}

// Observe shows problems by kind and how many alerts fire; each is asked for at most every period. Kinds that this release does not know
// count as other, so that no robot makes series.
func (s Slice) Observe(tel *telemetry.Telemetry, every time.Duration, counts func(context.Context, filter.Filter) (registry.Counts, error)) error {
	const whole = " Every process with the role jobs reports the whole fleet."
	return errors.Join(
		tel.Asked(telemetry.Metric{Name: "kennel_registry_problems", Help: "Present robots by kind of problem; one robot may have several." + whole}, []string{"kind"}, every,
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
		tel.Asked(telemetry.Metric{Name: "kennel_alert_firing_alerts", Help: "Alerts that fire: many robots of one release have the same problem." + whole}, nil, every,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				list, err := s.Alerts(ctx)
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

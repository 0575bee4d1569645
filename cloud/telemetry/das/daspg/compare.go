package daspg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
)

// Experiments implements das.Reader.
func (s *Store) Experiments(ctx context.Context, since time.Time) (out []das.Experiment, err error) {
	err = s.ask(ctx, askTime, `SELECT s1, coalesce(s2, ''), count(DISTINCT thing), array_agg(DISTINCT s3) FILTER (WHERE s3 IS NOT NULL), max(received) FROM das_event
		WHERE event IN ('experiment.assigned', 'experiment.ended') AND event = 'experiment.assigned' AND s1 IS NOT NULL AND received >= $1 GROUP BY 1, 2 ORDER BY 1, 2`,
		[]any{since}, func(rows pgx.Rows) error {
			var key string
			var v das.Variation
			var files []string
			var last time.Time
			_, err := pgx.ForEachRow(rows, []any{&key, &v.Variation, &v.Robots, &files, &last}, func() error {
				if n := len(out); n == 0 || out[n-1].Key != key {
					out = append(out, das.Experiment{Key: key, Files: []string{}})
				}
				e := &out[len(out)-1]
				e.Variations, e.Files = append(e.Variations, v), append(e.Files, files...)
				slices.Sort(e.Files)
				e.Files = slices.Compact(e.Files)
				if last.After(e.Last) {
					e.Last = last.UTC()
				}
				return nil
			})
			return err
		})
	return out, err
}

// Arms implements das.Reader. A robot takes part from when it first told of its variation until it said that it has ended.
func (s *Store) Arms(ctx context.Context, q das.CompareQuery) (out []das.Arm, changed int, err error) {
	value := "count(e.seq)::float8 / d.days"
	if slices.Contains(events.Fields[4:], q.Of) {
		value = "avg(e." + q.Of + ")::float8"
	}
	err = s.ask(ctx, askTime, `
		WITH told AS (
			SELECT thing, min(s2) AS variation, count(DISTINCT s2) AS variations, min(received) FILTER (WHERE event = 'experiment.assigned') AS first,
				max(received) FILTER (WHERE event = 'experiment.assigned') AS last, max(received) FILTER (WHERE event = 'experiment.ended') AS ended
			FROM das_event WHERE event IN ('experiment.assigned', 'experiment.ended') AND s1 = $1 AND s2 IS NOT NULL AND received < $3 GROUP BY thing
		), part AS (
			SELECT thing, variation, greatest(first, $2) AS since, CASE WHEN ended > last THEN ended ELSE $3 END AS until FROM told WHERE variations = 1 AND first IS NOT NULL
		), d AS (
			SELECT p.thing, p.variation, p.since, p.until, count(DISTINCT r.at) AS days
			FROM part AS p JOIN das_robot AS r ON r.every = 86400 AND r.thing = p.thing COLLATE "C" AND r.class = ''
				AND r.at >= date_trunc('day', $2::timestamptz) AND r.at < $3 AND r.at >= date_trunc('day', p.since) AND r.at < p.until
			GROUP BY 1, 2, 3, 4
		), v AS (
			SELECT d.variation, d.days, count(e.seq) AS n, `+value+` AS x
			FROM d LEFT JOIN das_event AS e ON e.thing = d.thing AND e.event = $4 AND e.received >= $2 AND e.received < $3 AND e.received >= d.since AND e.received < d.until
			GROUP BY d.thing, d.variation, d.days
		)
		SELECT variation, count(x), coalesce(sum(days), 0)::bigint, coalesce(sum(n), 0)::bigint, coalesce(avg(x), 0)::float8, coalesce(var_samp(x), 0)::float8 FROM v GROUP BY 1
		UNION ALL SELECT NULL, count(*), 0, 0, 0, 0 FROM told WHERE variations > 1 AND last >= $2
		ORDER BY 1`, []any{q.Key, q.Since, q.Until, q.Name}, func(rows pgx.Rows) error {
		var a das.Arm
		var variation pgtype.Text
		_, err := pgx.ForEachRow(rows, []any{&variation, &a.Robots, &a.Days, &a.Events, &a.Mean, &a.Variance}, func() error {
			if a.Variation = variation.String; variation.Valid {
				out = append(out, a)
			} else {
				changed = a.Robots
			}
			return nil
		})
		return err
	})
	return out, changed, err
}

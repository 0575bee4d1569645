package registrypg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/fleet/registry"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// SpeciesCount is how many things of one species are present, are absent, and call.
type SpeciesCount struct {
	Species                thing.Species
	Present, Absent, Calls int
}

// CountBySpecies counts the fleet by species, those that it has.
func (s *Store) CountBySpecies(ctx context.Context) ([]SpeciesCount, error) {
	rows, err := s.pool.Query(ctx, `SELECT split_part(thing, ':', 1), count(*) FILTER (WHERE present), count(*) FILTER (WHERE NOT present AND (since IS NOT NULL OR last_seen IS NULL)),
			count(*) FILTER (WHERE NOT present AND since IS NULL AND last_seen IS NOT NULL)
		FROM registry_thing GROUP BY 1 ORDER BY 1`)
	if err != nil {
		return nil, pg.Wrap(err, "count things by species")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SpeciesCount])
	return out, pg.Wrap(err, "count things by species")
}

// ProblemsByRelease counts present robots by release and problem, the most first, leaving out what fewer than atLeast have.
func (s *Store) ProblemsByRelease(ctx context.Context, atLeast int) ([]registry.ProblemCount, error) {
	rows, err := s.pool.Query(ctx, `
		WITH ill AS MATERIALIZED (SELECT species, os, code, count(*) AS n FROM registry_facet, registry_distinct(codes) AS code WHERE present AND codes <> '{}' GROUP BY 1, 2, 3),
			whole AS MATERIALIZED (SELECT species, os, count(*) AS n FROM registry_facet WHERE present GROUP BY 1, 2)
		SELECT os, split_part(code, '/', 1), split_part(code, '/', 2), sum(n)::int, (SELECT sum(n) FROM whole WHERE os = i.os)::int,
			coalesce((SELECT sum(n) FROM ill WHERE code = i.code AND os <> i.os AND species = ANY (array_agg(i.species))), 0)::int,
			coalesce((SELECT sum(n) FROM whole WHERE os <> i.os AND species = ANY (array_agg(i.species))), 0)::int
		FROM ill AS i GROUP BY os, code HAVING sum(n) >= $1 ORDER BY 4 DESC, os, code LIMIT $2`, atLeast, registry.MaxLimit)
	if err != nil {
		return nil, pg.Wrap(err, "count problems by release")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[registry.ProblemCount])
	return out, pg.Wrap(err, "count problems by release")
}

// Gone implements alert.Presence.
func (s *Store) Gone(ctx context.Context, within, grace time.Duration, since map[string]time.Time) ([]registry.Gone, error) {
	releases, times := make([]string, 0, len(since)), make([]time.Time, 0, len(since))
	for release, at := range since {
		releases, times = append(releases, release), append(times, at)
	}
	rows, err := s.pool.Query(ctx, `SELECT species, os, sum(present)::int, sum(gone)::int, sum(long)::int FROM (
			SELECT species, os, count(*) AS present, 0 AS gone, 0 AS long FROM registry_facet WHERE present GROUP BY 1, 2
			UNION ALL SELECT species, os, 0, count(*) FILTER (WHERE f.since > clock_timestamp() - $1::interval AND f.since <= clock_timestamp() - $2::interval), count(*) FILTER (WHERE f.since BETWEEN q.at - $1::interval AND q.at + $1::interval)
				FROM registry_facet AS f LEFT JOIN unnest($3::text[], $4::timestamptz[]) AS q (release, at) ON q.release COLLATE "C" = f.os
				WHERE NOT present AND f.since > clock_timestamp() - interval '2 days' GROUP BY 1, 2) AS g GROUP BY 1, 2 ORDER BY 1, 2`, within, grace, releases, times)
	if err != nil {
		return nil, pg.Wrap(err, "count robots that went offline")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[registry.Gone])
	return out, pg.Wrap(err, "count robots that went offline")
}

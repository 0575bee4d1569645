package registrypg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/registry"
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
		SELECT os, split_part(code, '/', 1), split_part(code, '/', 2), ill.n, whole.n
		FROM (SELECT os, code, count(*) AS n FROM registry_facet, registry_distinct(codes) AS code WHERE present AND codes <> '{}'
			GROUP BY os, code HAVING count(*) >= $1) AS ill
		JOIN (SELECT os, count(*) AS n FROM registry_facet WHERE present GROUP BY os) AS whole USING (os)
		ORDER BY ill.n DESC, os, code LIMIT $2`, atLeast, registry.MaxLimit)
	if err != nil {
		return nil, pg.Wrap(err, "count problems by release")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[registry.ProblemCount])
	return out, pg.Wrap(err, "count problems by release")
}

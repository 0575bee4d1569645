package registrypg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"kennel/infra/thing"
)

// SpeciesCount is how many things of one species are present and absent.
type SpeciesCount struct {
	Species         thing.Species
	Present, Absent int
}

// CountBySpecies counts the fleet by species, those that it has.
func (s *Store) CountBySpecies(ctx context.Context) ([]SpeciesCount, error) {
	rows, err := s.pool.Query(ctx, `SELECT split_part(thing, ':', 1), count(*) FILTER (WHERE present), count(*) FILTER (WHERE NOT present)
		FROM registry_thing GROUP BY 1 ORDER BY 1`)
	if err != nil {
		return nil, wrap(err, "count things by species")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SpeciesCount])
	return out, wrap(err, "count things by species")
}

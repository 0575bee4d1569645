// Package originalspg keeps the turn of the self-test in Postgres: table originals_turn, which has one row or none.
package originalspg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg"
)

// Store is originals.Turns. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Begin implements originals.Turns.
func (s *Store) Begin(ctx context.Context, length time.Duration) (wait time.Duration, err error) {
	err = s.pool.QueryRow(ctx, `
		WITH mine AS (
			INSERT INTO originals_turn AS t (ends) VALUES (clock_timestamp() + $1::interval)
			ON CONFLICT (one) DO UPDATE SET ends = excluded.ends WHERE t.ends <= clock_timestamp()
			RETURNING ends)
		SELECT CASE WHEN EXISTS (SELECT FROM mine) THEN interval '0'
			ELSE greatest(interval '1 second', coalesce((SELECT max(ends) FROM originals_turn), clock_timestamp()) - clock_timestamp()) END`, length).Scan(&wait)
	return wait, pg.Wrap(err, "start self-test")
}

// End implements originals.Turns.
func (s *Store) End(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM originals_turn`)
	return pg.Wrap(err, "end self-test")
}

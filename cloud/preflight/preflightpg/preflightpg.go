// Package preflightpg keeps in Postgres when something last worked and when it last did not: table ready_record.
package preflightpg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/preflight"
	"kennel/infra/pg"
)

// Store is preflight.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Record implements preflight.Store.
func (s *Store) Record(ctx context.Context, r preflight.Record) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO ready_record AS old (kind, ok, at, says, report) VALUES ($1, $2, $3, $4, coalesce($5, 'null'::jsonb))
		ON CONFLICT (kind, ok) DO UPDATE SET at = excluded.at, says = excluded.says, report = excluded.report WHERE old.at < excluded.at`,
		r.Kind, r.OK, r.At, r.Says, r.Report)
	return pg.Wrap(err, "record "+string(r.Kind))
}

// Last implements preflight.Store.
func (s *Store) Last(ctx context.Context, k preflight.Kind) (last preflight.Last, err error) {
	rows, err := s.pool.Query(ctx, `SELECT ok, at, says, report FROM ready_record WHERE kind = $1`, k)
	if err != nil {
		return last, pg.Wrap(err, "read records of "+string(k))
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (preflight.Record, error) {
		r := preflight.Record{Kind: k}
		return r, row.Scan(&r.OK, &r.At, &r.Says, &r.Report)
	})
	for _, r := range all {
		if r.OK {
			last.Good = r
		} else {
			last.Bad = r
		}
	}
	return last, pg.Wrap(err, "read records of "+string(k))
}

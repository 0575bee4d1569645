// Package doorpg keeps strangers at the port of original robots in Postgres: table door_stranger.
package doorpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/originals/door"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store is door.Store. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

const columns = `addr, step, code, claim, detail, version, first, last, times`

// Add implements door.Store.
func (s *Store) Add(ctx context.Context, all []door.Stranger) error {
	n := len(all)
	addrs, steps, codes, claims := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	details, versions := make([]string, n), make([]string, n)
	firsts, lasts, times := make([]time.Time, n), make([]time.Time, n), make([]int64, n)
	for i, x := range all {
		addrs[i], steps[i], codes[i], claims[i] = x.Addr, x.Step, x.Code, string(x.Claim)
		details[i], versions[i], firsts[i], lasts[i], times[i] = x.Detail, x.Version, x.First, x.Last, x.Times
	}
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`INSERT INTO door_stranger AS o (`+columns+`)
			SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::bigint[])
				AS n (`+columns+`) ORDER BY addr, step, code, claim
			ON CONFLICT (addr, step, code, claim) DO UPDATE SET detail = excluded.detail, version = excluded.version,
				last = greatest(o.last, excluded.last), times = o.times + excluded.times`, addrs, steps, codes, claims, details, versions, firsts, lasts, times)
		b.Queue(`DELETE FROM door_stranger WHERE last < clock_timestamp() - $1::interval`, door.KeepFor)
		b.Queue(`DELETE FROM door_stranger WHERE (addr, step, code, claim) IN (
			SELECT addr, step, code, claim FROM door_stranger ORDER BY last DESC OFFSET $1)`, door.MaxStrangers)
		return tx.SendBatch(ctx, b).Close()
	})
	return pg.Wrap(err, "store strangers")
}

// Take implements door.Store.
func (s *Store) Take(ctx context.Context, addr string, id thing.ID, since time.Time) ([]door.Stranger, error) {
	rows, err := s.pool.Query(ctx, `DELETE FROM door_stranger WHERE addr = $1 AND claim IN ('', $2) AND last >= $3 RETURNING `+columns, addr, id, since)
	return collect(rows, err)
}

// Strangers implements door.Store. A robot of the fleet has its refusals on its own page.
func (s *Store) Strangers(ctx context.Context) ([]door.Stranger, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM door_stranger AS o
		WHERE NOT EXISTS (SELECT FROM registry_thing AS t WHERE t.thing = o.claim) ORDER BY last DESC, addr`)
	return collect(rows, err)
}

func collect(rows pgx.Rows, err error) ([]door.Stranger, error) {
	if err != nil {
		return nil, pg.Wrap(err, "strangers")
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x door.Stranger, err error) {
		return x, row.Scan(&x.Addr, &x.Step, &x.Code, &x.Claim, &x.Detail, &x.Version, &x.First, &x.Last, &x.Times)
	})
	return out, pg.Wrap(err, "strangers")
}

// Package stspg counts in Postgres what robots upload, so that a robot's day has one limit however many processes it meets. A robot has one
// row, of its latest day by the database's clock.
package stspg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Usage implements stsapi.Usage. Safe for concurrent use.
type Usage struct {
	pool  *pgxpool.Pool
	table string
}

// New returns a Usage on the pool's database.
func New(pool *pgxpool.Pool) *Usage { return NewOf(pool, "sts_usage") }

// NewOf returns a Usage of something else than uploads, on a table like sts_usage.
func NewOf(pool *pgxpool.Pool, table string) *Usage {
	return &Usage{pool, pgx.Identifier{table}.Sanitize()}
}

// Reserve takes n bytes of what a robot may upload today and returns the day, or refuses (Exhausted) if that is more than limit.
func (u *Usage) Reserve(ctx context.Context, id thing.ID, n, limit int64) (day time.Time, err error) {
	if n > limit {
		return time.Time{}, exhausted(id, limit)
	}
	err = u.pool.QueryRow(ctx, `
		INSERT INTO `+u.table+` AS u (thing, day, bytes) VALUES ($1, (clock_timestamp() AT TIME ZONE 'UTC')::date, $2)
		ON CONFLICT (thing) DO UPDATE SET day = EXCLUDED.day, bytes = EXCLUDED.bytes + CASE WHEN u.day = EXCLUDED.day THEN u.bytes ELSE 0 END
		WHERE EXCLUDED.bytes + CASE WHEN u.day = EXCLUDED.day THEN u.bytes ELSE 0 END <= $3
		RETURNING day`, string(id), n, limit).Scan(&day)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, exhausted(id, limit)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("reserve upload of %s: %w", id, pg.Err(err))
	}
	return day, nil
}

func exhausted(id thing.ID, limit int64) error {
	return errs.Coded(errs.Exhausted, "upload_quota", "%s has uploaded its %d bytes of today", id, limit)
}

// Add adds bytes to the days of robots whatever they sent before, and returns what each has sent today.
func (u *Usage) Add(ctx context.Context, sent map[thing.ID]int64) (map[thing.ID]int64, error) {
	ids := slices.Sorted(maps.Keys(sent)) // the order in which every process locks the rows
	bytes := make([]int64, len(ids))
	for i, id := range ids {
		bytes[i] = sent[id]
	}
	today := make(map[thing.ID]int64, len(ids))
	rows, err := u.pool.Query(ctx, `
		INSERT INTO `+u.table+` AS u (thing, day, bytes)
		SELECT s.thing, (clock_timestamp() AT TIME ZONE 'UTC')::date, s.bytes FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS s (thing, bytes, n) ORDER BY s.n
		ON CONFLICT (thing) DO UPDATE SET day = EXCLUDED.day, bytes = EXCLUDED.bytes + CASE WHEN u.day = EXCLUDED.day THEN u.bytes ELSE 0 END
		RETURNING thing, bytes`, ids, bytes)
	if err != nil {
		return nil, fmt.Errorf("count bytes of %d robots: %w", len(ids), pg.Err(err))
	}
	var id thing.ID
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { today[id] = n; return nil }); err != nil {
		return nil, fmt.Errorf("count bytes of %d robots: %w", len(ids), pg.Err(err))
	}
	return today, nil
}

// Release gives back what was not uploaded after all.
func (u *Usage) Release(ctx context.Context, id thing.ID, day time.Time, n int64) error {
	if _, err := u.pool.Exec(ctx, `UPDATE `+u.table+` SET bytes = greatest(bytes - $3, 0) WHERE thing = $1 AND day = $2`, string(id), day, n); err != nil {
		return fmt.Errorf("release upload of %s: %w", id, pg.Err(err))
	}
	return nil
}

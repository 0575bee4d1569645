// Package vitalspg keeps in Postgres how robots were.
package vitalspg

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/vitals"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store implements vitals.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a Store on the pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// perStatement bounds the rows of one statement: a lock is held for that long.
const perStatement = 2000

func (s *Store) Add(ctx context.Context, g vitals.Grain, samples []vitals.Sample) error {
	// One order for all processes: two that write the same slots never wait for one another in a circle.
	samples = slices.SortedFunc(slices.Values(samples), func(a, b vitals.Sample) int {
		return cmp.Or(cmp.Compare(a.Thing, b.Thing), a.At.Compare(b.At))
	})
	for part := range slices.Chunk(samples, perStatement) {
		n := len(part)
		things, ats, problems := make([]string, n), make([]time.Time, n), make([]int32, n)
		volts, low, temperature, late := make([]*float64, n), make([]*float64, n), make([]*float64, n), make([]*float64, n)
		for i, p := range part {
			things[i], ats[i], problems[i] = string(p.Thing), p.At, int32(min(p.Problems, 1000))
			volts[i], low[i], temperature[i], late[i] = p.Volts, p.Low, p.Temperature, p.LateP99
		}
		if _, err := s.pool.Exec(ctx, `
			INSERT INTO vitals_sample AS v (thing, every, at, volts, low, temperature, late_p99, problems)
			SELECT thing, $1, at, volts, low, temperature, late_p99, problems
			FROM unnest($2::text[], $3::timestamptz[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::int[]) AS n (thing, at, volts, low, temperature, late_p99, problems)
			ON CONFLICT (thing, every, at) DO UPDATE SET volts = coalesce(EXCLUDED.volts, v.volts), low = least(v.low, EXCLUDED.low),
				temperature = greatest(v.temperature, EXCLUDED.temperature), late_p99 = greatest(v.late_p99, EXCLUDED.late_p99), problems = greatest(v.problems, EXCLUDED.problems)`,
			int(g.Every/time.Second), things, ats, volts, low, temperature, late, problems); err != nil {
			return fmt.Errorf("write samples: %w", pg.Err(err))
		}
	}
	return nil
}

// List returns the samples of one robot within from to to, oldest first.
func (s *Store) List(ctx context.Context, id thing.ID, g vitals.Grain, from, to time.Time) ([]vitals.Sample, error) {
	rows, err := s.pool.Query(ctx, `SELECT at, volts, low, temperature, late_p99, problems FROM vitals_sample
		WHERE thing = $1 AND every = $2 AND at >= $3 AND at < $4 ORDER BY at`, string(id), int(g.Every/time.Second), from.UTC().Truncate(g.Every), to)
	if err != nil {
		return nil, fmt.Errorf("samples of %s: %w", id, pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (vitals.Sample, error) {
		x := vitals.Sample{Thing: id}
		err := row.Scan(&x.At, &x.Volts, &x.Low, &x.Temperature, &x.LateP99, &x.Problems)
		return x, err
	})
	if err != nil {
		return nil, fmt.Errorf("samples of %s: %w", id, pg.Err(err))
	}
	return out, nil
}

// Lowest returns the robots with the lowest voltages since a time, at most limit; of some robots, or of all if things is nil.
func (s *Store) Lowest(ctx context.Context, since time.Time, things []thing.ID, limit int) (ids []thing.ID, volts []float64, err error) {
	rows, err := s.pool.Query(ctx, `SELECT thing, min(low) FROM vitals_sample WHERE every = $1 AND at >= $2 AND low IS NOT NULL AND ($3::text[] IS NULL OR thing IN (SELECT unnest($3::text[])))
		GROUP BY thing ORDER BY 2, 1 LIMIT $4`, int(vitals.Coarse.Every/time.Second), since, things, limit)
	if err != nil {
		return nil, nil, pg.Wrap(err, "lowest voltages")
	}
	var id thing.ID
	var v float64
	_, err = pgx.ForEachRow(rows, []any{&id, &v}, func() error { ids, volts = append(ids, id), append(volts, v); return nil })
	return ids, volts, pg.Wrap(err, "lowest voltages")
}

// Forget removes samples that are older than their grain keeps.
func (s *Store) Forget(ctx context.Context) error {
	for _, g := range vitals.Grains {
		if _, err := s.pool.Exec(ctx, `DELETE FROM vitals_sample WHERE every = $1 AND at < clock_timestamp() - $2::interval`, int(g.Every/time.Second), g.Keep); err != nil {
			return fmt.Errorf("forget samples: %w", pg.Err(err))
		}
	}
	return nil
}

// Erase removes the samples of a stretch of time of one robot, and returns how many. A robot has some thousand rows at most.
func (s *Store) Erase(ctx context.Context, of thing.Stretch) (n int, err error) {
	for _, g := range vitals.Grains {
		tag, err := s.pool.Exec(ctx, `DELETE FROM vitals_sample WHERE thing = $1 AND every = $2 AND at >= $3 AND at < $4`,
			string(of.Thing), int(g.Every/time.Second), of.Since.UTC().Truncate(g.Every), of.Until)
		if err != nil {
			return n, fmt.Errorf("erase samples of %s: %w", of.Thing, pg.Err(err))
		}
		n += int(tag.RowsAffected())
	}
	return n, nil
}

// Package cohortpg keeps cohorts in Postgres: table cohort_saved (migration 0032).
package cohortpg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/pg"
)

// Store is cohort.Store on a pool that others may use too. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

var _ cohort.Store = (*Store)(nil)

const columns = `name, filter, note, by_whom, created, changed, rev`

func scan(row pgx.CollectableRow) (c cohort.Cohort, err error) {
	var text string
	if err := row.Scan(&c.Name, &text, &c.Note, &c.By, &c.Created, &c.Changed, &c.Rev); err != nil {
		return c, err
	}
	if c.Filter, err = filter.Parse(text); err != nil {
		return c, fmt.Errorf("stored cohort %s: %w", c.Name, err)
	}
	return c, nil
}

// List returns all.
func (s *Store) List(ctx context.Context) ([]cohort.Cohort, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM cohort_saved ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list cohorts: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list cohorts: %w", pg.Err(err))
	}
	return out, nil
}

// Get returns one.
func (s *Store) Get(ctx context.Context, name string) (cohort.Cohort, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM cohort_saved WHERE name = $1`, name)
	if err != nil {
		return cohort.Cohort{}, fmt.Errorf("cohort %s: %w", name, pg.Err(err))
	}
	c, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return cohort.Cohort{}, unknown(name)
	}
	if err != nil {
		return cohort.Cohort{}, fmt.Errorf("cohort %s: %w", name, pg.Err(err))
	}
	return c, nil
}

func unknown(name string) error {
	return errs.Coded(errs.NotFound, "no_cohort", "there is no cohort %s", name)
}

// Put keeps one.
func (s *Store) Put(ctx context.Context, c cohort.Cohort, rev int64) (out cohort.Cohort, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var old int64
		err := tx.QueryRow(ctx, `SELECT rev FROM cohort_saved WHERE name = $1 FOR UPDATE`, c.Name).Scan(&old)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		switch {
		case rev == cohort.Fresh && old != 0:
			return errs.Coded(errs.Conflict, "cohort_exists", "cohort %s already exists", c.Name)
		case rev > 0 && old == 0:
			return unknown(c.Name)
		case rev > 0 && old != rev:
			return errs.Coded(errs.Conflict, "stale", "cohort %s has changed: it is at revision %d, not %d", c.Name, old, rev)
		}
		if old == 0 {
			var n int
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM cohort_saved`).Scan(&n); err != nil {
				return err
			}
			if n >= cohort.Max {
				return errs.New(errs.Exhausted, "cohort limit reached (%d)", n)
			}
		}
		// Two who make it at once: the second waits for the first, and then finds it.
		rows, err := tx.Query(ctx, `
			INSERT INTO cohort_saved AS c (name, filter, note, by_whom) VALUES ($1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET filter = excluded.filter, note = excluded.note, by_whom = excluded.by_whom,
				changed = clock_timestamp(), rev = c.rev + 1
			WHERE $5::bigint <> 0 RETURNING `+columns, c.Name, c.Filter.String(), c.Note, c.By, rev)
		if err != nil {
			return err
		}
		out, err = pgx.CollectExactlyOneRow(rows, scan)
		if errors.Is(err, pgx.ErrNoRows) {
			return errs.Coded(errs.Conflict, "cohort_exists", "cohort %s already exists", c.Name)
		}
		return err
	})
	if err != nil {
		return cohort.Cohort{}, fmt.Errorf("store cohort %s: %w", c.Name, err)
	}
	return out, nil
}

// Delete removes one.
func (s *Store) Delete(ctx context.Context, name string) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM cohort_saved WHERE name = $1`, name)
	switch {
	case err != nil:
		return fmt.Errorf("cohort %s: %w", name, pg.Err(err))
	case tag.RowsAffected() == 0:
		return unknown(name)
	}
	return nil
}

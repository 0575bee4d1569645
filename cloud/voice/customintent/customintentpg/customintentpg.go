// Package customintentpg keeps custom intents in Postgres.
package customintentpg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/voice/customintent"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/speech/intent"
)

// Store implements customintent.Store.
type Store struct{ pool *pgxpool.Pool }

// New returns a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// List implements customintent.Store.
func (s *Store) List(ctx context.Context) ([]customintent.Custom, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, thing, name, phrases, languages, reaction, overrides, created, by_whom FROM intent_custom ORDER BY thing = '', thing, name`)
	if err != nil {
		return nil, pg.Wrap(err, "list custom intents")
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c customintent.Custom, err error) {
		err = row.Scan(&c.ID, &c.Thing, &c.Name, &c.Phrases, &c.Languages, &c.Reaction, &c.Overrides, &c.Created, &c.By)
		return c, err
	})
	return out, pg.Wrap(err, "list custom intents")
}

// Add implements customintent.Store.
func (s *Store) Add(ctx context.Context, c customintent.Custom) (customintent.Custom, error) {
	err := s.pool.QueryRow(ctx, `INSERT INTO intent_custom (thing, name, phrases, languages, reaction, overrides, created, by_whom)
		SELECT $1, $2, $3, coalesce($4, '{}'::text[]), $5, coalesce($6, '{}'::text[]), $7, $8
		WHERE (SELECT count(*) FROM intent_custom) < $9 AND (SELECT count(*) FROM intent_custom WHERE thing = $1) < $10 RETURNING id, created`,
		c.Thing, c.Name, c.Phrases, c.Languages, c.Reaction, c.Overrides, c.Created, c.By, customintent.MaxAll, intent.MaxCustoms).Scan(&c.ID, &c.Created)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c, errs.New(errs.Exhausted, "custom intent limit reached (%d, and %d in all)", intent.MaxCustoms, customintent.MaxAll)
	case errors.As(err, &refused) && refused.ConstraintName == "intent_custom_name":
		return c, errs.New(errs.Conflict, "custom intent %s already exists", c.Name)
	}
	return c, pg.Wrap(err, "add custom intent")
}

// Drop implements customintent.Store.
func (s *Store) Drop(ctx context.Context, id int64) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM intent_custom WHERE id = $1`, id)
	if err == nil && tag.RowsAffected() == 0 {
		return customintent.Missing(id)
	}
	return pg.Wrap(err, "remove custom intent")
}

// Fired implements customintent.Store.
func (s *Store) Fired(ctx context.Context, id thing.ID, name string, params map[string]string) error {
	_, err := s.pool.Exec(ctx, `SELECT webhook_note('intent.custom', $1, clock_timestamp(), json_build_object('intent', $2::text, 'params', $3::json))`, id, name, params)
	return pg.Wrap(err, "queue custom intent for webhooks")
}

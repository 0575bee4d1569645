// Package answerspg keeps the choices of owners about a language model, and what their robots remember, in Postgres (migration 0166).
package answerspg

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/voice/answers"
	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/speech/knowledge"
)

// Store implements answers.Store.
type Store struct{ pool *pgxpool.Pool }

// New returns a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Choice implements answers.Store.
func (s *Store) Choice(ctx context.Context, id thing.ID, account string) (c answers.Choice, err error) {
	err = s.pool.QueryRow(ctx, `SELECT asks, persona, remember FROM answers_talk WHERE thing = $1 AND owner = $2`, id, account).Scan(&c.Asks, &c.Persona, &c.Remember)
	if errors.Is(err, pgx.ErrNoRows) {
		return answers.Choice{}, nil
	}
	return c, pg.Wrap(err, "choice for %s", id)
}

// Set implements answers.Store.
func (s *Store) Set(ctx context.Context, id thing.ID, account string, c answers.Choice, now time.Time) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM answers_talk WHERE thing = $1 AND owner <> $2`, id, account); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO answers_talk (thing, owner, since, asks, persona, remember) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (thing) DO UPDATE SET owner = excluded.owner, since = excluded.since, asks = excluded.asks, persona = excluded.persona, remember = excluded.remember`,
			id, account, now, c.Asks, c.Persona, c.Remember); err != nil {
			return err
		}
		if c.Remember {
			return nil
		}
		_, err := tx.Exec(ctx, `DELETE FROM answers_turn WHERE thing = $1`, id)
		return err
	})
	return pg.Wrap(err, "choice for %s", id)
}

// Turns implements answers.Store.
func (s *Store) Turns(ctx context.Context, id thing.ID, account string, n int) ([]knowledge.Turn, error) {
	rows, err := s.pool.Query(ctx, `SELECT t.at, t.asked, t.said FROM answers_turn t JOIN answers_talk c ON c.thing = t.thing AND c.owner = $2 WHERE t.thing = $1 ORDER BY t.id DESC LIMIT $3`, id, account, n)
	if err != nil {
		return nil, pg.Wrap(err, "memory of %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[knowledge.Turn])
	slices.Reverse(out)
	return out, pg.Wrap(err, "memory of %s", id)
}

// Keep implements answers.Store. The lock on the choice makes a change of it wait, or this find nothing to join: no turn outlives the choice to remember.
func (s *Store) Keep(ctx context.Context, id thing.ID, account string, t knowledge.Turn) error {
	_, err := s.pool.Exec(ctx, `WITH kept AS (SELECT thing FROM answers_talk WHERE thing = $1 AND owner = $2 AND remember FOR SHARE),
		old AS (DELETE FROM answers_turn WHERE thing = $1 AND id IN (SELECT id FROM answers_turn WHERE thing = $1 ORDER BY id DESC OFFSET $6))
		INSERT INTO answers_turn (thing, at, asked, said) SELECT thing, $3, $4, $5 FROM kept`, id, account, t.At, t.Asked, t.Said, answers.KeptTurns-1)
	return pg.Wrap(err, "memory of %s", id)
}

// Forget implements answers.Store.
func (s *Store) Forget(ctx context.Context, id thing.ID, account string) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM answers_turn t USING answers_talk c WHERE t.thing = $1 AND c.thing = t.thing AND c.owner = $2`, id, account)
	return pg.Wrap(err, "memory of %s", id)
}

// End implements answers.Store.
func (s *Store) End(ctx context.Context, id thing.ID, before time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM answers_talk WHERE thing = $1 AND since < $2`, id, before)
	return pg.Wrap(err, "choice for %s", id)
}

// Of returns everything that is kept of a stretch.
func (s *Store) Of(ctx context.Context, of thing.Stretch) (any, error) {
	var out struct {
		Choices []answers.Choice `json:"choices"`
		Turns   []knowledge.Turn `json:"turns"`
	}
	rows, err := s.pool.Query(ctx, `SELECT asks, persona, remember FROM answers_talk WHERE thing = $1 AND since >= $2 AND since < $3`, of.Thing, of.Since, of.Until)
	if err == nil {
		out.Choices, err = pgx.CollectRows(rows, pgx.RowToStructByPos[answers.Choice])
	}
	if err != nil {
		return nil, pg.Wrap(err, "choices for %s", of.Thing)
	}
	if rows, err = s.pool.Query(ctx, `SELECT at, asked, said FROM answers_turn WHERE thing = $1 AND at >= $2 AND at < $3 ORDER BY id`, of.Thing, of.Since, of.Until); err == nil {
		out.Turns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[knowledge.Turn])
	}
	return out, pg.Wrap(err, "memory of %s", of.Thing)
}

// Drop deletes everything that is kept of a stretch, and returns how much.
func (s *Store) Drop(ctx context.Context, of thing.Stretch) (n int, err error) {
	for _, sql := range []string{`DELETE FROM answers_turn WHERE thing = $1 AND at >= $2 AND at < $3`, `DELETE FROM answers_talk WHERE thing = $1 AND since >= $2 AND since < $3`} {
		tag, err := s.pool.Exec(ctx, sql, of.Thing, of.Since, of.Until)
		if err != nil {
			return n, pg.Wrap(err, "choices for %s", of.Thing)
		}
		n += int(tag.RowsAffected())
	}
	return n, nil
}

// Expire deletes turns from before a time.
func (s *Store) Expire(ctx context.Context, before time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM answers_turn WHERE at < $1`, before)
	return pg.Wrap(err, "expire memories")
}

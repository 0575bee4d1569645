package tokenpg

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/identity/token"
	"kennel/infra/pg"
)

// keyLock is the advisory lock for changes of keys.
const keyLock = `SELECT pg_advisory_xact_lock(hashtextextended('token keys', 0))`

const selectKeys = `SELECT kid, alg, public, private, sign_from FROM token_key`

func (s *Store) Keys(ctx context.Context) ([]token.Key, error) {
	rows, err := s.pool.Query(ctx, selectKeys)
	if err != nil {
		return nil, pg.Wrap(err, "token keys")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[token.Key])
	return out, pg.Wrap(err, "token keys")
}

func (s *Store) Change(ctx context.Context, decide func([]token.Key) (token.KeyChange, error)) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, keyLock); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectKeys)
		if err != nil {
			return err
		}
		keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[token.Key])
		if err != nil {
			return err
		}
		c, err := decide(keys)
		if err != nil {
			return err
		}
		if k := c.Add; k != nil {
			if _, err := tx.Exec(ctx, `INSERT INTO token_key (kid, alg, public, private, sign_from) VALUES ($1, $2, $3, $4, $5)`,
				k.ID, k.Alg, k.Public, k.Private, k.SignFrom); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE token_key SET private = NULL WHERE kid = ANY($1)`, c.Retire); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM token_key WHERE kid = ANY($1)`, c.Drop); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT pg_notify($1, '')`, KeyChannel)
		return err
	})
	return pg.Wrap(err, "change token keys")
}

func (s *Store) FollowKeys(ctx context.Context, log *slog.Logger, every time.Duration, read func(context.Context) error) error {
	return pg.Follow(ctx, s.pool, log, KeyChannel, every, read)
}

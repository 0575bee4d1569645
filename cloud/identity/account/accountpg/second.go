package accountpg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/identity/account"
	"kennel/infra/pg"
)

// App implements account.SecondStore.
func (s *Store) App(ctx context.Context, id account.ID) (a account.App, err error) {
	var since *time.Time
	err = s.pool.QueryRow(ctx, `SELECT secret, step, since, (SELECT count(*) FROM account_recovery r WHERE r.account = t.account) FROM account_totp t WHERE account = $1`,
		pg.UUID(id)).Scan(&a.Secret, &a.Step, &since, &a.Left)
	if since != nil {
		a.Since = *since
	}
	if err != nil {
		return account.App{}, none(err)
	}
	return a, nil
}

// PutApp implements account.SecondStore.
func (s *Store) PutApp(ctx context.Context, id account.ID, secret []byte) error {
	err := changed(s.pool.Exec(ctx, `
		INSERT INTO account_totp AS t (account, secret) VALUES ($1, $2) ON CONFLICT (account) DO UPDATE SET secret = excluded.secret WHERE t.since IS NULL`, pg.UUID(id), secret))
	if errors.Is(err, account.ErrUnknown) {
		return account.ErrTaken
	}
	return none(err)
}

// ConfirmApp implements account.SecondStore.
func (s *Store) ConfirmApp(ctx context.Context, id account.ID, step int64, recovery []account.Hash, at time.Time) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := changed(tx.Exec(ctx, `UPDATE account_totp SET since = $2, step = $3 WHERE account = $1 AND since IS NULL`, pg.UUID(id), at, step)); err != nil {
			return err
		}
		hashes := make([][]byte, len(recovery))
		for i := range recovery {
			hashes[i] = recovery[i][:]
		}
		_, err := tx.Exec(ctx, `INSERT INTO account_recovery (account, hash) SELECT $1, unnest($2::bytea[])`, pg.UUID(id), hashes)
		return err
	})
}

// UseStep implements account.SecondStore.
func (s *Store) UseStep(ctx context.Context, id account.ID, step int64) error {
	return changed(s.pool.Exec(ctx, `UPDATE account_totp SET step = $2 WHERE account = $1 AND since IS NOT NULL AND step < $2`, pg.UUID(id), step))
}

// UseRecovery implements account.SecondStore.
func (s *Store) UseRecovery(ctx context.Context, id account.ID, code account.Hash) error {
	return changed(s.pool.Exec(ctx, `DELETE FROM account_recovery WHERE account = $1 AND hash = $2`, pg.UUID(id), code[:]))
}

// RemoveApp implements account.SecondStore.
func (s *Store) RemoveApp(ctx context.Context, id account.ID) error {
	return changed(s.pool.Exec(ctx, `DELETE FROM account_totp WHERE account = $1`, pg.UUID(id)))
}

// Raise implements account.SecondStore.
func (s *Store) Raise(ctx context.Context, token account.Hash, method string) error {
	return changed(s.pool.Exec(ctx, `UPDATE account_session SET method = $2 WHERE token = $1`, token[:], method))
}

package accountpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/identity/account"
	"kennel/infra/pg"
)

// AddUserSession implements account.AppStore.
func (s *Store) AddUserSession(ctx context.Context, token account.Hash, x account.UserSession) error {
	_, err := s.pool.Exec(ctx, addUserSession, userSession(token, x)...)
	return none(err)
}

const addUserSession = `INSERT INTO account_user_session (token, account, signup, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)`

func userSession(token account.Hash, x account.UserSession) []any {
	of, signup := pg.UUID(x.Account), pgtype.UUID{}
	if x.Pending {
		of, signup = signup, of
	}
	return []any{token[:], of, signup, x.Created, x.Expires}
}

// UserSession implements account.AppStore.
func (s *Store) UserSession(ctx context.Context, token account.Hash) (account.UserSession, error) {
	var x account.UserSession
	err := s.pool.QueryRow(ctx, `
		SELECT COALESCE(u.account, u.signup)::text, u.signup IS NOT NULL, u.created_at, u.expires_at, u.burned_at IS NOT NULL
		FROM account_user_session u LEFT JOIN account_account a ON a.id = u.account
		WHERE u.token = $1 AND a.disabled IS NOT TRUE`, token[:]).Scan(&x.Account, &x.Pending, &x.Created, &x.Expires, &x.Burned)
	if err != nil {
		return account.UserSession{}, none(err)
	}
	return x, nil
}

// Burn implements account.AppStore.
func (s *Store) Burn(ctx context.Context, token account.Hash, by string, now time.Time) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		UPDATE account_user_session SET burned_at = $3, burned_by = $2 WHERE token = $1 AND account IS NOT NULL AND burned_at IS NULL AND expires_at > $3`, token[:], by, now)
	return tag.RowsAffected() == 1, pg.Err(err)
}

// EndUserSession implements account.AppStore.
func (s *Store) EndUserSession(ctx context.Context, token account.Hash, all bool) error {
	_, err := s.pool.Exec(ctx, `
		DELETE FROM account_user_session u USING account_user_session t
		WHERE t.token = $1 AND (u.token = t.token OR $2 AND (u.account = t.account OR u.signup = t.signup))`, token[:], all)
	return pg.Err(err)
}

// ReplaceUserSession implements account.AppStore.
func (s *Store) ReplaceUserSession(ctx context.Context, old, token account.Hash, x account.UserSession) error {
	return none(pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := changed(tx.Exec(ctx, `DELETE FROM account_user_session WHERE token = $1`, old[:])); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, addUserSession, userSession(token, x)...)
		return err
	}))
}

// Package accountpg keeps people, their sessions and the audit log in Postgres (tables account_*).
package accountpg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account"
	"kennel/infra/pg"
)

// Store implements every store of packages account and audit; each file holds the methods of one. Safe for concurrent use. Its errors are the
// sentinels of package account, Unavailable while the database is away, or our own fault.
type Store struct {
	pool  *pgxpool.Pool
	audit auditQueue
}

// New returns the store on a migrated database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, audit: newAuditQueue()} }

const accountColumns = `a.id::text, a.email, a.role, a.must_change, a.disabled, a.created_at,
	EXISTS (SELECT FROM account_totp t WHERE t.account = a.id AND t.since IS NOT NULL), EXISTS (SELECT FROM account_passkey k WHERE k.account = a.id)`

func accountFields(a *account.Account) []any {
	return []any{&a.ID, &a.Email, &a.Role, &a.MustChange, &a.Disabled, &a.Created, &a.HasApp, &a.HasPasskey}
}

func (s *Store) one(ctx context.Context, query string, arg any) (account.Account, string, error) {
	var a account.Account
	var hash string
	if err := s.pool.QueryRow(ctx, query, arg).Scan(append(accountFields(&a), &hash)...); err != nil {
		return account.Account{}, "", none(err)
	}
	return a, hash, nil
}

// none turns "no row", and a reference to a row that is gone, into ErrUnknown.
func none(err error) error {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok && (p.Code == "23503" || p.Code == "23514" || p.Code == "23502") {
		return account.ErrUnknown
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return account.ErrUnknown
	}
	return pg.Err(err)
}

func taken(err error) error {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "23505" {
		return account.ErrTaken
	}
	return none(err)
}

// changed returns ErrUnknown for a statement that found no row to change.
func changed(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return account.ErrUnknown
	}
	return pg.Err(err)
}

// Package accountpg keeps people, their sessions and the audit log in Postgres (tables account_*).
package accountpg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/account"
	"kennel/infra/pg"
)

// Store is an account.Store. Safe for concurrent use. Its errors are account.ErrUnknown and account.ErrTaken, Unavailable while the database
// is away, or our own fault.
type Store struct {
	pool  *pgxpool.Pool
	audit auditQueue
}

// New returns the store on a migrated database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, audit: newAuditQueue()} }

// CreateAccount implements account.Store.
func (s *Store) CreateAccount(ctx context.Context, a account.Account, hash string) (account.Account, error) {
	err := s.pool.QueryRow(ctx, `
		INSERT INTO account_account (email, role, password, must_change, disabled) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (email) DO NOTHING RETURNING id::text, created_at`, a.Email, string(a.Role), hash, a.MustChange, a.Disabled).Scan(&a.ID, &a.Created)
	if errors.Is(err, pgx.ErrNoRows) {
		return account.Account{}, account.ErrTaken
	}
	return a, pg.Err(err)
}

const accountColumns = `a.id::text, a.email, a.role, a.must_change, a.disabled, a.created_at`

func accountFields(a *account.Account) []any {
	return []any{&a.ID, &a.Email, &a.Role, &a.MustChange, &a.Disabled, &a.Created}
}

// ByEmail implements account.Store.
func (s *Store) ByEmail(ctx context.Context, email string) (account.Account, string, error) {
	return s.one(ctx, `SELECT `+accountColumns+`, a.password FROM account_account a WHERE a.email = $1`, email)
}

// ByID implements account.Store.
func (s *Store) ByID(ctx context.Context, id account.ID) (account.Account, string, error) {
	return s.one(ctx, `SELECT `+accountColumns+`, a.password FROM account_account a WHERE a.id = $1`, pg.UUID(id))
}

func (s *Store) one(ctx context.Context, query string, arg any) (account.Account, string, error) {
	var a account.Account
	var hash string
	if err := s.pool.QueryRow(ctx, query, arg).Scan(append(accountFields(&a), &hash)...); err != nil {
		return account.Account{}, "", unknown("read account", err)
	}
	return a, hash, nil
}

// SetPassword implements account.Store.
func (s *Store) SetPassword(ctx context.Context, id account.ID, hash string, complex bool, keep account.Hash) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error { return setPassword(ctx, tx, pg.UUID(id), hash, complex, keep) })
}

func setPassword(ctx context.Context, tx pgx.Tx, id pgtype.UUID, hash string, complex bool, keep account.Hash) error {
	tag, err := tx.Exec(ctx, `UPDATE account_account SET password = $2, must_change = false WHERE id = $1`, id, hash)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return account.ErrUnknown
	}
	if _, err := tx.Exec(ctx, `UPDATE account_profile SET password_complex = $2 WHERE account = $1`, id, complex); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM account_user_session WHERE account = $1`, id); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM account_session WHERE account = $1 AND token <> $2`, id, keep[:])
	return err
}

// SetDisabled implements account.Store.
func (s *Store) SetDisabled(ctx context.Context, id account.ID, disabled bool) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE account_account SET disabled = $2 WHERE id = $1`, pg.UUID(id), disabled)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return account.ErrUnknown
		}
		if disabled {
			_, err = tx.Exec(ctx, `WITH apps AS (DELETE FROM account_user_session WHERE account = $1) DELETE FROM account_session WHERE account = $1`, pg.UUID(id))
		}
		return err
	})
}

// CreateSession implements account.Store.
func (s *Store) CreateSession(ctx context.Context, token account.Hash, x account.Session) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO account_session (token, account, created_at, last_seen, expires_at, addr, method) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		token[:], pg.UUID(x.Account), x.Created, x.LastSeen, x.Expires, x.Addr, x.Method)
	return pg.Err(err)
}

// Session implements account.Store.
func (s *Store) Session(ctx context.Context, token account.Hash, now time.Time) (account.Session, account.Account, error) {
	var x account.Session
	var a account.Account
	err := s.pool.QueryRow(ctx, `
		SELECT s.created_at, s.last_seen, s.expires_at, s.addr, s.method, `+accountColumns+`
		FROM account_session s JOIN account_account a ON a.id = s.account
		WHERE s.token = $1 AND s.expires_at > $2 AND NOT a.disabled`, token[:], now).
		Scan(append([]any{&x.Created, &x.LastSeen, &x.Expires, &x.Addr, &x.Method}, accountFields(&a)...)...)
	if err != nil {
		return x, a, unknown("read session", err)
	}
	x.Account = a.ID
	return x, a, nil
}

// Touch implements account.Store.
func (s *Store) Touch(ctx context.Context, token account.Hash, at time.Time, addr string) error {
	_, err := s.pool.Exec(ctx, `UPDATE account_session SET last_seen = $2, addr = $3 WHERE token = $1`, token[:], at, addr)
	return pg.Err(err)
}

// EndSession implements account.Store.
func (s *Store) EndSession(ctx context.Context, token account.Hash) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM account_session WHERE token = $1`, token[:])
	return pg.Err(err)
}

// EndSessions implements account.Store.
func (s *Store) EndSessions(ctx context.Context, id account.ID) (int, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM account_session WHERE account = $1`, pg.UUID(id))
	return int(tag.RowsAffected()), pg.Err(err)
}

// Failures implements account.Store.
func (s *Store) Failures(ctx context.Context, key account.Hash) (int, time.Time, error) {
	var n int
	var last time.Time
	err := s.pool.QueryRow(ctx, `SELECT failures, last FROM account_attempt WHERE key = $1`, key[:]).Scan(&n, &last)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, time.Time{}, nil
	}
	return n, last, pg.Err(err)
}

// Fail implements account.Store.
func (s *Store) Fail(ctx context.Context, key account.Hash, at time.Time) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `
		INSERT INTO account_attempt (key, failures, last) VALUES ($1, 1, $2)
		ON CONFLICT (key) DO UPDATE SET failures = account_attempt.failures + 1, last = $2 RETURNING failures`, key[:], at).Scan(&n)
	return n, pg.Err(err)
}

// Forgive implements account.Store.
func (s *Store) Forgive(ctx context.Context, key account.Hash) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM account_attempt WHERE key = $1`, key[:])
	return pg.Err(err)
}

// Prune implements account.Store.
func (s *Store) Prune(ctx context.Context, now, old time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM account_session WHERE expires_at <= $1`, now)
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM account_attempt WHERE last < $1`, old)
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM account_ceremony WHERE expires_at <= $1`, now)
	}
	return pg.Err(err)
}

// unknown turns "no row" into ErrUnknown.
func unknown(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return account.ErrUnknown
	}
	return fmt.Errorf("%s: %w", what, pg.Err(err))
}

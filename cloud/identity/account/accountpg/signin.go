package accountpg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/identity/account"
	"kennel/infra/pg"
)

// ByEmail implements account.AccountStore.
func (s *Store) ByEmail(ctx context.Context, email string) (account.Account, string, error) {
	return s.one(ctx, `SELECT `+accountColumns+`, a.password FROM account_account a WHERE a.email = $1`, email)
}

// ByID implements account.AccountStore.
func (s *Store) ByID(ctx context.Context, id account.ID) (account.Account, string, error) {
	return s.one(ctx, `SELECT `+accountColumns+`, a.password FROM account_account a WHERE a.id = $1`, pg.UUID(id))
}

// SetPassword implements account.SignInStore.
func (s *Store) SetPassword(ctx context.Context, id account.ID, hash string, complex bool, keep account.Hash) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error { return setPassword(ctx, tx, pg.UUID(id), hash, complex, keep) })
}

func setPassword(ctx context.Context, tx pgx.Tx, id pgtype.UUID, hash string, complex bool, keep account.Hash) error {
	if err := changed(tx.Exec(ctx, `UPDATE account_account SET password = $2, must_change = false WHERE id = $1`, id, hash)); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE account_profile SET password_complex = $2 WHERE account = $1`, id, complex); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM account_user_session WHERE account = $1`, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM account_session WHERE account = $1 AND token <> $2`, id, keep[:])
	return err
}

// CreateSession implements account.SignInStore.
func (s *Store) CreateSession(ctx context.Context, token account.Hash, x account.Session) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO account_session (token, account, created_at, last_seen, expires_at, addr, method) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		token[:], pg.UUID(x.Account), x.Created, x.LastSeen, x.Expires, x.Addr, x.Method)
	return pg.Err(err)
}

// Session implements account.SignInStore.
func (s *Store) Session(ctx context.Context, token account.Hash, now time.Time) (account.Session, account.Account, error) {
	var x account.Session
	var a account.Account
	err := s.pool.QueryRow(ctx, `
		SELECT s.created_at, s.last_seen, s.expires_at, s.addr, s.method, `+accountColumns+`
		FROM account_session s JOIN account_account a ON a.id = s.account
		WHERE s.token = $1 AND s.expires_at > $2 AND NOT a.disabled`, token[:], now).
		Scan(append([]any{&x.Created, &x.LastSeen, &x.Expires, &x.Addr, &x.Method}, accountFields(&a)...)...)
	if err != nil {
		return x, a, none(err)
	}
	x.Account = a.ID
	return x, a, nil
}

// Touch implements account.SignInStore.
func (s *Store) Touch(ctx context.Context, token account.Hash, at time.Time, addr string) error {
	_, err := s.pool.Exec(ctx, `UPDATE account_session SET last_seen = $2, addr = $3 WHERE token = $1`, token[:], at, addr)
	return pg.Err(err)
}

// EndSession implements account.SignInStore.
func (s *Store) EndSession(ctx context.Context, token account.Hash) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM account_session WHERE token = $1`, token[:])
	return pg.Err(err)
}

// Failures implements account.AttemptStore.
func (s *Store) Failures(ctx context.Context, key account.Hash) (int, time.Time, error) {
	var n int
	var last time.Time
	err := s.pool.QueryRow(ctx, `SELECT failures, last FROM account_attempt WHERE key = $1`, key[:]).Scan(&n, &last)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, time.Time{}, nil
	}
	return n, last, pg.Err(err)
}

// Fail implements account.AttemptStore.
func (s *Store) Fail(ctx context.Context, key account.Hash, at time.Time) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `
		INSERT INTO account_attempt (key, failures, last) VALUES ($1, 1, $2)
		ON CONFLICT (key) DO UPDATE SET failures = account_attempt.failures + 1, last = $2 RETURNING failures`, key[:], at).Scan(&n)
	return n, pg.Err(err)
}

// Forgive implements account.AttemptStore.
func (s *Store) Forgive(ctx context.Context, key account.Hash) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM account_attempt WHERE key = $1`, key[:])
	return pg.Err(err)
}

// Take implements account.AttemptStore. The time kept is when all tokens are back.
func (s *Store) Take(ctx context.Context, key account.Hash, at time.Time, every time.Duration, burst int) (bool, error) {
	var n int
	err := s.pool.QueryRow(ctx, `
		INSERT INTO account_attempt AS t (key, failures, last) VALUES ($1, 1, $2::timestamptz + $3::interval)
		ON CONFLICT (key) DO UPDATE SET failures = t.failures + 1, last = greatest(t.last, $2) + $3
		WHERE greatest(t.last, $2) + $3 <= $2 + $3 * $4::int RETURNING failures`, key[:], at, every, burst).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, pg.Err(err)
}

// Near implements account.AttemptStore.
func (s *Store) Near(ctx context.Context, id account.ID, place account.Hash, since time.Time) (near bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM account_near WHERE account = $1 AND place = $2 AND last > $3)`, pg.UUID(id), place[:], since).Scan(&near)
	return near, pg.Err(err)
}

// Visit implements account.AttemptStore.
func (s *Store) Visit(ctx context.Context, id account.ID, place account.Hash, at time.Time) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO account_near AS n (account, place, last) VALUES ($1, $2, $3) ON CONFLICT (account, place) DO UPDATE SET last = greatest(n.last, excluded.last)`,
		pg.UUID(id), place[:], at)
	return pg.Err(err)
}

// Prune implements account.SignInStore.
func (s *Store) Prune(ctx context.Context, now, old time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM account_session WHERE expires_at <= $1`, now)
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM account_attempt WHERE last < $1`, old)
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM account_near WHERE last < $1`, old.Add(-account.NearMemory))
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM account_ceremony WHERE expires_at <= $1`, now)
	}
	return pg.Err(err)
}

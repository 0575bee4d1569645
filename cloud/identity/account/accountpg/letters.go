package accountpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/pg"
)

// AddSignup implements account.LetterStore.
func (s *Store) AddSignup(ctx context.Context, u account.Signup, hash string) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO account_signup (id, email, password, profile, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		pg.UUID(u.ID), u.Email, hash, u.Profile, u.Created, u.Expires)
	return pg.Err(err)
}

const signupColumns = `id::text, email, profile, created_at, expires_at, password`

func (s *Store) signup(ctx context.Context, where string, args ...any) (u account.Signup, hash string, err error) {
	u.Profile = account.DefaultProfile()
	err = s.pool.QueryRow(ctx, `SELECT `+signupColumns+` FROM account_signup WHERE `+where, args...).
		Scan(&u.ID, &u.Email, &u.Profile, &u.Created, &u.Expires, &hash)
	if err != nil {
		return account.Signup{}, "", none(err)
	}
	return u, hash, nil
}

// Signup implements account.LetterStore.
func (s *Store) Signup(ctx context.Context, id account.ID, now time.Time) (account.Signup, string, error) {
	return s.signup(ctx, `id = $1 AND expires_at > $2`, pg.UUID(id), now)
}

// NewestSignup implements account.LetterStore.
func (s *Store) NewestSignup(ctx context.Context, email string, now time.Time) (account.Signup, error) {
	u, _, err := s.signup(ctx, `email = $1 AND expires_at > $2 ORDER BY created_at DESC LIMIT 1`, email, now)
	return u, err
}

// PutTicket implements account.LetterStore.
func (s *Store) PutTicket(ctx context.Context, t account.Ticket) error {
	return none(pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM account_ticket WHERE purpose = $1 AND (account = $2 OR signup = $3)`, string(t.Purpose), pg.UUID(t.Account), pg.UUID(t.Signup)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO account_ticket (hash, purpose, account, signup, email, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			t.Hash[:], string(t.Purpose), pg.UUID(t.Account), pg.UUID(t.Signup), t.Email, t.Expires)
		return err
	}))
}

// Ticket implements account.LetterStore.
func (s *Store) Ticket(ctx context.Context, hash account.Hash, p account.Purpose, now time.Time) (account.Ticket, error) {
	t := account.Ticket{Hash: hash, Purpose: p}
	err := s.pool.QueryRow(ctx, `SELECT COALESCE(account::text, ''), COALESCE(signup::text, ''), email, expires_at FROM account_ticket
		WHERE hash = $1 AND purpose = $2 AND expires_at > $3`, hash[:], string(p), now).Scan(&t.Account, &t.Signup, &t.Email, &t.Expires)
	if err != nil {
		return account.Ticket{}, none(err)
	}
	return t, nil
}

// Verify implements account.LetterStore.
func (s *Store) Verify(ctx context.Context, hash account.Hash, now time.Time) (account.Account, error) {
	var a account.Account
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var id pgtype.UUID
		if err := tx.QueryRow(ctx, `DELETE FROM account_ticket WHERE hash = $1 AND purpose = 'verify' AND expires_at > $2 RETURNING signup`, hash[:], now).Scan(&id); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `
			INSERT INTO account_account AS a (id, email, role, password) SELECT id, email, $2, password FROM account_signup WHERE id = $1
			RETURNING `+accountColumns, id, string(auth.Owner)).Scan(accountFields(&a)...)
		if err != nil {
			return err
		}
		var p account.Profile
		if err := tx.QueryRow(ctx, `SELECT profile FROM account_signup WHERE id = $1`, id).Scan(&p); err != nil {
			return err
		}
		d := account.DefaultProfile()
		p.EmailAccount, p.Status = d.EmailAccount, d.Status
		if err := setProfile(ctx, tx, id, p); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE account_user_session SET account = signup, signup = NULL WHERE signup = $1`, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM account_signup WHERE email = $1`, a.Email)
		return err
	})
	if err != nil {
		return account.Account{}, taken(err)
	}
	return a, nil
}

// Reset implements account.LetterStore.
func (s *Store) Reset(ctx context.Context, hash account.Hash, password string, complex bool, now time.Time) (account.Account, error) {
	var a account.Account
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			WITH used AS (DELETE FROM account_ticket WHERE hash = $1 AND purpose = 'reset' AND expires_at > $2 RETURNING account)
			SELECT `+accountColumns+` FROM account_account a JOIN used ON used.account = a.id WHERE NOT a.disabled FOR UPDATE OF a`, hash[:], now).Scan(accountFields(&a)...)
		if err != nil {
			return err
		}
		if err := setPassword(ctx, tx, pg.UUID(a.ID), password, complex, account.Hash{}); err != nil {
			return err
		}
		if !a.Role.Staff() { // an operator's may be the second factor, which a letter does not replace
			if _, err := tx.Exec(ctx, `DELETE FROM account_passkey WHERE account = $1`, pg.UUID(a.ID)); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `DELETE FROM account_ticket WHERE account = $1`, pg.UUID(a.ID)) // also a change of e-mail that another person began
		return err
	})
	if err != nil {
		return account.Account{}, none(err)
	}
	return a, nil
}

// ChangeEmail implements account.LetterStore.
func (s *Store) ChangeEmail(ctx context.Context, hash account.Hash, now time.Time) (account.Account, error) {
	var a account.Account
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var email string
		err := tx.QueryRow(ctx, `
			WITH used AS (DELETE FROM account_ticket WHERE hash = $1 AND purpose = 'email' AND expires_at > $2 RETURNING account, email)
			SELECT `+accountColumns+`, used.email FROM account_account a JOIN used ON used.account = a.id WHERE NOT a.disabled FOR UPDATE OF a`, hash[:], now).
			Scan(append(accountFields(&a), &email)...)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE account_account SET email = $2 WHERE id = $1`, pg.UUID(a.ID), email); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_ticket WHERE account = $1`, pg.UUID(a.ID)); err != nil { // letters to the old e-mail are worth nothing now
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_signup WHERE email = $1`, email); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE account_profile SET email_failure = '' WHERE account = $1`, pg.UUID(a.ID))
		return err
	})
	if err != nil {
		return account.Account{}, taken(err)
	}
	return a, nil
}

package accountpg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/account"
	"kennel/infra/auth"
	"kennel/infra/pg"
)

// Store is an account.OwnerStore too.
var _ account.OwnerStore = (*Store)(nil)

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

// AddSignup implements account.OwnerStore.
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

// Signup implements account.OwnerStore.
func (s *Store) Signup(ctx context.Context, id account.ID, now time.Time) (account.Signup, string, error) {
	return s.signup(ctx, `id = $1 AND expires_at > $2`, pg.UUID(id), now)
}

// NewestSignup implements account.OwnerStore.
func (s *Store) NewestSignup(ctx context.Context, email string, now time.Time) (account.Signup, error) {
	u, _, err := s.signup(ctx, `email = $1 AND expires_at > $2 ORDER BY created_at DESC LIMIT 1`, email, now)
	return u, err
}

// PutTicket implements account.OwnerStore.
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

// Ticket implements account.OwnerStore.
func (s *Store) Ticket(ctx context.Context, hash account.Hash, p account.Purpose, now time.Time) (account.Ticket, error) {
	t := account.Ticket{Hash: hash, Purpose: p}
	err := s.pool.QueryRow(ctx, `SELECT COALESCE(account::text, ''), COALESCE(signup::text, ''), email, expires_at FROM account_ticket
		WHERE hash = $1 AND purpose = $2 AND expires_at > $3`, hash[:], string(p), now).Scan(&t.Account, &t.Signup, &t.Email, &t.Expires)
	if err != nil {
		return account.Ticket{}, none(err)
	}
	return t, nil
}

// Verify implements account.OwnerStore.
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

// Reset implements account.OwnerStore.
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
		_, err = tx.Exec(ctx, `DELETE FROM account_ticket WHERE account = $1`, pg.UUID(a.ID)) // also a change of e-mail that somebody else began
		return err
	})
	if err != nil {
		return account.Account{}, none(err)
	}
	return a, nil
}

// ChangeEmail implements account.OwnerStore.
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

const profileColumns = `app_name, app_platform, app_version, born, player_id, email_failure, email_blocked, lang, family_name, given_name, gender, email_account,
	no_autodelete, password_complex, status, deactivation_reason, purge_reason`

func profileFields(p *account.Profile) []any {
	return []any{&p.AppName, &p.AppPlatform, &p.AppVersion, &p.Born, &p.PlayerID, &p.EmailFailure, &p.EmailBlocked, &p.Lang, &p.Family, &p.Given, &p.Gender, &p.EmailAccount,
		&p.NoAutodelete, &p.PasswordComplex, &p.Status, &p.DeactivationReason, &p.PurgeReason}
}

// Profile implements account.OwnerStore.
func (s *Store) Profile(ctx context.Context, id account.ID) (account.Profile, error) {
	p := account.DefaultProfile()
	err := s.pool.QueryRow(ctx, `SELECT `+profileColumns+` FROM account_profile WHERE account = $1`, pg.UUID(id)).Scan(profileFields(&p)...)
	if errors.Is(err, pgx.ErrNoRows) {
		var there bool
		if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM account_account WHERE id = $1)`, pg.UUID(id)).Scan(&there); err != nil {
			return account.Profile{}, pg.Err(err)
		}
		if !there {
			return account.Profile{}, account.ErrUnknown
		}
		return account.DefaultProfile(), nil
	}
	return p, pg.Err(err)
}

// SetProfile implements account.OwnerStore.
func (s *Store) SetProfile(ctx context.Context, id account.ID, p account.Profile) error {
	return none(pg.Tx(ctx, s.pool, func(tx pgx.Tx) error { return setProfile(ctx, tx, pg.UUID(id), p) }))
}

func setProfile(ctx context.Context, tx pgx.Tx, id pgtype.UUID, p account.Profile) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO account_profile (account, `+profileColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
		ON CONFLICT (account) DO UPDATE SET (`+profileColumns+`) = ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		append([]any{id}, profileFields(&p)...)...)
	return err
}

// Sessions implements account.OwnerStore.
func (s *Store) Sessions(ctx context.Context, id account.ID, now time.Time) ([]account.SessionInfo, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT token, false, created_at, last_seen, expires_at, addr, '' FROM account_session WHERE account = $1 AND expires_at > $2
		UNION ALL
		SELECT token, true, created_at, NULL, expires_at, '', burned_by FROM account_user_session WHERE account = $1 AND expires_at > $2
		ORDER BY 3 DESC`, pg.UUID(id), now)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x account.SessionInfo, err error) {
		var token []byte
		var seen *time.Time
		err = row.Scan(&token, &x.App, &x.Created, &seen, &x.Expires, &x.Addr, &x.Used)
		if err == nil {
			x.ID = account.SessionID(account.Hash(token))
		}
		if seen != nil {
			x.LastSeen = *seen
		}
		return x, err
	})
	return out, pg.Err(err)
}

// EndOne implements account.OwnerStore.
func (s *Store) EndOne(ctx context.Context, id account.ID, session string) error {
	var n int
	err := s.pool.QueryRow(ctx, `
		WITH people AS (DELETE FROM account_session WHERE account = $1 AND encode(substr(token, 1, 8), 'hex') = $2 RETURNING 1),
			apps AS (DELETE FROM account_user_session WHERE account = $1 AND encode(substr(token, 1, 8), 'hex') = $2 RETURNING 1)
		SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM apps)`, pg.UUID(id), session).Scan(&n)
	if err == nil && n == 0 {
		return account.ErrUnknown
	}
	return pg.Err(err)
}

// EndOthers implements account.OwnerStore.
func (s *Store) EndOthers(ctx context.Context, id account.ID, keep account.Hash) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `
		WITH people AS (DELETE FROM account_session WHERE account = $1 AND token <> $2 RETURNING 1),
			apps AS (DELETE FROM account_user_session WHERE account = $1 AND token <> $2 RETURNING 1)
		SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM apps)`, pg.UUID(id), keep[:]).Scan(&n)
	return n, pg.Err(err)
}

// AddUserSession implements account.UserSessionStore.
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

// UserSession implements account.UserSessionStore.
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

// Burn implements account.UserSessionStore.
func (s *Store) Burn(ctx context.Context, token account.Hash, by string, now time.Time) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		UPDATE account_user_session SET burned_at = $3, burned_by = $2 WHERE token = $1 AND account IS NOT NULL AND burned_at IS NULL AND expires_at > $3`, token[:], by, now)
	return tag.RowsAffected() == 1, pg.Err(err)
}

// EndUserSession implements account.UserSessionStore.
func (s *Store) EndUserSession(ctx context.Context, token account.Hash, all bool) error {
	_, err := s.pool.Exec(ctx, `
		DELETE FROM account_user_session u USING account_user_session t
		WHERE t.token = $1 AND (u.token = t.token OR $2 AND (u.account = t.account OR u.signup = t.signup))`, token[:], all)
	return pg.Err(err)
}

// ReplaceUserSession implements account.UserSessionStore.
func (s *Store) ReplaceUserSession(ctx context.Context, old, token account.Hash, x account.UserSession) error {
	return none(pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM account_user_session WHERE token = $1`, old[:])
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return account.ErrUnknown
		}
		_, err = tx.Exec(ctx, addUserSession, userSession(token, x)...)
		return err
	}))
}

// BeginDeletion implements account.DeletionStore.
func (s *Store) BeginDeletion(ctx context.Context, id account.ID, now time.Time) error {
	return none(pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO account_deletion (account, requested_at) VALUES ($1, $2) ON CONFLICT (account) DO NOTHING`, pg.UUID(id), now); err != nil {
			return err
		}
		for _, sql := range []string{
			`UPDATE account_account SET disabled = true WHERE id = $1`, `DELETE FROM account_session WHERE account = $1`,
			`DELETE FROM account_user_session WHERE account = $1`, `DELETE FROM account_ticket WHERE account = $1`,
		} {
			if _, err := tx.Exec(ctx, sql, pg.UUID(id)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Deletion implements account.DeletionStore.
func (s *Store) Deletion(ctx context.Context, id account.ID) ([]string, error) {
	var done []string
	err := s.pool.QueryRow(ctx, `SELECT erased FROM account_deletion WHERE account = $1`, pg.UUID(id)).Scan(&done)
	if err != nil {
		return nil, none(err)
	}
	return done, nil
}

// Erased implements account.DeletionStore.
func (s *Store) Erased(ctx context.Context, id account.ID, holder string) error {
	_, err := s.pool.Exec(ctx, `UPDATE account_deletion SET erased = array_append(erased, $2) WHERE account = $1 AND $2 <> ALL(erased)`, pg.UUID(id), holder)
	return pg.Err(err)
}

// DeleteAccount implements account.DeletionStore.
func (s *Store) DeleteAccount(ctx context.Context, id account.ID, attempts []account.Hash) error {
	keys := make([][]byte, 0, len(attempts))
	for _, k := range attempts {
		keys = append(keys, k[:])
	}
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			DELETE FROM account_signup s USING account_account a WHERE s.email = a.email AND a.id = $1 AND EXISTS (SELECT FROM account_deletion WHERE account = $1)`, pg.UUID(id)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_attempt WHERE key = ANY($1)`, keys); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			DELETE FROM account_audit_addr d USING account_audit l WHERE l.seq = d.seq AND l.actor = $1::uuid::text
				AND EXISTS (SELECT FROM account_deletion WHERE account = $1)`, pg.UUID(id)); err != nil {
			return err
		}
		// Everything else of the account's hangs on this row.
		_, err := tx.Exec(ctx, `DELETE FROM account_account WHERE id = $1 AND EXISTS (SELECT FROM account_deletion WHERE account = $1)`, pg.UUID(id))
		return err
	})
}

// Deletions implements account.DeletionStore.
func (s *Store) Deletions(ctx context.Context) ([]account.ID, error) {
	rows, err := s.pool.Query(ctx, `SELECT account::text FROM account_deletion ORDER BY requested_at`)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[account.ID])
	return out, pg.Err(err)
}

// PruneOwners implements account.DeletionStore.
func (s *Store) PruneOwners(ctx context.Context, now time.Time) error {
	for _, table := range []string{"account_ticket", "account_user_session", "account_signup"} {
		if _, err := s.pool.Exec(ctx, `DELETE FROM `+table+` WHERE expires_at <= $1`, now); err != nil {
			return pg.Err(err)
		}
	}
	return nil
}

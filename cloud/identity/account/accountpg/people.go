package accountpg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/identity/account"
	"kennel/infra/pg"
)

// CreateAccount implements account.PeopleStore.
func (s *Store) CreateAccount(ctx context.Context, a account.Account, hash string) (account.Account, error) {
	err := s.pool.QueryRow(ctx, `
		INSERT INTO account_account (email, role, password, must_change, disabled) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (email) DO NOTHING RETURNING id::text, created_at`, a.Email, string(a.Role), hash, a.MustChange, a.Disabled).Scan(&a.ID, &a.Created)
	if errors.Is(err, pgx.ErrNoRows) {
		return account.Account{}, account.ErrTaken
	}
	return a, pg.Err(err)
}

// SetDisabled implements account.PeopleStore.
func (s *Store) SetDisabled(ctx context.Context, id account.ID, disabled bool) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		err := changed(tx.Exec(ctx, `UPDATE account_account SET disabled = $2 WHERE id = $1`, pg.UUID(id), disabled))
		if err == nil && disabled {
			_, err = tx.Exec(ctx, `WITH apps AS (DELETE FROM account_user_session WHERE account = $1) DELETE FROM account_session WHERE account = $1`, pg.UUID(id))
		}
		return err
	})
}

const profileColumns = `app_name, app_platform, app_version, born, player_id, email_failure, email_blocked, lang, family_name, given_name, gender, email_account,
	no_autodelete, password_complex, status, deactivation_reason, purge_reason`

func profileFields(p *account.Profile) []any {
	return []any{&p.AppName, &p.AppPlatform, &p.AppVersion, &p.Born, &p.PlayerID, &p.EmailFailure, &p.EmailBlocked, &p.Lang, &p.Family, &p.Given, &p.Gender, &p.EmailAccount,
		&p.NoAutodelete, &p.PasswordComplex, &p.Status, &p.DeactivationReason, &p.PurgeReason}
}

// Profile implements account.PeopleStore.
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

// SetProfile implements account.PeopleStore.
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

// Sessions implements account.PeopleStore.
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

// EndOne implements account.PeopleStore.
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

// EndOthers implements account.PeopleStore.
func (s *Store) EndOthers(ctx context.Context, id account.ID, keep account.Hash) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `
		WITH people AS (DELETE FROM account_session WHERE account = $1 AND token <> $2 RETURNING 1),
			apps AS (DELETE FROM account_user_session WHERE account = $1 AND token <> $2 RETURNING 1)
		SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM apps)`, pg.UUID(id), keep[:]).Scan(&n)
	return n, pg.Err(err)
}

// EndSessions implements account.PeopleStore.
func (s *Store) EndSessions(ctx context.Context, id account.ID) (int, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM account_session WHERE account = $1`, pg.UUID(id))
	return int(tag.RowsAffected()), pg.Err(err)
}

// Emails returns the e-mails of accounts; an unknown account has none.
func (s *Store) Emails(ctx context.Context, accounts []string) (map[string]string, error) {
	ids := make([]pgtype.UUID, len(accounts))
	for i, a := range accounts {
		ids[i] = pg.UUID(a)
	}
	rows, err := s.pool.Query(ctx, `SELECT id::text, email FROM account_account WHERE id = ANY($1)`, ids)
	if err != nil {
		return nil, pg.Wrap(err, "e-mails of accounts")
	}
	out := map[string]string{}
	var id, email string
	_, err = pgx.ForEachRow(rows, []any{&id, &email}, func() error { out[id] = email; return nil })
	return out, pg.Wrap(err, "e-mails of accounts")
}

// OwnersLike returns the ids of at most limit accounts whose e-mail has that text in it, in lower case.
func (s *Store) OwnersLike(ctx context.Context, text string, limit int) ([]string, error) {
	pattern := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
	rows, err := s.pool.Query(ctx, `SELECT id::text FROM account_account WHERE email LIKE $1 ORDER BY email LIMIT $2`, pattern, limit)
	if err != nil {
		return nil, fmt.Errorf("accounts by e-mail: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("accounts by e-mail: %w", pg.Err(err))
	}
	return out, nil
}

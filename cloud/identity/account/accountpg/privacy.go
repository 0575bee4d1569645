package accountpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/pg"
)

// BeginDeletion implements account.PrivacyStore.
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

// Deletion implements account.PrivacyStore.
func (s *Store) Deletion(ctx context.Context, name string) (d account.Deletion, err error) {
	err = s.pool.QueryRow(ctx, `SELECT account::text, ref::text, requested_at, erased FROM account_deletion WHERE account::text = $1 OR ref::text = $1`, name).
		Scan(&d.Account, &d.Ref, &d.Requested, &d.Erased)
	return d, none(err)
}

// Erased implements account.PrivacyStore.
func (s *Store) Erased(ctx context.Context, d account.Deletion, holder string) error {
	_, err := s.pool.Exec(ctx, `UPDATE account_deletion SET erased = array_append(erased, $2) WHERE account = $1 AND $2 <> ALL(erased)`, pg.UUID(d.Account), holder)
	return pg.Err(err)
}

// RecordErasure implements account.PrivacyStore.
func (s *Store) RecordErasure(ctx context.Context, d account.Deletion, by string, kind string, n int) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO account_erasure AS e (ref, asked_by, requested_at, erased) VALUES ($1, $2, $3, jsonb_build_object($4::text, $5::bigint))
		ON CONFLICT (ref) DO UPDATE SET erased = e.erased || jsonb_build_object($4::text, COALESCE((e.erased ->> $4)::bigint, 0) + $5)`,
		pg.UUID(d.Ref), by, d.Requested, kind, n)
	return pg.Err(err)
}

// DeleteAccount implements account.PrivacyStore.
func (s *Store) DeleteAccount(ctx context.Context, d account.Deletion, attempts []account.Hash, line audit.Entry) error {
	keys := make([][]byte, 0, len(attempts))
	for _, k := range attempts {
		keys = append(keys, k[:16]) // of every place that it was tried from
	}
	id := pg.UUID(d.Account)
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var there bool // one of several processes finishes it
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM account_deletion WHERE account = $1 FOR UPDATE)`, id).Scan(&there); err != nil || !there {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_signup s USING account_account a WHERE s.email = a.email AND a.id = $1`, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_attempt WHERE substr(key, 1, 16) = ANY($1)`, keys); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO account_former (id, email, removed) SELECT id, email, $2 FROM account_account WHERE id = $1 AND role <> 'owner'`, id, line.At); err != nil {
			return err
		}
		// Everything else of the account's hangs on this row.
		if _, err := tx.Exec(ctx, `DELETE FROM account_account WHERE id = $1`, id); err != nil {
			return err
		}
		var counts string
		if err := tx.QueryRow(ctx, `UPDATE account_erasure SET finished_at = $2 WHERE ref = $1
			RETURNING COALESCE((SELECT string_agg(key || ' ' || value, ', ' ORDER BY key) FROM jsonb_each_text(erased) WHERE value <> '0'), 'nothing that is counted')`, pg.UUID(d.Ref), line.At).Scan(&counts); err != nil {
			return err
		}
		line.Detail += counts
		return auditIn(ctx, tx, line)
	})
}

// Deletions implements account.PrivacyStore.
func (s *Store) Deletions(ctx context.Context) ([]account.ID, error) {
	rows, err := s.pool.Query(ctx, `SELECT account::text FROM account_deletion ORDER BY requested_at`)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[account.ID])
	return out, pg.Err(err)
}

// AuditOf implements account.PrivacyStore.
func (s *Store) AuditOf(ctx context.Context, id account.ID, limit int) ([]audit.Entry, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT l.seq, l.at, l.actor, l.role, CASE WHEN l.actor = $1 THEN COALESCE(d.addr, '') ELSE '' END, l.action, l.object, l.detail
		FROM account_audit l LEFT JOIN account_audit_addr d ON d.seq = l.seq WHERE l.actor = $1 OR l.object = $1 ORDER BY l.seq DESC LIMIT $2`, string(id), limit)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e audit.Entry, err error) {
		err = row.Scan(auditFields(&e)...)
		return e, err
	})
	return out, pg.Err(err)
}

// PruneOwners implements account.PrivacyStore.
func (s *Store) PruneOwners(ctx context.Context, now time.Time) error {
	for _, table := range []string{"account_ticket", "account_user_session", "account_signup"} {
		if _, err := s.pool.Exec(ctx, `DELETE FROM `+table+` WHERE expires_at <= $1`, now); err != nil {
			return pg.Err(err)
		}
	}
	return nil
}

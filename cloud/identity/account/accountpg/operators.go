package accountpg

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/pg"
)

// Operators implements account.OperatorStore.
func (s *Store) Operators(ctx context.Context, now time.Time) ([]account.Operator, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT `+accountColumns+`, count(s.token), max(s.last_seen)
		FROM account_account a LEFT JOIN account_session s ON s.account = a.id AND s.expires_at > $1
		WHERE a.role <> 'owner' AND NOT EXISTS (SELECT FROM account_deletion d WHERE d.account = a.id)
		GROUP BY a.id ORDER BY a.email`, now)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o account.Operator, err error) {
		var seen *time.Time
		err = row.Scan(append(accountFields(&o.Account), &o.Sessions, &seen)...)
		if seen != nil {
			o.LastSeen = *seen
		}
		return o, err
	})
	return out, pg.Err(err)
}

// lockAdmins returns the administrators, and keeps their rows locked until the transaction ends. One such transaction runs at a time in all
// processes: each then locks one more account, and two that did so in opposite order would wait for each other.
func lockAdmins(ctx context.Context, tx pgx.Tx, by account.ID) ([]account.ID, error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('account operators', 0))`); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `SELECT id::text FROM account_account WHERE role = 'admin' AND NOT disabled ORDER BY id FOR UPDATE`)
	if err != nil {
		return nil, err
	}
	admins, err := pgx.CollectRows(rows, pgx.RowTo[account.ID])
	if err == nil && !slices.Contains(admins, by) {
		err = account.ErrNotAdmin
	}
	return admins, err
}

// auditIn appends a line in a transaction, as its last step: the log waits until it ends.
func auditIn(ctx context.Context, tx pgx.Tx, e audit.Entry) error {
	_, err := tx.Exec(ctx, `INSERT INTO account_audit (at, actor, role, addr, action, object, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		e.At, e.Actor, string(e.Role), e.Addr, e.Action, e.Object, e.Detail)
	if err != nil {
		return audit.Unwritten(e.Action, err)
	}
	return nil
}

// AddOperator implements account.OperatorStore.
func (s *Store) AddOperator(ctx context.Context, by account.ID, a account.Account, hash string, log audit.Entry) (account.Account, error) {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := lockAdmins(ctx, tx, by); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `INSERT INTO account_account AS a (email, role, password, must_change) VALUES ($1, $2, $3, $4) RETURNING `+accountColumns,
			a.Email, string(a.Role), hash, a.MustChange).Scan(accountFields(&a)...)
		if err != nil {
			return err
		}
		log.Object = string(a.ID)
		return auditIn(ctx, tx, log)
	})
	if err != nil {
		return account.Account{}, taken(err)
	}
	return a, nil
}

// ChangeOperator implements account.OperatorStore.
func (s *Store) ChangeOperator(ctx context.Context, by, id account.ID, c account.OperatorChange) (account.Account, error) {
	var a account.Account
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		admins, err := lockAdmins(ctx, tx, by)
		if err != nil {
			return err
		}
		who := pg.UUID(id)
		err = tx.QueryRow(ctx, `
			SELECT `+accountColumns+` FROM account_account a
			WHERE a.id = $1 AND a.role <> 'owner' AND NOT EXISTS (SELECT FROM account_deletion d WHERE d.account = a.id) FOR UPDATE OF a`, who).Scan(accountFields(&a)...)
		if err != nil {
			return err
		}
		leaves := c.Remove || c.Disabled != nil && *c.Disabled || c.Role != nil && *c.Role != auth.Admin
		if leaves && len(admins) == 1 && admins[0] == a.ID {
			return account.ErrLastAdmin
		}
		if err := applyChange(ctx, tx, who, c); err != nil {
			return err
		}
		return auditIn(ctx, tx, c.Log)
	})
	if err != nil {
		return account.Account{}, none(err)
	}
	return a, nil
}

func applyChange(ctx context.Context, tx pgx.Tx, who pgtype.UUID, c account.OperatorChange) error {
	steps := []struct {
		do  bool
		sql string
		arg any
	}{
		{c.Role != nil, `UPDATE account_account SET role = $2 WHERE id = $1`, c.Role},
		{c.Disabled != nil, `UPDATE account_account SET disabled = $2 WHERE id = $1`, c.Disabled},
		{c.Password != nil, `UPDATE account_account SET password = $2, must_change = true WHERE id = $1`, c.Password},
		{c.Password != nil, `DELETE FROM account_passkey WHERE account = $1`, nil},
		{c.Password != nil, `DELETE FROM account_totp WHERE account = $1`, nil},
		{c.Remove, `UPDATE account_account SET disabled = true WHERE id = $1`, nil},
		{c.Remove, `INSERT INTO account_deletion (account, requested_at) VALUES ($1, $2)`, c.Log.At},
	}
	if c.Remove || c.Password != nil || c.Disabled != nil && *c.Disabled {
		for _, table := range []string{"account_session", "account_user_session", "account_ticket"} {
			steps = append(steps, struct {
				do  bool
				sql string
				arg any
			}{true, `DELETE FROM ` + table + ` WHERE account = $1`, nil})
		}
	}
	for _, s := range steps {
		if !s.do {
			continue
		}
		args := []any{who}
		if s.arg != nil {
			args = append(args, s.arg)
		}
		if _, err := tx.Exec(ctx, s.sql, args...); err != nil {
			return err
		}
	}
	return nil
}

// Federate implements account.OperatorStore.
func (s *Store) Federate(ctx context.Context, id account.Identity, hash string, log audit.Entry) (account.Account, error) {
	var a account.Account
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		// One at a time for each identity; the same identity twice at once makes one account.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('account_oidc ' || $1::text, 0))`, id.Email); err != nil {
			return err
		}
		admins, err := lockAdmins(ctx, tx, "")
		if err != nil && !errors.Is(err, account.ErrNotAdmin) {
			return err
		}
		var changed []string
		err = tx.QueryRow(ctx, `SELECT `+accountColumns+` FROM account_account a JOIN account_oidc o ON o.account = a.id WHERE o.issuer = $1 AND o.subject = $2 FOR UPDATE OF a`,
			id.Issuer, id.Subject).Scan(accountFields(&a)...)
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, `SELECT `+accountColumns+` FROM account_account a WHERE a.email = $1 FOR UPDATE`, id.Email).Scan(accountFields(&a)...)
			if errors.Is(err, pgx.ErrNoRows) {
				err = tx.QueryRow(ctx, `INSERT INTO account_account AS a (email, role, password) VALUES ($1, $2, $3) RETURNING `+accountColumns, id.Email, string(id.Role), hash).
					Scan(accountFields(&a)...)
				changed = append(changed, "new, "+string(id.Role))
			}
			if err == nil && a.Role != auth.Owner && !a.Disabled {
				_, err = tx.Exec(ctx, `INSERT INTO account_oidc (issuer, subject, account) VALUES ($1, $2, $3)`, id.Issuer, id.Subject, pg.UUID(a.ID))
				changed = append(changed, "linked")
			}
		}
		switch {
		case err != nil:
			return err
		case a.Role == auth.Owner:
			return account.ErrTaken
		case a.Disabled:
			return account.ErrUnknown
		}
		lastAdmin := len(admins) == 1 && admins[0] == a.ID
		if a.Role != id.Role && !lastAdmin {
			if _, err := tx.Exec(ctx, `UPDATE account_account SET role = $2 WHERE id = $1`, pg.UUID(a.ID), string(id.Role)); err != nil {
				return err
			}
			changed = append(changed, string(a.Role)+" becomes "+string(id.Role))
			a.Role = id.Role
		}
		if len(changed) == 0 {
			return nil
		}
		log.Actor, log.Role, log.Action, log.Object, log.Detail = string(a.ID), a.Role, "operator.oidc", string(a.ID), strings.Join(changed, "; ")
		return auditIn(ctx, tx, log)
	})
	if err != nil {
		return account.Account{}, taken(err)
	}
	return a, nil
}

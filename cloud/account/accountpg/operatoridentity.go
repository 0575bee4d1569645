package accountpg

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/account"
	"kennel/infra/auth"
	"kennel/infra/pg"
)

// Federate implements account.IdentityStore.
func (s *Store) Federate(ctx context.Context, id account.Identity, hash string, log account.Entry) (account.Account, error) {
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

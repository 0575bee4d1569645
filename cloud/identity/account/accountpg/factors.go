package accountpg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
)

// PasswordOnly returns how many operators may sign in, and the e-mail addresses of those who have neither a passkey nor
// an authenticator app.
func (s *Store) PasswordOnly(ctx context.Context) (all int, without []string, err error) {
	rows, err := s.pool.Query(ctx, `
		SELECT a.email, EXISTS (SELECT FROM account_passkey k WHERE k.account = a.id) OR EXISTS (SELECT FROM account_totp t WHERE t.account = a.id AND t.since IS NOT NULL)
		FROM account_account a
		WHERE a.role <> 'owner' AND NOT a.disabled AND NOT EXISTS (SELECT FROM account_deletion d WHERE d.account = a.id)
		ORDER BY a.email`)
	if err != nil {
		return 0, nil, pg.Err(err)
	}
	var email string
	var has bool
	_, err = pgx.ForEachRow(rows, []any{&email, &has}, func() error {
		if all++; !has {
			without = append(without, email)
		}
		return nil
	})
	return all, without, pg.Err(err)
}

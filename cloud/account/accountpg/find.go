package accountpg

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
)

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

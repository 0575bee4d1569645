package certspg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Newest returns until when the newest certificates of at most limit things after one are good, and the last of them; a zero time for one
// that was revoked. Things that never had a certificate are not among them.
func (s *Store) Newest(ctx context.Context, after thing.ID, limit int) (until map[thing.ID]time.Time, last thing.ID, err error) {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT ON (thing) thing, CASE WHEN revoked_at IS NULL THEN not_after END
		FROM certs_certificate WHERE thing > $1 ORDER BY thing, issued_at DESC, serial LIMIT $2`, string(after), limit)
	if err != nil {
		return nil, "", fmt.Errorf("newest certificates: %w", pg.Err(err))
	}
	until = map[thing.ID]time.Time{}
	var end *time.Time
	_, err = pgx.ForEachRow(rows, []any{&last, &end}, func() error {
		until[last] = time.Time{}
		if end != nil {
			until[last] = *end
		}
		end = nil
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("newest certificates: %w", pg.Err(err))
	}
	return until, last, nil
}

package webhookpg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Held is a delivery in an export: what was, or is to be, told about a robot. Whom is not the owner's to know.
type Held struct {
	Kind    string          `json:"kind"`
	Created time.Time       `json:"created"`
	Body    json.RawMessage `json:"body"`
}

// Of returns the deliveries about a robot of a stretch of time.
func (s *Store) Of(ctx context.Context, of thing.Stretch) (any, error) {
	rows, err := s.pool.Query(ctx, `SELECT kind, created, body FROM webhook_delivery WHERE thing = $1 AND created >= $2 AND created < $3 ORDER BY id`,
		string(of.Thing), of.Since, of.Until)
	if err != nil {
		return nil, fmt.Errorf("deliveries about %s: %w", of.Thing, pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Held])
	return out, pg.Err(err)
}

// handed is how long what happened may take to become a delivery.
const handed = time.Minute

// Erase removes the deliveries about a robot of a stretch of time, and what was to become such, and returns how many. Those that are still to be
// sent are not sent: they may tell what the person's settings were.
func (s *Store) Erase(ctx context.Context, of thing.Stretch) (n int, err error) {
	for _, sql := range []string{`DELETE FROM webhook_event WHERE thing = $1 AND at >= $2 AND at < $3`,
		`DELETE FROM webhook_delivery WHERE thing = $1 AND created >= $2 AND created < $3`} {
		tag, err := s.pool.Exec(ctx, sql, string(of.Thing), of.Since, of.Until.Add(handed))
		if err != nil {
			return n, fmt.Errorf("erase deliveries about %s: %w", of.Thing, pg.Err(err))
		}
		n += int(tag.RowsAffected())
	}
	return n, nil
}

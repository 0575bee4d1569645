package customintentpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Held is a robot's own custom intent in an export. Who added it is not the owner's to know.
type Held struct {
	Name    string    `json:"name"`
	Phrases []string  `json:"phrases"`
	Created time.Time `json:"created"`
}

// Of returns a robot's own custom intents of a stretch of time.
func (s *Store) Of(ctx context.Context, of thing.Stretch) (any, error) {
	rows, err := s.pool.Query(ctx, `SELECT name, phrases, created FROM intent_custom WHERE thing = $1 AND created >= $2 AND created < $3 ORDER BY id`,
		of.Thing, of.Since, of.Until)
	if err != nil {
		return nil, pg.Wrap(err, "custom intents of %s", of.Thing)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Held])
	return out, pg.Wrap(err, "custom intents of %s", of.Thing)
}

// Erase removes a robot's own custom intents of a stretch of time, and returns how many.
func (s *Store) Erase(ctx context.Context, of thing.Stretch) (int, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM intent_custom WHERE thing = $1 AND created >= $2 AND created < $3`, of.Thing, of.Since, of.Until)
	return int(tag.RowsAffected()), pg.Wrap(err, "erase custom intents of %s", of.Thing)
}

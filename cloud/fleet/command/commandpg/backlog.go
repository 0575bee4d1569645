package commandpg

import (
	"context"
	"time"

	"kennel/infra/pg"
)

// Backlog returns how many commands have neither result nor expiry, and the age of the oldest (0 without any): how far robots are behind.
func (s *Store) Backlog(ctx context.Context) (open int, oldest time.Duration, err error) {
	var seconds float64
	err = s.pool.QueryRow(ctx, `SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(created)), 0)::float8
		FROM command_outbox WHERE closed IS NULL`).Scan(&open, &seconds)
	return open, time.Duration(max(0, seconds) * float64(time.Second)), pg.Wrap(err, "count open commands")
}

package commandpg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/fleet/command"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Held is a command as an export shows it to the person who gave it.
type Held struct {
	Thing   thing.ID        `json:"thing"`
	Kind    string          `json:"kind"`
	Args    json.RawMessage `json:"args"`
	Created time.Time       `json:"created"`
	State   string          `json:"state"`
}

// Export returns the commands that an account gave and that are still kept.
func (s *Store) Export(ctx context.Context, account string) (any, error) {
	rows, err := s.pool.Query(ctx, `SELECT thing, kind, args, created, state FROM command_outbox WHERE (by_whom = $1 OR account = $1) AND $1 <> '' ORDER BY num`, account)
	if err != nil {
		return nil, fmt.Errorf("commands of an account: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Held])
	if err != nil {
		return nil, fmt.Errorf("commands of an account: %w", pg.Err(err))
	}
	return out, nil
}

// Erase forgets the commands that an account gave; open ones are not carried out. It may be repeated.
func (s *Store) Erase(ctx context.Context, account string) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM command_outbox WHERE (by_whom = $1 OR account = $1) AND $1 <> ''`, account)
	if err != nil {
		return fmt.Errorf("erase the commands of an account: %w", pg.Err(err))
	}
	return nil
}

// End implements command.Store. Commands of owners that were given before accounts were kept with them end as well.
func (s *Store) End(ctx context.Context, id thing.ID, account string, until time.Time) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM command_due WHERE thing = $1 FOR UPDATE`, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE command_outbox SET state = 'expired', closed = clock_timestamp()
			WHERE thing = $1 AND closed IS NULL AND by_whom = $2 AND (account = $3 OR account IS NULL) AND created <= $4`, id, command.ByOwner, account, until); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE command_due SET tries = 0, next_send = now() WHERE thing = $1`, id) // for what comes next, if anything does
		return err
	})
	return pg.Wrap(err, "commands of the owner of %s", id)
}

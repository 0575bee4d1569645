package otapg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/ota"
)

var _ ota.Choices = (*Store)(nil)

const choiceFields = `thing, release, now, until, first, chosen`

// Choices implements ota.Choices.
func (s *Store) Choices(ctx context.Context, things []thing.ID) (map[thing.ID]ota.Choice, error) {
	return s.choices(ctx, `SELECT `+choiceFields+` FROM ota_choice WHERE $1::text[] IS NULL OR thing = ANY ($1)`, things)
}

// ChoicesOf returns the choice that was made in a stretch.
func (s *Store) ChoicesOf(ctx context.Context, of thing.Stretch) (any, error) {
	return s.choices(ctx, `SELECT `+choiceFields+` FROM ota_choice WHERE thing = $1 AND chosen >= $2 AND chosen < $3`, of.Thing, of.Since, of.Until)
}

func (s *Store) choices(ctx context.Context, sql string, args ...any) (map[thing.ID]ota.Choice, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Wrap(err, "owners' choices")
	}
	out := map[thing.ID]ota.Choice{}
	var id thing.ID
	var c ota.Choice
	var first *time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &c.Release, &c.Now, &c.Until, &first, &c.Chosen}, func() error {
		if c.First = (time.Time{}); first != nil {
			c.First = *first
		}
		out[id] = c
		return nil
	})
	return out, pg.Wrap(err, "owners' choices")
}

// SetChoice implements ota.Choices.
func (s *Store) SetChoice(ctx context.Context, id thing.ID, c ota.Choice) error {
	var first *time.Time
	if !c.First.IsZero() {
		first = &c.First
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO ota_choice (thing, release, now, until, first, chosen) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (thing) DO UPDATE
		SET release = excluded.release, now = excluded.now, until = excluded.until, first = excluded.first, chosen = excluded.chosen`, id, c.Release, c.Now, c.Until, first, c.Chosen)
	return pg.Wrap(err, "owner's choice of %s", id)
}

// EndChoice implements ota.Choices.
func (s *Store) EndChoice(ctx context.Context, id thing.ID) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM ota_choice WHERE thing = $1`, id)
	return pg.Wrap(err, "owner's choice of %s", id)
}

// DropChoices forgets the choice that was made in a stretch, and returns how many that were.
func (s *Store) DropChoices(ctx context.Context, of thing.Stretch) (int, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM ota_choice WHERE thing = $1 AND chosen >= $2 AND chosen < $3`, of.Thing, of.Since, of.Until)
	return int(tag.RowsAffected()), pg.Wrap(err, "owner's choice of %s", of.Thing)
}

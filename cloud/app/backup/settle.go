package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/updates/rollout"
	"kennel/infra/cli"
	"kennel/infra/migrations"
	"kennel/infra/pg"
)

// settled says what settle stopped.
type settled struct {
	Made     time.Time `json:"made"` // the backup
	Rollouts int64     `json:"rollouts_paused"`
	Wishes   []string  `json:"wishes_held"`
	Bulk     int64     `json:"bulk_cancelled"`
	Commands int64     `json:"commands_expired"`
}

// settle stops in a restored database whatever acts on robots by itself: people may have stopped it since the backup was made, and nothing in the backup knows of that. Rollouts are
// paused, wishes wait, and bulk actions and commands under way end. It is done before anything of kenneld runs on that database, and may be repeated.
func settle(ctx context.Context, db pg.Config, made time.Time) (out settled, err error) {
	pool, err := pg.Open(ctx, db)
	if err != nil {
		return out, err
	}
	defer pool.Close()
	if _, err := pg.Migrate(ctx, pool, migrations.FS); err != nil { // a former release made the backup
		return out, err
	}
	now := time.Now().UTC()
	why := "restored from a backup of " + made.UTC().Format("2006-01-02 15:04 MST") + ": check and resume"
	err = pg.Tx(ctx, pool, func(tx pgx.Tx) error {
		out = settled{Made: made}
		for _, s := range []struct {
			n    *int64
			sql  string
			args []any
		}{
			{&out.Rollouts, `WITH paused AS (UPDATE rollout_rollout SET state = $1, doc = doc || jsonb_build_object('state', $1::text, 'why', $2::text, 'changed', $3::text)
					WHERE state IN ('running', 'baking', 'done') RETURNING id, (doc->>'phase')::int AS phase)
				INSERT INTO rollout_turn (rollout, at, kind, by_whom, phase, words) SELECT id, $3::text::timestamptz, $4, 'kenneld', phase, $2 FROM paused`,
				[]any{rollout.Paused, why, now.Format(time.RFC3339Nano), rollout.TurnPaused}},
			{&out.Commands, `UPDATE command_outbox SET state = 'expired', closed = clock_timestamp() WHERE closed IS NULL`, nil},
			{new(int64), `UPDATE bulk_item SET state = 'dropped', at = clock_timestamp(), detail = $1 WHERE state = 'open'`, []any{why}},
			{&out.Bulk, `UPDATE bulk_job SET state = 'cancelled', closed = clock_timestamp() WHERE state = 'running'`, nil},
		} {
			tag, err := tx.Exec(ctx, s.sql, s.args...)
			if err != nil {
				return err
			}
			*s.n = tag.RowsAffected()
		}
		rows, err := tx.Query(ctx, `UPDATE ota_desired SET held = true WHERE NOT held RETURNING scope || ' ' || version`)
		if err != nil {
			return err
		}
		out.Wishes, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return out, pg.Wrap(err, "stop operations in progress")
}

// maxNamed is how many wishes the operator is told by name.
const maxNamed = 20

// String tells the operator what was stopped, and what only the operator can know.
func (s settled) String() string {
	out := fmt.Sprintf("Stopped, because operators may have stopped it since the backup of %s: %s (now paused), %s, %s and %s.",
		s.Made.UTC().Format(time.RFC3339), cli.Count(s.Rollouts, "rollout"), cli.Count(s.Bulk, "bulk job"), cli.Count(s.Commands, "command"), cli.Count(len(s.Wishes), "target release"))
	if named := s.Wishes[:min(len(s.Wishes), maxNamed)]; len(named) > 0 {
		out += " To set a target release again: kennelctl releases want " + strings.Join(named, "; want ")
		if more := len(s.Wishes) - len(named); more > 0 {
			out += fmt.Sprintf("; and %d more", more)
		}
		out += "."
	}
	return out + " Operators removed, certificates revoked, channels changed and accounts erased since then are back as in the backup: repeat these changes before you let robots and people in."
}

package alertpg

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/alert"
	"kennel/infra/errs"
	"kennel/infra/pg"
)

// Thresholds implements alert.Store.
func (s *Store) Thresholds(ctx context.Context) ([]alert.Threshold, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, kind, of, level, robots, hours, changed, by_whom FROM alert_threshold ORDER BY id`)
	if err != nil {
		return nil, pg.Wrap(err, "list thresholds")
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t alert.Threshold, err error) {
		err = row.Scan(&t.ID, &t.Kind, &t.Of, &t.Level, &t.Robots, &t.Hours, &t.Changed, &t.By)
		return t, err
	})
	return out, pg.Wrap(err, "list thresholds")
}

// AddThreshold implements alert.Store.
func (s *Store) AddThreshold(ctx context.Context, t alert.Threshold) (alert.Threshold, error) {
	rows, err := s.pool.Query(ctx, `INSERT INTO alert_threshold (kind, of, level, robots, hours, changed, by_whom)
		SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT count(*) FROM alert_threshold) < $8 RETURNING id`, t.Kind, t.Of, t.Level, t.Robots, t.Hours, t.Changed, t.By, alert.MaxThresholds)
	if err != nil {
		return t, pg.Wrap(err, "add threshold")
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return t, pg.Wrap(err, "add threshold")
	}
	if len(ids) == 0 {
		return t, errs.New(errs.Exhausted, "threshold limit reached (%d)", alert.MaxThresholds)
	}
	t.ID = ids[0]
	return t, nil
}

// DropThreshold implements alert.Store.
func (s *Store) DropThreshold(ctx context.Context, id int64) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM alert_threshold WHERE id = $1`, id)
	if err == nil && tag.RowsAffected() == 0 {
		return errs.New(errs.NotFound, "there is no threshold %d", id)
	}
	return pg.Wrap(err, "remove threshold")
}

// Recipients implements alert.Store.
func (s *Store) Recipients(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT address FROM alert_mail ORDER BY address`)
	if err != nil {
		return nil, pg.Wrap(err, "list recipients of letters")
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Wrap(err, "list recipients of letters")
}

// SetRecipients implements alert.Store.
func (s *Store) SetRecipients(ctx context.Context, to []string) error {
	return pg.Wrap(pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`DELETE FROM alert_mail`)
		b.Queue(`INSERT INTO alert_mail (address) SELECT unnest($1::text[])`, to)
		return tx.SendBatch(ctx, b).Close()
	}), "set recipients of letters")
}

// Crossed implements alert.Store.
func (s *Store) Crossed(ctx context.Context, all []alert.Crossing) error {
	const now = `jsonb_to_recordset($1) AS n (threshold bigint, release text, kind text, code text, robots integer, present integer, reason text, fires boolean)`
	const same = `(n.threshold, n.release, n.code) = (a.threshold, a.release, a.code)`
	given, err := json.Marshal(append([]alert.Crossing{}, all...))
	if err != nil {
		return err
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`UPDATE alert_crossed AS a SET missed = coalesce(missed, clock_timestamp()), resolved = CASE WHEN missed <= clock_timestamp() - $2::interval THEN clock_timestamp() END
			WHERE resolved IS NULL AND NOT EXISTS (SELECT FROM `+now+` WHERE `+same+`)`, given, alert.ResolveAfter)
		b.Queue(`UPDATE alert_crossed AS a SET robots = n.robots, present = n.present, reason = n.reason, missed = NULL FROM `+now+`
			WHERE a.resolved IS NULL AND `+same+` AND (a.reason <> n.reason OR a.missed IS NOT NULL)`, given)
		b.Queue(`INSERT INTO alert_crossed (threshold, release, kind, code, robots, present, reason, since)
			SELECT threshold, release, kind, code, robots, present, reason, clock_timestamp() FROM `+now+` WHERE fires ON CONFLICT (threshold, release, code) WHERE resolved IS NULL DO NOTHING`, given)
		b.Queue(`DELETE FROM alert_crossed WHERE resolved < clock_timestamp() - $1::interval`, alert.Keep)
		return tx.SendBatch(ctx, b).Close()
	})
	return pg.Wrap(err, "store crossed thresholds")
}

// Untold implements alert.Store.
func (s *Store) Untold(ctx context.Context, tell func(alert.Alert) error) error {
	for table, columns := range columns {
		err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `SELECT `+columns+` FROM `+table+` WHERE mailed < CASE WHEN resolved IS NULL THEN 1 ELSE 2 END ORDER BY id FOR UPDATE SKIP LOCKED`)
			if err != nil {
				return err
			}
			due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[alert.Alert])
			if err != nil || len(due) == 0 {
				return err
			}
			var firing, resolved []int64
			for _, a := range due {
				if err := tell(a); err != nil {
					return err
				}
				if a.Resolved == nil {
					firing = append(firing, a.ID)
				} else {
					resolved = append(resolved, a.ID)
				}
			}
			_, err = tx.Exec(ctx, `UPDATE `+table+` SET mailed = CASE WHEN id = ANY($1) THEN 1 ELSE 2 END WHERE id = ANY($1) OR id = ANY($2)`, firing, resolved)
			return err
		})
		if err != nil {
			return pg.Wrap(err, "tell of alerts")
		}
	}
	return nil
}

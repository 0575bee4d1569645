package alertpg

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/telemetry/alert"
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
		return errs.New(errs.NotFound, "no threshold %d", id)
	}
	return pg.Wrap(err, "remove threshold")
}

// Recipients implements alert.Store.
func (s *Store) Recipients(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT address FROM alert_mail ORDER BY address`)
	if err != nil {
		return nil, pg.Wrap(err, "list recipients of alerts")
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Wrap(err, "list recipients of alerts")
}

// SetRecipients implements alert.Store.
func (s *Store) SetRecipients(ctx context.Context, to []string) error {
	return pg.Wrap(pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`DELETE FROM alert_mail`)
		b.Queue(`INSERT INTO alert_mail (address) SELECT unnest($1::text[])`, to)
		return tx.SendBatch(ctx, b).Close()
	}), "set recipients of alerts")
}

// Crossed implements alert.Store.
func (s *Store) Crossed(ctx context.Context, c alert.Compared) error {
	const now = `jsonb_to_recordset($1) AS n (threshold bigint, release text, kind text, code text, robots integer, present integer, reason text, fires boolean)`
	const same = `(n.threshold, n.release, n.code) = (a.threshold, a.release, a.code)`
	const known = `jsonb_to_recordset($%d) AS k (threshold bigint, release text, settle integer)`
	const set = `robots = n.robots, present = n.present, reason = n.reason`
	given, err := json.Marshal(append([]alert.Crossing{}, c.Crossings...))
	if err != nil {
		return err
	}
	data, err := json.Marshal(append([]alert.Known{}, c.Known...))
	if err != nil {
		return err
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`UPDATE alert_crossed AS a SET heard = clock_timestamp() FROM `+fmt.Sprintf(known, 1)+` WHERE a.resolved IS NULL AND (k.threshold, k.release) = (a.threshold, a.release) AND a.heard < clock_timestamp() - interval '1 minute'`, data)
		b.Queue(`UPDATE alert_crossed AS a SET missed = coalesce(missed, clock_timestamp()), resolved = CASE WHEN missed <= clock_timestamp() - make_interval(secs => k.settle) THEN clock_timestamp() END
			FROM `+fmt.Sprintf(known, 2)+` WHERE a.resolved IS NULL AND (k.threshold, k.release) = (a.threshold, a.release) AND NOT EXISTS (SELECT FROM `+now+` WHERE `+same+`)`, given, data)
		b.Queue(`UPDATE alert_crossed SET resolved = clock_timestamp() WHERE resolved IS NULL AND (threshold <> ALL ($1::bigint[]) OR heard < clock_timestamp() - $2::interval)`, append([]int64{}, c.Thresholds...), alert.UnheardAfter)
		b.Queue(`UPDATE alert_crossed AS a SET `+set+`, missed = NULL FROM `+now+` WHERE a.resolved IS NULL AND `+same+` AND (a.reason <> n.reason OR a.missed IS NOT NULL)`, given)
		b.Queue(reopen("alert_crossed", now, same, `(o.threshold, o.release, o.code) = (a.threshold, a.release, a.code)`, set), given, alert.ReopenWithin)
		b.Queue(`INSERT INTO alert_crossed (threshold, release, kind, code, robots, present, reason, since)
			SELECT threshold, release, kind, code, robots, present, reason, clock_timestamp() FROM `+now+` WHERE fires ON CONFLICT (threshold, release, code) WHERE resolved IS NULL DO NOTHING`, given)
		b.Queue(`DELETE FROM alert_crossed WHERE resolved < clock_timestamp() - $1::interval`, alert.Keep)
		return tx.SendBatch(ctx, b).Close()
	})
	return pg.Wrap(err, "store crossed thresholds")
}

// Untold implements alert.Store.
func (s *Store) Untold(ctx context.Context, tell func(alert.Letter) error) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM alert_ack AS k USING `+everyAlert+` WHERE k.id = a.id AND (a.resolved IS NOT NULL OR `+fmt.Sprintf(worse, "k.size")+`)`); err != nil {
		return pg.Wrap(err, "end acknowledgements")
	}
	for table, columns := range tables {
		err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `SELECT a.id, a.release, a.kind, a.code, a.robots, a.present, a.since, a.resolved, a.place, a.reason, a.mailed > 0 FROM (SELECT `+columns+` FROM `+table+`
					WHERE resolved IS NULL OR mailed = 1 FOR UPDATE SKIP LOCKED) AS a`+silenced+`
				WHERE s.id IS NULL AND CASE WHEN a.resolved IS NULL THEN a.mailed <> 1 OR `+fmt.Sprintf(worse, "a.told_size")+` ELSE a.resolved < clock_timestamp() - $1::interval END ORDER BY a.id`, alert.ReopenWithin)
			if err != nil {
				return err
			}
			var a alert.Letter
			var due []alert.Letter
			if _, err = pgx.ForEachRow(rows, []any{&a.ID, &a.Release, &a.Kind, &a.Code, &a.Robots, &a.Present, &a.Since, &a.Resolved, &a.Place, &a.Reason, &a.Worse}, func() error {
				due = append(due, a)
				return nil
			}); err != nil || len(due) == 0 {
				return err
			}
			var ids []int64
			for _, a := range due {
				if err := tell(a); err != nil {
					return err
				}
				ids = append(ids, a.ID)
			}
			_, err = tx.Exec(ctx, `UPDATE `+table+` AS t SET mailed = CASE WHEN t.resolved IS NULL THEN 1 ELSE 2 END, told_size = a.size FROM (SELECT `+columns+` FROM `+table+`) AS a WHERE a.id = t.id AND t.id = ANY($1)`, ids)
			return err
		})
		if err != nil {
			return pg.Wrap(err, "queue notices of alerts")
		}
	}
	return nil
}

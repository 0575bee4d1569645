package alertpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/telemetry/alert"
	"kennel/infra/errs"
	"kennel/infra/pg"
)

func noAlert(id int64) error {
	return errs.Coded(errs.NotFound, "no_alert", "alert %d is not firing", id)
}

// Ack implements alert.Desk.
func (s *Store) Ack(ctx context.Context, id int64, a alert.Ack) error {
	tag, err := s.pool.Exec(ctx, `INSERT INTO alert_ack (id, at, by_whom, why, size) SELECT id, clock_timestamp(), $2, $3, size FROM `+everyAlert+` WHERE a.id = $1 AND a.resolved IS NULL
		ON CONFLICT (id) DO UPDATE SET at = excluded.at, by_whom = excluded.by_whom, why = excluded.why, size = excluded.size`, id, a.By, a.Why)
	if err == nil && tag.RowsAffected() == 0 {
		return noAlert(id)
	}
	return pg.Wrap(err, "acknowledge alert %d", id)
}

// Unack implements alert.Desk.
func (s *Store) Unack(ctx context.Context, id int64) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM alert_ack WHERE id = $1`, id)
	if err == nil && tag.RowsAffected() == 0 {
		return errs.Coded(errs.NotFound, "no_ack", "alert %d is not acknowledged", id)
	}
	return pg.Wrap(err, "take back acknowledgement of alert %d", id)
}

const silenceColumns = `id, release, place, kind, code, since, until, by_whom, why`

// Silence implements alert.Desk.
func (s *Store) Silence(ctx context.Context, h alert.Hush, by string) (alert.Silence, error) {
	rows, err := s.pool.Query(ctx, `INSERT INTO alert_silence (release, place, kind, code, since, until, by_whom, why)
		SELECT release, place, about, code, clock_timestamp(), clock_timestamp() + make_interval(mins => $2), $3, $4 FROM `+everyAlert+` WHERE a.id = $1 RETURNING `+silenceColumns, h.Alert, h.Minutes, by, h.Why)
	if err != nil {
		return alert.Silence{}, pg.Wrap(err, "silence alert %d", h.Alert)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[alert.Silence])
	if err == nil && len(list) == 0 {
		return alert.Silence{}, errs.Coded(errs.NotFound, "no_alert", "no alert %d", h.Alert)
	}
	if err != nil {
		return alert.Silence{}, pg.Wrap(err, "silence alert %d", h.Alert)
	}
	return list[0], nil
}

// Silences implements alert.Desk.
func (s *Store) Silences(ctx context.Context) ([]alert.Silence, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+silenceColumns+` FROM alert_silence WHERE until > clock_timestamp() ORDER BY until, id`)
	if err != nil {
		return nil, pg.Wrap(err, "list silences")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[alert.Silence])
	return out, pg.Wrap(err, "list silences")
}

// Unsilence implements alert.Desk. The row stays: it says who silenced what.
func (s *Store) Unsilence(ctx context.Context, id int64) error {
	tag, err := s.pool.Exec(ctx, `UPDATE alert_silence SET until = clock_timestamp() WHERE id = $1 AND until > clock_timestamp()`, id)
	if err == nil && tag.RowsAffected() == 0 {
		return errs.Coded(errs.NotFound, "no_silence", "no silence %d", id)
	}
	return pg.Wrap(err, "end silence %d", id)
}

// historyDays is on how many days before an hour is looked at, and historyNear how far from the time of day.
const (
	historyDays = 14
	historyNear = 30 * time.Minute
)

// Usual implements alert.History.
func (s *Store) Usual(ctx context.Context) (map[string]alert.Usual, error) {
	rows, err := s.pool.Query(ctx, `SELECT species, max(gone::float8 / base), count(DISTINCT days)
		FROM (SELECT *, round(extract(epoch FROM clock_timestamp() - at) / 86400) AS days, extract(epoch FROM clock_timestamp() - at) AS age FROM alert_gone WHERE at > clock_timestamp() - make_interval(days => $1 + 1)) AS g
		WHERE days BETWEEN 1 AND $1 AND abs(age - 86400 * days) <= extract(epoch FROM $2::interval) GROUP BY species`, historyDays, historyNear)
	if err != nil {
		return nil, pg.Wrap(err, "read usual shares of absent robots")
	}
	out, species, u := map[string]alert.Usual{}, "", alert.Usual{}
	_, err = pgx.ForEachRow(rows, []any{&species, &u.Share, &u.Days}, func() error {
		out[species] = u
		return nil
	})
	return out, pg.Wrap(err, "read usual shares of absent robots")
}

// Keep implements alert.History.
func (s *Store) Keep(ctx context.Context, every time.Duration, species []string, gone, base []int) error {
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO alert_gone (species, at, gone, base) SELECT n.species, date_bin($1::interval, clock_timestamp(), 'epoch'), n.gone, n.base FROM unnest($2::text[], $3::int[], $4::int[]) AS n (species, gone, base)
		ON CONFLICT (species, at) DO NOTHING`, every, append([]string{}, species...), append([]int{}, gone...), append([]int{}, base...))
	b.Queue(`DELETE FROM alert_gone WHERE at < clock_timestamp() - make_interval(days => $1)`, historyDays+1)
	return pg.Wrap(s.pool.SendBatch(ctx, b).Close(), "store shares of absent robots")
}

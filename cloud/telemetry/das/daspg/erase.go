package daspg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kennel/cloud/telemetry/das"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

const (
	// archiveLock is the advisory lock of work on the raw archive, in any process.
	archiveLock = 0x6b726177 // "kraw"
	// eraseRows is how many events one statement deletes or changes: it is short, and those who write events wait for none of these rows.
	eraseRows = 5000
	endTime   = 5 * time.Second // before its end a run begins no further step
)

var errAgain = errs.Coded(errs.Unavailable, errs.CodeAgain, "events are being erased")

func enough(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(at) > endTime)
}

// Locked implements archive.Ledger with a lock of a connection, which goes with its process.
func (s *Store) Locked(ctx context.Context, fn func(held func(context.Context) error) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return pg.Err(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, archiveLock); err != nil {
		_ = conn.Conn().Close(context.WithoutCancel(ctx)) // it may hold the lock
		return fmt.Errorf("lock the raw archive: %w", pg.Err(err))
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, archiveLock); err != nil {
			_ = conn.Conn().Close(ctx) // that unlocks too
		}
	}()
	return fn(conn.Ping)
}

// Erased implements archive.Ledger.
func (s *Store) Erased(ctx context.Context) ([]thing.Stretch, error) {
	rows, err := s.pool.Query(ctx, `SELECT thing, since, until FROM das_erased`)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[thing.Stretch])
	return out, pg.Err(err)
}

// BeginErase implements das.Eraser.
func (s *Store) BeginErase(ctx context.Context, stretch thing.Stretch) (upto time.Time, err error) {
	err = s.pool.QueryRow(ctx, `INSERT INTO das_erased AS e (thing, since, until) VALUES ($1, $2, $3)
		ON CONFLICT (thing, since) DO UPDATE SET until = greatest(e.until, excluded.until) RETURNING greatest(e.upto, e.since)`,
		string(stretch.Thing), stretch.Since, stretch.Until).Scan(&upto)
	return upto, pg.Err(err)
}

// ErasedUpTo implements das.Eraser.
func (s *Store) ErasedUpTo(ctx context.Context, stretch thing.Stretch, upto time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE das_erased SET upto = greatest(upto, $3) WHERE thing = $1 AND since = $2`, string(stretch.Thing), stretch.Since, upto)
	return pg.Err(err)
}

// EndErase implements das.Eraser.
func (s *Store) EndErase(ctx context.Context, stretch thing.Stretch) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM das_erased WHERE thing = $1 AND since = $2`, string(stretch.Thing), stretch.Since)
	return pg.Err(err)
}

// Settled implements das.Eraser.
func (s *Store) Settled(ctx context.Context, before time.Time) ([]thing.Stretch, error) {
	rows, err := s.pool.Query(ctx, `SELECT thing, since, until FROM das_erased WHERE added < $1 ORDER BY added`, before)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[thing.Stretch])
	return out, pg.Err(err)
}

// partitions returns the tables of the days from since to until, oldest first, with those that are being dropped.
func (s *Store) partitions(ctx context.Context, since, until time.Time) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT relname::text FROM pg_class
		WHERE relname ~ '^das_event_[0-9]{8}$' AND relname BETWEEN $1 AND $2 AND relkind = 'r' AND pg_table_is_visible(oid) ORDER BY 1`,
		"das_event_"+day(since), "das_event_"+day(until))
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Err(err)
}

// gone reports whether a partition was dropped since it was listed.
func gone(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pe.Code == "42P01"
}

// EraseEvents implements das.Eraser.
func (s *Store) EraseEvents(ctx context.Context, stretch thing.Stretch, note func(ctx context.Context, events int) error) error {
	days, err := s.partitions(ctx, stretch.Since, stretch.Until)
	if err != nil {
		return fmt.Errorf("erase events: %w", err)
	}
	for _, name := range days {
		table := pgx.Identifier{name}.Sanitize()
		for {
			if !enough(ctx) {
				return errAgain
			}
			n, err := s.eraseSome(ctx, table, stretch)
			if gone(err) {
				break
			}
			if err != nil {
				return fmt.Errorf("erase events: %w", pg.Err(err))
			}
			if n == 0 {
				break
			}
			if err := note(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Hours returns the beginnings of the hours of a stretch of which there are events.
func (s *Store) Hours(ctx context.Context, stretch thing.Stretch) ([]time.Time, error) {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT date_trunc('hour', received) FROM das_event WHERE thing = $1 AND received >= $2 AND received < $3 ORDER BY 1`,
		string(stretch.Thing), stretch.Since, stretch.Until)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	return out, pg.Wrap(err, "hours of events")
}

// EraseWaiting implements das.Eraser: raw bodies that wait for S3. One that is just being moved is waited for; it is in S3 then.
func (s *Store) EraseWaiting(ctx context.Context, stretch thing.Stretch) (n int, err error) {
	rows, err := s.pool.Query(ctx, `SELECT key FROM das_raw WHERE received >= $1 AND received < $2 ORDER BY key`, stretch.Since, stretch.Until)
	if err != nil {
		return 0, pg.Err(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, pg.Err(err)
	}
	for _, key := range keys {
		err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
			var body []byte
			err := tx.QueryRow(ctx, `SELECT body FROM das_raw WHERE key = $1 FOR UPDATE`, key).Scan(&body)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			rest, dropped, err := das.WithoutRaw(body, stretch)
			if err != nil || dropped == 0 {
				return err
			}
			n += dropped
			if len(rest) == 0 {
				_, err = tx.Exec(ctx, `DELETE FROM das_raw WHERE key = $1`, key)
			} else {
				_, err = tx.Exec(ctx, `UPDATE das_raw SET body = $2 WHERE key = $1`, key, rest)
			}
			return err
		})
		if err != nil {
			return n, fmt.Errorf("erase waiting raw batches: %w", err)
		}
	}
	return n, nil
}

// EachWaiting calls fn for each batch of a stretch that waits for S3.
func (s *Store) EachWaiting(ctx context.Context, stretch thing.Stretch, fn func(das.RawBatch) error) error {
	rows, err := s.pool.Query(ctx, `SELECT body FROM das_raw WHERE received >= $1 AND received < $2 ORDER BY key`, stretch.Since, stretch.Until)
	if err != nil {
		return pg.Err(err)
	}
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&body}, func() error { return das.EachRaw(body, stretch, fn) })
	return pg.Err(err)
}

// Late implements das.Eraser.
func (s *Store) Late(ctx context.Context, stretch thing.Stretch) ([]time.Time, error) {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT received FROM das_event JOIN das_range AS r USING (thing, boot_id) WHERE thing = $1 AND received >= $2
		AND CASE WHEN unsynced AND r.began_ms IS NOT NULL THEN uptime_ms < $3 + r.ahead_ms - r.began_ms ELSE ts < $3 + r.ahead_ms END ORDER BY 1`,
		string(stretch.Thing), stretch.Until, stretch.Until.UnixMilli())
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	return out, pg.Wrap(err, "late events")
}

// Clocks returns the clocks of a robot's boots.
func (s *Store) Clocks(ctx context.Context, id thing.ID) (map[string]das.Clock, error) {
	rows, err := s.pool.Query(ctx, `SELECT boot_id, ahead_ms, began_ms FROM das_range WHERE thing = $1`, string(id))
	if err != nil {
		return nil, pg.Err(err)
	}
	out := map[string]das.Clock{}
	var boot string
	var c das.Clock
	_, err = pgx.ForEachRow(rows, []any{&boot, &c.Ahead, &c.Began}, func() error { out[boot] = c; return nil })
	return out, pg.Wrap(err, "clocks of a robot's boots")
}

// Each calls fn for each event of a stretch that was recorded in it, in order of receipt.
func (s *Store) Each(ctx context.Context, stretch thing.Stretch, fn func(das.Record) error) error {
	rows, err := s.pool.Query(ctx, selectEvents+` WHERE thing = $1 AND received >= $2 AND received < $3 AND `+strings.ReplaceAll(recorded, "?", "$4")+` ORDER BY received, boot_id, seq`,
		string(stretch.Thing), stretch.Since, stretch.Until, stretch.Since.UnixMilli())
	if err != nil {
		return pg.Err(fmt.Errorf("read events: %w", err))
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRecord(rows)
		if err != nil {
			return pg.Err(fmt.Errorf("read events: %w", err))
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return pg.Err(rows.Err())
}

// KeyProfiles puts what key returns in place of profile ids that a former release stored, some rows at a time, and returns in how many rows. keyed
// reports whether an id is a result of key. It is a periodic job; when nothing is left it costs one query.
func (s *Store) KeyProfiles(ctx context.Context, now time.Time, key func(string) string, keyed func(string) bool) (n int, err error) {
	rows, err := s.pool.Query(ctx, `SELECT day FROM das_unkeyed WHERE day <= $1 ORDER BY day`, "das_event_"+day(now))
	if err != nil {
		return 0, pg.Err(err)
	}
	days, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, pg.Err(err)
	}
	for _, name := range days {
		m, err := s.keyDay(ctx, name, key, keyed)
		n += m
		if errs.CodeOf(err) == errs.CodeAgain {
			return n, nil // the next run
		}
		if err != nil && !gone(err) {
			return n, fmt.Errorf("key profile ids: %w", pg.Err(err))
		}
		if name < "das_event_"+day(now) {
			if _, err := s.pool.Exec(ctx, `DELETE FROM das_unkeyed WHERE day = $1`, name); err != nil {
				return n, pg.Err(err)
			}
		}
	}
	return n, nil
}

// keyDay does one day. An id is in the profile of events, and in the words of those that begin and end its session.
func (s *Store) keyDay(ctx context.Context, name string, key func(string) string, keyed func(string) bool) (n int, err error) {
	table := pgx.Identifier{name}.Sanitize()
	for _, in := range []struct{ column, where string }{{"profile_id", "profile_id <> ''"}, {"s1", "event LIKE 'profile\\_id.%' AND s1 <> ''"}} {
		rows, err := s.pool.Query(ctx, `SELECT DISTINCT `+in.column+` FROM `+table+` WHERE `+in.where)
		if err != nil {
			return n, err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return n, err
		}
		for _, id := range ids {
			for !keyed(id) {
				if !enough(ctx) {
					return n, errAgain
				}
				tag, err := s.pool.Exec(ctx, `UPDATE `+table+` SET `+in.column+` = $2 WHERE ctid = ANY (ARRAY(SELECT ctid FROM `+table+
					` WHERE `+in.where+` AND `+in.column+` = $1 LIMIT $3))`, id, key(id), eraseRows)
				if err != nil {
					return n, err
				}
				if n += int(tag.RowsAffected()); tag.RowsAffected() == 0 {
					break
				}
			}
		}
	}
	return n, nil
}

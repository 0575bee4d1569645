package daspg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kennel/infra/pg"
)

// ahead is how many days of partitions stand ready.
const ahead = 7

// Advisory locks of those who make partitions and of those who drop them, in any process.
const (
	partitionLock = 0x6b646173 // "kdas"
	dropLock      = 0x6b64726f // "kdro"
)

// patience is how long a statement that makes or drops a day waits for a lock.
const patience = 2 * time.Second

func day(t time.Time) string { return t.UTC().Format("20060102") }

func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// EnsurePartitions makes the partitions from the day before now to a week ahead. Idempotent; run it daily. Commit makes today's by itself
// when this was forgotten.
func (s *Store) EnsurePartitions(ctx context.Context, now time.Time) error {
	for d := -1; d <= ahead; d++ {
		if err := s.ensureDay(ctx, now.AddDate(0, 0, d)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) ensureDay(ctx context.Context, t time.Time) error {
	name := "das_event_" + day(t)
	s.mu.Lock()
	known := s.days[day(t)]
	s.mu.Unlock()
	if known {
		return nil
	}
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, partitionLock); err != nil {
			return err
		}
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&there); err != nil || there {
			return err
		}
		from, table := midnight(t), pgx.Identifier{name}.Sanitize()
		for _, sql := range []string{ // CREATE TABLE PARTITION OF would wait for all who read das_event, and everyone else would wait behind it; ATTACH does not
			fmt.Sprintf(`SET LOCAL lock_timeout = %d`, s.patience.Milliseconds()),
			`CREATE TABLE ` + table + ` (LIKE das_event INCLUDING ALL)`,
			fmt.Sprintf(`ALTER TABLE das_event ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')`, table, from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339)),
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("create partition %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.days[day(t)] = true
	return nil
}

// rangeLife is how long after its last event a boot's sequence numbers are known, beyond the life of the events: a robot that comes back after months in a
// drawer sends what it has again, and an original one has no other memory of what was stored. A boot takes some 150 bytes.
const rangeLife = 400 * 24 * time.Hour

// DropOlder drops the days that lie wholly before cutoff, and what is known of boots rangeLife after that: a range must outlive its events, or an event that
// comes again would be stored twice. It returns the names of the partitions dropped. No reader or writer waits for it longer than the store's patience: a day that is being
// read leaves the table at once and a later run drops it, as it does with the leftovers of a killed process. A day that is still read a day later is an error. Only one
// process drops at a time; the others drop nothing.
func (s *Store) DropOlder(ctx context.Context, cutoff time.Time) (dropped []string, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, pg.Err(err)
	}
	defer conn.Release()
	var mine bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, dropLock).Scan(&mine); err != nil || !mine {
		return nil, pg.Wrap(err, "lock the days")
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if _, err := conn.Exec(ctx, fmt.Sprintf(`RESET lock_timeout; SELECT pg_advisory_unlock(%d)`, dropLock)); err != nil {
			_ = conn.Conn().Close(ctx) // that unlocks too
		}
	}()
	if dropped, err = s.dropDays(ctx, conn.Conn(), cutoff); err != nil {
		return dropped, fmt.Errorf("drop events before %s: %w", midnight(cutoff).Format(time.DateOnly), err)
	}
	for _, old := range []struct {
		table, column string
		before        time.Time
	}{{"das_range", "updated", midnight(cutoff).Add(-rangeLife)}, {"das_group", "received", midnight(cutoff)}} {
		if err := s.deleteOld(ctx, old.table, old.column+` < $1 ORDER BY `+old.column, old.before); err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// deleteOld deletes the rows of a table that meet a condition, some at a time, as far as the time of ctx allows. Rows that another transaction has locked stay for the next run.
func (s *Store) deleteOld(ctx context.Context, table, where string, before time.Time) error {
	for enough(ctx) {
		tag, err := s.pool.Exec(ctx, `DELETE FROM `+table+` WHERE ctid = ANY (ARRAY(SELECT ctid FROM `+table+` WHERE `+where+` LIMIT $2 FOR UPDATE SKIP LOCKED))`, before, eraseRows)
		if err != nil {
			return pg.Wrap(err, "delete old rows of %s", table)
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
	}
	return nil
}

func (s *Store) dropDays(ctx context.Context, conn *pgx.Conn, cutoff time.Time) (dropped []string, err error) {
	if _, err := conn.Exec(ctx, fmt.Sprintf(`SET lock_timeout = %d`, s.patience.Milliseconds())); err != nil {
		return nil, err
	}
	// Of those that are not in the table any longer, one may still be on its way out; no other can leave before it has.
	rows, err := conn.Query(ctx, `SELECT c.relname::text, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false)
		FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'das_event'::regclass
		WHERE c.relname ~ '^das_event_[0-9]{8}$' AND c.relname < $1 AND c.relkind = 'r' AND pg_table_is_visible(c.oid) ORDER BY 3 DESC, 1`, "das_event_"+day(cutoff))
	if err != nil {
		return nil, err
	}
	type table struct {
		Name              string
		Attached, Pending bool
	}
	old, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		return nil, err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.days)
	}()
	for _, t := range old {
		if !enough(ctx) {
			return dropped, nil
		}
		name := pgx.Identifier{t.Name}.Sanitize()
		steps := []string{`DROP TABLE ` + name}
		switch {
		case t.Pending:
			steps = append([]string{`ALTER TABLE das_event DETACH PARTITION ` + name + ` FINALIZE`}, steps...)
		case t.Attached:
			steps = append([]string{`ALTER TABLE das_event DETACH PARTITION ` + name + ` CONCURRENTLY`}, steps...)
		}
		for _, sql := range steps {
			if _, err := conn.Exec(ctx, sql); err != nil {
				if isBusy(err) && t.Name >= "das_event_"+day(cutoff.AddDate(0, 0, -1)) {
					return dropped, nil
				}
				return dropped, fmt.Errorf("drop %s: %w", t.Name, pg.Err(err))
			}
		}
		dropped = append(dropped, t.Name)
	}
	return dropped, nil
}

// isBusy reports whether a statement gave up waiting for a lock.
func isBusy(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pe.Code == "55P03"
}

// Keep makes the partitions of the days ahead and drops the events that are older than a number of days; it returns the names of the partitions dropped.
func (s *Store) Keep(ctx context.Context, now time.Time, days int) (dropped []string, err error) {
	if err := s.EnsurePartitions(ctx, now); err != nil {
		return nil, err
	}
	return s.DropOlder(ctx, now.AddDate(0, 0, -days))
}

package daspg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
)

// ahead is how many days of partitions stand ready.
const ahead = 7

// partitionLock serializes what makes and drops partitions, in any process.
const partitionLock = 0x6b646173 // "kdas"

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
		var there bool // asked first: CREATE would lock the whole table even if there is nothing to do
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&there); err != nil || there {
			return err
		}
		from := midnight(t)
		_, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s PARTITION OF das_event FOR VALUES FROM ('%s') TO ('%s')`,
			pgx.Identifier{name}.Sanitize(), from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339)))
		return err
	})
	if err != nil {
		return fmt.Errorf("make partition %s: %w", name, err)
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
// comes again would be stored twice. It returns the names of the partitions dropped.
func (s *Store) DropOlder(ctx context.Context, cutoff time.Time) ([]string, error) {
	var dropped []string
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		dropped = nil
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, partitionLock); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = 'das_event'::regclass AND c.relname ~ '^das_event_[0-9]{8}$' AND c.relname < $1 ORDER BY 1`, "das_event_"+day(cutoff))
		if err != nil {
			return err
		}
		if dropped, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		for _, name := range dropped {
			if _, err := tx.Exec(ctx, `DROP TABLE `+pgx.Identifier{name}.Sanitize()); err != nil {
				return fmt.Errorf("drop %s: %w", name, err)
			}
		}
		for table, before := range map[string]time.Time{`das_range WHERE updated`: midnight(cutoff).Add(-rangeLife), `das_group WHERE received`: midnight(cutoff)} {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table+` < $1`, before); err != nil {
				return fmt.Errorf("forget %s: %w", table, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("drop events before %s: %w", midnight(cutoff).Format(time.DateOnly), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.days)
	return dropped, nil
}

// Keep makes the partitions of the days ahead and drops the events that are older than a number of days; it returns the names of the partitions dropped.
func (s *Store) Keep(ctx context.Context, now time.Time, days int) (dropped []string, err error) {
	if err := s.EnsurePartitions(ctx, now); err != nil {
		return nil, err
	}
	return s.DropOlder(ctx, now.AddDate(0, 0, -days))
}

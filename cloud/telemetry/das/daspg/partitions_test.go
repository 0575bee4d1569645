package daspg

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/telemetry/das"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

const firstDay = "das_event_20261121" // noon's

// reader opens a transaction that has read all days and stays open until end.
func reader(t *testing.T, pool *pgxpool.Pool) (end func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }) // ended already, as a rule
	var n int
	if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM das_event`).Scan(&n); err != nil || n == 0 {
		t.Fatalf("reader sees %d events, %v", n, err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// days fills a store with an event on each of three days.
func days(t *testing.T, s *Store) {
	t.Helper()
	for d := range 3 {
		if _, err := s.Commit(t.Context(), das.Group{Received: noon.AddDate(0, 0, d), Items: []das.Item{batch("vic:1", fmt.Sprint("b", d), 1, 1)}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
}

// waits blocks until a session waits for the lock of another one.
func waits(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testwait.Until(t, time.Minute, "a session waits for a lock", func() error {
		var n int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		if err == nil && n == 0 {
			err = fmt.Errorf("none waits")
		}
		return err
	})
}

// A day that is being read goes when its reader ends. Robots' events are stored meanwhile, and others read on.
func TestDropOlderBehindReader(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	s.patience = time.Hour
	days(t, s)
	end := reader(t, pool)
	type result struct {
		dropped []string
		err     error
	}
	done := make(chan result, 1)
	go func() {
		dropped, err := s.DropOlder(t.Context(), noon.AddDate(0, 0, 1))
		done <- result{dropped, err}
	}()
	waits(t, pool)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for i := range 10 {
		if _, err := s.Commit(ctx, das.Group{Received: noon.AddDate(0, 0, 2), Items: []das.Item{batch("vic:2", fmt.Sprint("w", i), 1, 1)}}, das.Raw{Key: "k"}); err != nil {
			t.Fatalf("write %d while a day waits for its reader: %v", i, err)
		}
	}
	if err := s.EnsurePartitions(ctx, noon.AddDate(0, 0, 3)); err != nil {
		t.Errorf("make days meanwhile: %v", err)
	}
	var n int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM das_event`).Scan(&n); err != nil || n != 12 {
		t.Errorf("another reader sees %d events, %v; want 12: the day is on its way out", n, err)
	}
	select {
	case r := <-done:
		t.Fatalf("dropped %v, %v while the day is read", r.dropped, r.err)
	default:
	}
	end()
	if r := testwait.For(t, done, "the day is dropped"); r.err != nil || !slices.Equal(r.dropped, []string{firstDay}) {
		t.Errorf("dropped %v, %v", r.dropped, r.err)
	}
}

// Making a day waits for no reader either.
func TestEnsurePartitionsBehindReader(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	days(t, s)
	defer reader(t, pool)()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.EnsurePartitions(ctx, noon.AddDate(0, 0, 30)); err != nil {
		t.Error(err)
	}
	var same bool // as those of PARTITION OF, which the reference's days are made with
	if err := pool.QueryRow(ctx, `SELECT count(DISTINCT n) = 1 FROM (SELECT count(x.inhrelid) AS n FROM pg_inherits i JOIN pg_index d ON d.indrelid = i.inhrelid
		LEFT JOIN pg_inherits x ON x.inhrelid = d.indexrelid WHERE i.inhparent = 'das_event'::regclass GROUP BY i.inhrelid
		UNION SELECT count(*) FROM pg_index WHERE indrelid = 'das_event'::regclass) AS c`).Scan(&same); err != nil || !same {
		t.Errorf("each day has an index for each of das_event = %v, %v", same, err)
	}
}

// A run gives up when its patience is over, or is killed: the next one finishes what it began, whichever step that was.
func TestDropOlderFinishes(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	s.patience = 50 * time.Millisecond
	days(t, s)
	end := reader(t, pool)
	for range 2 { // the second finds the day half out
		if dropped, err := s.DropOlder(t.Context(), noon.AddDate(0, 0, 1)); err != nil || dropped != nil {
			t.Errorf("while it is read: dropped %v, %v; want nothing, which is no error yet", dropped, err)
		}
	}
	if dropped, err := s.DropOlder(t.Context(), noon.AddDate(0, 0, 2)); err == nil || dropped != nil {
		t.Errorf("still read a day later: dropped %v, %v; want an error that operators see", dropped, err)
	}
	n := 0
	if err := s.EraseEvents(t.Context(), thing.Stretch{Thing: "vic:1", Since: noon.Add(-time.Hour), Until: noon.Add(time.Hour)}, func(_ context.Context, events int) error { n += events; return nil }); err != nil || n != 1 {
		t.Errorf("erased %d events of the day that is on its way out, %v; want 1", n, err)
	}
	end()
	if _, err := pool.Exec(t.Context(), `ALTER TABLE das_event DETACH PARTITION das_event_20261121 FINALIZE`); err != nil { // killed just after
		t.Fatal(err)
	}
	s.patience = time.Minute
	if dropped, err := Open(pool).DropOlder(t.Context(), noon.AddDate(0, 0, 2)); err != nil || !slices.Equal(dropped, []string{firstDay, "das_event_20261122"}) {
		t.Errorf("another process: dropped %v, %v", dropped, err)
	}
	rows, err := pool.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relname ~ '^das_event_[0-9]{8}$'`)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(left, []string{"das_event_20261123"}) {
		t.Errorf("left %v, %v", left, err)
	}
	var timeout string // the connection went back to the pool
	if err := pool.QueryRow(t.Context(), `SHOW lock_timeout`).Scan(&timeout); err != nil || timeout != "0" {
		t.Errorf("lock_timeout %s, %v", timeout, err)
	}
}

// Old rows go some at a time, and a row that a robot is just writing stays for the next run.
func TestDropOlderInSteps(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	const rows = 2*eraseRows + 1
	for _, sql := range []string{
		`INSERT INTO das_range (thing, boot_id, updated) SELECT 'vic:' || n, 'b', $1::timestamptz - interval '1 s' FROM generate_series(1, $2) AS n`,
		`INSERT INTO das_group (received, events, raw_key) SELECT $1::timestamptz - interval '1 s', 1, 'k' FROM generate_series(1, $2) AS n`,
	} {
		if _, err := pool.Exec(t.Context(), sql, midnight(noon), rows); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM das_range WHERE thing = 'vic:7' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.DropOlder(ctx, noon.Add(rangeLife)); err != nil {
		t.Error(err)
	}
	var ranges, groups int
	if err := pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM das_range), (SELECT count(*) FROM das_group)`).Scan(&ranges, &groups); err != nil || ranges != 1 || groups != 0 {
		t.Errorf("left %d ranges and %d groups, %v; want 1 and 0", ranges, groups, err)
	}
}

package daspg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/telemetry/das"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// channel is where commits are announced.
const channel = "das_event"

// Store is das.Writer and das.Reader. Safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	asks chan struct{} // questions that run

	patience time.Duration // how long a statement that makes or drops a day waits for a lock

	mu   sync.Mutex
	days map[string]bool // partitions known to exist
}

// Open returns a Store on pool, whose schema is migrated.
func Open(pool *pgxpool.Pool) *Store {
	return &Store{pool: pool, asks: make(chan struct{}, askAtOnce), patience: patience, days: map[string]bool{}}
}

// Listen calls wake after every commit of any process, until ctx ends.
func (s *Store) Listen(ctx context.Context, log *slog.Logger, wake func()) error {
	return pg.Listen(ctx, s.pool, log, channel, func(string) { wake() })
}

func (s *Store) Commit(ctx context.Context, g das.Group, raw das.Raw) (das.Outcome, error) {
	if err := s.ensureDay(ctx, g.Received); err != nil {
		return das.Outcome{}, err
	}
	var out das.Outcome
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		out, err = commit(ctx, tx, g, raw)
		return err
	})
	if err != nil {
		return das.Outcome{}, s.kind(err, g.Received)
	}
	return out, nil
}

// kind tells data that can never be stored from trouble that may pass.
func (s *Store) kind(err error, received time.Time) error {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	switch {
	case pe.Code == pgCheckViolation: // no partition: it was dropped
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.days, day(received))
		return errs.RetryLater(time.Second, "the table for today is missing", err)
	case pe.Code[:2] == "22" || pe.Code[:2] == "23" || pe.Code[:2] == "54": // data, integrity, size
		return errs.New(errs.Invalid, "the database refuses the events: %w", err)
	}
	return err
}

const pgCheckViolation = "23514"

func commit(ctx context.Context, tx pgx.Tx, g das.Group, raw das.Raw) (das.Outcome, error) {
	keys := keysOf(g.Items)
	things, boots := columns(keys)
	known, grp, err := lock(ctx, tx, things, boots, g.Received)
	if err != nil {
		return das.Outcome{}, err
	}
	fresh, out := das.Plan(g.Items, known)
	if len(fresh) > 0 {
		if err := copyEvents(ctx, tx, g.Received, grp, fresh); err != nil {
			return das.Outcome{}, fmt.Errorf("copy %d events: %w", len(fresh), err)
		}
	}
	seqs, origins, of := make([]string, len(keys)), make([]string, len(keys)), map[das.Key]string{}
	ahead, began, clocks := make([]int64, len(keys)), make([]*int64, len(keys)), map[das.Key]das.Clock{}
	for _, it := range g.Items {
		of[it.Key()] = max(of[it.Key()], it.Origin)
		clocks[it.Key()] = clocks[it.Key()].With(das.ClockOf(g.Received, it.Events))
	}
	for i, k := range keys {
		seqs[i], origins[i], ahead[i], began[i] = multirange(known[k]), of[k], clocks[k].Ahead, clocks[k].Began
	}
	b := &pgx.Batch{}
	b.Queue(`UPDATE das_range r SET seqs = u.seqs::int8multirange, updated = greatest(updated, $4), origin = greatest(r.origin, u.origin),
			ahead_ms = greatest(r.ahead_ms, u.ahead), began_ms = least(r.began_ms, u.began)
		FROM unnest($1::text[], $2::text[], $3::text[], $5::text[], $6::bigint[], $7::bigint[]) AS u (thing, boot_id, seqs, origin, ahead, began)
		WHERE r.thing = u.thing AND r.boot_id = u.boot_id`, things, boots, seqs, g.Received, origins, ahead, began)
	b.Queue(`INSERT INTO das_group (id, received, events, raw_key) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4)`,
		grp, g.Received, len(fresh), raw.Key)
	if raw.Body != nil {
		b.Queue(`INSERT INTO das_raw (key, received, body) VALUES ($1, $2, $3)`, raw.Key, g.Received, raw.Body)
	}
	b.Queue(`SELECT pg_notify($1, '')`, channel)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return das.Outcome{}, fmt.Errorf("write ranges of %d boots: %w", len(keys), err)
	}
	return out, nil
}

// keysOf returns the boots of items in the order in which every process locks them.
func keysOf(items []das.Item) []das.Key {
	set := map[das.Key]bool{}
	for _, it := range items {
		set[it.Key()] = true
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b das.Key) int {
		return cmp.Or(cmp.Compare(a.Thing, b.Thing), cmp.Compare(a.BootID, b.BootID))
	})
}

func columns(keys []das.Key) (things, boots []string) {
	for _, k := range keys {
		things, boots = append(things, string(k.Thing)), append(boots, k.BootID)
	}
	return things, boots
}

// lock makes and locks the range rows, in the given order, and returns what they hold and a number for the group. All writers insert in
// that order first and lock in that order then, so none waits for one that waits for it.
func lock(ctx context.Context, tx pgx.Tx, things, boots []string, now time.Time) (map[das.Key]das.Seqs, int64, error) {
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO das_range (thing, boot_id, updated)
		SELECT u.thing, u.boot_id, $3 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (thing, boot_id, n) ORDER BY u.n
		ON CONFLICT DO NOTHING`, things, boots, now)
	b.Queue(`SELECT r.thing, r.boot_id, r.seqs
		FROM das_range r JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (thing, boot_id, n)
			ON r.thing = u.thing AND r.boot_id = u.boot_id
		ORDER BY u.n FOR UPDATE OF r`, things, boots)
	b.Queue(`SELECT nextval(pg_get_serial_sequence('das_group', 'id'))`)
	res := tx.SendBatch(ctx, b)
	defer res.Close() // the failed statement's error says it already
	if _, err := res.Exec(); err != nil {
		return nil, 0, fmt.Errorf("create ranges: %w", err)
	}
	known := make(map[das.Key]das.Seqs, len(things))
	rows, err := res.Query()
	if err != nil {
		return nil, 0, fmt.Errorf("lock ranges: %w", err)
	}
	var id, boot string
	var mr pgtype.Multirange[pgtype.Range[int64]]
	if _, err := pgx.ForEachRow(rows, []any{&id, &boot, &mr}, func() error {
		known[das.Key{Thing: thing.ID(id), BootID: boot}] = spans(mr)
		return nil
	}); err != nil {
		return nil, 0, fmt.Errorf("lock ranges: %w", err)
	}
	if len(known) != len(things) { // a DropOlder in between: the next attempt makes them again
		return nil, 0, errs.RetryLater(time.Second, "events of this boot are being removed", nil)
	}
	var grp int64
	if err := res.QueryRow().Scan(&grp); err != nil {
		return nil, 0, fmt.Errorf("assign a number to the group: %w", err)
	}
	return known, grp, nil
}

// spans reads seqs as Postgres writes them: int8 ranges are [first, end).
func spans(mr pgtype.Multirange[pgtype.Range[int64]]) das.Seqs {
	seqs := make(das.Seqs, len(mr))
	for i, r := range mr {
		seqs[i] = das.Span{First: uint64(r.Lower), Last: uint64(r.Upper) - 1}
	}
	return seqs
}

// multirange writes seqs as Postgres reads them.
func multirange(seqs das.Seqs) string {
	b := []byte{'{'}
	for i, s := range seqs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, '['), s.First, 10)
		b = strconv.AppendUint(append(b, ','), s.Last, 10)
		b = append(b, ']')
	}
	return string(append(b, '}'))
}

// MoveRaw implements das.Writer. Processes that move at the same time take different bodies.
func (s *Store) MoveRaw(ctx context.Context, put func(ctx context.Context, key string, body []byte) error) (bool, error) {
	moved := false
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var key string
		var body []byte
		err := tx.QueryRow(ctx, `SELECT key, body FROM das_raw ORDER BY key LIMIT 1 FOR UPDATE SKIP LOCKED`).Scan(&key, &body)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read waiting raw batch: %w", err)
		}
		if err := put(ctx, key, body); err != nil {
			return fmt.Errorf("put %s: %w", key, err)
		}
		if _, err := tx.Exec(ctx, `DELETE FROM das_raw WHERE key = $1`, key); err != nil {
			return fmt.Errorf("delete raw batch %s: %w", key, err)
		}
		moved = true
		return nil
	})
	return moved && err == nil, err
}

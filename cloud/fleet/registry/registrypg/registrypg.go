// Package registrypg keeps the fleet in Postgres: tables registry_thing, registry_presence, registry_step (migration 0030), and
// what the fleet is filtered and sorted by: registry_facet, registry_words (0031). Its clock is
// the database's, the one all cloud processes share.
package registrypg

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/api/status"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// channel carries hints that things changed; a payload is not needed, readers ask for what is new.
const channel = "registry_changed"

// Store is registry.Store and registry.Table on a pool that others may use too. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	log    *slog.Logger
	maxAsk time.Duration
}

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool, log *slog.Logger) *Store { return &Store{pool, log, maxAsk} }

// Register makes a thing known.
func (s *Store) Register(ctx context.Context, id thing.ID) error {
	_, err := s.pool.Exec(ctx, `
		WITH made AS (INSERT INTO registry_thing (thing) VALUES ($1) ON CONFLICT DO NOTHING RETURNING 1)
		SELECT pg_notify($2, '') FROM made`, id, channel)
	return pg.Wrap(err, "register %s", id)
}

// Seen notes a sign of life of a robot that keeps no connection. Only a new thing is worth a NOTIFY.
func (s *Store) Seen(ctx context.Context, id thing.ID, version string, pace time.Duration) (made bool, err error) {
	var noted bool
	err = s.pool.QueryRow(ctx, `
		WITH seen AS (
			INSERT INTO registry_thing AS t (thing, last_seen) VALUES ($1, clock_timestamp())
			ON CONFLICT (thing) DO UPDATE SET rev = t.rev + 1, changed = clock_timestamp(), last_seen = clock_timestamp()
			WHERE t.since IS NULL AND (t.last_seen IS NULL OR t.last_seen < clock_timestamp() - $2::interval)
			RETURNING rev = 1 AS made),
		hint AS (SELECT pg_notify($3, '') FROM seen WHERE made)
		SELECT coalesce((SELECT made FROM seen), false), EXISTS (SELECT FROM seen), (SELECT count(*) FROM hint)`, id, pace, channel).Scan(&made, &noted, nil)
	if err == nil && noted && version != "" {
		_, err = s.pool.Exec(ctx, `UPDATE registry_facet SET os = $2, os_key = $3 WHERE thing = $1 AND fit = 0 AND os <> $2`, id, version, filter.VersionKey(version))
	}
	return made, pg.Wrap(err, "record contact of %s", id)
}

// Lease returns a thing's lease, its revision (0: unknown) and the database's time.
func (s *Store) Lease(ctx context.Context, id thing.ID) (l registry.Lease, rev int64, now time.Time, err error) {
	var since, seen, until *time.Time
	var connectSeq, seq int64
	err = s.pool.QueryRow(ctx, `
		SELECT coalesce(t.rev, 0), clock_timestamp(), coalesce(t.boot_id, ''), coalesce(t.connect_seq, 0), coalesce(t.seq, 0), t.lease_until,
		       coalesce(t.gone, false), coalesce(t.present, false), t.since, t.last_seen
		FROM (SELECT $1::text AS thing) AS q LEFT JOIN registry_thing AS t USING (thing)`, id).
		Scan(&rev, &now, &l.BootID, &connectSeq, &seq, &until, &l.Gone, &l.Present, &since, &seen)
	l.ConnectSeq, l.Seq = uint64(connectSeq), uint64(seq)
	l.Until, l.Since, l.LastSeen = value(until), value(since), value(seen)
	return l, rev, now, pg.Wrap(err, "lease of %s", id)
}

// SaveLease stores l if the thing's revision is still rev, and says whether it was.
func (s *Store) SaveLease(ctx context.Context, id thing.ID, rev int64, l registry.Lease, changes []registry.Change, st *registry.StatusAt) (bool, error) {
	var doc []byte // nil: leave the last status
	var clock int64
	facets := facetArgs(registry.Facets{})
	if st != nil {
		facets = facetArgs(registry.FacetsOf(*st))
		var err error
		if doc, err = st.Message.Encode(); err != nil {
			return false, fmt.Errorf("status of %s: %w", id, err)
		}
		clock = st.ClockMS
	}
	at := make([]time.Time, len(changes))
	present := make([]bool, len(changes))
	for i, c := range changes {
		at[i], present[i] = c.At, c.Present
	}
	var saved bool
	// A hint goes out for coming and going only: with a fleet that reports every few seconds, NOTIFY for each would cost more than the
	// second that a reader waits for the rest.
	err := s.pool.QueryRow(ctx, `
		WITH saved AS (
			INSERT INTO registry_thing AS t (thing, present, since, last_seen, lease_until, gone, boot_id, connect_seq, seq, status, clock_ms)
			SELECT $1, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12 WHERE $2::bigint = 0 OR EXISTS (SELECT FROM registry_thing WHERE thing = $1)
			ON CONFLICT (thing) DO UPDATE SET rev = t.rev + 1, changed = clock_timestamp(), present = excluded.present, since = excluded.since,
				last_seen = excluded.last_seen, lease_until = excluded.lease_until, gone = excluded.gone, boot_id = excluded.boot_id,
				connect_seq = excluded.connect_seq, seq = excluded.seq, status = coalesce(excluded.status, t.status),
				clock_ms = CASE WHEN excluded.status IS NULL THEN t.clock_ms ELSE excluded.clock_ms END
			WHERE t.rev = $2
			RETURNING thing),
		history AS (
			INSERT INTO registry_presence (thing, at, present)
			SELECT saved.thing, c.at, c.present FROM saved, unnest($13::timestamptz[], $14::boolean[]) AS c (at, present)
			ON CONFLICT DO NOTHING
			RETURNING 1),
		hint AS (SELECT pg_notify($15, '') FROM history LIMIT 1),
		facets AS (`+setFacets("(SELECT thing FROM saved WHERE $11::json IS NOT NULL)", 16)+`)
		SELECT EXISTS (SELECT FROM saved), EXISTS (SELECT FROM hint)`,
		append([]any{id, rev, l.Present, null(l.Since), null(l.LastSeen), null(l.Until), l.Gone, l.BootID, int64(l.ConnectSeq), int64(l.Seq), doc, clock,
			at, present, channel}, facets...)...).Scan(&saved, nil)
	if err == nil && saved && rev == 0 && st != nil {
		// The row of facets came with the thing, after the statement had begun. Refit mends it if this fails.
		_, err = s.pool.Exec(ctx, setFacets("$1", 2), append([]any{id}, facets...)...)
	}
	return saved, pg.Wrap(err, "lease of %s", id)
}

// Expire turns at most limit things absent whose lease ran out, from its end on.
func (s *Store) Expire(ctx context.Context, limit int) (n int, err error) {
	err = s.pool.QueryRow(ctx, `
		WITH due AS (
			SELECT thing FROM registry_thing WHERE present AND lease_until <= clock_timestamp()
			ORDER BY lease_until LIMIT $1 FOR UPDATE SKIP LOCKED),
		gone AS (
			UPDATE registry_thing AS t SET present = false, since = t.lease_until, rev = t.rev + 1, changed = clock_timestamp()
			FROM due WHERE t.thing = due.thing
			RETURNING t.thing, t.lease_until),
		history AS (
			INSERT INTO registry_presence (thing, at, present) SELECT thing, lease_until, false FROM gone ON CONFLICT DO NOTHING),
		hint AS (SELECT pg_notify($2, '') FROM gone LIMIT 1)
		SELECT (SELECT count(*) FROM gone) + 0 * (SELECT count(*) FROM hint)`, limit, channel).Scan(&n)
	return n, pg.Wrap(err, "end leases")
}

// columns are what scan reads of registry_thing AS t and registry_facet AS f.
const columns = `t.thing, t.created, t.present, t.since, t.last_seen, t.clock_ms, t.status, t.rev, f.tags, nullif(f.cert, '-infinity'),
	f.os, f.agent, f.body, f.model, f.volts, f.level, f.late, f.loop, f.problems, f.codes, f.crashes`

const both = ` FROM registry_thing AS t JOIN registry_facet AS f ON f.thing = t.thing `

// ThingsByID returns those of the things that exist.
func (s *Store) ThingsByID(ctx context.Context, ids []thing.ID) ([]registry.Thing, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+both+`WHERE t.thing = ANY($1)`, texts(ids))
	if err != nil {
		return nil, pg.Wrap(err, "read things")
	}
	out, err := pgx.CollectRows(rows, scanThing)
	return out, pg.Wrap(err, "read things")
}

// Count counts the fleet.
func (s *Store) Count(ctx context.Context) (c registry.Count, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE present), count(*) FILTER (WHERE NOT present AND since IS NULL AND last_seen IS NOT NULL), count(*)
		FROM registry_thing`).Scan(&c.Present, &c.Calls, &c.Absent)
	c.Absent -= c.Present + c.Calls
	return c, pg.Wrap(err, "count things")
}

// Changed returns what changed at or after since, oldest change first. latest is the newest change among them, or, without any, since;
// for a zero since it is the database's time.
func (s *Store) Changed(ctx context.Context, since time.Time, limit int) ([]registry.Mark, time.Time, error) {
	if since.IsZero() {
		var now time.Time
		err := s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
		return nil, now, pg.Wrap(err, "read changes")
	}
	rows, err := s.pool.Query(ctx, `SELECT thing, rev, changed FROM registry_thing WHERE changed >= $1 ORDER BY changed LIMIT $2`, since, limit)
	if err != nil {
		return nil, since, pg.Wrap(err, "read changes")
	}
	latest := since
	var m registry.Mark
	var changed time.Time
	var out []registry.Mark
	_, err = pgx.ForEachRow(rows, []any{&m.ID, &m.Rev, &changed}, func() error {
		out = append(out, m)
		latest = changed
		return nil
	})
	return out, latest, pg.Wrap(err, "read changes")
}

// History returns when a thing came and went, the latest first.
func (s *Store) History(ctx context.Context, id thing.ID, limit int) ([]registry.Change, error) {
	rows, err := s.pool.Query(ctx, `SELECT at, present FROM registry_presence WHERE thing = $1 ORDER BY at DESC, present LIMIT $2`, id, limit)
	if err != nil {
		return nil, pg.Wrap(err, "history of %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[registry.Change])
	return out, pg.Wrap(err, "history of %s", id)
}

// RecountCrashes brings crashes as problems in step with the crashes of registry.CrashedFor (registry_recount, migration 0150).
func (s *Store) RecountCrashes(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `SELECT registry_recount(ARRAY(SELECT thing FROM registry_facet WHERE crashes <> '[]'
		UNION SELECT thing FROM crash_crash WHERE received >= clock_timestamp() - $1::interval))`, registry.CrashedFor)
	return pg.Wrap(err, "recount crashes")
}

// Forget removes the rows of a thing, but for its steps.
func (s *Store) Forget(ctx context.Context, id thing.ID) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, table := range []string{"registry_thing", "registry_facet", "registry_words", "registry_presence"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE thing = $1", id); err != nil {
				return err
			}
		}
		return nil
	})
	return pg.Wrap(err, "forget "+string(id))
}

func (s *Store) Follow(ctx context.Context, every time.Duration, read func(context.Context) error) error {
	return pg.Follow(ctx, s.pool, s.log, channel, every, read)
}

// scan reads one row of columns, and the values after them.
func scan(row pgx.CollectableRow, more ...any) (t registry.Thing, err error) {
	var since, seen, cert *time.Time
	var doc []byte
	var present bool
	f := &t.Facets
	if err := row.Scan(append([]any{&t.ID, &t.Created, &present, &since, &seen, &t.ClockMS, &doc, &t.Rev, &t.Tags, &cert,
		&f.Version, &f.Agent, &f.Body, &f.Model, &f.Volts, &f.Level, &f.Late, &f.Loop, &f.Problems, &f.Codes, &t.Crashes}, more...)...); err != nil {
		return t, err
	}
	t.Species, t.Serial = t.ID.Species(), t.ID.Serial()
	t.Certificate = value(cert)
	t.Place(present, value(since), value(seen))
	t.Revoked = t.Presence == registry.Absent && !t.LastSeen.IsZero() && t.Certificate.IsZero()
	t.Kinds, t.LoopHealth = f.Problems, f.Loop
	if doc != nil {
		t.Status = new(status.Message)
		if err := json.Unmarshal(doc, t.Status); err != nil {
			return t, fmt.Errorf("stored status of %s: %w", t.ID, err)
		}
		t.Problems = registry.ProblemsOf(registry.StatusAt{Message: *t.Status, ClockMS: t.ClockMS})
	}
	for _, c := range t.Crashes {
		t.Problems = append(t.Problems, c.Problem())
	}
	return t, nil
}

func scanThing(row pgx.CollectableRow) (registry.Thing, error) { return scan(row) }

func null(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func value(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

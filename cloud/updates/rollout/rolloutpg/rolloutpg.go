// Package rolloutpg keeps rollouts in Postgres: tables rollout_rollout, rollout_member, rollout_turn and rollout_zone (migrations 0130 to 0132 and 0149).
package rolloutpg

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/updates/rollout"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/ota"
)

// Store is rollout.Store. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool

	mu   sync.Mutex // held to read or change all robots of a rollout, before anything is locked in Postgres
	held map[string]*held
}

// held has the standing of all robots of a rollout. A step reads only the rows that changed since.
type held struct {
	members map[thing.ID]rollout.Member
	num     int64 // of the last change; all changes of a rollout are made under one lock, so their numbers follow one another
}

// maxHeld bounds the memory: a rollout of 100,000 robots takes about 50 MB.
const maxHeld = 8

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, held: map[string]*held{}} }

var _ rollout.Store = (*Store)(nil)

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

const open = `state IN ('granted', 'updating')`

func read(row pgx.CollectableRow, more ...any) (r rollout.Rollout, err error) {
	var doc, progress []byte
	if err := row.Scan(append([]any{&r.ID, &doc, &progress}, more...)...); err != nil {
		return r, err
	}
	id := r.ID
	if err := json.Unmarshal(doc, &r); err != nil {
		return r, err
	}
	r.ID, r.Progress = id, rollout.NoProgress()
	return r, json.Unmarshal(progress, &r.Progress)
}

func scan(row pgx.CollectableRow) (rollout.Rollout, error) { return read(row) }

// docs returns the two documents of a rollout.
func docs(r rollout.Rollout) (doc, progress []byte, err error) {
	progress, err = json.Marshal(r.Progress)
	if err != nil {
		return nil, nil, err
	}
	r.Progress = rollout.Progress{}
	doc, err = json.Marshal(r)
	return doc, progress, err
}

// Add implements rollout.Store.
func (s *Store) Add(ctx context.Context, r rollout.Rollout, turns []rollout.Turn) (rollout.Rollout, error) {
	doc, _, err := docs(r)
	if err != nil {
		return r, err
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `INSERT INTO rollout_rollout (id, species, state, doc) VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3, $4) RETURNING id::text`, r.ID, r.Species, r.State, doc).Scan(&r.ID); err != nil {
			return err
		}
		return addTurns(ctx, tx, r.ID, turns)
	})
	return r, pg.Wrap(err, "add rollout of %s", r.Version)
}

func addTurns(ctx context.Context, tx pgx.Tx, id string, turns []rollout.Turn) error {
	b := &pgx.Batch{}
	for _, t := range turns {
		b.Queue(`INSERT INTO rollout_turn (rollout, at, kind, by_whom, phase, words) VALUES ($1, $2, $3, $4, $5, $6)`, pg.UUID(id), t.At, t.Kind, t.By, t.Phase, t.Words)
	}
	return tx.SendBatch(ctx, b).Close()
}

// Get implements rollout.Store.
func (s *Store) Get(ctx context.Context, id string) (rollout.Rollout, error) {
	return get(ctx, s.pool, id, "")
}

func get(ctx context.Context, q querier, id, lock string) (rollout.Rollout, error) {
	rows, err := q.Query(ctx, `SELECT id::text, doc, progress FROM rollout_rollout WHERE id = $1`+lock, pg.UUID(id))
	if err != nil {
		return rollout.Rollout{}, pg.Wrap(err, "rollout %s", id)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, errs.Coded(errs.NotFound, "no_rollout", "there is no rollout %.64q", id)
	}
	return r, pg.Wrap(err, "rollout %s", id)
}

// List implements rollout.Store.
func (s *Store) List(ctx context.Context, limit int) ([]rollout.Rollout, error) {
	rows, err := s.pool.Query(ctx, `SELECT id::text, doc, progress FROM rollout_rollout ORDER BY num DESC LIMIT $1`, limit)
	if err != nil {
		return nil, pg.Wrap(err, "list rollouts")
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Wrap(err, "list rollouts")
}

// Active implements rollout.Store.
func (s *Store) Active(ctx context.Context, since time.Time) ([]rollout.Rollout, error) {
	rows, err := s.pool.Query(ctx, `SELECT id::text, doc, progress FROM rollout_rollout AS r WHERE state IN ('running', 'baking', 'held', 'paused')
		OR state NOT IN ('draft', 'waiting') AND ((doc->>'changed')::timestamptz > $1 OR open > 0
			OR EXISTS (SELECT FROM rollout_member AS m WHERE m.rollout = r.id AND m.state = 'back')
			OR doc->'back' = 'true' AND EXISTS (SELECT FROM rollout_member AS m WHERE m.rollout = r.id AND m.state = 'done')) ORDER BY num`, since)
	if err != nil {
		return nil, pg.Wrap(err, "list active rollouts")
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Wrap(err, "list active rollouts")
}

// Using implements rollout.Store.
func (s *Store) Using(ctx context.Context, species thing.Species, v ota.Version) (rollout.Rollout, error) {
	rows, err := s.pool.Query(ctx, `SELECT id::text, doc, progress FROM rollout_rollout
		WHERE species = $1 AND state <> 'aborted' AND (doc->>'version' = $2 OR doc->'path' ? $2) ORDER BY num DESC LIMIT 1`, species, v)
	if err != nil {
		return rollout.Rollout{}, pg.Wrap(err, "rollouts that use %s", v)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, errs.Coded(errs.NotFound, "no_rollout", "no rollout uses release %s of %s", v, species)
	}
	return r, pg.Wrap(err, "rollouts that use %s", v)
}

// Turns implements rollout.Store.
func (s *Store) Turns(ctx context.Context, id string) ([]rollout.Turn, error) {
	rows, err := s.pool.Query(ctx, `SELECT at, kind, by_whom, phase, words FROM rollout_turn WHERE rollout = $1 ORDER BY id DESC LIMIT 500`, pg.UUID(id))
	if err != nil {
		return nil, pg.Wrap(err, "history of rollout %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[rollout.Turn])
	return out, pg.Wrap(err, "history of rollout %s", id)
}

// Of implements rollout.Store.
func (s *Store) Of(ctx context.Context, id thing.ID) ([]rollout.Place, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT r.id::text, r.doc, '{}'::jsonb, coalesce(m.state, ''), coalesce(m.was, ''), coalesce(m.granted, 'epoch'), coalesce(m.until, 'epoch'), coalesce(m.at, 'epoch'),
			coalesce(m.tries, 0), coalesce(m.code, 0), coalesce(m.phase, ''), coalesce(m.reason, ''), coalesce(m.had, ''), m.updated, coalesce(m.bad, '')
		FROM ((SELECT id FROM rollout_rollout WHERE species = $2 ORDER BY num DESC LIMIT 20)
			UNION SELECT rollout FROM rollout_member WHERE thing = $1 AND state IN ('granted', 'updating', 'silent', 'back')) AS near
			JOIN rollout_rollout AS r USING (id) LEFT JOIN rollout_member AS m ON m.rollout = r.id AND m.thing = $1
		WHERE r.state <> 'aborted' OR m.thing IS NOT NULL ORDER BY r.num DESC`, id, id.Species())
	if err != nil {
		return nil, pg.Wrap(err, "rollouts of %s", id)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p rollout.Place, err error) {
		var m memberRow
		p.Rollout, err = read(row, m.places()[1:]...)
		p.Member = m.member()
		p.Member.Thing = id
		return p, err
	})
	return out, pg.Wrap(err, "rollouts of %s", id)
}

// Things implements rollout.Store.
func (s *Store) Things(ctx context.Context, id string) ([]thing.ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	members, err := s.all(ctx, s.pool, id)
	return slices.Collect(maps.Keys(members)), pg.Wrap(err, "robots of rollout %s", id)
}

// all returns the standing of all robots of a rollout. The caller holds s.mu.
func (s *Store) all(ctx context.Context, q querier, id string) (map[thing.ID]rollout.Member, error) {
	h := s.held[id]
	if h == nil {
		if len(s.held) >= maxHeld {
			clear(s.held)
		}
		h = &held{members: map[thing.ID]rollout.Member{}, num: -1}
		s.held[id] = h
	}
	for {
		whole := h.num < 0
		rows, err := q.Query(ctx, `SELECT `+columns+`, num FROM rollout_member WHERE rollout = $1 AND num > $2`, pg.UUID(id), h.num)
		if err == nil {
			var m memberRow
			var num int64
			_, err = pgx.ForEachRow(rows, append(m.places(), &num), func() error {
				h.members[m.m.Thing], h.num = m.member(), max(h.num, num)
				return nil
			})
		}
		if err != nil {
			delete(s.held, id)
			return nil, err
		}
		rows, err = q.Query(ctx, `SELECT count(*) FROM rollout_member WHERE rollout = $1`, pg.UUID(id))
		if err != nil {
			return nil, err
		}
		if n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil || n == len(h.members) || whole {
			return h.members, err
		}
		clear(h.members) // rows were deleted
		h.num = -1
	}
}

const columns = `thing, state, was, granted, until, at, tries, code, phase, reason, had, updated, bad`

// memberRow is a row of rollout_member.
type memberRow struct {
	m       rollout.Member
	updated *time.Time
}

// places returns where the columns go.
func (r *memberRow) places() []any {
	m := &r.m
	return []any{&m.Thing, &m.State, &m.From, &m.Granted, &m.Until, &m.At, &m.Tries, &m.Code, &m.Phase, &m.Reason, &m.Had, &r.updated, &m.Bad}
}

func (r *memberRow) member() rollout.Member {
	m := r.m
	if m.Updated = (time.Time{}); r.updated != nil {
		m.Updated = *r.updated
	}
	return m
}

// Zones implements rollout.Store.
func (s *Store) Zones(ctx context.Context, things []thing.ID) (map[thing.ID]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT zone, string_agg(thing, ' ') FROM rollout_zone WHERE $1::text[] IS NULL OR thing = ANY ($1) GROUP BY zone`, things)
	if err != nil {
		return nil, pg.Wrap(err, "time zones")
	}
	out := map[thing.ID]string{}
	var zone, ids string
	_, err = pgx.ForEachRow(rows, []any{&zone, &ids}, func() error {
		for id := range strings.SplitSeq(ids, " ") {
			out[thing.ID(id)] = zone
		}
		return nil
	})
	return out, pg.Wrap(err, "time zones")
}

// Look implements rollout.Store.
func (s *Store) Look(ctx context.Context, id string) (w rollout.Work, err error) {
	if w.Rollout, err = s.Get(ctx, id); err != nil {
		return w, err
	}
	return w, pg.Wrap(fill(ctx, s.pool, &w, nil), "robots of rollout %s", id)
}

// fill reads what a rollout's work needs of its robots, besides the members that it has.
func fill(ctx context.Context, q querier, w *rollout.Work, things []thing.ID) error {
	id := pg.UUID(w.Rollout.ID)
	if w.Members == nil {
		w.Members = map[thing.ID]rollout.Member{}
		rows, err := q.Query(ctx, `SELECT `+columns+` FROM rollout_member WHERE rollout = $1 AND ($2::text[] IS NULL OR thing = ANY ($2))`, id, things)
		if err != nil {
			return err
		}
		var m memberRow
		if _, err := pgx.ForEachRow(rows, m.places(), func() error {
			w.Members[m.m.Thing] = m.member()
			return nil
		}); err != nil {
			return err
		}
	}
	w.Busy = map[thing.ID]bool{}
	rows, err := q.Query(ctx, `SELECT open FROM rollout_rollout WHERE id = $1`, id)
	if err != nil {
		return err
	}
	if w.Open, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil {
		return err
	}
	if rows, err = q.Query(ctx, `SELECT thing FROM rollout_member WHERE `+open+` AND rollout <> $1 AND ($2::text[] IS NULL OR thing = ANY ($2))`, id, things); err != nil {
		return err
	}
	var t thing.ID
	_, err = pgx.ForEachRow(rows, []any{&t}, func() error {
		w.Busy[t] = true
		return nil
	})
	return err
}

// Update implements rollout.Store. One lock for all rollouts of a species, so that no robot is granted by two of them.
func (s *Store) Update(ctx context.Context, id string, things []thing.ID, fn func(*rollout.Work) error) (err error) {
	if things == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer func() {
			if err != nil { // fn may have changed what is held
				delete(s.held, id)
			}
		}()
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('rollout/' || species, 0)) FROM rollout_rollout WHERE id = $1`, pg.UUID(id)); err != nil {
			return err
		}
		var w rollout.Work
		if w.Rollout, err = get(ctx, tx, id, " FOR UPDATE"); err != nil {
			return err
		}
		if things == nil {
			if w.Members, err = s.all(ctx, tx, id); err != nil {
				return err
			}
		}
		if err := fill(ctx, tx, &w, things); err != nil {
			return err
		}
		if err := fn(&w); err != nil {
			return err
		}
		if len(things) != 1 { // what concerns one robot does not change the rollout
			doc, progress, err := docs(w.Rollout)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE rollout_rollout SET state = $2, doc = $3, progress = $4 WHERE id = $1`, pg.UUID(id), w.Rollout.State, doc, progress); err != nil {
				return err
			}
		}
		if err := keep(ctx, tx, id, w.Changed); err != nil {
			return err
		}
		return addTurns(ctx, tx, id, w.Turns)
	})
	return pg.Wrap(err, "rollout %s", id)
}

// keep writes the standing of robots in one statement.
func keep(ctx context.Context, tx pgx.Tx, id string, list []rollout.Member) error {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	things, states, was, phases, reasons, had := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	granted, until, at, updated, bad := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n), make([]*time.Time, n), make([]string, n)
	tries, codes := make([]int, n), make([]int, n)
	for i, m := range list {
		things[i], states[i], was[i], phases[i], reasons[i], had[i] = string(m.Thing), string(m.State), m.From, m.Phase, m.Reason, m.Had
		granted[i], until[i], at[i], tries[i], codes[i] = m.Granted, m.Until, m.At, m.Tries, m.Code
		if bad[i] = m.Bad; !m.Updated.IsZero() {
			updated[i] = &m.Updated
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO rollout_member (rollout, thing, state, was, granted, until, at, tries, code, phase, reason, had, updated, bad)
		SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::int[], $9::int[], $10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::text[])
		ON CONFLICT (rollout, thing) DO UPDATE SET state = excluded.state, was = excluded.was, granted = excluded.granted, until = excluded.until, at = excluded.at,
			tries = excluded.tries, code = excluded.code, phase = excluded.phase, reason = excluded.reason, had = excluded.had, updated = excluded.updated, bad = excluded.bad`,
		pg.UUID(id), things, states, was, granted, until, at, tries, codes, phases, reasons, had, updated, bad)
	return err
}

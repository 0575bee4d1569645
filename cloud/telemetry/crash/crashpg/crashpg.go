// Package crashpg keeps crashes, their groups and the list of symbol files in Postgres: tables crash_crash, crash_group and crash_symbols (migrations 0137, 0155).
package crashpg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/telemetry/crash"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store implements crash.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

var _ crash.Store = (*Store)(nil)

// New returns a Store on the pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

var ids = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// where collects conditions; each ? is the next value.
type where struct {
	text string
	args []any
}

func (w *where) and(condition string, values ...any) {
	for _, v := range values {
		w.args = append(w.args, v)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(w.args)), 1)
	}
	if w.text != "" {
		condition = " AND " + condition
	}
	w.text += condition
}

func (w *where) String() string {
	if w.text == "" {
		return "true"
	}
	return w.text
}

// Put implements crash.Store.
func (s *Store) Put(ctx context.Context, c crash.Crash, signature string) (group string, err error) {
	analysis, err := json.Marshal(c.Analysis)
	if err != nil {
		return "", err
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var before string // the group that it leaves
		err := tx.QueryRow(ctx, `SELECT crashed::text FROM crash_crash WHERE id = $1 FOR UPDATE`, c.ID).Scan(&before)
		stored := err == nil
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		versions := []string{}
		if c.Version != "" {
			versions = append(versions, c.Version)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO crash_group (program, signature, first_seen, last_seen, versions, moved) VALUES ($1, $2, $3, $3, $4, $5)
			ON CONFLICT (program, signature) DO NOTHING`, c.Program, signature, c.Received, versions, stored); err != nil {
			return err
		}
		g := crash.Group{}
		if err := tx.QueryRow(ctx, `SELECT id::text, state, fixed_in, resolved FROM crash_group WHERE (program, signature) = ($1, $2) FOR UPDATE`, c.Program, signature).
			Scan(&g.ID, &g.State, &g.FixedIn, &g.Resolved); err != nil {
			return err
		}
		group = g.ID
		if stored {
			if _, err := tx.Exec(ctx, `UPDATE crash_crash SET crashed = $2, program = $3, reason = $4, analysis = $5, modules = $6, looked = $7, problem = '' WHERE id = $1`,
				c.ID, group, c.Program, c.Reason, analysis, c.Modules, c.Looked); err != nil || before == group {
				return err
			}
			return move(ctx, tx, c.ID, before, group)
		}
		tag, err := tx.Exec(ctx, `INSERT INTO crash_crash (id, thing, crashed, name, program, os, version, boot_id, at, received, size, log_size, reason, analysis, modules, looked)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT (id) DO NOTHING`, c.ID, string(c.Thing), group, c.Name, c.Program, c.OS, c.Version, c.BootID,
			c.At, c.Received, c.Size, c.LogSize, c.Reason, analysis, c.Modules, c.Looked)
		if err != nil || tag.RowsAffected() == 0 { // another process was first; the group that it made for nothing is its own
			return err
		}
		if g.State == crash.Resolved && g.Returns(c.Version) {
			g.State = crash.Regressed
		}
		_, err = tx.Exec(ctx, `UPDATE crash_group SET state = $2, crashes = crashes + 1, last_seen = greatest(last_seen, $3),
			versions = CASE WHEN versions @> $4 THEN versions ELSE versions || $4 END WHERE id = $1`, group, g.State, c.Received, versions)
		return err
	})
	return group, pg.Wrap(err, "store crash %s", c.ID)
}

// move counts a crash in another group. What people said of the old one holds for a new one too; the last crash takes along what had expired.
func move(ctx context.Context, tx pgx.Tx, id, from, to string) error {
	if _, err := tx.Exec(ctx, `UPDATE crash_group AS n SET state = o.state, fixed_in = o.fixed_in, resolved = o.resolved, note = o.note, changed = o.changed, by_whom = o.by_whom
		FROM crash_group AS o WHERE n.id = $2 AND o.id = $1 AND n.moved AND n.crashes = 0`, from, to); err != nil {
		return err
	}
	var left bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM crash_crash WHERE crashed = $1)`, from).Scan(&left); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE crash_group AS n SET crashes = n.crashes + CASE WHEN $4 THEN 1 ELSE o.crashes END,
			first_seen = least(n.first_seen, CASE WHEN $4 THEN c.received ELSE o.first_seen END), last_seen = greatest(n.last_seen, c.received),
			versions = CASE WHEN c.version = '' OR c.version = ANY (n.versions) THEN n.versions ELSE n.versions || c.version END
		FROM crash_group AS o, crash_crash AS c WHERE o.id = $1 AND n.id = $2 AND c.id = $3`, from, to, id, left); err != nil {
		return err
	}
	if left {
		_, err := tx.Exec(ctx, `UPDATE crash_group SET crashes = crashes - 1 WHERE id = $1`, from)
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM crash_group WHERE id = $1`, from)
	return err
}

// Has implements crash.Store.
func (s *Store) Has(ctx context.Context, id string) (known bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM crash_crash WHERE id = $1)`, id).Scan(&known)
	return known, pg.Wrap(err, "crash %s", id)
}

const columns = "id::text, thing, crashed::text, name, program, os, version, boot_id, at, received, size, log_size, reason, problem, looked"

func into(c *crash.Crash) []any {
	return []any{&c.ID, &c.Thing, &c.Group, &c.Name, &c.Program, &c.OS, &c.Version, &c.BootID, &c.At, &c.Received, &c.Size, &c.LogSize, &c.Reason, &c.Problem, &c.Looked}
}

func (s *Store) list(ctx context.Context, what, rest string, args ...any) ([]crash.Crash, error) {
	rows, err := s.pool.Query(ctx, "SELECT "+columns+" FROM crash_crash WHERE "+rest, args...)
	if err != nil {
		return nil, pg.Wrap(err, "%s", what)
	}
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (c crash.Crash, err error) {
		err = r.Scan(into(&c)...)
		c.At, c.Received = c.At.UTC(), c.Received.UTC()
		return c, err
	})
	return out, pg.Wrap(err, "%s", what)
}

// Crashes implements crash.Store. A page after a crash that is gone by now is crash.ErrUnknown.
func (s *Store) Crashes(ctx context.Context, q crash.Query) ([]crash.Crash, error) {
	var w where
	if q.Thing != "" {
		w.and("thing = ?", string(q.Thing))
	}
	if q.Group != "" {
		if !ids.MatchString(q.Group) {
			return nil, crash.ErrUnknownGroup
		}
		w.and("crashed = ?", q.Group)
	}
	if q.Version != "" {
		w.and("version = ?", q.Version)
	}
	if q.After != "" {
		last, err := s.Crash(ctx, q.After)
		if err != nil {
			return nil, err
		}
		w.and("(received, id) < (?, ?::uuid)", last.Received, last.ID)
	}
	w.args = append(w.args, q.Limit)
	return s.list(ctx, "crashes", fmt.Sprintf("%s ORDER BY received DESC, id DESC LIMIT $%d", &w, len(w.args)), w.args...)
}

// Crash implements crash.Store.
func (s *Store) Crash(ctx context.Context, id string) (c crash.Crash, err error) {
	if !ids.MatchString(id) {
		return c, crash.ErrUnknown
	}
	err = s.pool.QueryRow(ctx, "SELECT "+columns+", analysis FROM crash_crash WHERE id = $1", id).Scan(append(into(&c), &c.Analysis)...)
	c.At, c.Received = c.At.UTC(), c.Received.UTC()
	if errors.Is(err, pgx.ErrNoRows) {
		return c, crash.ErrUnknown
	}
	return c, pg.Wrap(err, "crash %s", id)
}

func (s *Store) groups(ctx context.Context, rest string, args ...any) ([]crash.Group, error) {
	rows, err := s.pool.Query(ctx, `SELECT g.id::text, program, signature, n.reason, state, fixed_in, note, changed, by_whom, first_seen, last_seen, versions, crashes, resolved, n.robots, n.days
		FROM (SELECT * FROM crash_group WHERE `+rest+`) g
		CROSS JOIN LATERAL (SELECT (SELECT count(DISTINCT thing) FROM crash_crash WHERE crashed = g.id) AS robots, coalesce((SELECT reason FROM crash_crash WHERE crashed = g.id ORDER BY received DESC LIMIT 1), '') AS reason,
			ARRAY (SELECT (SELECT count(*) FROM crash_crash WHERE crashed = g.id AND received >= d AND received < d + interval '1 day')
				FROM generate_series(date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '13 days', clock_timestamp(), interval '1 day') AS d ORDER BY d) AS days) n
		ORDER BY last_seen DESC, g.id`, args...)
	if err != nil {
		return nil, pg.Wrap(err, "groups of crashes")
	}
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (g crash.Group, err error) {
		err = r.Scan(&g.ID, &g.Program, &g.Signature, &g.Reason, &g.State, &g.FixedIn, &g.Note, &g.Changed, &g.By, &g.FirstSeen, &g.LastSeen, &g.Versions, &g.Crashes, &g.Resolved, &g.Robots, &g.Days)
		g.FirstSeen, g.LastSeen = g.FirstSeen.UTC(), g.LastSeen.UTC()
		return g, err
	})
	return out, pg.Wrap(err, "groups of crashes")
}

// Groups implements crash.Store. A page after a group that is gone by now is crash.ErrUnknownGroup.
func (s *Store) Groups(ctx context.Context, q crash.GroupQuery) ([]crash.Group, error) {
	w := where{}
	w.and("crashes > 0")
	if q.State != "" {
		w.and("state = ?", string(q.State))
	}
	if q.Program != "" {
		w.and("program = ?", q.Program)
	}
	if q.Version != "" {
		w.and("versions @> ARRAY[?::text]", q.Version)
	}
	if q.After != "" {
		last, err := s.Group(ctx, q.After)
		if err != nil {
			return nil, err
		}
		w.and("(last_seen < ? OR last_seen = ? AND id > ?::uuid)", last.LastSeen, last.LastSeen, last.ID)
	}
	w.args = append(w.args, q.Limit)
	return s.groups(ctx, fmt.Sprintf("%s ORDER BY last_seen DESC, id LIMIT $%d", &w, len(w.args)), w.args...)
}

// Group implements crash.Store.
func (s *Store) Group(ctx context.Context, id string) (crash.Group, error) {
	if !ids.MatchString(id) {
		return crash.Group{}, crash.ErrUnknownGroup
	}
	list, err := s.groups(ctx, "id = $1", id)
	if err == nil && len(list) == 0 {
		err = crash.ErrUnknownGroup
	}
	if err != nil {
		return crash.Group{}, err
	}
	return list[0], nil
}

// SetState implements crash.Store.
func (s *Store) SetState(ctx context.Context, id string, c crash.Change, now time.Time, by string) (crash.Group, error) {
	if !ids.MatchString(id) {
		return crash.Group{}, crash.ErrUnknownGroup
	}
	_, err := s.pool.Exec(ctx, `UPDATE crash_group SET note = coalesce($2, note), changed = $3, by_whom = $4,
		state = CASE WHEN $5 = '' THEN state ELSE $5 END, fixed_in = CASE WHEN $5 = '' THEN fixed_in ELSE $6 END,
		resolved = CASE $5 WHEN '' THEN resolved WHEN 'resolved' THEN versions ELSE '{}' END WHERE id = $1`, id, c.Note, now, by, string(c.State), c.FixedIn)
	if err != nil {
		return crash.Group{}, pg.Wrap(err, "change group %s", id)
	}
	return s.Group(ctx, id)
}

func (s *Store) words(ctx context.Context, what, query string, args ...any) ([]string, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, pg.Wrap(err, "%s", what)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Wrap(err, "%s", what)
}

// CrashedIn is a group that a robot crashed in, and the versions of its release and of the program that crashed.
type CrashedIn struct{ Group, OS, Version string }

// Crashed returns the crashes of these robots (nil: of all) that were received since a time.
func (s *Store) Crashed(ctx context.Context, since time.Time, things []thing.ID) (map[thing.ID][]CrashedIn, error) {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT thing, crashed::text, os, version FROM crash_crash WHERE received >= $1 AND ($2::text[] IS NULL OR thing = ANY ($2))`, since, things)
	if err != nil {
		return nil, pg.Wrap(err, "robots that crashed")
	}
	out := map[thing.ID][]CrashedIn{}
	var id thing.ID
	var c CrashedIn
	_, err = pgx.ForEachRow(rows, []any{&id, &c.Group, &c.OS, &c.Version}, func() error {
		out[id] = append(out[id], c)
		return nil
	})
	return out, pg.Wrap(err, "robots that crashed")
}

// Unlisted implements crash.Store.
func (s *Store) Unlisted(ctx context.Context, list []string) ([]string, error) {
	return s.words(ctx, "unlisted crashes", `SELECT k FROM unnest($1::text[]) k WHERE NOT EXISTS (SELECT FROM crash_crash WHERE id::text = k)`, list)
}

// Before implements crash.Store.
func (s *Store) Before(ctx context.Context, t time.Time, limit int) ([]string, error) {
	return s.words(ctx, "expired crashes", `SELECT id::text FROM crash_crash WHERE received < $1 ORDER BY received LIMIT $2`, t, limit)
}

// Of implements crash.Store.
func (s *Store) Of(ctx context.Context, of thing.Stretch) ([]crash.Crash, error) {
	return s.list(ctx, "crashes of "+string(of.Thing), `thing = $1 AND (at >= $2 AND at < $3 OR received >= $2 AND received < $3) ORDER BY received, id`, string(of.Thing), of.Since, of.Until)
}

// Delete implements crash.Store.
func (s *Store) Delete(ctx context.Context, list []string, erase bool) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var groups, versions []string
		if err := tx.QueryRow(ctx, `WITH d AS (DELETE FROM crash_crash WHERE id = ANY ($1::uuid[]) RETURNING crashed, version)
			SELECT array_agg(DISTINCT crashed::text), array_agg(DISTINCT version) FROM d`, list).Scan(&groups, &versions); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM crash_group AS g WHERE id = ANY ($1::uuid[]) AND ($2 OR state = 'open' AND note = '')
			AND NOT EXISTS (SELECT FROM crash_crash WHERE crashed = g.id)`, groups, erase); err != nil || !erase {
			return err
		}
		// The names of releases are ours; other words may be the robot's alone.
		_, err := tx.Exec(ctx, `UPDATE crash_group AS g SET versions = array(SELECT v FROM unnest(versions) AS v WHERE v <> ALL (gone)), resolved = array(SELECT v FROM unnest(resolved) AS v WHERE v <> ALL (gone))
			FROM (SELECT o.id, array_agg(v) AS gone FROM crash_group AS o, unnest($2::text[]) AS v WHERE o.id = ANY ($1::uuid[]) AND v !~ '^[0-9]+([.][0-9]+)*(d|ud)?$'
				AND NOT EXISTS (SELECT FROM crash_crash WHERE crashed = o.id AND version = v) GROUP BY o.id) AS x WHERE g.id = x.id`, groups, versions)
		return err
	})
	return pg.Wrap(err, "delete crashes")
}

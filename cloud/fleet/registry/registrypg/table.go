package registrypg

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// order is a column of registry_facet and its type.
type order struct{ col, kind string }

// orders has an index for each (migration 0031), but for the id, which is the key.
var orders = map[registry.Column]order{
	registry.ByID:       {},
	registry.ByPresence: {"present", "boolean"},
	registry.BySince:    {"since", "timestamptz"},
	registry.BySeen:     {"seen", "timestamptz"},
	registry.ByCreated:  {"created", "timestamptz"},
	registry.ByVersion:  {"os_key", "text"},
	registry.ByAgent:    {"agent_key", "text"},
	registry.ByBody:     {"body_key", "text"},
	registry.ByBattery:  {"volts", "double precision"},
	registry.ByLoop:     {"late", "double precision"},
	registry.ByProblems: {"ills", "integer"},
	registry.ByCert:     {"cert", "timestamptz"},
}

// ofThing lets the key of registry_thing serve: it has the database's own collation, and registry_facet has C.
const ofThing = `COLLATE "default"`

// tableSQL returns the statement of one page, and its arguments. The rows of registry_thing are fetched one by one, for
// the page alone: LATERAL and LIMIT keep the planner from reading all of that fat table.
func tableSQL(q registry.Selection, after *registry.Place, now time.Time) (string, []any, error) {
	o, ok := orders[q.Sort]
	if !ok {
		return "", nil, fmt.Errorf("unknown sort order %q", q.Sort)
	}
	b := query{now: now}
	cond := b.where(q.Filter)
	beyond, dir := ">", ""
	if q.Desc {
		beyond, dir = "<", " DESC"
	}
	by, key := "f.thing"+dir, "''"
	if o.col != "" {
		by, key = "f."+o.col+dir+", f.thing"+dir, "f."+o.col+"::text"
	}
	switch {
	case after != nil && o.col == "":
		cond += " AND f.thing " + beyond + " " + b.arg(after.Thing)
	case after != nil:
		// The key travels as text: the types of pgx know no infinity of a time.
		cond += fmt.Sprintf(" AND (f.%s, f.thing) %s (%s::text::%s, %s)", o.col, beyond, b.arg(after.Key), o.kind, b.arg(after.Thing))
	}
	return `SELECT ` + columns + `, ` + key + ` FROM (SELECT f.* FROM ` + b.from() + ` WHERE ` + cond + ` ORDER BY ` + by + ` LIMIT ` + b.arg(q.Limit+1) +
		`) AS f CROSS JOIN LATERAL (SELECT * FROM registry_thing AS t WHERE t.thing = f.thing ` + ofThing + ` LIMIT 1) AS t ORDER BY ` + by, b.args, nil
}

// Table returns one page.
func (s *Store) Table(ctx context.Context, q registry.Selection, after *registry.Place) ([]registry.Thing, *registry.Place, error) {
	sql, args, err := tableSQL(q, after, time.Now())
	if err != nil {
		return nil, nil, err
	}
	var keys []string
	var out []registry.Thing
	err = s.ask(ctx, q.Filter, sql, args, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (registry.Thing, error) {
			var key string
			t, err := scan(row, &key)
			keys = append(keys, key)
			return t, err
		})
		return err
	})
	if err != nil {
		if pe, ok := errors.AsType[*pgconn.PgError](err); ok && after != nil && strings.HasPrefix(pe.Code, "22") {
			return nil, nil, errs.New(errs.Invalid, "after: the cursor does not fit the sort order %s", q.Sort) // its key is no value of the column
		}
		return nil, nil, pg.Wrap(err, "list things")
	}
	if len(out) <= q.Limit {
		return out, nil, nil
	}
	out = out[:q.Limit]
	last := q.Limit - 1
	return out, &registry.Place{Sort: q.Sort, Desc: q.Desc, Key: keys[last], Thing: out[last].ID}, nil
}

// maxAsk is the longest that Postgres works on one person's question.
const maxAsk = 5 * time.Second

// ask puts a person's question about the robots that f selects. Exhausted "filter_slow" after maxAsk.
func (s *Store) ask(ctx context.Context, f filter.Filter, sql string, args []any, read func(pgx.Rows) error) error {
	err := pg.Ask(ctx, s.pool, s.maxAsk, sql, args, read)
	if errors.Is(err, pg.ErrTooLong) {
		return errs.Coded(errs.Exhausted, "filter_slow", "filter %.200q: stopped after %v; use fewer words and cohorts, or try again when the fleet is less busy", f.Nameless(), s.maxAsk)
	}
	return err
}

// Select returns the ids of what a filter selects.
func (s *Store) Select(ctx context.Context, f filter.Filter, limit int) ([]thing.ID, error) {
	b := query{now: time.Now()}
	cond := b.where(f)
	sql := `SELECT f.thing FROM ` + b.from() + ` WHERE ` + cond + ` ORDER BY f.thing LIMIT ` + b.arg(limit)
	var out []thing.ID
	err := s.ask(ctx, f, sql, b.args, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, pgx.RowTo[thing.ID])
		return err
	})
	return out, pg.Wrap(err, "select things")
}

// briefsSQL returns the statement of Briefs, and its arguments.
func briefsSQL(f filter.Filter, also []thing.ID, now time.Time) (string, []any) {
	b := query{now: now}
	cond := b.where(f)
	or := ""
	if len(also) > 0 {
		or = ` OR f.thing IN (SELECT unnest(` + b.arg(also) + `::text[]))`
	}
	// A subquery and not = ANY: the plan for any argument would compare each robot with each name. Robots that are alike come in one row: a large fleet has few kinds.
	return `SELECT string_agg(f.thing, ' '), (` + cond + `), f.os, f.level, f.present, CASE WHEN NOT f.present THEN nullif(f.since, '-infinity') END, f.codes
		FROM ` + b.from() + ` WHERE (` + cond + `)` + or + ` GROUP BY 2, 3, 4, 5, 6, 7`, b.args
}

// Briefs returns the robots that a filter selects, and others by name.
func (s *Store) Briefs(ctx context.Context, f filter.Filter, also []thing.ID) (out []registry.Brief, err error) {
	sql, args := briefsSQL(f, also, time.Now())
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Wrap(err, "robots of %.200q", f.Nameless())
	}
	var x registry.Brief
	var things string
	var since *time.Time
	_, err = pgx.ForEachRow(rows, []any{&things, &x.In, &x.Version, &x.Level, &x.Present, &since, &x.Codes}, func() error {
		x.Since = value(since)
		x.Codes = slices.DeleteFunc(x.Codes, func(code string) bool {
			kind, _, _ := strings.Cut(code, "/")
			return kind == status.KindCrash && code != registry.CrashToken(x.Version)
		})
		out = slices.Grow(out, strings.Count(things, " ")+1)
		for id := range strings.SplitSeq(things, " ") {
			x.Thing = thing.ID(id)
			out = append(out, x)
		}
		x.Codes = nil
		return nil
	})
	return out, pg.Wrap(err, "robots of %.200q", f.Nameless())
}

// countsSQL returns one row per combination of facets: there are far fewer of them than robots, and one pass finds them.
func countsSQL(f filter.Filter, now time.Time) (string, []any) {
	b := query{now: now}
	cond := b.where(f)
	return `SELECT CASE WHEN present THEN 'present' WHEN seen = '-infinity' THEN 'never' WHEN since = '-infinity' THEN 'calls' ELSE 'absent' END, species, os, agent, body, level, loop, problems, tags, count(*)
		FROM ` + b.from() + ` WHERE ` + cond + ` GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9`, b.args
}

// Counts counts what a filter selects.
func (s *Store) Counts(ctx context.Context, f filter.Filter) (registry.Counts, error) {
	now := time.Now()
	sql, args := countsSQL(f, now)
	c := registry.Counts{At: now.UTC()}
	kinds := []*[]registry.Bucket{&c.Presence, &c.Species, &c.Version, &c.Agent, &c.Body, &c.Battery, &c.Loop}
	single := make([]map[string]int, len(kinds))
	for i := range single {
		single[i] = map[string]int{}
	}
	problems, tags := map[string]int{}, map[string]int{}
	value := make([]string, len(kinds))
	var kindsOf, tagsOf []string
	var n int
	row := func() error {
		c.Total += n
		switch value[0] {
		case filter.Present:
			c.Present += n
		case filter.Calls:
			c.Calls += n
		default:
			c.Absent += n
		}
		for i, v := range value {
			single[i][cmp.Or(v, filter.None)] += n
		}
		for _, k := range kindsOf {
			problems[k] += n
		}
		for _, k := range tagsOf {
			tags[k] += n
		}
		return nil
	}
	err := s.ask(ctx, f, sql, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&value[0], &value[1], &value[2], &value[3], &value[4], &value[5], &value[6], &kindsOf, &tagsOf, &n}, row)
		return err
	})
	for i, k := range kinds {
		*k = buckets(single[i])
	}
	c.Problem, c.Tag = buckets(problems), buckets(tags)
	return c, pg.Wrap(err, "count things")
}

// buckets sorts counts, the largest first.
func buckets(n map[string]int) []registry.Bucket {
	out := make([]registry.Bucket, 0, len(n))
	for v, n := range n {
		out = append(out, registry.Bucket{Value: v, Count: n})
	}
	slices.SortFunc(out, func(a, b registry.Bucket) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Value, b.Value)) })
	return out[:min(len(out), registry.MaxBuckets)]
}

// Tag adds and removes tags.
func (s *Store) Tag(ctx context.Context, id thing.ID, add, remove []string) (tags []string, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		// registry_thing is locked before registry_facet, here as where a status is kept.
		var old []string
		err := tx.QueryRow(ctx, `SELECT thing FROM registry_thing WHERE thing = $1 FOR UPDATE`, id).Scan(nil)
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT tags FROM registry_facet WHERE thing = $1 FOR UPDATE`, id).Scan(&old)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return errs.Coded(errs.NotFound, "no_thing", "thing %s is not in this fleet", id)
		}
		if err != nil {
			return err
		}
		tags = slices.DeleteFunc(slices.Concat(old, add), func(t string) bool { return slices.Contains(remove, t) })
		slices.Sort(tags)
		tags = slices.Compact(tags)
		switch {
		case len(tags) > registry.MaxTags && len(tags) > len(old):
			return errs.Coded(errs.Exhausted, "too_many_tags", "%s would have %d tags: want at most %d", id, len(tags), registry.MaxTags)
		case slices.Equal(tags, old):
			return nil
		}
		if _, err := tx.Exec(ctx, `UPDATE registry_facet SET tags = $2 WHERE thing = $1`, id, tags); err != nil {
			return err
		}
		return touch(ctx, tx, []string{string(id)})
	})
	if err != nil {
		return nil, fmt.Errorf("tags of %s: %w", id, err)
	}
	return tags, nil
}

// touch tells watchers that things changed otherwise than by a status.
func touch(ctx context.Context, tx pgx.Tx, ids []string) error {
	if _, err := tx.Exec(ctx, `UPDATE registry_thing SET rev = rev + 1, changed = clock_timestamp() WHERE thing = ANY($1)`, ids); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `SELECT pg_notify($1, '')`, channel)
	return err
}

// SetCertificates keeps until when certificates are good.
func (s *Store) SetCertificates(ctx context.Context, until map[thing.ID]time.Time) error {
	ids, ends := make([]string, 0, len(until)), make([]*time.Time, 0, len(until))
	for id := range until {
		ids = append(ids, string(id))
	}
	for _, id := range ids {
		ends = append(ends, null(until[thing.ID(id)]))
	}
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT t.thing FROM registry_thing AS t WHERE t.thing IN (
				SELECT f.thing `+ofThing+` FROM registry_facet AS f JOIN unnest($1::text[], $2::timestamptz[]) AS n (thing, cert) ON n.thing = f.thing
				WHERE f.cert <> coalesce(n.cert, '-infinity'))
			ORDER BY t.thing FOR UPDATE`, ids, ends)
		if err != nil {
			return err
		}
		changed, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(changed) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE registry_facet AS f SET cert = coalesce(n.cert, '-infinity') FROM unnest($1::text[], $2::timestamptz[]) AS n (thing, cert)
			WHERE f.thing = n.thing AND f.thing = ANY($3)`, ids, ends, changed)
		if err != nil {
			return err
		}
		return touch(ctx, tx, changed)
	})
	return pg.Wrap(err, "certificates of %d things", len(until))
}

// facetArgs are the values of setFacets, in its order.
func facetArgs(f registry.Facets) []any {
	if f.Problems == nil {
		f.Problems, f.Codes = []string{}, []string{}
	}
	return []any{f.Version, filter.VersionKey(f.Version), f.Agent, filter.VersionKey(f.Agent), f.Body, filter.VersionKey(f.Body), f.Model, f.Volts, f.Level,
		f.Late, f.Loop, f.Problems, f.Codes, registry.Fit}
}

const facetColumns = `os, os_key, agent, agent_key, body, body_key, model, volts, level, late, loop, problems, codes, fit`

// setFacets writes what facetArgs says into the row of thing, if it differs; the row's trigger adds the crashes. n is the number of its first placeholder.
func setFacets(thing string, n int) string {
	return fmt.Sprintf(`UPDATE registry_facet SET (%[1]s) = ROW($%[3]d::text, $%[4]d::text, $%[5]d::text, $%[6]d::text, $%[7]d::text, $%[8]d::text, $%[9]d::text,
			$%[10]d::double precision, $%[11]d::text, $%[12]d::double precision, $%[13]d::text, $%[14]d::text[], $%[15]d::text[], $%[16]d::smallint)
		WHERE thing = %[2]s AND (%[1]s) IS DISTINCT FROM ($%[3]d, $%[4]d, $%[5]d, $%[6]d, $%[7]d, $%[8]d, $%[9]d, $%[10]d, $%[11]d, $%[12]d, $%[13]d,
			CASE WHEN crashes = '[]' THEN $%[14]d ELSE registry_crash_kinds($%[14]d, crashes) END, CASE WHEN crashes = '[]' THEN $%[15]d ELSE registry_crash_codes($%[15]d, crashes) END, $%[16]d)`,
		facetColumns, thing, n, n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8, n+9, n+10, n+11, n+12, n+13)
}

// Refit reads statuses again.
func (s *Store) Refit(ctx context.Context, limit int) (int, error) {
	type old struct {
		id  thing.ID
		doc []byte
		ms  int64
	}
	n := 0
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT f.thing, t.status, t.clock_ms FROM registry_facet AS f JOIN registry_thing AS t ON t.thing = f.thing `+ofThing+`
			WHERE f.fit <> $1 AND t.status IS NOT NULL ORDER BY f.thing LIMIT $2 FOR UPDATE OF f SKIP LOCKED`, registry.Fit, limit)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o old, err error) { return o, row.Scan(&o.id, &o.doc, &o.ms) })
		if err != nil {
			return err
		}
		n = len(list)
		b := &pgx.Batch{}
		for _, o := range list {
			st := registry.StatusAt{ClockMS: o.ms}
			if err := json.Unmarshal(o.doc, &st.Message); err != nil {
				// It stays unreadable: nothing is known of it, and it is not read again.
				st.Message = status.Message{}
			}
			b.Queue(setFacets("$1", 2), append([]any{o.id}, facetArgs(registry.FacetsOf(st))...)...)
		}
		return tx.SendBatch(ctx, b).Close()
	})
	return n, pg.Wrap(err, "reread statuses")
}

package registrypg

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kennel/cloud/fleet/registry"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// AddSteps counts steps under their outcomes, in one transaction; register makes their things known before. An outcome that others of the same
// step interrupted starts over.
func (s *Store) AddSteps(ctx context.Context, steps []registry.Step, register bool) error {
	if !register {
		return pg.Wrap(addSteps(ctx, s.pool, steps), "steps of %d things", len(steps))
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		things := make([]string, len(steps))
		for i, st := range steps {
			things[i] = string(st.Thing)
		}
		slices.Sort(things) // two such orders wait for each other in one direction
		if _, err := tx.Exec(ctx, `
			WITH made AS (INSERT INTO registry_thing (thing) SELECT DISTINCT t FROM unnest($1::text[]) AS t ORDER BY t ON CONFLICT DO NOTHING RETURNING 1)
			SELECT pg_notify($2, '') FROM made LIMIT 1`, things, channel); err != nil {
			return err
		}
		return addSteps(ctx, tx, steps)
	})
	return pg.Wrap(err, "steps of %d things", len(steps))
}

// addSteps counts steps under their outcomes with one statement, which may touch a row only once: of several with one outcome the last counts.
func addSteps(ctx context.Context, db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, steps []registry.Step) error {
	type outcome struct {
		thing      thing.ID
		name, code string
		ok         bool
	}
	row := map[outcome]int{}
	var things, names, codes, peers, versions, details []string
	var oks []bool
	var ats []*time.Time
	var times []int64
	var shown []*string
	for _, st := range steps {
		var cert *string
		if st.Shown != nil {
			b, err := json.Marshal(st.Shown)
			if err != nil {
				return err
			}
			text := string(b)
			cert = &text
		}
		key := outcome{st.Thing, st.Name, st.Code, st.OK}
		if i, twice := row[key]; twice {
			ats[i], peers[i], versions[i], details[i], shown[i] = null(st.At), st.Peer, st.Version, st.Detail, cert
			continue
		}
		row[key] = len(things)
		things, names, codes, oks = append(things, string(st.Thing)), append(names, st.Name), append(codes, st.Code), append(oks, st.OK)
		ats, peers, versions = append(ats, null(st.At)), append(peers, st.Peer), append(versions, st.Version)
		details, shown, times = append(details, st.Detail), append(shown, cert), append(times, max(st.Times, 1))
	}
	_, err := db.Exec(ctx, `
		INSERT INTO registry_step AS o (thing, name, ok, code, first, last, times, peer, version, detail, shown)
		SELECT thing, name, ok, code, began, began, n, peer, version, detail, shown::json
		FROM unnest($1::text[], $2::text[], $3::bool[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[])
			AS s (thing, name, ok, code, at, peer, version, detail, shown, n),
			coalesce(at, clock_timestamp()) AS began ORDER BY thing
		ON CONFLICT (thing, name, ok, code) DO UPDATE SET
			last = greatest(o.last, excluded.last), peer = excluded.peer, version = excluded.version, detail = excluded.detail, shown = excluded.shown,
			(first, times) = (SELECT CASE WHEN interrupted THEN excluded.first ELSE o.first END, CASE WHEN interrupted THEN excluded.times ELSE o.times + excluded.times END
				FROM (SELECT EXISTS (SELECT FROM registry_step AS other WHERE other.thing = o.thing AND other.name = o.name
					AND (other.ok, other.code) <> (o.ok, o.code) AND other.last > o.last) AS interrupted) AS q)`,
		things, names, oks, codes, ats, peers, versions, details, shown, times)
	return err
}

// Steps returns the outcomes of a thing, the latest first.
func (s *Store) Steps(ctx context.Context, id thing.ID) ([]registry.Outcome, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT name, ok, code, first, last, times, peer, version, detail, shown FROM registry_step WHERE thing = $1 ORDER BY last DESC, ok LIMIT $2`,
		id, registry.MaxSteps)
	if err != nil {
		return nil, pg.Wrap(err, "steps of %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[registry.Outcome])
	return out, pg.Wrap(err, "steps of %s", id)
}

// Peers returns the steps of a stretch of a thing's life that have an address, for the export of its owner.
func (s *Store) Peers(ctx context.Context, of thing.Stretch) (any, error) {
	rows, err := s.pool.Query(ctx, `SELECT name AS step, first, last, peer FROM registry_step WHERE thing = $1 AND last >= $2 AND last < $3 AND peer <> '' ORDER BY last, name`,
		of.Thing, of.Since, of.Until)
	if err != nil {
		return nil, pg.Wrap(err, "addresses of %s", of.Thing)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToMap)
	return out, pg.Wrap(err, "addresses of %s", of.Thing)
}

// ForgetPeers deletes the addresses of a thing's steps until the end of a stretch, also those from before it: a person tries to claim a robot before they
// own it. It returns how many those were.
func (s *Store) ForgetPeers(ctx context.Context, of thing.Stretch) (int, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE registry_step SET peer = '' WHERE thing = $1 AND last < $2 AND peer <> ''`, of.Thing, of.Until)
	return int(tag.RowsAffected()), pg.Wrap(err, "forget addresses of %s", of.Thing)
}

// Trim removes what the bounds no longer allow: outcomes beyond MaxSteps of one thing and MaxStrangerSteps of unregistered things,
// comings and goings that are too old or too many.
func (s *Store) Trim(ctx context.Context) error {
	for _, q := range []struct {
		sql string
		arg any
	}{
		{`DELETE FROM registry_step AS o USING (
			SELECT thing, name, ok, code, row_number() OVER (PARTITION BY thing ORDER BY last DESC) AS n FROM registry_step) AS r
			WHERE (o.thing, o.name, o.ok, o.code) = (r.thing, r.name, r.ok, r.code) AND r.n > $1`, registry.MaxSteps},
		{`DELETE FROM registry_step AS o USING (
			SELECT thing, name, ok, code, row_number() OVER (ORDER BY last DESC) AS n FROM registry_step AS s
			WHERE NOT EXISTS (SELECT FROM registry_thing AS t WHERE t.thing = s.thing)) AS r
			WHERE (o.thing, o.name, o.ok, o.code) = (r.thing, r.name, r.ok, r.code) AND r.n > $1`, registry.MaxStrangerSteps},
		{`DELETE FROM registry_presence WHERE at < clock_timestamp() - $1::interval`, registry.HistoryAge},
		{`DELETE FROM registry_presence AS p USING (
			SELECT thing, at, present, row_number() OVER (PARTITION BY thing ORDER BY at DESC) AS n FROM registry_presence) AS r
			WHERE (p.thing, p.at, p.present) = (r.thing, r.at, r.present) AND r.n > $1`, registry.MaxHistory},
	} {
		if _, err := s.pool.Exec(ctx, q.sql, q.arg); err != nil {
			return pg.Wrap(err, "delete old steps")
		}
	}
	return nil
}

package registrypg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"kennel/certs/thing"
	"kennel/cloud/registry"
)

// AddStep counts a step under its outcome. An outcome that others of the same step interrupted starts over.
func (s *Store) AddStep(ctx context.Context, st registry.Step) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO registry_step AS o (thing, name, ok, code, first, last, times, peer, version, detail)
		SELECT $1, $2, $3, $4, at, at, 1, $6, $7, $8 FROM coalesce($5::timestamptz, clock_timestamp()) AS at
		ON CONFLICT (thing, name, ok, code) DO UPDATE SET
			last = greatest(o.last, excluded.last), peer = excluded.peer, version = excluded.version, detail = excluded.detail,
			(first, times) = (SELECT CASE WHEN interrupted THEN excluded.first ELSE o.first END, CASE WHEN interrupted THEN 1 ELSE o.times + 1 END
				FROM (SELECT EXISTS (SELECT FROM registry_step AS other WHERE other.thing = o.thing AND other.name = o.name
					AND (other.ok, other.code) <> (o.ok, o.code) AND other.last > o.last) AS interrupted) AS q)`,
		st.Thing, st.Name, st.OK, st.Code, null(st.At), st.Peer, st.Version, st.Detail)
	return wrap(err, "step %s of %s", st.Name, st.Thing)
}

// Steps returns the outcomes of a thing, the latest first.
func (s *Store) Steps(ctx context.Context, id thing.ID) ([]registry.Outcome, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT name, ok, code, first, last, times, peer, version, detail FROM registry_step WHERE thing = $1 ORDER BY last DESC, ok LIMIT $2`,
		id, registry.MaxSteps)
	if err != nil {
		return nil, wrap(err, "steps of %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[registry.Outcome])
	return out, wrap(err, "steps of %s", id)
}

// Trim removes what the bounds no longer allow: outcomes beyond MaxSteps of one thing and MaxStrangerSteps of things nobody registered,
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
			return wrap(err, "trim")
		}
	}
	return nil
}

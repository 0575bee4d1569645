// Package alertpg keeps alerts and their rule in Postgres: tables alert_rule, alert_found (migration 0107), alert_part, alert_threshold, alert_crossed and alert_mail.
package alertpg

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/alert"
	"kennel/cloud/registry"
	"kennel/infra/errs"
	"kennel/infra/pg"
)

// Store is alert.Store. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Rule implements alert.Store.
func (s *Store) Rule(ctx context.Context) (r alert.Rule, err error) {
	err = s.pool.QueryRow(ctx, `SELECT robots, share, changed, by_whom FROM alert_rule`).Scan(&r.Robots, &r.Share, &r.Changed, &r.By)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, errs.New(errs.NotFound, "no alert rule was set")
	}
	return r, pg.Wrap(err, "read alert rule")
}

// SetRule implements alert.Store.
func (s *Store) SetRule(ctx context.Context, r alert.Rule) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO alert_rule (robots, share, changed, by_whom) VALUES ($1, $2, $3, $4)
		ON CONFLICT (single) DO UPDATE SET robots = excluded.robots, share = excluded.share, changed = excluded.changed, by_whom = excluded.by_whom`,
		r.Robots, r.Share, r.Changed, r.By)
	return pg.Wrap(err, "set alert rule")
}

// columns are those of an alert.Alert, by table.
var columns = map[string]string{
	"alert_found":   `id, release, kind, code, robots, present, since, resolved, '' AS place, '' AS reason`,
	"alert_part":    `id, '' AS release, CASE WHEN failing THEN '` + alert.PartFailing + `' ELSE '` + alert.PartWarning + `' END AS kind, part AS code, 0 AS robots, 0 AS present, since, resolved, place, reason`,
	"alert_crossed": `id, release, kind, code, robots, present, since, resolved, '' AS place, reason`,
}

// Alerts implements alert.Store.
func (s *Store) Alerts(ctx context.Context, limit int) ([]alert.Alert, error) {
	var all []string
	for table, columns := range columns {
		all = append(all, `SELECT `+columns+` FROM `+table)
	}
	rows, err := s.pool.Query(ctx, `SELECT * FROM (`+strings.Join(all, ` UNION ALL `)+`) AS a ORDER BY resolved IS NOT NULL, coalesce(resolved, since) DESC, id DESC LIMIT $1`, limit)
	if err != nil {
		return nil, pg.Wrap(err, "list alerts")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[alert.Alert])
	return out, pg.Wrap(err, "list alerts")
}

// Found implements alert.Store.
func (s *Store) Found(ctx context.Context, counts []registry.ProblemCount) error {
	n := len(counts)
	releases, kinds, codes, robots, present := make([]string, n), make([]string, n), make([]string, n), make([]int, n), make([]int, n)
	for i, c := range counts {
		releases[i], kinds[i], codes[i], robots[i], present[i] = c.Release, c.Kind, c.Code, c.Robots, c.Present
	}
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`UPDATE alert_found AS a SET missed = coalesce(missed, clock_timestamp()),
				resolved = CASE WHEN missed <= clock_timestamp() - $4::interval THEN clock_timestamp() END
			WHERE resolved IS NULL AND NOT EXISTS (
				SELECT FROM unnest($1::text[], $2::text[], $3::text[]) AS n (release, kind, code) WHERE (n.release, n.kind, n.code) = (a.release, a.kind, a.code))`,
			releases, kinds, codes, alert.ResolveAfter)
		b.Queue(`INSERT INTO alert_found AS a (release, kind, code, robots, present, since)
			SELECT n.*, clock_timestamp() FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::int[]) AS n (release, kind, code, robots, present)
			ON CONFLICT (release, kind, code) WHERE resolved IS NULL DO UPDATE SET robots = excluded.robots, present = excluded.present, missed = NULL
			WHERE (a.robots, a.present) <> (excluded.robots, excluded.present) OR a.missed IS NOT NULL`, releases, kinds, codes, robots, present)
		b.Queue(`DELETE FROM alert_found WHERE resolved < clock_timestamp() - $1::interval`, alert.Keep)
		b.Queue(resolveParts, alert.PartAfter)
		b.Queue(`DELETE FROM alert_part WHERE resolved < clock_timestamp() - $1::interval`, alert.Keep)
		return tx.SendBatch(ctx, b).Close()
	})
	return pg.Wrap(err, "store alerts")
}

// resolveParts resolves what its process no longer tells.
const resolveParts = `UPDATE alert_part SET resolved = clock_timestamp() WHERE resolved IS NULL AND told < clock_timestamp() - $1::interval`

// Told implements alert.Store.
func (s *Store) Told(ctx context.Context, place string, parts []alert.Part) error {
	b := &pgx.Batch{}
	for _, p := range parts {
		b.Queue(`INSERT INTO alert_part AS a (place, part, failing, reason, since, told) VALUES ($1, $2, $3, $4, $5, clock_timestamp())
			ON CONFLICT (place, part) WHERE resolved IS NULL DO UPDATE SET failing = excluded.failing, reason = excluded.reason, told = excluded.told`,
			place, p.Name, p.Failing, p.Reason, p.Since)
	}
	b.Queue(resolveParts, alert.PartAfter)
	return pg.Wrap(s.pool.SendBatch(ctx, b).Close(), "store alerts of parts")
}

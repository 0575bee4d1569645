// Package alertpg keeps alerts and their rule in Postgres: tables alert_rule, alert_found (migration 0107), alert_part, alert_threshold, alert_crossed and alert_mail.
package alertpg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/telemetry/alert"
	"kennel/infra/errs"
	"kennel/infra/pg"
)

// Store is alert.Store. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Rule implements alert.Store.
func (s *Store) Rule(ctx context.Context) (r alert.Rule, err error) {
	err = s.pool.QueryRow(ctx, `SELECT robots, share, floor_robots, floor_share, excess, changed, by_whom FROM alert_rule`).Scan(&r.Robots, &r.Share, &r.FloorRobots, &r.FloorShare, &r.Excess, &r.Changed, &r.By)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, errs.New(errs.NotFound, "no alert rule is set")
	}
	return r, pg.Wrap(err, "read alert rule")
}

// SetRule implements alert.Store.
func (s *Store) SetRule(ctx context.Context, r alert.Rule) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO alert_rule (robots, share, floor_robots, floor_share, excess, changed, by_whom) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (single) DO UPDATE SET robots = excluded.robots, share = excluded.share, floor_robots = excluded.floor_robots, floor_share = excluded.floor_share, excess = excluded.excess,
			changed = excluded.changed, by_whom = excluded.by_whom`, r.Robots, r.Share, r.FloorRobots, r.FloorShare, r.Excess, r.Changed, r.By)
	return pg.Wrap(err, "set alert rule")
}

// tables are the tables of alerts, with the columns of an alert.Alert, the kind by which a silence knows it, and its size: ten times the size is more severe.
var tables = map[string]string{
	"alert_found":   `id, release, kind, code, robots, present, since, resolved, '' AS place, reason, kind AS about, robots AS size, mailed, told_size`,
	"alert_part":    `id, '' AS release, CASE WHEN failing THEN '` + alert.PartFailing + `' ELSE '` + alert.PartWarning + `' END AS kind, part AS code, 0 AS robots, 0 AS present, since, resolved, place, reason, '` + alert.PartKind + `' AS about, CASE WHEN failing THEN 10 ELSE 1 END AS size, mailed, told_size`,
	"alert_crossed": `id, release, kind, code, robots, present, since, resolved, '' AS place, reason, kind AS about, robots AS size, mailed, told_size`,
}

// everyAlert is all tables together.
var everyAlert = func() string {
	var all []string
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		all = append(all, `SELECT '`+table+`' AS at_table, `+tables[table]+` FROM `+table)
	}
	return `(` + strings.Join(all, ` UNION ALL `) + `) AS a`
}()

const (
	// silenced joins the silence of an alert that lasts longest, worse is that it is ten times as severe as at a size.
	silenced = ` LEFT JOIN LATERAL (SELECT * FROM alert_silence AS s WHERE s.until > clock_timestamp() AND (s.release, s.place, s.kind, s.code) = (a.release, a.place, a.about, a.code) ORDER BY s.until DESC LIMIT 1) AS s ON true`
	worse    = `a.size::bigint >= 10 * greatest(%s, 1)`
)

// Alerts implements alert.Store.
func (s *Store) Alerts(ctx context.Context, limit int) ([]alert.Alert, error) {
	rows, err := s.pool.Query(ctx, `SELECT a.id, a.release, a.kind, a.code, a.robots, a.present, a.since, a.resolved, a.place, a.reason, k.at, k.by_whom, k.why, s.id, s.release, s.place, s.kind, s.code, s.since, s.until, s.by_whom, s.why
		FROM `+everyAlert+` LEFT JOIN alert_ack AS k ON k.id = a.id AND a.resolved IS NULL AND NOT `+fmt.Sprintf(worse, "k.size")+silenced+`
		ORDER BY a.resolved IS NOT NULL, coalesce(a.resolved, a.since) DESC, a.id DESC LIMIT $1`, limit)
	if err != nil {
		return nil, pg.Wrap(err, "list alerts")
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a alert.Alert, err error) {
		var k struct {
			at      *time.Time
			by, why *string
		}
		var q struct {
			id                                  *int64
			release, place, kind, code, by, why *string
			since, until                        *time.Time
		}
		if err := row.Scan(&a.ID, &a.Release, &a.Kind, &a.Code, &a.Robots, &a.Present, &a.Since, &a.Resolved, &a.Place, &a.Reason, &k.at, &k.by, &k.why,
			&q.id, &q.release, &q.place, &q.kind, &q.code, &q.since, &q.until, &q.by, &q.why); err != nil {
			return a, err
		}
		if k.at != nil {
			a.Ack = &alert.Ack{At: *k.at, By: *k.by, Why: *k.why}
		}
		if q.id != nil {
			a.Silenced = &alert.Silence{ID: *q.id, Release: *q.release, Place: *q.place, Kind: *q.kind, Code: *q.code, Since: *q.since, Until: *q.until, By: *q.by, Why: *q.why}
		}
		return a, nil
	})
	return out, pg.Wrap(err, "list alerts")
}

// reopen continues the latest alert of a table about the same, if it was resolved lately. n are rows with fires, same compares them, $1 are they, $2 is the time.
func reopen(table, n, same, self, set string) string {
	return `UPDATE ` + table + ` AS a SET resolved = NULL, missed = NULL, ` + set + ` FROM ` + n + ` WHERE n.fires AND ` + same + ` AND a.resolved > clock_timestamp() - $2::interval
		AND a.id = (SELECT max(id) FROM ` + table + ` AS o WHERE ` + self + `)`
}

// Found implements alert.Store.
func (s *Store) Found(ctx context.Context, all []alert.Found, away []string) error {
	const now = `jsonb_to_recordset($1) AS n (release text, kind text, code text, robots integer, present integer, reason text, fires boolean)`
	const same = `(n.release, n.kind, n.code) = (a.release, a.kind, a.code)`
	const set = `robots = n.robots, present = n.present, reason = n.reason`
	given, err := json.Marshal(append([]alert.Found{}, all...))
	if err != nil {
		return err
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`UPDATE alert_found AS a SET missed = coalesce(missed, clock_timestamp()), resolved = CASE WHEN missed <= clock_timestamp() - $2::interval THEN clock_timestamp() END
			WHERE resolved IS NULL AND release <> ALL ($3::text[]) AND NOT EXISTS (SELECT FROM `+now+` WHERE `+same+`)`, given, alert.ResolveAfter, append([]string{}, away...))
		b.Queue(`UPDATE alert_found AS a SET `+set+`, missed = NULL FROM `+now+` WHERE a.resolved IS NULL AND `+same+`
			AND ((a.robots, a.present, a.reason) <> (n.robots, n.present, n.reason) OR a.missed IS NOT NULL)`, given)
		b.Queue(reopen("alert_found", now, same, `(o.release, o.kind, o.code) = (a.release, a.kind, a.code)`, set), given, alert.ReopenWithin)
		b.Queue(`INSERT INTO alert_found (release, kind, code, robots, present, reason, since) SELECT release, kind, code, robots, present, reason, clock_timestamp() FROM `+now+` WHERE fires
			ON CONFLICT (release, kind, code) WHERE resolved IS NULL DO NOTHING`, given)
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
		b.Queue(`UPDATE alert_part AS a SET resolved = NULL, failing = $3, reason = $4, told = clock_timestamp() WHERE (place, part) = ($1, $2) AND resolved > clock_timestamp() - $5::interval
			AND id = (SELECT max(id) FROM alert_part WHERE (place, part) = ($1, $2))`, place, p.Name, p.Failing, p.Reason, alert.ReopenWithin)
		b.Queue(`INSERT INTO alert_part AS a (place, part, failing, reason, since, told) VALUES ($1, $2, $3, $4, $5, clock_timestamp())
			ON CONFLICT (place, part) WHERE resolved IS NULL DO UPDATE SET failing = excluded.failing, reason = excluded.reason, told = excluded.told`,
			place, p.Name, p.Failing, p.Reason, p.Since)
	}
	b.Queue(resolveParts, alert.PartAfter)
	return pg.Wrap(s.pool.SendBatch(ctx, b).Close(), "store alerts of parts")
}

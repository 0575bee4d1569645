package daspg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/telemetry/das"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// sums counts the events of a query named e by hour, robot, version and class, and by minute, version and name. Erasures subtract the same sums.
const sums = `
	, hours AS (
		SELECT date_bin('1 hour', received, 'epoch') AS at, thing COLLATE "C" AS thing, CASE WHEN event = 'robot.crash' AND s3 <> '' THEN left(s3, 64) ELSE robot_version END COLLATE "C" AS version,
			CASE event WHEN 'robot.crash' THEN 'crash' WHEN 'robot.fault_code' THEN 'fault/' || coalesce(i1, 0)
				WHEN 'battery.low' THEN 'battery.low' WHEN 'wakeword.triggered' THEN 'voice.heard' 
				WHEN 'robot.intent' THEN CASE WHEN s3 = 'voice' THEN 'voice.done' ELSE '' END
				WHEN 'behavior.voice_command.dropped' THEN CASE WHEN s1 = 'reserved' THEN 'voice.done' WHEN coalesce(s2, '') = '' THEN 'voice.lost' ELSE '' END
				ELSE CASE WHEN event IN ('battery.periodic_log', 'battery.battery_level_changed') AND s1 IN ('low', 'critical') THEN 'battery.low' WHEN level = 'error' THEN 'level.failure' ELSE '' END
			END COLLATE "C" AS class, count(*) AS n, max(received) AS last
		FROM e GROUP BY 1, 2, 3, 4)
	, robots AS (
		SELECT every, date_bin(make_interval(secs => every), at, 'epoch') AS at, thing, version, class, sum(n)::bigint AS n
		FROM (SELECT at, thing, version, class, n FROM hours WHERE class <> '' UNION ALL SELECT at, thing, version, '', n FROM hours) AS h, unnest('{3600,86400}'::int[]) AS every
		GROUP BY 1, 2, 3, 4, 5)
	, names AS (SELECT date_bin('1 minute', received, 'epoch') AS at, robot_version COLLATE "C" AS version, event COLLATE "C" AS event, count(*) AS n FROM e GROUP BY 1, 2, 3)`

const summed = `received, thing, robot_version, event, level, s1, s2, s3, i1`

const (
	// rollLock is the advisory lock of the transaction that changes the sums, in any process.
	rollLock = 0x6b726f6c // "krol"
	// rollGroups and rollEvents bound one transaction, the latter about.
	rollGroups, rollEvents = 200, 50_000
)

// Roll adds some of the commits that are not in the sums yet, each once. While another process does so it adds nothing.
func (s *Store) Roll(ctx context.Context) (out das.Rolled, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, rollLock).Scan(&mine); err != nil || !mine {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT id, received, events FROM das_group WHERE NOT rolled ORDER BY id LIMIT $1`, rollGroups)
		if err != nil {
			return err
		}
		var ids []int64
		var times []time.Time
		var id int64
		var received time.Time
		var events, all int
		if _, err := pgx.ForEachRow(rows, []any{&id, &received, &events}, func() error {
			if all < rollEvents {
				ids, times, all = append(ids, id), append(times, received), all+events
			}
			return nil
		}); err != nil || len(ids) == 0 {
			return err
		}
		out.Groups = len(ids)
		return tx.QueryRow(ctx, `WITH e AS (SELECT `+summed+` FROM das_event WHERE received = ANY($1) AND grp = ANY($2))`+sums+`
			, r AS (INSERT INTO das_robot AS r (every, at, thing, version, class, n) SELECT every, at, thing, version, class, n FROM robots
				ON CONFLICT (every, at, thing, version, class) DO UPDATE SET n = r.n + excluded.n RETURNING every, at, version, class, xmax = 0 AS fresh)
			, h AS (INSERT INTO das_heard AS h (at, version, robots) SELECT at, version, count(*) FROM r WHERE fresh AND every = 3600 AND class = '' GROUP BY 1, 2
				ON CONFLICT (at, version) DO UPDATE SET robots = h.robots + excluded.robots)
			, l AS (INSERT INTO das_last AS l (thing, version, class, last) SELECT thing, version, class, max(last)
				FROM (SELECT thing, version, '' AS class, last FROM hours UNION ALL SELECT thing, version, class, last FROM hours WHERE class = 'crash' OR starts_with(class, 'fault/')) AS s GROUP BY 1, 2, 3
				ON CONFLICT (thing, version, class) DO UPDATE SET last = excluded.last WHERE excluded.last > l.last + CASE l.class WHEN '' THEN interval '1 minute' ELSE interval '0' END)
			, d AS (INSERT INTO das_name AS d (at, event, version, n) SELECT at, event, version, n FROM names
				ON CONFLICT (at, event, version) DO UPDATE SET n = d.n + excluded.n)
			, g AS (UPDATE das_group SET rolled = true WHERE id = ANY($2))
			SELECT coalesce(sum(n) FILTER (WHERE class = 'crash'), 0)::bigint, coalesce(sum(n) FILTER (WHERE starts_with(class, 'fault/')), 0)::bigint FROM hours`, times, ids).Scan(&out.Crashes, &out.Faults)
	})
	if err != nil {
		return das.Rolled{}, fmt.Errorf("sum up events: %w", err)
	}
	return out, nil
}

// eraseSome deletes some events of a stretch from one partition, and subtracts those that are in the sums.
func (s *Store) eraseSome(ctx context.Context, table string, of thing.Stretch) (n int, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, rollLock); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `WITH gone AS (DELETE FROM `+table+` WHERE ctid = ANY (ARRAY(SELECT ctid FROM `+table+`
				WHERE thing = $1 AND received >= $2 AND received < $3 LIMIT $4)) RETURNING grp, `+summed+`)
			, e AS (SELECT `+summed+` FROM gone WHERE EXISTS (SELECT FROM das_group WHERE id = grp AND rolled))`+sums+`
			, r AS (UPDATE das_robot AS t SET n = t.n - s.n FROM robots AS s WHERE (t.every, t.at, t.thing, t.version, t.class) = (s.every, s.at, s.thing, s.version, s.class) AND t.n > s.n)
			, rd AS (DELETE FROM das_robot AS t USING robots AS s WHERE (t.every, t.at, t.thing, t.version, t.class) = (s.every, s.at, s.thing, s.version, s.class) AND t.n <= s.n RETURNING t.every, t.at, t.version, t.class)
			, hd AS (UPDATE das_heard AS h SET robots = h.robots - s.n FROM (SELECT at, version, count(*) AS n FROM rd WHERE every = 3600 AND class = '' GROUP BY 1, 2) AS s WHERE (h.at, h.version) = (s.at, s.version))
			, ld AS (DELETE FROM das_last WHERE thing = $1 AND last >= $2 AND last < $3)
			, d AS (UPDATE das_name AS t SET n = t.n - s.n FROM names AS s WHERE (t.at, t.event, t.version) = (s.at, s.event, s.version) AND t.n > s.n)
			, dd AS (DELETE FROM das_name AS t USING names AS s WHERE (t.at, t.event, t.version) = (s.at, s.event, s.version) AND t.n <= s.n)
			SELECT count(*) FROM gone`, string(of.Thing), of.Since, of.Until, eraseRows).Scan(&n)
	})
	return n, err
}

// slots chooses rows of das_robot.
const slots = ` FROM das_robot WHERE every = $1 AND at >= $2 AND at < $3 AND ($4::text[] IS NULL OR thing IN (SELECT unnest($4::text[])))`

func (s *Store) tallies(ctx context.Context, sql string, args ...any) ([]das.Tally, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Wrap(err, "read sums of events")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[das.Tally])
	return out, pg.Wrap(err, "read sums of events")
}

func args(of das.Slots) []any {
	return []any{int(of.Every.Seconds()), of.Since, of.Until, texts(of.Things)}
}

// texts are things as Postgres takes them; nil stays nil.
func texts(things []thing.ID) (out []string) {
	if things == nil {
		return nil
	}
	out = make([]string, len(things))
	for i, id := range things {
		out[i] = string(id)
	}
	return out
}

// Tallies sums up by version and class.
func (s *Store) Tallies(ctx context.Context, of das.Slots) ([]das.Tally, error) {
	return s.tallies(ctx, `SELECT 'epoch'::timestamptz, version, class, count(*), sum(slots)::bigint, sum(n)::bigint
		FROM (SELECT CASE WHEN $5 THEN '' ELSE version END AS version, class, thing, count(*) AS slots, sum(n) AS n`+slots+` GROUP BY 1, 2, 3) AS t
		GROUP BY version, class ORDER BY 2, 3`, append(args(of), of.Whole)...)
}

// Compare sums up by version and class what was since mid and what was before, and what was since mid whatever the version, in one reading.
func (s *Store) Compare(ctx context.Context, of das.Slots, mid time.Time) (now, was, whole []das.Tally, err error) {
	rows, err := s.pool.Query(ctx, `WITH t AS MATERIALIZED (SELECT at >= $5 AS later, version, class, thing, count(*) AS slots, sum(n) AS n`+slots+` GROUP BY 1, 2, 3, 4)
		SELECT later, false, 'epoch'::timestamptz, version, class, count(*), sum(slots)::bigint, sum(n)::bigint FROM t GROUP BY later, version, class
		UNION ALL SELECT true, true, 'epoch'::timestamptz, '', class, count(*), sum(slots)::bigint, sum(n)::bigint
			FROM (SELECT class, thing, sum(slots) AS slots, sum(n) AS n FROM t WHERE later GROUP BY class, thing) AS w GROUP BY class
		ORDER BY 4, 5`, append(args(of), mid)...)
	if err != nil {
		return nil, nil, nil, pg.Wrap(err, "read sums of events")
	}
	var later, all bool
	var t das.Tally
	_, err = pgx.ForEachRow(rows, []any{&later, &all, &t.At, &t.Version, &t.Class, &t.Robots, &t.Slots, &t.Events}, func() error {
		switch {
		case all:
			whole = append(whole, t)
		case later:
			now = append(now, t)
		default:
			was = append(was, t)
		}
		return nil
	})
	return now, was, whole, pg.Wrap(err, "read sums of events")
}

// Course sums up robots that were heard of and robots that crashed, by slot and version, oldest first. Of days whose robots have expired it returns what is left of cohort.
func (s *Store) Course(ctx context.Context, of das.Slots, cohort string) ([]das.Tally, error) {
	return s.tallies(ctx, `SELECT at, version, class, count(*), count(*), sum(n)::bigint`+slots+` AND class IN ('', 'crash') GROUP BY at, version, class
		UNION ALL SELECT at, version, class, robots, robots, n FROM das_day WHERE $1 = 86400 AND at >= $2 AND at < $3 AND cohort = $5 AND class IN ('', 'crash')
		ORDER BY 1, 2, 3`, append(args(of), cohort)...)
}

// HourSums returns the hours since a time in which robots were heard of, oldest first, for at most das.KeepHours.
func (s *Store) HourSums(ctx context.Context, since time.Time) ([]das.HourSum, error) {
	rows, err := s.pool.Query(ctx, `SELECT at, sum(robots)::bigint, coalesce((SELECT sum(n)::bigint FROM das_name WHERE event = 'robot.crash' COLLATE "C" AND das_name.at >= h.at AND das_name.at < h.at + interval '1 hour'), 0)
		FROM das_heard AS h WHERE at >= $1 AND robots > 0 GROUP BY at ORDER BY at`, since)
	if err != nil {
		return nil, pg.Wrap(err, "read hours of the fleet")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[das.HourSum])
	return out, pg.Wrap(err, "read hours of the fleet")
}

// Unsummed returns how many commits are not in the sums yet.
func (s *Store) Unsummed(ctx context.Context) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM das_group WHERE NOT rolled`).Scan(&n)
	return n, pg.Wrap(err, "count commits not yet summed up")
}

// Recent implements alert.Sums: one round trip for whatever number of windows.
func (s *Store) Recent(ctx context.Context, now time.Time, longest time.Duration, of []das.EventSince) (out das.Recent, err error) {
	events, since := make([]string, len(of)), make([]time.Time, len(of))
	for i, e := range of {
		events[i], since[i] = e.Event, e.Since
	}
	b := &pgx.Batch{}
	// date_bin counts in integers, per robot; the age is made of it for a few groups only.
	b.Queue(`SELECT species, version, class, (extract(epoch FROM $1 - minute) / 60)::int, n
		FROM (SELECT split_part(thing, ':', 1) COLLATE "C" AS species, version, class, date_bin('1 minute', last + interval '59.999999 seconds', $1::timestamptz) AS minute, count(*) AS n FROM das_last WHERE last > $2 GROUP BY 1, 2, 3, 4) AS m`, now, now.Add(-longest)).Query(func(rows pgx.Rows) (err error) {
		out.Ages, err = pgx.CollectRows(rows, pgx.RowToStructByPos[das.Age])
		return err
	})
	b.Queue(`SELECT at, version, robots FROM das_heard WHERE at > $1 AND robots > 0`, now.Add(-longest-das.Hour)).Query(func(rows pgx.Rows) (err error) {
		out.Heard, err = pgx.CollectRows(rows, pgx.RowToStructByPos[das.Heard])
		return err
	})
	if len(of) > 0 {
		b.Queue(`SELECT q.event, q.since, d.version, d.n FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::timestamptz[]) AS q (event, since)) AS q
			CROSS JOIN LATERAL (SELECT version, sum(n)::bigint AS n FROM das_name WHERE event = q.event COLLATE "C" AND at > q.since GROUP BY version) AS d`, events, since).Query(func(rows pgx.Rows) (err error) {
			out.Events, err = pgx.CollectRows(rows, pgx.RowToStructByPos[das.EventCount])
			return err
		})
	}
	return out, pg.Wrap(s.pool.SendBatch(ctx, b).Close(), "read recent sums of events")
}

// ForgetRobots drops hours that began before hour, and turns days that began before day into sums, of the whole fleet and of cohorts as they are now. It does
// what the time of ctx allows; the next run continues.
func (s *Store) ForgetRobots(ctx context.Context, hour, day time.Time, cohorts func(context.Context) (map[string][]thing.ID, error)) error {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT at FROM das_robot WHERE every = 86400 AND at < $1 ORDER BY 1`, day)
	if err != nil {
		return pg.Wrap(err, "find expired days")
	}
	expired, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return pg.Wrap(err, "find expired days")
	}
	if len(expired) > 0 {
		groups, err := cohorts(ctx)
		if err != nil {
			return err
		}
		groups[""] = nil
		for _, at := range expired {
			if !enough(ctx) {
				return nil
			}
			if err := s.forgetDay(ctx, at, groups); err != nil {
				return pg.Wrap(err, "forget robots of %s", at.Format(time.DateOnly))
			}
		}
	}
	return errors.Join(s.deleteOld(ctx, "das_robot", `every = 3600 AND at < $1`, hour), s.deleteOld(ctx, "das_name", `at < $1`, hour),
		s.deleteOld(ctx, "das_heard", `at < $1`, hour), s.deleteOld(ctx, "das_last", `last < $1`, hour))
}

// forgetDay turns one day into sums.
func (s *Store) forgetDay(ctx context.Context, at time.Time, groups map[string][]thing.ID) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, rollLock); err != nil {
			return err
		}
		for name, things := range groups {
			if _, err := tx.Exec(ctx, `INSERT INTO das_day AS d (cohort, at, version, class, robots, n) SELECT $5, at, version, class, count(*), sum(n)::bigint`+slots+` GROUP BY at, version, class
				ON CONFLICT (cohort, at, version, class) DO UPDATE SET robots = d.robots + excluded.robots, n = d.n + excluded.n`,
				append(args(das.Slots{Every: das.Day, Since: at, Until: at.Add(das.Day), Things: things}), name)...); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `DELETE FROM das_robot WHERE every = 86400 AND at = $1`, at)
		return err
	})
}

package daspg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Bounds of questions whose shape a person chose.
const (
	askTime    = 8 * time.Second
	streamTime = 10 * time.Minute
	askAtOnce  = 4              // per process
	robotAhead = 24 * time.Hour // that a robot's clock may be ahead of ours
)

// arguments collects the arguments of a statement.
type arguments []any

// add returns the placeholder of a further argument.
func (a *arguments) add(v any) string {
	*a = append(*a, v)
	return "$" + strconv.Itoa(len(*a))
}

// recorded is the condition that an event was recorded at a time or later (das.Clock.Since), in ms since 1970.
var recorded = `EXISTS (SELECT FROM das_range AS r WHERE r.thing = das_event.thing AND r.boot_id = das_event.boot_id AND r.ahead_ms <= ` +
	strconv.Itoa(das.MaxAhead) + `
	AND CASE WHEN unsynced THEN uptime_ms >= ?::bigint + r.ahead_ms - r.began_ms ELSE ts >= ?::bigint + r.ahead_ms END)`

// where adds f to a query whose arguments so far are args. What f says by words goes as arguments; columns and operators are ours.
func where(f das.Filter, sql string, args []any) (string, []any) {
	a := arguments(args)
	add := func(cond string, v any) { sql += " AND " + strings.ReplaceAll(cond, "?", a.add(v)) }
	if f.Thing != "" {
		add("thing = ?", string(f.Thing))
	}
	if f.Things != nil {
		add("thing = ANY(?)", f.Things)
	}
	if !f.Owned.IsZero() {
		add("received >= ?", f.Owned)
		add(recorded, f.Owned.UnixMilli())
	}
	if f.ByRobot {
		if !f.Since.IsZero() {
			add("ts >= ?", f.Since.UnixMilli())
			add("received >= ?", f.Since.Add(-robotAhead))
		}
		if !f.Until.IsZero() {
			add("ts < ?", f.Until.UnixMilli())
		}
	} else {
		if !f.Since.IsZero() {
			add("received >= ?", f.Since)
		}
		if !f.Until.IsZero() {
			add("received < ?", f.Until)
		}
	}
	if f.Event != "" {
		add("starts_with(event, ?)", f.Event)
	}
	if f.Name != "" {
		add("event = ?", f.Name)
	}
	if f.Names != nil {
		add("event = ANY(?)", f.Names)
	}
	if begin, part := strings.CutSuffix(f.Version, "*"); part {
		add("starts_with(robot_version, ?)", begin)
	} else if f.Version != "" {
		add("robot_version = ?", f.Version)
	}
	if f.Source != "" {
		add("source = ?", f.Source)
	}
	if i := slices.Index(das.Levels, f.Level); i > 0 { // a level that is not known is as grave as info
		if f.Level == events.Info {
			add("level <> ?", string(events.Debug))
		} else {
			add("level = ANY(?)", das.Levels[i:])
		}
	}
	for _, c := range f.Values {
		switch op := map[string]string{"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "~": "~"}[c.Op]; {
		case !slices.Contains(events.Fields, c.Field) || op == "":
			sql += " AND false" // ParseCondition makes none like that
		case c.Number():
			add(c.Field+" "+op+" ?::bigint", c.N)
		case op == "~":
			add("strpos(lower("+c.Field+"), lower(?)) > 0", c.Text)
		default:
			add(c.Field+" "+op+" ?::text", c.Text)
		}
	}
	if f.Misfit {
		sql += " AND " + misfit(&a)
	}
	return sql, a
}

// misfit is the condition that events.Event.Misfit is not empty.
func misfit(a *arguments) string {
	known := events.Known()
	with, flags := map[string][]string{}, map[string][]string{}
	for _, name := range known {
		values, _ := events.Describe(name)
		for _, d := range values {
			with[d.Field] = append(with[d.Field], name)
			if d.Flag {
				flags[d.Field] = append(flags[d.Field], name)
			}
		}
	}
	var any []string
	for _, field := range events.Fields {
		any = append(any, fmt.Sprintf("%s IS NOT NULL AND event <> ALL(%s)", field, a.add(append([]string{}, with[field]...))))
		if names := flags[field]; names != nil {
			any = append(any, fmt.Sprintf("%s NOT IN (0, 1) AND event = ANY(%s)", field, a.add(names)))
		}
	}
	return "(event = ANY(" + a.add(known) + ") AND (" + strings.Join(any, " OR ") + "))"
}

// ask runs a statement of bounded cost, some at a time.
func (s *Store) ask(ctx context.Context, most time.Duration, sql string, args []any, read func(pgx.Rows) error) error {
	select {
	case s.asks <- struct{}{}:
		defer func() { <-s.asks }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := pg.Ask(ctx, s.pool, most, sql, args, read)
	if errors.Is(err, pg.ErrTooLong) {
		return errs.Coded(errs.Exhausted, "too_long", "query stopped after %v: choose a shorter time, one robot or one event", most)
	}
	return pg.Wrap(err, "read events")
}

func (s *Store) List(ctx context.Context, f das.Filter, limit int, before das.Cursor) (recs []das.Record, err error) {
	sql, args := where(f, selectEvents+" WHERE true", nil)
	if !before.Received.IsZero() {
		args = append(args, before.Received, string(before.Thing), before.BootID, int64(before.Seq))
		n := len(args)
		sql += fmt.Sprintf(" AND received <= $%d AND (received, thing, boot_id, seq) < ($%d, $%d, $%d, $%d)", n-3, n-3, n-2, n-1, n)
	}
	args = append(args, limit)
	err = s.ask(ctx, askTime, sql+" ORDER BY received DESC, thing DESC, boot_id DESC, seq DESC LIMIT $"+strconv.Itoa(len(args)), args, func(rows pgx.Rows) (err error) {
		recs, err = pgx.CollectRows(rows, scanRecord)
		return err
	})
	return recs, err
}

// Stream implements das.Reader.
func (s *Store) Stream(ctx context.Context, f das.Filter, limit int, fn func(das.Record) error) error {
	sql, args := where(f, selectEvents+" WHERE true", nil)
	args = append(args, limit)
	return s.ask(ctx, streamTime, sql+" ORDER BY received, thing, boot_id, seq LIMIT $"+strconv.Itoa(len(args)), args, func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scanRecord(rows)
			if err == nil {
				err = fn(r)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// Counts implements das.Reader.
func (s *Store) Counts(ctx context.Context, q das.CountsQuery) (out das.Counts, err error) {
	var a arguments
	clock := "received"
	if q.Filter.ByRobot {
		clock = "to_timestamp(ts / 1000.0)"
	}
	key := map[das.Grouping]string{das.ByEvent: "event", das.ByVersion: "robot_version", das.BySource: "source", das.ByLevel: "level", das.ByRobot: "thing"}[q.By]
	order := "2 DESC, 1"
	if q.By.Time() {
		key, order = fmt.Sprintf(`to_char(date_trunc('%s', %s), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`, q.By, clock), "1 DESC"
	}
	numbers := ""
	if slices.Contains(events.Fields[4:], q.Of) {
		numbers = strings.ReplaceAll(", count(?), min(?), max(?), avg(?)::float8, percentile_cont(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY ?)", "?", q.Of)
	}
	head := fmt.Sprintf(`SELECT %s, count(*), count(DISTINCT thing), count(*) FILTER (WHERE %s), GROUPING(%[1]s) = 1%[3]s FROM das_event WHERE true`, key, misfit(&a), numbers)
	sql, args := where(q.Filter, head, a)
	sql += fmt.Sprintf(" GROUP BY GROUPING SETS ((%s), ()) ORDER BY 5 DESC, %s LIMIT %d", key, order, das.MaxGroups+2)
	err = s.ask(ctx, askTime, sql, args, func(rows pgx.Rows) error {
		var g das.Count
		var name pgtype.Text
		var n das.Numbers
		var least, most pgtype.Int8
		var mean pgtype.Float8
		var quantiles []float64
		var total bool
		to := []any{&name, &g.Events, &g.Robots, &g.Misfits, &total}
		if numbers != "" {
			to = append(to, &n.Count, &least, &most, &mean, &quantiles)
		}
		_, err := pgx.ForEachRow(rows, to, func() error {
			g.Key, g.Numbers = name.String, nil
			if len(quantiles) == 3 {
				g.Numbers = &das.Numbers{Count: n.Count, Min: least.Int64, Max: most.Int64, Mean: mean.Float64, P50: quantiles[0], P90: quantiles[1], P99: quantiles[2]}
			}
			switch {
			case total:
				out.Total = g
			case len(out.Groups) == das.MaxGroups:
				out.Cut = true
			default:
				out.Groups = append(out.Groups, g)
			}
			return nil
		})
		return err
	})
	if q.By.Time() {
		slices.Reverse(out.Groups)
	}
	return out, err
}

// maxLosses is how many gaps Losses returns at most.
const maxLosses = 200

// Losses implements das.Reader. It finds gaps beside the events that were received in that time, and drops those that das_range has closed: an
// event that is stored but no longer kept is no loss.
func (s *Store) Losses(ctx context.Context, id thing.ID, from, to time.Time) (out []das.Loss, err error) {
	err = s.ask(ctx, askTime, `
		WITH seen AS (
			SELECT boot_id, seq, received, lag(seq) OVER w AS last, lag(received) OVER w AS since
			FROM das_event WHERE thing = $1 AND received >= $2 AND received < $3
			WINDOW w AS (PARTITION BY boot_id ORDER BY seq)
		)
		SELECT s.boot_id, lower(g.gap), upper(g.gap) - 1, least(s.since, s.received), greatest(s.since, s.received)
		FROM seen AS s JOIN das_range AS r ON r.thing = $1 AND r.boot_id = s.boot_id,
			unnest(int8multirange(int8range(s.last + 1, s.seq)) - r.seqs) AS g (gap)
		WHERE s.seq > s.last + 1
		ORDER BY 5 DESC, 2 DESC LIMIT $4`, []any{string(id), from, to, maxLosses}, func(rows pgx.Rows) error {
		var l das.Loss
		var first, last int64
		_, err := pgx.ForEachRow(rows, []any{&l.BootID, &first, &last, &l.From, &l.To}, func() error {
			l.First, l.Last, l.From, l.To = uint64(first), uint64(last), l.From.UTC(), l.To.UTC()
			out = append(out, l)
			return nil
		})
		return err
	})
	return out, err
}

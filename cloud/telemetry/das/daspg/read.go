package daspg

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

const selectEvents = `SELECT received, thing, boot_id, seq, ts, uptime_ms, unsynced, level, source, robot_version, profile_id, feature_type,
	feature_run_id, coalesce(ble_conn_id, ''), coalesce(wifi_conn_id, ''), event, coalesce(s1, ''), coalesce(s2, ''), coalesce(s3, ''),
	coalesce(s4, ''), i1, i2, i3, i4 FROM das_event`

func scanRecord(row pgx.CollectableRow) (das.Record, error) {
	var r das.Record
	var i [4]pgtype.Int8
	e := &r.Event
	err := row.Scan(&r.Received, &r.Thing, &e.BootID, &e.Seq, &e.TS, &e.UptimeMS, &e.Unsynced, &e.Level, &e.Source, &e.RobotVersion, &e.ProfileID,
		&e.FeatureType, &e.FeatureRunID, &e.BLEConnID, &e.WifiConnID, &e.Name, &e.S1, &e.S2, &e.S3, &e.S4, &i[0], &i[1], &i[2], &i[3])
	e.RobotID = r.Thing.Serial()
	for n, to := range []*events.Int{&e.I1, &e.I2, &e.I3, &e.I4} {
		*to = events.Int{N: i[n].Int64, Set: i[n].Valid}
	}
	return r, err
}

// visible is the transaction before which everything is committed or given up. A group at or after it may still be on its way, so readers
// wait for it: no commit is passed over because a later one was faster.
const visible = `pg_snapshot_xmin(pg_current_snapshot())`

func (s *Store) Position(ctx context.Context, since time.Time) (das.Position, error) {
	sql, args := `SELECT `+visible+`::text::bigint`, []any(nil)
	if !since.IsZero() {
		sql = `SELECT least((SELECT min(xid) FROM das_group WHERE received >= $1), ` + visible + `)::text::bigint`
		args = []any{since}
	}
	var pos int64
	if err := s.pool.QueryRow(ctx, sql, args...).Scan(&pos); err != nil {
		return 0, pg.Err(fmt.Errorf("position in events: %w", err))
	}
	return das.Position(pos), nil
}

// readEvents is about how many events one Changes reads.
const readEvents = 10_000

func (s *Store) Changes(ctx context.Context, f das.Filter, from das.Position) ([]das.Record, das.Position, bool, error) {
	fail := func(err error) ([]das.Record, das.Position, bool, error) {
		return nil, from, false, pg.Err(fmt.Errorf("read new events: %w", err))
	}
	// The row with id 0 says how far this read could see; 0 if there is more.
	rows, err := s.pool.Query(ctx, `
		WITH g AS (
			SELECT xid, id, received, sum(events) OVER (ORDER BY xid) - events AS before
			FROM (SELECT xid, id, received, events FROM das_group WHERE xid >= $1::text::xid8 AND xid < `+visible+` ORDER BY xid LIMIT 1000) AS next
		)
		SELECT xid::text::bigint AS xid, id, received FROM g WHERE before < $2
		UNION ALL
		SELECT CASE WHEN EXISTS (SELECT FROM g WHERE before >= $2) THEN 0 ELSE `+visible+`::text::bigint END, 0, 'epoch'
		ORDER BY 1, 2`, strconv.FormatUint(uint64(from), 10), readEvents)
	if err != nil {
		return fail(err)
	}
	var ids []int64
	var times []time.Time
	var last, end, xid, id int64
	var received time.Time
	if _, err := pgx.ForEachRow(rows, []any{&xid, &id, &received}, func() error {
		if id == 0 {
			end = xid
			return nil
		}
		ids, times, last = append(ids, id), append(times, received), max(last, xid)
		return nil
	}); err != nil {
		return fail(err)
	}
	more := end == 0 || len(ids) == 1000
	next := das.Position(end)
	if more {
		next = das.Position(last + 1) // one group per transaction
	}
	if len(ids) == 0 {
		return nil, max(next, from), more, nil
	}
	sql, args := where(f,
		selectEvents+` WHERE received = ANY($1) AND grp = ANY($2)`, []any{times, ids})
	rows, err = s.pool.Query(ctx, sql+` ORDER BY array_position($2::bigint[], grp), thing, boot_id, seq`, args...)
	if err != nil {
		return fail(err)
	}
	recs, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return fail(err)
	}
	return recs, max(next, from), more, nil
}

// Boots implements das.Reader. Since a time it lists boots of which something was recorded then or later, too.
func (s *Store) Boots(ctx context.Context, id thing.ID, since time.Time, limit int) ([]das.Boot, error) {
	sql, args := `SELECT boot_id, seqs, updated, origin FROM das_range AS b WHERE thing = $1 AND updated >= $2 AND NOT isempty(seqs) AND NOT starts_with(boot_id, '`+events.CrashBoot+`')`, []any{string(id), since, limit}
	if !since.IsZero() {
		args = append(args, since.UnixMilli())
		sql += ` AND EXISTS (SELECT FROM das_event WHERE thing = $1 AND das_event.boot_id = b.boot_id AND received >= $2 AND ` + strings.ReplaceAll(recorded, "?", "$4") + `)`
	}
	rows, err := s.pool.Query(ctx, sql+` ORDER BY updated DESC, boot_id LIMIT $3`, args...)
	if err != nil {
		return nil, fmt.Errorf("boots of %s: %w", id, pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (das.Boot, error) {
		var boot, origin string
		var mr pgtype.Multirange[pgtype.Range[int64]]
		var latest time.Time
		if err := row.Scan(&boot, &mr, &latest, &origin); err != nil {
			return das.Boot{}, err
		}
		return das.NewBoot(boot, spans(mr), latest.UTC(), origin), nil
	})
	if err != nil {
		return nil, fmt.Errorf("boots of %s: %w", id, pg.Err(err))
	}
	return out, nil
}

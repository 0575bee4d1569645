package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Standby is a server that follows the one that takes writes.
type Standby struct {
	Name   string // its application_name
	State  string // streaming, catchup, startup
	Sync   bool   // a commit waits for it
	Behind int64  // bytes that it has not applied yet; -1: not known, or not for this role to see (it needs pg_monitor)
}

// Querier runs statements: a pool, a connection, or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Standbys returns the servers that follow the one at the other end of db, by name. While none follows, the death of that server ends the service and
// may lose what it had acknowledged.
func Standbys(ctx context.Context, db Querier) ([]Standby, error) {
	rows, err := db.Query(ctx, `SELECT application_name, coalesce(state, ''), coalesce(sync_state IN ('sync', 'quorum'), false),
		coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, replay_lsn)::bigint, -1)
		FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' ORDER BY application_name`)
	if err != nil {
		return nil, Wrap(err, "standbys")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Standby])
	return out, Wrap(err, "standbys")
}

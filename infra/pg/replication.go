package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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
	rows, err := db.Query(ctx, `SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(sync_state IN ('sync', 'quorum'), false),
		coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, replay_lsn)::bigint, -1)
		FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' ORDER BY application_name`)
	if err != nil {
		return nil, Wrap(err, "standbys")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Standby])
	return out, Wrap(err, "standbys")
}

// State is how the database is, as one connection sees it.
type State struct {
	Server   string // address of the server that was asked, host:port or the path of a socket
	Standby  bool   // it takes no writes
	Standbys []Standby
}

// Look asks the server that a connection of pool reaches now.
func Look(ctx context.Context, pool *pgxpool.Pool) (s State, err error) {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return s, Wrap(err, "state of the database")
	}
	defer c.Release()
	s.Server = c.Conn().PgConn().Conn().RemoteAddr().String()
	if err := c.QueryRow(ctx, `SELECT pg_is_in_recovery()`).Scan(&s.Standby); err != nil {
		return s, Wrap(err, "state of the database")
	}
	s.Standbys, err = Standbys(ctx, c)
	return s, err
}

// Servers returns how many servers the connection string names: more than one means that a standby is expected.
func (c Config) Servers() (int, error) {
	pc, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return 0, err
	}
	all := map[string]bool{fmt.Sprint(pc.Host, ":", pc.Port): true}
	for _, f := range pc.Fallbacks { // also a second attempt at the same server without TLS
		all[fmt.Sprint(f.Host, ":", f.Port)] = true
	}
	return len(all), nil
}

package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrTooLong is Ask's answer for a statement that took longer than it may.
var ErrTooLong = errors.New("the statement took too long")

// Ask runs one statement whose shape a person chose, such as a filter, and hands its rows to read. Postgres ends the statement after most
// (ErrTooLong), and when ctx ends. It is planned for its own arguments, never compiled, which would take longer than most of these statements do, and
// not kept: it would push out those that are used again.
func Ask(ctx context.Context, pool *pgxpool.Pool, most time.Duration, sql string, args []any, read func(pgx.Rows) error) error {
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)`,
			fmt.Sprint(most.Milliseconds()))
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return read(rows)
	})
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && pe.Code == "57014" && ctx.Err() == nil {
		return fmt.Errorf("%w: %v", ErrTooLong, most)
	}
	return Err(err)
}

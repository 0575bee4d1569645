package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrate applies the migrations of files (NNNN_name.sql in goose's format) that the database has not seen and returns how many it
// applied. Any number of processes may call it at the same time: one works, the others wait for it. A file whose number lies below one
// already applied is applied too, because slices grow in parallel; files must therefore not depend on another slice's.
func Migrate(ctx context.Context, pool *pgxpool.Pool, files fs.FS) (applied int, err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker{}), goose.WithAllowOutofOrder(true), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	done, err := p.Up(ctx)
	if pe, ok := errors.AsType[*goose.PartialError](err); ok {
		return len(pe.Applied), fmt.Errorf("migrate: %s: %w", path.Base(pe.Failed.Source.Path), Err(pe.Err))
	}
	if err != nil {
		return len(done), fmt.Errorf("migrate: %w", Err(err))
	}
	return len(done), nil
}

// Pending returns how many migrations of files the database has not seen.
func Pending(ctx context.Context, pool *pgxpool.Pool, files fs.FS) (int, error) {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithAllowOutofOrder(true), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	all, err := p.Status(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", Err(err))
	}
	n := 0
	for _, m := range all {
		if m.State == goose.StatePending {
			n++
		}
	}
	return n, nil
}

// lockID is the advisory lock of migrations, goose's own, so that its command-line tool respects it too.
const lockID = lock.DefaultLockID

// locker is goose's session locker with a shorter step: goose's own waits whole seconds. It polls because a session that blocks in
// pg_advisory_lock holds a snapshot, which a CREATE INDEX CONCURRENTLY in the migrating session would wait for.
type locker struct{}

func (locker) SessionLock(ctx context.Context, c *sql.Conn) error {
	for {
		var got bool
		if err := c.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", lockID).Scan(&got); err != nil || got {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the migration of another process: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (locker) SessionUnlock(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", lockID)
	return err
}

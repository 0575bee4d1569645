package pgtest

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
)

// Durable returns a pool on a migrated Postgres of its own on disk, with the settings of production: what it acknowledged is synced. It is for
// benchmarks, takes seconds to start, and ends with the test.
func Durable(tb testing.TB, conns int32) *pgxpool.Pool {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatalf("pgtest: %v", err)
		}
	}
	account, err := pgserver.FindAccount()
	must(err)
	dir, err := os.MkdirTemp("/var/tmp", "kennel-bench-") // a disk; the folder for temporary files may be memory
	must(err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // leftovers are in the folder for temporary files
	must(os.Chmod(dir, 0o711))
	must(account.CheckTraversable(filepath.Join(dir, "x")))
	server, err := pgserver.New(pgserver.Config{
		Dir: filepath.Join(dir, "pg"), SocketDir: filepath.Join(dir, "s"), Database: "kennel", LogFile: filepath.Join(dir, "log"),
	},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	must(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Keep(ctx) }()
	tb.Cleanup(func() { stop(); <-ended })
	select {
	case <-server.Ready():
	case err := <-ended:
		ended <- err
		tb.Fatalf("pgtest: Postgres ended: %v", err)
	}
	pool, err := pg.Open(ctx, pg.Config{DSN: server.DSN(), AppName: "bench", MaxConns: conns})
	must(err)
	tb.Cleanup(pool.Close)
	_, err = pg.Migrate(ctx, pool, migrations.FS)
	must(err)
	var settings string
	must(pool.QueryRow(ctx, `SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit')`).Scan(&settings))
	if settings != "on on" {
		tb.Fatalf("pgtest: fsync and synchronous_commit are %q: want both on", settings)
	}
	return pool
}

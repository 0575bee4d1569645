// Package pgtest gives each test a Postgres database of its own in milliseconds: a copy of a migrated template inside one private
// server per test binary. The server starts at the first use and is reached through a Unix socket. It is removed however the test
// binary ends. Only a stopped cluster stays in the account's cache folder; the next test binary starts with a copy of it.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }          // optional: waits for the server's end
//	func TestStore(t *testing.T) { pool := pgtest.New(t); ... }
package pgtest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

// Main runs the tests, stops the server and exits. Without it the server ends a moment after the test binary.
func Main(m *testing.M) {
	code := m.Run()
	Stop()
	os.Exit(code)
}

// New returns a pool on a fresh, migrated database that exists as long as the test.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, DSN(t))
}

// NewEmpty is New without the migrations.
func NewEmpty(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, database(t, "template0"))
}

// DSN makes a fresh, migrated database that exists as long as the test and returns its address. No password is needed.
func DSN(t testing.TB) string {
	t.Helper()
	return database(t, template)
}

func open(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn, AppName: "test", ConnTimeout: patience})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() { defer close(closed); pool.Close() }()
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
			t.Errorf("pgtest: %d connections not returned to the pool 5 s after the test", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// patience is how long a busy machine may take to connect.
const patience = time.Minute

var databases atomic.Int64

func database(t testing.TB, from string) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if from == template {
		if err := s.migrated(); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	name := fmt.Sprintf("t%d", databases.Add(1))
	create := fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, from)
	if s.server.Binaries().Major >= 15 {
		create += " STRATEGY FILE_COPY" // as older versions do anyway: cheaper than writing to the log when nothing is synced
	}
	if err := s.exec(create); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s.server.DSNOf(name)
}

// template is the migrated database that tests get copies of.
const template = "kennel_template"

// instance is the one server of a test binary.
type instance struct {
	server   *pgserver.Server
	dir      string
	stop     context.CancelFunc
	ended    chan error
	janitor  io.Closer // removes dir, also when this process dies
	migrated func() error
}

var shared = sync.OnceValues(start)

// started is the running instance, if any; Stop reads it, so that stopping starts none.
var started atomic.Pointer[instance]

// Stop stops the server, if it was started, and removes its folder. Tests that need a database fail from then on.
func Stop() {
	if s := started.Load(); s != nil {
		_ = s.end() // the tests are over
	}
}

// end stops the server and removes its folder. It returns why the server did not stop as it should.
func (s *instance) end() error {
	s.stop()
	err := <-s.ended
	_ = s.janitor.Close() // leftovers are in the folder for temporary files
	return err
}

// start starts the server of this test binary on a copy of the prepared cluster, or on a new one where none could be prepared.
func start() (*instance, error) {
	s, err := launch(prepared())
	if err == nil {
		started.Store(s)
	}
	return s, err
}

// launch starts a server in a folder of its own, on a copy of the stopped cluster from; if it is "" there is none and the template is made
// at its first use, so that tests of pg itself work while a migration is broken.
func launch(from string) (_ *instance, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			stop()
		}
	}()
	dir, err := tempDir()
	if err != nil {
		return nil, err
	}
	s := &instance{dir: dir, stop: stop, ended: make(chan error, 1)}
	s.migrated = sync.OnceValue(s.migrate)
	if s.janitor, err = proc.RemoveAfterDeath(dir); err != nil {
		return nil, err
	}
	if from != "" {
		if err := duplicate(from, s.cluster()); err != nil {
			return nil, err
		}
		s.migrated = func() error { return nil }
	}
	logfile := filepath.Join(dir, "log")
	s.server, err = pgserver.New(pgserver.Config{Dir: s.cluster(), SocketDir: filepath.Join(dir, "s"), Volatile: true,
		LogFile: logfile}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	go func() { s.ended <- s.server.Keep(ctx) }()
	select {
	case <-s.server.Ready():
	case err := <-s.ended:
		s.ended <- err
		return nil, fmt.Errorf("%w; log:\n%s", err, tail(logfile))
	case <-time.After(60 * time.Second):
		return nil, fmt.Errorf("the private Postgres is not ready after 60 s; log:\n%s", tail(logfile))
	}
	return s, nil
}

// cluster is the folder of the server's cluster.
func (s *instance) cluster() string { return filepath.Join(s.dir, "pg") }

// migrate makes the template.
func (s *instance) migrate() error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := s.exec("CREATE DATABASE " + template); err != nil {
		return err
	}
	pool, err := pg.Open(ctx, pg.Config{DSN: s.server.DSNOf(template), MaxConns: 2})
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pg.Migrate(ctx, pool, migrations.FS)
	return err
}

// exec runs one statement in the maintenance database, on a connection of its own: CREATE DATABASE takes no transaction.
func (s *instance) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := s.server.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err = c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// memory is a file system in memory: a new database takes 10 ms there, and 30 to 300 ms on a disk. It is used if at least minMemory
// bytes are free.
const memory, minMemory = "/dev/shm", 2 << 30

// tempDir makes a folder that the server's account can reach and whose name leaves room for a socket.
func tempDir() (string, error) {
	account, err := pgserver.FindAccount()
	if err != nil {
		return "", err
	}
	base := os.TempDir()
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) == nil && int64(fs.Bavail)*int64(fs.Bsize) >= minMemory {
		base = memory
	}
	if len(base) > 40 || account.CheckTraversable(filepath.Join(base, "x")) != nil {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "kennel-pgtest-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) // the account passes through, and sees nothing
}

func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

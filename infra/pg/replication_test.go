package pg_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/errs"
	"kennel/infra/freeaddr"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
	"kennel/infra/testwait"
)

const pairPassword = "a password of tests"

// server runs a Postgres that is not started again when it dies.
func server(t *testing.T, dir, addr string) *pgserver.Server {
	t.Helper()
	word := filepath.Join(filepath.Dir(dir), "password")
	if err := os.WriteFile(word, []byte(pairPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := pgserver.New(pgserver.Config{Dir: dir, Listen: addr, PasswordFile: word, LogFile: dir + ".log",
		Restart: proc.Restart{Limit: 1, Window: time.Hour, MinBackoff: time.Hour, MaxBackoff: time.Hour}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Keep(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case <-s.Ready():
	case err := <-ended:
		ended <- err
		log, _ := os.ReadFile(dir + ".log")
		t.Fatalf("%v\n%s", err, log)
	}
	return s
}

// pair returns two real Postgres, the second a synchronous standby of the first, and the connection string that names both.
func pair(t *testing.T) (primary, standby *pgserver.Server, dsn string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kennel-pair-") // t.TempDir's is closed to Postgres' account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // leftovers are in the folder for temporary files
	account, err := pgserver.FindAccount()
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, b := freeaddr.For(t), freeaddr.For(t)
	primary = server(t, filepath.Join(dir, "a"), a)
	copied := filepath.Join(dir, "b")
	if err := os.Mkdir(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := account.Own(copied); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(a) // of freeaddr
	if err := proc.Once(t.Context(), proc.Spec{
		Name: "pg_basebackup", Path: primary.Binaries().Path("pg_basebackup"), Dir: "/", LogFile: copied + ".log", Credential: account.Credential,
		Env:  append(pgserver.Env(), "PGPASSWORD="+pairPassword, "PGAPPNAME=standby"),
		Args: []string{"-D", copied, "-h", host, "-p", port, "-U", pgserver.Superuser, "-R", "-c", "fast", "-X", "stream"},
	}); err != nil {
		t.Fatal(err)
	}
	standby = server(t, copied, b)
	return primary, standby, fmt.Sprintf("postgres://%s:%s@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write", pgserver.Superuser, "a%20password%20of%20tests", a, b)
}

// TestPrimaryDies: a pool that names two servers goes to the one that takes writes. When that one is killed, work is Unavailable and may be tried again;
// once the standby is promoted the same pool writes to it, LISTEN hears again and says that it may have missed something, an advisory lock of the dead
// server's session is free, and each acknowledged row is there (issue 34, Postgres that survives its primary).
func TestPrimaryDies(t *testing.T) {
	primary, standby, dsn := pair(t)
	db, err := pg.Open(t.Context(), pg.Config{DSN: dsn, ConnTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testwait.Until(t, testwait.Long, "a standby that follows", func() error {
		all, err := pg.Standbys(t.Context(), db)
		if err != nil || len(all) != 1 || all[0].State != "streaming" || all[0].Behind < 0 {
			return fmt.Errorf("%+v, %v", all, err)
		}
		return nil
	})
	do := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	do(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
	do(`SELECT pg_reload_conf()`)
	testwait.Until(t, testwait.Long, "a synchronous standby", func() error {
		all, err := pg.Standbys(t.Context(), db)
		if err != nil || len(all) != 1 || !all[0].Sync {
			return fmt.Errorf("%+v, %v", all, err)
		}
		return nil
	})
	do(`CREATE TABLE note (n int PRIMARY KEY)`)
	held, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if _, err := held.Exec(t.Context(), `SELECT pg_advisory_lock(7)`); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1000)
	listening, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		_ = pg.Listen(listening, db, slog.New(slog.DiscardHandler), "news", func(s string) { heard <- s }) // nil by contract
	})
	if got := testwait.For(t, heard, "the first connect"); got != "" {
		t.Errorf("heard %q", got)
	}
	acked := 0
	write := func() error {
		err := pg.Tx(t.Context(), db, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO note VALUES ($1) ON CONFLICT DO NOTHING`, acked+1)
			return err
		})
		if err == nil {
			acked++
		}
		return err
	}
	for range 20 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(primary.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "a refused write", func() error {
		switch err := write(); {
		case err == nil:
			return fmt.Errorf("written") // the postmaster's children outlive it for a moment
		case errs.KindOf(err) != errs.Unavailable:
			t.Errorf("%v: want Unavailable, so that robots try again", err)
		}
		return nil
	})
	c, err := standby.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if _, err := c.Exec(t.Context(), `INSERT INTO note VALUES (0)`); !pg.Retriable(err) {
		t.Errorf("a standby's refusal is not to be tried again: %v", err)
	}
	before := acked
	if _, err := c.Exec(t.Context(), `SELECT pg_promote(true, 30)`); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "writes on the promoted server", func() error {
		for range 10 {
			if err := write(); err != nil {
				return err
			}
		}
		return nil
	})
	var n int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM note WHERE n <= $1`, acked).Scan(&n); err != nil || n != acked {
		t.Errorf("%d of %d acknowledged rows, %d of them from before, %v", n, acked, before, err)
	}
	if got := testwait.For(t, heard, "the next connect"); got != "" {
		t.Errorf("heard %q", got)
	}
	do(`NOTIFY news, 'again'`)
	if got := testwait.For(t, heard, "a notification"); got != "again" {
		t.Errorf("heard %q", got)
	}
	var free bool
	if err := db.QueryRow(t.Context(), `SELECT pg_try_advisory_lock(7)`).Scan(&free); err != nil || !free {
		t.Errorf("the lock is free: %v, %v", free, err)
	}
	if all, err := pg.Standbys(t.Context(), db); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v: want no standby", all, err)
	}
}

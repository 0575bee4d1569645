package pg_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest/pgpair"
	"kennel/infra/testwait"
)

// TestPrimaryDies: a pool that names two servers goes to the one that takes writes. When that one is killed, work is Unavailable and may be tried again;
// once the standby is promoted the same pool writes to it, LISTEN hears again and says that it may have missed something, an advisory lock of the dead
// server's session is free, and each acknowledged row is there (issue 34, Postgres that survives its primary).
func TestPrimaryDies(t *testing.T) {
	primary, standby, dsn := pgpair.Start(t)
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
	killed := time.Now()
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
	before, first := acked, time.Duration(0)
	if _, err := c.Exec(t.Context(), `SELECT pg_promote(true, 30)`); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "writes on the promoted server", func() error {
		for range 10 {
			if err := write(); err != nil {
				return err
			}
			first = cmp.Or(first, time.Since(killed))
		}
		return nil
	})
	t.Logf("first acknowledged write %v after the kill", first.Round(time.Millisecond)) // who promotes adds its own time: TestPrimaryChanges of cmd/e2e/storms
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
	if s, err := pg.Look(t.Context(), db); err != nil || len(s.Standbys) != 0 || s.Standby || !strings.Contains(standby.DSN(), s.Server) {
		t.Errorf("%+v, %v: want the promoted server, and no standby", s, err)
	}
}

// TestServers: a standby is expected when the connection string names more than one server.
func TestServers(t *testing.T) {
	for dsn, want := range map[string]int{
		"postgres://u@a/d": 1, "postgres://u@a:1,b:1/d?target_session_attrs=read-write": 2, "postgres://u@a,a:5433,b/d": 3, "host=/run/a,/run/b user=u": 2,
	} {
		if got, err := (pg.Config{DSN: dsn}).Servers(); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", dsn, got, err, want)
		}
	}
	if n, err := (pg.Config{DSN: "postgres://u@a:x/d"}).Servers(); err == nil {
		t.Errorf("%d servers of no connection string", n)
	}
}

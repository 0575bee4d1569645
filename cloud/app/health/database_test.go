package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/pg/pgtest/pgpair"
	"kennel/infra/telemetry"
	"kennel/infra/testwait"
)

// TestDatabase provokes on two real servers what the check of readiness says about the database and those that follow it.
func TestDatabase(t *testing.T) {
	_, standby, dsn := pgpair.Start(t)
	cfg := pg.Config{DSN: dsn, ConnTimeout: 2 * time.Second}
	servers, err := cfg.Servers()
	if err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// until waits for a part with such a reason ("": in order) and words.
	until := func(pool *pgxpool.Pool, servers int, reason string, words ...string) {
		t.Helper()
		testwait.Until(t, testwait.Long, "reason "+reason, func() error {
			tel, err := telemetry.New(t.Context(), telemetry.Config{Service: "test"})
			if err != nil {
				return err
			}
			r, err := tel.NewReadiness(telemetry.Check{Name: "postgres", Look: func(ctx context.Context) (string, error) {
				s, err := pg.Look(ctx, pool)
				if err != nil {
					return "", err
				}
				return database(s, servers, 1<<20)
			}})
			if err != nil {
				return err
			}
			p := r.Now(t.Context()).Parts[0]
			if !p.OK || (reason == "") != (p.Reason == "") || !strings.HasPrefix(p.Reason, reason) || (p.Do == "") != (reason == "") {
				return fmt.Errorf("%+v", p)
			}
			for _, w := range words {
				if !strings.Contains(p.Says, w) {
					return fmt.Errorf("%q lacks %q", p.Says, w)
				}
			}
			return nil
		})
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	until(db, servers, "no commit waits for a standby", "primary 127.0.0.1:", "bytes behind")
	exec(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
	exec(`SELECT pg_reload_conf()`)
	until(db, servers, "", "synchronous")

	exec(`CREATE ROLE blind LOGIN PASSWORD 'a password of tests'`)
	blind, err := pg.Open(t.Context(), pg.Config{DSN: strings.Replace(dsn, pgserver.Superuser+":a", "blind:a", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer blind.Close()
	until(blind, servers, "this account may not see", "not known how far behind")

	far, err := standby.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close(context.WithoutCancel(t.Context()))
	if _, err := far.Exec(t.Context(), `SELECT pg_wal_replay_pause()`); err != nil {
		t.Fatal(err)
	}
	exec(`CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 3000)`)
	until(db, servers, "standby far behind", "synchronous")

	user, both, _ := strings.Cut(dsn, "@")
	_, second, _ := strings.Cut(both, ",")
	second, _, _ = strings.Cut(second, "/")
	own, err := pg.Open(t.Context(), pg.Config{DSN: user + "@" + second + "/postgres"})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	s, err := pg.Look(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	var warning telemetry.Warning
	if says, err := database(s, servers, 1<<20); err == nil || errors.As(err, &warning) || !strings.HasPrefix(says, "standby 127.0.0.1:") {
		t.Errorf("%q, %v: a server that takes no writes is no warning", says, err)
	}

	exec(`ALTER SYSTEM RESET synchronous_standby_names`)
	exec(`SELECT pg_reload_conf()`)
	if err := syscall.Kill(standby.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(db, servers, "no standby follows", "no standby")
	until(db, 1, "", "no standby") // an installation of one server expects none
}

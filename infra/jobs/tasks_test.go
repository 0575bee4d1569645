package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
)

// work runs a runner with tasks until the test or the returned function ends it.
func work(t *testing.T, db *pgxpool.Pool, tasks ...Task) (stop func()) {
	t.Helper()
	r, err := New(db, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(tasks...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	ended := false
	stop = func() {
		if cancel(); !ended {
			ended = true
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

func orders(t *testing.T, db *pgxpool.Pool) *Orders {
	t.Helper()
	o, err := NewOrders(db)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A task ordered in a transaction happens if it commits, once for all processes, and again if it failed.
func TestTaskOfATransaction(t *testing.T) {
	db := migrated(t)
	o := orders(t, db)
	var runs atomic.Int64
	got := make(chan string, 8)
	task := Task{Name: "greet", Run: func(_ context.Context, id string) error {
		if id == "second" && runs.Add(1) == 1 {
			return errors.New("not yet")
		}
		got <- id
		return nil
	}}
	rolledBack := errors.New("changed my mind")
	err := pg.Tx(t.Context(), db, func(tx pgx.Tx) error {
		if err := o.AddTx(t.Context(), tx, "greet", "first"); err != nil {
			return err
		}
		return rolledBack
	})
	if !errors.Is(err, rolledBack) {
		t.Fatal(err)
	}
	for range 3 { // ordered thrice, done once
		if err := o.Add(t.Context(), "greet", "second"); err != nil {
			t.Fatal(err)
		}
	}
	work(t, db, task)
	work(t, db, task)
	select {
	case id := <-got:
		if id != "second" {
			t.Errorf("did %q, which was rolled back", id)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing happened in 30 s")
	}
	if err := pg.Tx(t.Context(), db, func(tx pgx.Tx) error { return o.AddTx(t.Context(), tx, "greet", "third") }); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-got:
		if id != "third" {
			t.Errorf("did %q, want third: a piece ordered thrice is done once", id)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing happened in 30 s")
	}
}

const killedEnv = "KENNEL_JOBS_TEST_KILLED"

// TestMainOfTheKilled is the process that TestTaskOutlivesItsProcess kills.
func TestMainOfTheKilled(t *testing.T) {
	dsn := os.Getenv(killedEnv)
	if dsn == "" {
		return // the other test starts it
	}
	db, err := pg.Open(t.Context(), pg.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	work(t, db, Task{Name: "slow", Run: func(context.Context, string) error {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL) // in the middle of the work
	}})
	<-t.Context().Done()
}

// A piece whose process was killed in the middle is done by another, once River counts it as stuck.
func TestTaskOutlivesItsProcess(t *testing.T) {
	dsn := pgtest.DSN(t)
	db, err := pg.Open(t.Context(), pg.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := orders(t, db).Add(t.Context(), "slow", "7"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainOfTheKilled$")
	cmd.Env = append(os.Environ(), killedEnv+"="+dsn)
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("the process ended with %v, want killed", err)
	}
	// Its minute has passed.
	tag, err := db.Exec(t.Context(), `UPDATE river_job SET attempted_at = attempted_at - interval '2 minutes' WHERE state = 'running'`)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d jobs were being worked on, %v; want 1", tag.RowsAffected(), err)
	}
	// It was elected to rescue, and its term has passed too.
	if _, err := db.Exec(t.Context(), `DELETE FROM river_leader`); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	work(t, db, Task{Name: "slow", Run: func(_ context.Context, id string) error { got <- id; return nil }})
	select {
	case id := <-got:
		if id != "7" {
			t.Errorf("did %q", id)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("not done 60 s after its process died")
	}
}

func TestHandleRefuses(t *testing.T) {
	run := func(context.Context, string) error { return nil }
	good := Task{Name: "a", Run: run}
	for name, tasks := range map[string][]Task{"no name": {{Run: run}}, "no function": {{Name: "a"}}, "twice": {good, good}} {
		if err := new(Runner).Handle(tasks...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A piece that did a part runs again at once, as often as it wants: that is no failure and takes none of its attempts.
func TestTaskInParts(t *testing.T) {
	db := migrated(t)
	if err := orders(t, db).Add(t.Context(), "long", "7"); err != nil {
		t.Fatal(err)
	}
	const parts = 2 * Attempts
	var runs atomic.Int64
	done := make(chan struct{})
	work(t, db, Task{Name: "long", Run: func(context.Context, string) error {
		if runs.Add(1) < parts {
			return fmt.Errorf("a part is done: %w", errs.Coded(errs.Unavailable, errs.CodeAgain, "more to do"))
		}
		close(done)
		return nil
	}})
	testwait.For(t, done, "the last part")
	if runs.Load() != parts {
		t.Errorf("%d runs, want %d", runs.Load(), parts)
	}
}

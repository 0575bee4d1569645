package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func migrated(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db := pgtest.NewEmpty(t)
	if _, err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

// start runs a runner until the test or the returned function ends it.
func start(t *testing.T, db *pgxpool.Pool, jobs ...Job) (stop func()) {
	t.Helper()
	r, err := New(db, slog.New(slog.NewTextHandler(t.Output(), nil)), jobs...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func TestMigrateInManyProcessesAtOnce(t *testing.T) {
	db := pgtest.NewEmpty(t)
	var steps atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			n, err := Migrate(t.Context(), db)
			if err != nil {
				t.Error(err)
			}
			steps.Add(int64(n))
		})
	}
	wg.Wait()
	if n, err := Migrate(t.Context(), db); n != 0 || err != nil || steps.Load() == 0 {
		t.Errorf("%d steps, then %d, %v; want some, then none", steps.Load(), n, err)
	}
}

// TestOnceForAll: three processes do a period's work once between them, and continue when the one that schedules is gone.
func TestOnceForAll(t *testing.T) {
	db := migrated(t)
	var running, most atomic.Int64
	ran := make(chan struct{}, 64) // more than the test waits for
	job := Job{Name: "count", Every: time.Second, Run: func(ctx context.Context) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		select {
		case ran <- struct{}{}:
		default:
		}
		return nil
	}}
	first := start(t, db, job)
	testwait.For(t, ran, "the first run") // it is elected
	start(t, db, job)
	start(t, db, job)
	testwait.For(t, ran, "the second run")
	first()
	for range 2 {
		testwait.For(t, ran, "a run after the scheduler is gone")
	}
	if most.Load() != 1 {
		t.Errorf("%d runs of one job at once, want 1", most.Load())
	}
}

func TestFailureAndPanicAreTriedAgain(t *testing.T) {
	db := migrated(t)
	var runs atomic.Int64
	again, done := make(chan struct{}), make(chan struct{})
	start(t, db, Job{Name: "trouble", Every: time.Hour, Run: func(ctx context.Context) error {
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > Timeout {
			t.Errorf("deadline %v, %v; want one within %v", at, ok, Timeout)
		}
		switch runs.Add(1) {
		case 1:
			return errors.New("the disk is full")
		default:
			close(again)
			<-ctx.Done() // a stop cuts it off
			close(done)
			return ctx.Err()
		}
	}})
	testwait.For(t, again, "the second attempt")
	t.Cleanup(func() { testwait.For(t, done, "the end of the run") })
}

func TestNewRefuses(t *testing.T) {
	run := func(context.Context) error { return nil }
	good := Job{Name: "a", Every: time.Minute, Run: run}
	for name, jobs := range map[string][]Job{
		"no name": {{Every: time.Minute, Run: run}}, "too often": {{Name: "a", Every: time.Millisecond, Run: run}},
		"no function": {{Name: "a", Every: time.Minute}}, "twice": {good, good},
	} {
		if _, err := New(nil, slog.New(slog.DiscardHandler), jobs...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

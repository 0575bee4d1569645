package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/bench"
	"kennel/infra/bench/house"
	"kennel/infra/pg"
)

// commonHouse is one house for all benches of a run that leave it as good as they found it: to make one takes longer than most of them. It
// stands from the first of them to the last. Not safe for concurrent use: benches run one after the other.
type commonHouse struct {
	names map[string]bool // of the benches that share it
	open  int             // of them have not run yet
	house *house.House    // nil: not started
}

// bench is b, run in the common house.
func (c *commonHouse) bench(b bench.Bench, run func(context.Context, *bench.Env, *house.House) ([]bench.Result, error)) bench.Bench {
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[b.Name] = true
	b.Run = func(ctx context.Context, env *bench.Env) ([]bench.Result, error) {
		defer func() {
			if c.open--; c.open <= 0 { // the others measure without a house beside them
				c.stop()
			}
		}()
		if c.house == nil {
			h, err := house.Start(ctx, env.Bin)
			if err != nil {
				return nil, err
			}
			c.house = h
		}
		return run(ctx, env, c.house)
	}
	return b
}

// expect says which benches will run.
func (c *commonHouse) expect(benches []bench.Bench) {
	for _, b := range benches {
		if c.names[b.Name] {
			c.open++
		}
	}
}

func (c *commonHouse) stop() {
	if c.house != nil {
		c.house.Stop()
		c.house = nil
	}
}

// openPool opens a pool on the database whose address is in a file, as large as kenneld's own.
func openPool(ctx context.Context, dsnFile string) (*pgxpool.Pool, error) {
	dsn, err := os.ReadFile(dsnFile)
	if err != nil {
		return nil, err
	}
	return pg.Open(ctx, pg.Config{DSN: strings.TrimSpace(string(dsn)), AppName: "bench"})
}

// many calls do with 0 to n-1, so many at once, and returns how many calls a second that was. The first error ends it.
func many(n, atOnce int, do func(i int) error) (perSecond float64, err error) {
	var next atomic.Int64
	var failed atomic.Bool
	errc := make(chan error, atOnce) // one from each
	var wg sync.WaitGroup
	start := time.Now()
	for range min(atOnce, n) {
		wg.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					failed.Store(true)
					errc <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	select {
	case err := <-errc:
		return 0, err
	default:
		return float64(n) / took.Seconds(), nil
	}
}

// during has so many callers do the same again and again for d, and returns how many calls a second that was. What waits when d is over is
// told so by its context, and does not count. The first error ends it.
func during(ctx context.Context, d time.Duration, callers int, do func(context.Context) error) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var done atomic.Int64
	errc := make(chan error, callers) // one from each
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for { // once at least, however late its turn comes
				switch err := do(ctx); {
				case err == nil:
					done.Add(1)
				case ctx.Err() == nil:
					cancel()
					errc <- err
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	select {
	case err := <-errc:
		return 0, err
	default:
		return float64(done.Load()) / took.Seconds(), nil
	}
}

// rows checks that a query counts what was stored: an answer without its row is no work done.
func rows(ctx context.Context, pool *pgxpool.Pool, want int, query string, args ...any) error {
	var n int
	err := pool.QueryRow(ctx, query, args...).Scan(&n)
	if err == nil && n != want {
		err = fmt.Errorf("%d rows, want %d: %s", n, want, query)
	}
	return err
}

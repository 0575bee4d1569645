package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/backoff"
	"kennel/infra/wake"
)

// quiet is how long a listener hears nothing before it checks whether the connection still lives: otherwise it would wait for a vanished
// peer until TCP gives up.
const quiet = 20 * time.Second

// Listen calls fn for every notification on channel until ctx ends, and then returns nil. It uses a connection of its own, opened like
// those of pool. Notifications are hints: some are lost while the connection is down, so fn is called with "" after every connect, the
// first included, and readers then read everything again. fn is called from one goroutine and holds up the next notification.
func Listen(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, channel string, fn func(payload string)) error {
	pause := backoff.Pause{Min: minPause, Max: maxPause}
	for ctx.Err() == nil {
		err := listenOnce(ctx, pool, channel, func(payload string) {
			pause.Reset()
			fn(payload)
		})
		if ctx.Err() != nil {
			break
		}
		wait := pause.Next(nil)
		log.Warn("listening for notifications failed; reconnecting", "channel", channel, "err", err, "pause", wait)
		_ = backoff.Sleep(ctx, wait) // the loop looks at ctx
	}
	return nil
}

// Follow calls read at once, at every notification on channel and every connect, and after every so often, until ctx ends; then it returns
// nil. Notifications that come while read runs are one. read is called from one goroutine; an error of it that lasts is logged when it
// begins, and its end.
func Follow(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, channel string, every time.Duration, read func(context.Context) error) error {
	heard := wake.New()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = Listen(ctx, pool, log, channel, func(string) { heard.Set() }) }) // nil by contract
	failing := false
	heard.Each(ctx, every, func() {
		err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.WarnContext(ctx, "following of changes interrupted; retrying", "channel", channel, "err", err)
		case err == nil && failing:
			log.InfoContext(ctx, "following of changes resumed", "channel", channel)
		}
		failing = err != nil
	})
	return nil
}

const minPause, maxPause = 100 * time.Millisecond, 5 * time.Second

func listenOnce(ctx context.Context, pool *pgxpool.Pool, channel string, fn func(payload string)) error {
	c, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(cctx) // the server notices a broken connection by itself
	}()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return fmt.Errorf("listen %s: %w", channel, err)
	}
	fn("")
	for {
		wctx, cancel := context.WithTimeout(ctx, quiet)
		n, err := c.WaitForNotification(wctx)
		cancel()
		switch {
		case err == nil:
			fn(n.Payload)
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			pctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := c.Ping(pctx)
			cancel()
			if err != nil {
				return fmt.Errorf("connection went silent: %w", err)
			}
		default:
			return err
		}
	}
}

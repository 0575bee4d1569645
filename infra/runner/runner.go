// Package runner starts the services of one process, restarts those that fail, and stops all of them in reverse order. Goroutines of a
// process start through it, because an unrecovered panic would end the process.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"kennel/infra/backoff"
)

// Service is something that runs until its context ends. Run returning nil before that means its work is done.
type Service struct {
	Name string
	Run  func(ctx context.Context) error
	// Fatal: an error of this service ends the whole process instead of a restart.
	Fatal bool
}

// Config holds the restart policy; the zero value is usable.
type Config struct {
	MinBackoff, MaxBackoff time.Duration // default 200 ms and 15 s
	StopTimeout            time.Duration // how long one service may take to stop, default 10 s
	// OnPanic is told of a service that panicked, with the stack in the error; it may be nil.
	OnPanic func(service string, err error)
}

// Run starts services in order and blocks until ctx ends or a fatal service fails; then it stops them in reverse order, each with its
// own context, waiting for one before it stops the next. It returns the first fatal error, or nil.
func Run(ctx context.Context, log *slog.Logger, cfg Config, services ...Service) error {
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = 200 * time.Millisecond
	}
	if cfg.MaxBackoff == 0 {
		cfg.MaxBackoff = 15 * time.Second
	}
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 10 * time.Second
	}
	type running struct {
		name   string
		cancel context.CancelFunc
		done   chan struct{}
	}
	fatal := make(chan error, len(services)) // one slot each: a failing service never blocks on it
	var all []running
	for _, s := range services {
		// Not derived from ctx: each service is stopped in its turn. Values (trace ids) are kept.
		sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r := running{s.Name, cancel, make(chan struct{})}
		all = append(all, r)
		go func() {
			defer close(r.done)
			if err := keep(sctx, log, cfg, s); err != nil {
				fatal <- fmt.Errorf("%s: %w", s.Name, err)
			}
		}()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-fatal:
	}
	for i := len(all) - 1; i >= 0; i-- {
		all[i].cancel()
		t := time.NewTimer(cfg.StopTimeout)
		select {
		case <-all[i].done:
		case <-t.C:
			log.Error("service not stopped in time", "service", all[i].name, "waited", cfg.StopTimeout)
		}
		t.Stop()
	}
	return err
}

// keep runs one service and restarts it until its context ends.
func keep(ctx context.Context, log *slog.Logger, cfg Config, s Service) error {
	pause := backoff.Pause{Min: cfg.MinBackoff, Max: cfg.MaxBackoff}
	for {
		started := time.Now()
		err := guarded(ctx, s)
		if ctx.Err() != nil || err == nil {
			return nil
		}
		if cfg.OnPanic != nil && errors.Is(err, ErrPanic) {
			cfg.OnPanic(s.Name, err)
		}
		if s.Fatal {
			return err
		}
		if time.Since(started) > cfg.MaxBackoff {
			pause.Reset()
		}
		wait := pause.Next(nil)
		log.Warn("service failed; restarting", "service", s.Name, "err", err, "pause", wait)
		if backoff.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// ErrPanic marks an error that was a panic.
var ErrPanic = errors.New("panic")

func guarded(ctx context.Context, s Service) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack())
		}
	}()
	return s.Run(ctx)
}

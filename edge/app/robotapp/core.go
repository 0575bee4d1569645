package robotapp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"kennel/edge/bodies"
	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/body/species"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver"
	"kennel/edge/core/rt"
	"kennel/edge/core/rt/rtlinux"
	"kennel/edge/faultcode"
	"kennel/infra/backoff"
	"kennel/infra/logging"
)

// Back-off between two attempts to open the body; own defaults. The first is short: a robotd that was restarted has to be back before the body's
// watchdog fires.
const (
	minReopen = 50 * time.Millisecond
	maxReopen = 3 * time.Second
)

// core opens the body, runs the loop on it, and reopens it after a failure. Fields that others read are atomic.
type core struct {
	log     *slog.Logger
	cfg     Config
	how     species.Opening
	srv     *corelink.Server
	loop    *rt.Loop
	control *control.Control
	peers   *coreserver.Server
	note    startNote

	firstOpen chan error // how the first attempt to open the body went; one slot
	firstLook chan error // the problems in the body's first frame; one slot

	running   atomic.Bool  // the loop runs
	opening   atomic.Int64 // when the attempt to open began, mono ns
	now       func() time.Duration
	lastSteps atomic.Uint64 // finished steps at the last healthy
}

func newCore(log *slog.Logger, cfg Config, srv *corelink.Server, tape *rt.Tape) (*core, error) {
	c := &core{log: log, cfg: cfg, srv: srv, now: monoclock.Now, firstOpen: make(chan error, 1), firstLook: make(chan error, 1)}
	c.opening.Store(int64(monoclock.Now()))
	model, err := cfg.species.ModelIn(cfg.Root)
	if err != nil {
		return nil, err
	}
	if c.control, err = control.New(model, tape); err != nil {
		return nil, err
	}
	if c.loop, err = rt.New(rt.Config{Tape: tape}, rtlinux.Clock{}, c.control.Task()); err != nil {
		return nil, err
	}
	if c.peers, err = coreserver.New(coreserver.Config{
		Root: cfg.Root, Hardware: bodies.Hardware{}, Log: log, Link: srv, Control: c.control, Loop: c.loop, First: c.firstFrame,
	}); err != nil {
		return nil, err
	}
	if cfg.begin != nil {
		c.how, err = cfg.begin(species.Host{Log: log, Root: cfg.Root, Device: cfg.port(), Publish: srv.Publish, Busy: c.busy, Note: c.noteFirmware})
		return c, err
	}
	c.how.Open = func(ctx context.Context) (body.Body, error, error) {
		b, err := cfg.species.Open(ctx, cfg.port())
		return b, nil, err
	}
	return c, nil
}

// busy keeps the watchdog quiet for longer while the attempt to open the body says that it works.
func (c *core) busy(patience time.Duration) { c.opening.Store(int64(c.now() + patience)) }

// run keeps the body open and the loop on it until ctx ends (nil) or the body was shut down (rt.ErrShutdown).
func (c *core) run(ctx context.Context) error {
	pause := backoff.Pause{Min: minReopen, Max: maxReopen}
	said := ""
	c.peers.Closed(ctx)
	for first := true; ctx.Err() == nil; first = false {
		c.opening.Store(int64(c.now()))
		b, unwell, err := c.how.Open(ctx)
		if first {
			settle(c.firstOpen, errors.Join(err, unwell))
		}
		if err == nil {
			said = ""
			pause.Reset()
			err = c.drive(ctx, b)
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, rt.ErrShutdown) {
			return err
		}
		code := faultcode.BodySilent // a body that cannot be opened or read, unless more is known
		if c.cfg.species.Fault != nil {
			code = cmp.Or(c.cfg.species.Fault(err), code)
		}
		c.peers.SetFault(code)
		level := slog.LevelWarn
		if err.Error() == said {
			level = slog.LevelDebug // once is enough for an operator
		}
		said = err.Error()
		c.log.Log(ctx, level, "no body; trying again", "port", c.cfg.port(), "fault", int(code), logging.Err, err)
		_ = backoff.Sleep(ctx, pause.Next(nil)) // the loop looks at ctx
	}
	return nil
}

// drive runs the loop on b until it ends, and closes b. A panic of the loop halts the body on its way (rt.Loop.Run) and ends the program.
func (c *core) drive(ctx context.Context, b body.Body) error {
	d := b.Describe()
	if err := c.peers.Opened(ctx, corelink.BodyInfo{
		Species: d.Species, Model: d.Model, Firmware: d.Firmware, PeriodUS: uint32(d.Rhythm.Microseconds()),
	}); err != nil {
		return errors.Join(err, b.Close())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log := c.log.With(logging.Body, c.cfg.Body, "firmware", d.Firmware)
	if c.cfg.Thread.Priority > 0 {
		g := c.cfg.Thread.Enter()
		defer g.Leave()
		c.peers.SetThread(g.FIFO, g.Lock)
		log.InfoContext(ctx, "body opened", "fifo", g.FIFO, "memory_locked", g.Lock)
		if err := g.Err(); err != nil {
			log.DebugContext(ctx, "real-time scheduling only partly permitted", logging.Err, err)
		}
	} else {
		log.InfoContext(ctx, "body opened", "fifo", false)
	}
	c.running.Store(true)
	err := c.loop.Run(ctx, b)
	c.running.Store(false)
	c.peers.Closed(ctx)
	if cerr := b.Close(); err == nil && cerr != nil {
		c.log.Warn("body not closed cleanly", logging.Err, cerr) // it was halted before
	}
	return err
}

// healthy reports whether the loop finished at least three steps since it was last asked (VEC-WDOG-02). Without a body there is no loop to judge:
// then it is the attempt to open one that must end in time.
func (c *core) healthy() bool {
	steps := c.loop.Finished()
	if !c.running.Load() {
		c.lastSteps.Store(steps)
		return c.now()-time.Duration(c.opening.Load()) < maxReopen+2*species.OpenTimeout
	}
	return steps-c.lastSteps.Swap(steps) >= 3
}

package robotapp

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/mono"
	"kennel/edge/body/vector"
	"kennel/edge/body/vector/imu"
	"kennel/edge/corelink"
	"kennel/edge/faultcode"
	"kennel/edge/helm"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
	"kennel/edge/rt"
	"kennel/edge/rt/rtlinux"
	"kennel/infra/logging"
)

// Back-off between two attempts to open the body; own defaults. The first is short: a robotd that was restarted has to be back before the body's
// watchdog fires.
const (
	minReopen = 50 * time.Millisecond
	maxReopen = 3 * time.Second
)

// core opens the body again and again and runs the loop on it. What others may read of it is atomic.
type core struct {
	log  *slog.Logger
	cfg  Config
	kind kind
	srv  *corelink.Server
	loop *rt.Loop
	deck *deck
	firm firmware
	note startNote
	imu  *imu.Reader

	cli       *vector.Factory // the factory's command line; nil: none
	firstOpen chan error      // how the first attempt to open the body went; one slot
	firstLook chan error      // what the body's first frame said; one slot

	lastOff   lastoff.Last  // how the run before ended; set before the services run, as is recovery
	recovery  bool          // this is a recovery boot
	marked    atomic.Bool   // that the end is meant
	fault     atomic.Uint32 // faultcode.Code of the moment, 0: none
	desc      atomic.Pointer[body.Description]
	running   atomic.Bool   // the loop runs
	opening   atomic.Int64  // when the attempt to open began, mono ns
	opened    atomic.Int64  // bodies opened
	clock     atomic.Uint32 // MHz that the processor may have
	fifo      atomic.Bool
	locked    atomic.Bool
	started   time.Duration
	now       func() time.Duration
	lastSteps atomic.Uint64 // finished steps at the last healthy
}

func newCore(log *slog.Logger, cfg Config, srv *corelink.Server, tape *rt.Tape) (*core, error) {
	c := &core{log: log, cfg: cfg, kind: bodies[cfg.Body], srv: srv, started: mono.Now(), now: mono.Now,
		firstOpen: make(chan error, 1), firstLook: make(chan error, 1)}
	c.opening.Store(int64(c.started))
	c.clock.Store(uint32(power.Allow(false, false, power.Cool, power.ShedNothing).CPUMHz)) // until more is known
	model, err := c.kind.model()
	if err != nil {
		return nil, err
	}
	h, err := helm.New(model, tape)
	if err != nil {
		return nil, err
	}
	if c.deck, err = newDeck(c, h); err != nil {
		return nil, err
	}
	inertial, err := cfg.inertial()
	if err == nil {
		c.imu, err = imu.New(inertial, log)
	}
	if err != nil {
		return nil, err
	}
	c.loop, err = rt.New(rt.Config{Tape: tape}, rtlinux.Clock{}, h.Task())
	return c, err
}

// run keeps the body open and the loop on it until ctx ends (nil) or the body was shut down (rt.ErrShutdown).
func (c *core) run(ctx context.Context) error {
	pause := minReopen
	said := ""
	c.deck.bodyIs(ctx, false)
	for first := true; ctx.Err() == nil; first = false {
		c.opening.Store(int64(c.now()))
		b, up, err := c.kind.open(ctx, c.cfg.port(), c.imu, c.firm.due(), c.cli, c.progress(ctx))
		c.updated(ctx, up, err)
		if first {
			settle(c.firstOpen, errors.Join(err, up.Err))
		}
		if err == nil {
			said, pause = "", minReopen
			err = c.drive(ctx, b)
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, rt.ErrShutdown) {
			return err
		}
		code := c.kind.fault(err)
		if code == 0 {
			code = faultcode.BodySilent // nothing else is known of a body that cannot be opened or read
		}
		c.fault.Store(uint32(code))
		level := slog.LevelWarn
		if err.Error() == said {
			level = slog.LevelDebug // once is enough for an operator
		}
		said = err.Error()
		c.log.Log(ctx, level, "no body; trying again", "port", c.cfg.port(), "fault", int(code), logging.Err, err)
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, maxReopen)
	}
	return nil
}

// drive runs the loop on b until it ends, and closes b. A panic of the loop halts the body on its way (rt.Loop.Run) and ends the program.
func (c *core) drive(ctx context.Context, b body.Body) error {
	d := b.Describe()
	c.desc.Store(&d)
	if err := c.srv.SetBody(bodyInfo(&d)); err != nil {
		return errors.Join(err, b.Close())
	}
	c.opened.Add(1)
	c.fault.Store(0)

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if c.cfg.Thread.Priority > 0 {
		g := c.cfg.Thread.Enter()
		defer g.Leave()
		c.fifo.Store(g.FIFO)
		c.locked.Store(g.Lock)
		c.log.InfoContext(ctx, "body opened", logging.Body, c.cfg.Body, "firmware", d.Firmware, "fifo", g.FIFO, "memory_locked", g.Lock)
		if err := g.Err(); err != nil {
			c.log.DebugContext(ctx, "not all that makes the loop punctual is permitted", logging.Err, err)
		}
	} else {
		c.log.InfoContext(ctx, "body opened", logging.Body, c.cfg.Body, "firmware", d.Firmware, "fifo", false)
	}
	c.running.Store(true)
	c.deck.bodyIs(ctx, true)
	err := c.loop.Run(ctx, b)
	c.running.Store(false)
	c.deck.bodyIs(ctx, false)
	if cerr := b.Close(); err == nil && cerr != nil {
		c.log.Warn("close the body", logging.Err, cerr) // it was halted before
	}
	return err
}

// handlers is what peers can ask for.
func (c *core) handlers(ctx context.Context) corelink.Handlers {
	return corelink.Handlers{
		Joined: func(p corelink.Peer) {
			c.deck.joined(p)
			c.log.InfoContext(ctx, "peer joined", "peer", p.Program, "version", p.Version, "pid", p.PID)
		},
		Left: func(p corelink.Peer, err error) {
			c.deck.left(ctx, p)
			if err != nil {
				c.log.WarnContext(ctx, "peer dropped", "peer", p.Program, "pid", p.PID, logging.Err, err)
				return
			}
			c.log.InfoContext(ctx, "peer left", "peer", p.Program, "pid", p.PID)
		},
		Message: func(p corelink.Peer, m corelink.Message) {
			if c.deck.handle(ctx, p, m) {
				return
			}
			switch m := m.(type) {
			case *corelink.Halt:
				c.log.InfoContext(ctx, "halted by a peer", "peer", p.Program, "reason", m.Reason)
				c.loop.Halt()
			case *corelink.Resume:
				c.log.InfoContext(ctx, "halt lifted by a peer", "peer", p.Program)
				c.loop.Post(rt.Command{Kind: rt.Resume})
			case *corelink.Shutdown:
				c.log.WarnContext(ctx, "power off asked for by a peer", "peer", p.Program, "reason", m.Reason)
				c.powerOff()
			default:
				c.log.DebugContext(ctx, "message of no use here", "peer", p.Program, "type", m.Type().String())
			}
		},
	}
}

// healthy reports whether the loop finished at least three steps since it was last asked (VEC-WDOG-02). Without a body there is no loop to judge:
// then it is the attempt to open one that must end in time.
func (c *core) healthy() bool {
	steps := c.loop.Finished()
	if !c.running.Load() {
		c.lastSteps.Store(steps)
		return c.now()-time.Duration(c.opening.Load()) < maxReopen+2*openTimeout
	}
	return steps-c.lastSteps.Swap(steps) >= 3
}

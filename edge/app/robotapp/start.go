package robotapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/species"
	"kennel/edge/core/corelink"
	"kennel/edge/startup"
	"kennel/infra/cli/version"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/sdnotify"
)

// start is robotd's start up to a loop on a checked body (part of VEC-BOOT-09, part of VEC-BOOT-11), in two tables: before its services run, and while they
// do. Peers get the time of each step.
type start struct {
	log   *slog.Logger
	cfg   Config
	began time.Duration
	rec   *startup.Record

	srv      *corelink.Server // from socket on
	recorder *recorder        // nil: none
	core     *core
	super    *sdnotify.Notifier
}

func newStart(log *slog.Logger, cfg Config) *start {
	s := &start{log: log, cfg: cfg, began: monoclock.Now()}
	s.rec = startup.New(monoclock.Now, s.tell)
	return s
}

// before is done before anything runs, and in this order: the socket first, so that a body that is not there yet is no reason to be silent oneself,
// and how the run before ended before anything could end this one (VEC-PWR-42).
func (s *start) before() []startup.Stage {
	return []startup.Stage{
		{Name: "socket", Do: s.listen},
		{Name: "recorder", Do: s.record},
		{Name: "core", Do: s.makeCore},
		{Name: "supervisor", Do: s.openSupervisor},
		{Name: "last_end", GoOn: true, Do: func(ctx context.Context) error { return s.core.peers.CameOn(ctx) }},
		{Name: "hold", GoOn: true, Do: func(ctx context.Context) error { return s.core.peers.StayHeld(ctx) }},
	}
}

// running lists the first steps of the services: the body is asked for its version, gets its program, and is opened; its first frame says
// how battery, temperature and self tests are. A body that is not there is waited for.
func (s *start) running() []startup.Stage {
	return []startup.Stage{
		{Name: "body", GoOn: true, Do: wait(s.core.firstOpen)},
		{Name: "first_frame", GoOn: true, Do: wait(s.core.firstLook)},
	}
}

// wait is a step that is over when c says how it went.
func wait(c <-chan error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case err := <-c:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle sets the result of a step for its waiters; the first result counts.
func settle(c chan<- error, err error) {
	select {
	case c <- err:
	default:
	}
}

// await walks the second table.
func (s *start) await(ctx context.Context) error {
	if s.rec.Walk(ctx, s.running()...) == nil {
		s.log.InfoContext(ctx, "robotd started", "took", (monoclock.Now() - s.began).Round(time.Millisecond))
	} // else it ended before: each step may fail
	return nil
}

// tell sends peers the progress of the start.
func (s *start) tell(t startup.Took) {
	s.log.Debug("start", "stage", t.Name, "took", t.Spent(), logging.Err, t.Err)
	if s.srv == nil {
		return
	}
	m := corelink.Start{BeganUS: s.began.Microseconds()}
	for _, t := range s.rec.Done() {
		line := corelink.StageTime{Name: t.Name, BeganUS: t.Begin.Microseconds(), EndedUS: t.End.Microseconds()}
		if t.Err != nil {
			line.Error = species.Words(t.Err)
		}
		m.Stages = append(m.Stages, line)
	}
	m.Over = s.core != nil && len(m.Stages) == len(s.before())+len(s.core.how.Before)+len(s.running())
	if err := s.srv.Publish(&m); err != nil {
		s.log.Error("publish", logging.Err, err) // a bug of ours: values are made to fit
	}
}

func (s *start) listen(context.Context) (err error) {
	s.srv, err = corelink.Listen(s.cfg.Root, corelink.Hello{Program: "robotd", Version: version.String(), PID: uint32(os.Getpid())})
	return err
}

func (s *start) record(context.Context) (err error) {
	if s.cfg.Record != "" {
		s.recorder, err = newRecorder(s.log, s.cfg.Record, s.cfg.RecordMiB)
	}
	return err
}

func (s *start) makeCore(context.Context) (err error) {
	s.core, err = newCore(s.log, s.cfg, s.srv, s.recorder.tapeOf())
	return err
}

func (s *start) openSupervisor(context.Context) (err error) {
	s.super, err = sdnotify.Open(s.cfg.Notify)
	return err
}

// close closes all that was opened.
func (s *start) close() {
	if s.super != nil {
		_ = s.super.Close() // datagrams: nothing is buffered
	}
	if s.srv != nil {
		if err := s.srv.Close(); err != nil {
			s.log.Warn("socket not closed", logging.Err, err)
		}
	}
}

// services lists the services that run once the first table is done. They are stopped in reverse: motion first, then the services that report it.
func (s *start) services() []runner.Service {
	c := s.core
	var services []runner.Service
	if f := c.cfg.filter; f != nil {
		services = append(services, runner.Service{Name: "console filter", Run: func(ctx context.Context) error { return f.Watch(ctx, c.log) }})
	}
	if s.recorder != nil {
		services = append(services, runner.Service{Name: "recorder", Run: s.recorder.run})
	}
	services = append(services,
		runner.Service{Name: "corelink", Run: func(ctx context.Context) error { return s.srv.Serve(ctx, c.peers.Handlers(ctx)) }},
		runner.Service{Name: "reporter", Run: c.peers.Report},
		runner.Service{Name: "answers", Run: c.peers.Run},
		runner.Service{Name: "thermometer", Run: c.watchHeat},
		runner.Service{Name: "processor clock", Run: c.capClock},
		runner.Service{Name: "watchdog", Run: func(ctx context.Context) error { return s.super.Run(ctx, kickEvery, c.healthy) }})
	if c.hasCamera() {
		services = append(services, runner.Service{Name: "camera", Run: c.serveCamera})
	}
	services = append(services, c.how.Services...)
	return append(services,
		runner.Service{Name: "start", Run: s.await},
		runner.Service{Name: "core", Run: c.run, Fatal: true},
	)
}

// problem joins the problems in a body's first frame; nil if there are none.
func problem(problems []string) error {
	var all []error
	for _, p := range problems {
		all = append(all, errors.New(p))
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("the body did not start well: %w", errors.Join(all...))
}

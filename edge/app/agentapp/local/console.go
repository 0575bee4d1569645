// Package local is agentd at the robot itself: its text log, the events that other programs post, and commands for people there.
package local

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"kennel/edge/agent/das"
	"kennel/edge/agent/eventlog"
	"kennel/edge/agent/experiments"
	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/health/tracer"
	"kennel/edge/agent/host"
	"kennel/edge/agent/localapi"
	"kennel/edge/consolefilter"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/runner"
)

// Console is agentd's text log.
type Console struct {
	Log    *slog.Logger
	filter *consolefilter.Filter
	lines  *eventlog.Log
}

// OpenConsole returns the log that w takes, filtered by the file of the robot below root (VEC-DGN-07).
func OpenConsole(root *os.Root, w io.Writer, level string) (*Console, error) {
	c := &Console{}
	c.lines = eventlog.NewLog(w, func() bool { return c.filter.Events() })
	var err error
	if c.Log, c.filter, err = consolefilter.Logger(root, c.lines, level); err != nil {
		return nil, cli.Usage("-log-level: %w", err)
	}
	return c, nil
}

// Event writes an event into the log; a nil Console has no log.
func (c *Console) Event(e *events.Event) {
	if c != nil {
		c.lines.Event(e)
	}
}

// Errors returns a log whose errors are events, too.
func Errors(log *slog.Logger, emit func(events.Event)) *slog.Logger {
	return slog.New(eventlog.Errors(log.Handler(), emit))
}

// Part follows the filter's file, if there is a text log.
func (c *Console) Part(h *host.Host) host.Part {
	p := host.Part{Name: "console"}
	if c != nil {
		p.Services = []runner.Service{{Name: "console filter", Run: func(ctx context.Context) error { return c.filter.Watch(ctx, h.Log) }}}
	}
	return p
}

// Experiments is the part that puts the robot into its experiments.
func Experiments(h *host.Host) host.Part {
	return host.Part{Name: "experiments", Services: []runner.Service{{Name: "experiments", Run: func(ctx context.Context) error {
		return experiments.Follow(ctx, h.Root, subject(h.Thing, h.OS, robotfs.LoadEnv(h.Root, host.EnvFile, h.Getenv)), h.Now, h.Emit, h.Log)
	}}}}
}

// Programs is the part that takes the events of other programs.
//
//	POST /event  events.Event -> {}         records it; it is on disk when the answer comes
//	POST /trace  TraceRequest -> TraceFile  records what agentd does in the next seconds
func Programs(h *host.Host, m *das.Manager) host.Part {
	return host.Part{
		Name:     "programs",
		Services: []runner.Service{{Name: "foreign events", Run: func(ctx context.Context) error { return eventlog.Listen(ctx, h.Root, h.Emit, h.Log) }}},
		Local: map[string]http.Handler{"POST /trace": localapi.Answer(func(ctx context.Context, r TraceRequest) (TraceFile, error) {
			return record(ctx, h.Root, time.Duration(r.Seconds)*time.Second)
		}), "POST /event": localapi.Answer(func(ctx context.Context, e events.Event) (localapi.Nothing, error) {
			_, err := m.EmitDurable(ctx, eventlog.Foreign(e))
			switch {
			case errors.Is(err, das.ErrOptedOut):
				err = errs.Coded(errs.Denied, "opted_out", "%w", err)
			case errors.Is(err, das.ErrFull), ctx.Err() != nil:
				err = errs.New(errs.Unavailable, "%w", err)
			case err != nil:
				err = errs.New(errs.Invalid, "%w", err)
			}
			return localapi.Nothing{}, err
		})},
	}
}

// TraceRequest asks for a trace, TraceFile names it below the robot's root.
type (
	TraceRequest struct {
		Seconds int `json:"seconds"`
	}
	TraceFile struct {
		File string `json:"file"`
	}
)

// record writes the trace of the next moments into a file (VEC-DGN-08).
func record(ctx context.Context, root *os.Root, d time.Duration) (TraceFile, error) {
	if d <= 0 || d > tracer.Most {
		return TraceFile{}, errs.New(errs.Invalid, "trace of %v: want 1s to %v", d, tracer.Most)
	}
	if err := root.MkdirAll(faults.ReportsDir, 0o755); err != nil {
		return TraceFile{}, err
	}
	name := faults.ReportsDir + "/agentd.trace" // the newest replaces the one before
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return TraceFile{}, err
	}
	err = tracer.Record(ctx, f, d)
	return TraceFile{name}, errors.Join(err, f.Close())
}

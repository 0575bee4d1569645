// Package eventlog connects a robot's events with the text logs of its programs: each event is a line of the log too, lines of other programs become
// events, and so do the errors that are logged (VEC-LOG-09, VEC-DAS-07, VEC-DAS-17).
package eventlog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kennel/edge/env/fifo"
	"kennel/infra/api/events"
	"kennel/infra/logging"
)

// File is the FIFO into which other programs write their logs, or only the lines of their events.
const File = "run/das_events"

// Log is a text log that several writers share line by line. Safe for concurrent use.
type Log struct {
	mu sync.Mutex
	w  io.Writer
	on func() bool // whether events are written
}

// NewLog returns the log that w takes, with events while on says so.
func NewLog(w io.Writer, on func() bool) *Log { return &Log{w: w, on: on} }

// Write writes whole lines.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// Event writes e as a line that begins like one of syslog (VEC-LOG-09).
func (l *Log) Event(e *events.Event) {
	if !l.on() {
		return
	}
	b := time.UnixMilli(e.TS).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z ")
	b = fmt.Appendf(b, "%s %s: ", e.Level, e.Source)
	_, _ = l.Write(append(events.AppendLog(b, e), '\n')) // as a logger, that has no other place to complain
}

// Foreign returns of an event that another program made all that such a program may say; the rest is the event manager's.
func Foreign(e events.Event) events.Event {
	return events.Event{Source: e.Source, Level: e.Level, Name: e.Name, S1: e.S1, S2: e.S2, S3: e.S3, S4: e.S4, I1: e.I1, I2: e.I2, I3: e.I3, I4: e.I4}
}

// Listen makes events of the lines in File until ctx ends. Lines without an event are passed over.
func Listen(ctx context.Context, root *os.Root, emit func(events.Event), log *slog.Logger) error {
	bad := rate.Sometimes{First: 3, Interval: time.Minute}
	take := func(b []byte) {
		if line := string(b); events.IsLog(line) {
			e, err := events.ParseLog(line)
			if err != nil {
				bad.Do(func() { log.WarnContext(ctx, "event of another program ignored", "file", File, logging.Err, err) })
				return
			}
			e.UptimeMS = 0 // the programs of a robot count from different moments
			emit(Foreign(e))
		}
	}
	return fifo.FIFO{Root: root, Name: File, MaxLine: events.MaxLine, MaxFile: 1 << 20, Take: take, Log: log}.Listen(ctx)
}

// Errors returns a handler that hands all on to next, and passes errors to emit as events log.error: at most ten at once, and one each minute.
func Errors(next slog.Handler, emit func(events.Event)) slog.Handler {
	return failures{next, emit, rate.NewLimiter(rate.Every(time.Minute), 10)}
}

type failures struct {
	slog.Handler
	emit  func(events.Event)
	turns *rate.Limiter
}

func (h failures) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError && h.turns.Allow() {
		e := events.Event{Source: "agentd", Level: events.Error, Name: "log.error", S1: r.Message}
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == logging.Err {
				e.S2 = a.Value.String()
			}
			return true
		})
		e.S2 = strings.TrimSpace(e.S2)
		h.emit(e)
	}
	return h.Handler.Handle(ctx, r)
}

func (h failures) WithAttrs(attrs []slog.Attr) slog.Handler {
	return failures{h.Handler.WithAttrs(attrs), h.emit, h.turns}
}

func (h failures) WithGroup(name string) slog.Handler {
	return failures{h.Handler.WithGroup(name), h.emit, h.turns}
}

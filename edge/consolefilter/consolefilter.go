// Package consolefilter decides which lines a robot's programs write into their text logs: by channel and level, from a file that may change while they
// run (VEC-DGN-07).
//
// A record's channel is the package that logs it, such as claim or spool; a few packages have the channel that the original gave to their subject. Channels
// hold for debug and info only: a warning is never lost to a channel. The level event is for events, which the text log has beside the events' own files
// (VEC-LOG-09).
package consolefilter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/logging"
)

// File is the filter's file. Without it every channel is on.
const File = robotfs.Resources + "/config/engine/console_filter_config.json"

// host is the key of the part of the file for robots; osx is for the machines of the original's developers.
const host = "vicos"

// other is the channel of all that are not in the file.
const other = "*"

// event is the level of events.
const event = "event"

// originals are packages with the channel that the original gave to their subject.
var originals = map[string]string{
	"docs": "JdocsManager", "hoststats": "CpuProfiler", "corelink": "MessageProfiler", "coreclient": "MessageProfiler", "vitals": "PerfMetric",
	"commands": "Actions",
}

// rules are what a file says.
type rules struct {
	channels map[string]bool
	levels   map[string]bool
}

// parse reads a file, which may hold comments (VEC-CLD-04).
func parse(b []byte) (*rules, error) {
	clean, err := robotfs.StripComments(b)
	if err != nil {
		return nil, err
	}
	var f map[string]*struct {
		Channels []struct {
			Channel string `json:"channel"`
			Enabled bool   `json:"enabled"`
		} `json:"channels"`
		Levels []struct {
			Level   string `json:"level"`
			Enabled bool   `json:"enabled"`
		} `json:"levels"`
	}
	if err := json.Unmarshal(clean, &f); err != nil {
		return nil, err
	}
	r := &rules{channels: map[string]bool{}, levels: map[string]bool{}}
	mine := f[host]
	if mine == nil {
		return nil, fmt.Errorf("no %q: want one with channels and levels", host)
	}
	for i, c := range mine.Channels {
		if c.Channel == "" {
			return nil, fmt.Errorf("%s, channel %d of %d: want a name, or %q for all others", host, i+1, len(mine.Channels), other)
		}
		r.channels[c.Channel] = c.Enabled
	}
	for _, l := range mine.Levels {
		switch l.Level {
		case "debug", "info", event, "warning", "error":
			r.levels[l.Level] = l.Enabled
		default:
			return nil, fmt.Errorf("%s, level %.40q: want debug, info, event, warning or error", host, l.Level)
		}
	}
	return r, nil
}

// Filter is made by Open. Safe for concurrent use.
type Filter struct {
	root *os.Root
	base slog.Level
	now  atomic.Pointer[rules]

	seen stamp // of the file that was read last; Watch alone uses it after Open
}

// stamp tells one state of a file from another.
type stamp struct {
	at   time.Time
	size int64
}

// Open reads the file below root. base is the lowest level of records whose level is not in the file. A mistake in the file is returned beside a filter
// that has everything on.
func Open(root *os.Root, base slog.Level) (*Filter, error) {
	f := &Filter{root: root, base: base}
	f.now.Store(&rules{})
	_, err := f.read()
	return f, err
}

// Logger returns the text log that w takes, filtered by the file of the robot below root, and the filter. level holds for records whose level is not in
// the file: debug, info, warn or error. A mistake in the file is logged.
func Logger(root *os.Root, w io.Writer, level string) (*slog.Logger, *Filter, error) {
	var base slog.Level
	if err := base.UnmarshalText([]byte(level)); err != nil {
		return nil, nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	f, ferr := Open(root, base)
	all, err := logging.New(w, "debug", "text") // the filter decides
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(f.Handler(all.Handler()))
	if ferr != nil {
		log.Error("settings ignored", logging.Err, ferr)
	}
	return log, f, nil
}

// read takes the file over if it is another one than before. After a mistake the rules before remain.
func (f *Filter) read() (changed bool, err error) {
	is, err := f.root.Stat(File)
	var now stamp
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, err
	default:
		now = stamp{is.ModTime(), is.Size()}
	}
	if now == f.seen {
		return false, nil
	}
	f.seen = now
	if now == (stamp{}) {
		f.now.Store(&rules{})
		return true, nil
	}
	b, err := robotfs.ReadFile(f.root, File)
	if err != nil {
		return false, err
	}
	r, err := parse(bytes.TrimPrefix(b, []byte("\ufeff")))
	if err != nil {
		return false, fmt.Errorf("%s: %w", File, err)
	}
	f.now.Store(r)
	return true, nil
}

// look is how often Watch looks at the file: one system call.
const look = 2 * time.Second

// Watch takes changes of the file over until ctx ends.
func (f *Filter) Watch(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if changed, err := f.read(); err != nil {
			log.WarnContext(ctx, "console filter invalid; keeping the previous one", logging.Err, err)
		} else if changed {
			log.WarnContext(ctx, "console filter changed") // a warning passes any filter
		}
	}
}

// Events reports whether the text log has events.
func (f *Filter) Events() bool { return f.now.Load().level(event, true) }

func (r *rules) level(name string, otherwise bool) bool {
	if on, ok := r.levels[name]; ok {
		return on
	}
	return otherwise
}

// channel reports whether a channel is on.
func (r *rules) channel(name string) bool {
	if on, ok := r.channels[name]; ok {
		return on
	}
	on, ok := r.channels[other]
	return on || !ok
}

// Handler returns a handler that hands to next, which takes every level, the records that pass.
func (f *Filter) Handler(next slog.Handler) slog.Handler { return handler{f, next} }

type handler struct {
	f    *Filter
	next slog.Handler
}

func (h handler) Enabled(_ context.Context, l slog.Level) bool {
	name := "error"
	switch {
	case l < slog.LevelInfo:
		name = "debug"
	case l < slog.LevelWarn:
		name = "info"
	case l < slog.LevelError:
		name = "warning"
	}
	return h.f.now.Load().level(name, l >= h.f.base)
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if now := h.f.now.Load(); r.Level < slog.LevelWarn && len(now.channels) > 0 && !now.channel(channelOf(r.PC)) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.f, h.next.WithAttrs(attrs)}
}
func (h handler) WithGroup(name string) slog.Handler { return handler{h.f, h.next.WithGroup(name)} }

// channelOf names the channel of the code at pc.
func channelOf(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	pkg, _, _ := strings.Cut(path.Base(frame.Function), ".")
	if name, ok := originals[pkg]; ok {
		return name
	}
	return pkg
}

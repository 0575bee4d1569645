// Package outbox sends the files that wait in a folder of the robot, the oldest first, and removes each once the cloud has stored it (VEC-LOG-02).
// Logs and crash dumps go this way.
//
//	a program renames a file into the folder ─► consent ─► quota ─► Send ─► stored: removed
//	                                                                   ├─► refused for good: removed, and told by an event
//	                                                                   └─► anything else: tried again later
//
// The folder is all the state there is, so that reboots, kills and days offline lose nothing. A robot that died between the cloud's answer and
// the removal sends the file again; the cloud stores a name with the same content once. Nothing here writes, so a full disk stops nothing.
// A program that adds a file renames it into the folder. One that is written in place may be sent in part first, and again when it is complete.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/wake"
)

// Event says that a file left the folder unsent. s1: its name, or of several the oldest's; s2: why (quota, refused, consent); s3: Config.Kind;
// s4: what the cloud said; i1: how many files; i2: how many bytes; i3: how many files since agentd's start.
const Event = "robot.upload_dropped"

// Pauses between attempts; own defaults.
const (
	minRetry = 5 * time.Second
	maxRetry = 5 * time.Minute

	watchAgain = 10 * time.Second // after the system could not watch the folder: inotify is scarce at times (fs.inotify.max_user_instances)
)

// Config says which files go where. Keep, Send, Removed and Unwatched may be left out.
type Config struct {
	Kind  string // of the files, for people: "logs"
	Root  *os.Root
	Dir   string                 // below Root; made if it is missing
	Match func(name string) bool // which files of Dir; nil: all. Hidden and unfinished ones never
	Quota int64                  // bytes; the oldest files go first (VEC-LOG-03)
	Keep  int                    // how many files, likewise; 0: any number (VEC-CRS-04)
	Every time.Duration          // how often the folder is looked at, besides when something changes there
	// Allowed reports whether the owner allows uploads. What waits is removed as soon as they do not (VEC-LOG-08); call Look then.
	Allowed func() bool
	// Send sends one file and returns nil once the cloud has stored it. errs.Denied: the cloud knows that the owner allows no uploads; errs.Invalid
	// and errs.Corrupt: it will never take this file. After any other error the file waits, as long as errs.RetryOf says. Nil: the files stay on the
	// robot, because this way is switched off (VEC-LOG-01); quota and consent hold all the same.
	Send func(ctx context.Context, f *os.File, name string) error
	// Removed is called after a file was removed, for files that accompany it.
	Removed   func(name string)
	Unwatched bool // no inotify, which is scarce in a process of many robots
	Emit      func(events.Event)
	Log       *slog.Logger
}

// Outbox is safe for concurrent use. Its Services are run once.
type Outbox struct {
	cfg                Config
	changed, work, now wake.Signal

	opened chan struct{}
	open   func()

	mu      sync.Mutex
	stop    func() // ends the upload under way; nil: there is none
	dropped int64
}

// New returns an Outbox that does nothing until its Services run.
func New(cfg Config) *Outbox {
	if cfg.Removed == nil {
		cfg.Removed = func(string) {}
	}
	o := &Outbox{cfg: cfg, changed: wake.New(), work: wake.New(), now: wake.New(), opened: make(chan struct{})}
	o.open = sync.OnceFunc(func() { close(o.opened) })
	return o
}

// Opened is closed when what an earlier process left unfinished in the folder is gone: who writes there waits for it, or loses a file being written.
func (o *Outbox) Opened() <-chan struct{} { return o.opened }

// Look says that there is a connection to the cloud, or that the owner changed their mind: files are sent, or removed, at once.
func (o *Outbox) Look() {
	if !o.cfg.Allowed() {
		o.mu.Lock()
		if o.stop != nil {
			o.stop()
		}
		o.mu.Unlock()
	}
	o.changed.Set()
	o.now.Set()
}

// Services watch over the folder, and send.
func (o *Outbox) Services() []runner.Service {
	all := []runner.Service{{Name: o.cfg.Kind + " folder", Run: o.keep}}
	if !o.cfg.Unwatched {
		all = append(all, runner.Service{Name: o.cfg.Kind + " watch", Run: o.watch})
	}
	if o.cfg.Send != nil {
		all = append(all, runner.Service{Name: o.cfg.Kind + " upload", Run: o.send})
	}
	return all
}

// keep holds the folder to consent and quota.
func (o *Outbox) keep(ctx context.Context) error {
	if err := o.cfg.Root.MkdirAll(o.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("folder of %s: %w", o.cfg.Kind, err)
	}
	if err := robotfs.CleanTemp(o.cfg.Root, o.cfg.Dir); err != nil {
		o.cfg.Log.WarnContext(ctx, "unfinished files not removed", "dir", o.cfg.Dir, logging.Err, err)
	}
	o.open()
	o.changed.Each(ctx, o.cfg.Every, func() {
		if err := o.tidy(); err != nil {
			o.cfg.Log.ErrorContext(ctx, "upload folder unusable", "dir", o.cfg.Dir, logging.Err, err)
		}
	})
	return nil
}

// watch notices files at once. Where the system cannot watch the folder, keep finds them.
func (o *Outbox) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		err := o.cfg.Root.MkdirAll(o.cfg.Dir, 0o755)
		if err == nil {
			err = robotfs.Notified(ctx, o.cfg.Root, o.cfg.Dir, o.changed.Set)
		}
		o.cfg.Log.DebugContext(ctx, "folder watch not available", "dir", o.cfg.Dir, logging.Err, err)
		_ = backoff.Sleep(ctx, min(o.cfg.Every, watchAgain)) // the loop sees that ctx ended
	}
	return nil
}

// list returns the files that wait, the oldest first.
func (o *Outbox) list() ([]fs.FileInfo, error) {
	entries, err := fs.ReadDir(o.cfg.Root.FS(), o.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") || robotfs.Unfinished(e.Name()) || o.cfg.Match != nil && !o.cfg.Match(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil { // else it is gone
			files = append(files, info)
		}
	}
	slices.SortStableFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	return files, nil
}

// tidy removes what may not wait, and wakes send for the rest.
func (o *Outbox) tidy() error {
	files, err := o.list()
	if err != nil {
		return err
	}
	if !o.cfg.Allowed() {
		return o.clear(files)
	}
	size := int64(0)
	for _, f := range files {
		size += f.Size()
	}
	n, gone := 0, int64(0)
	for ; n < len(files) && (size-gone > o.cfg.Quota || o.cfg.Keep > 0 && len(files)-n > o.cfg.Keep); n++ {
		if err := o.remove(files[n].Name()); err != nil {
			return err
		}
		gone += files[n].Size()
	}
	if n > 0 {
		o.tell(files[0].Name(), "quota", nil, int64(n), gone)
	}
	if n < len(files) {
		o.work.Set()
	}
	return nil
}

// clear removes all files, durably, because the owner allows no uploads. No event says so: none may be sent.
func (o *Outbox) clear(files []fs.FileInfo) (err error) {
	for _, f := range files {
		err = errors.Join(err, o.remove(f.Name()))
	}
	if len(files) == 0 || err != nil {
		return err
	}
	o.cfg.Log.Info("uploads not allowed by the owner; waiting files removed", "kind", o.cfg.Kind, "files", len(files))
	return robotfs.SyncDir(o.cfg.Root, o.cfg.Dir)
}

func (o *Outbox) remove(name string) error {
	if err := o.cfg.Root.Remove(path.Join(o.cfg.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.cfg.Removed(name)
	return nil
}

// tell counts files that were removed unsent.
func (o *Outbox) tell(name, why string, err error, files, size int64) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	o.mu.Lock()
	o.dropped += files
	all := o.dropped
	o.mu.Unlock()
	o.cfg.Log.Warn("files dropped unsent", "kind", o.cfg.Kind, "file", name, "why", why, "files", files, "bytes", size, logging.Err, err)
	o.cfg.Emit(events.Event{Source: "agentd", Level: events.Warning, Name: Event, S1: name, S2: why, S3: o.cfg.Kind, S4: said,
		I1: events.Num(files), I2: events.Num(size), I3: events.Num(all)})
}

// send sends what waits, until ctx ends.
func (o *Outbox) send(ctx context.Context) error {
	pause := backoff.Pause{Min: minRetry, Max: maxRetry}
	var retry <-chan time.Time
	for last := ""; ; {
		work := o.work
		if retry != nil {
			work = nil // files that arrive meanwhile wait too
		}
		select {
		case <-ctx.Done():
			return nil
		case <-work:
		case <-o.now:
		case <-retry:
		}
		name, err := o.pass(ctx, last)
		last, retry = name, nil
		if err == nil {
			pause.Reset()
			continue
		}
		wait := pause.Next(err)
		retry = time.After(wait)
		o.cfg.Log.DebugContext(ctx, "upload postponed", "kind", o.cfg.Kind, "file", name, "wait", wait.Round(time.Millisecond), logging.Err, err)
	}
}

// pass sends one file after the other until one cannot be sent now, and returns that one's name. It begins after the file called last, which must
// not hold up the others.
func (o *Outbox) pass(ctx context.Context, last string) (name string, err error) {
	files, err := o.list()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(files, func(f fs.FileInfo) bool { return f.Name() == last }) + 1
	for _, f := range slices.Concat(files[i:], files[:i]) {
		if err := o.one(ctx, f.Name()); err != nil {
			return f.Name(), fmt.Errorf("%s: %w", path.Join(o.cfg.Dir, f.Name()), err)
		}
	}
	return "", nil
}

// one sends a file, and removes it if it need not be sent again.
func (o *Outbox) one(ctx context.Context, name string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o.mu.Lock()
	o.stop = stop
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		o.stop = nil
		o.mu.Unlock()
	}()
	if !o.cfg.Allowed() { // asked after stop was set, so that a no is heard here or by Look
		return nil
	}
	f, err := o.cfg.Root.Open(path.Join(o.cfg.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read
	sent, err := f.Stat()
	if err != nil {
		return err
	}
	err = o.cfg.Send(ctx, f, name)
	why := ""
	switch kind := errs.KindOf(err); {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case kind == errs.Denied:
		why = "consent"
	case kind == errs.Invalid, kind == errs.Corrupt:
		why = "refused"
	default:
		return err
	}
	if now, serr := o.cfg.Root.Lstat(path.Join(o.cfg.Dir, name)); serr == nil &&
		(!os.SameFile(now, sent) || now.Size() != sent.Size() || !now.ModTime().Equal(sent.ModTime())) {
		return errs.New(errs.Unavailable, "changed during upload; sending it again")
	}
	if rerr := o.remove(name); rerr != nil {
		return rerr
	}
	if why != "" {
		o.tell(name, why, err, 1, sent.Size())
	}
	return nil
}

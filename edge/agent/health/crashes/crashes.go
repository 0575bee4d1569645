// Package crashes collects what crashed programs of the robot leave, and sends it to the cloud (VEC-CRS-01 to 05).
//
//	our programs' records (edge/crash) ─┐
//	dumps that others drop ─────────────┼─► .dmp and a .log beside it ─► event robot.crash ─► outbox ─► removed
//	run/anki-crash-log (FIFO of paths) ─┘
//
// The folder is all the state there is. The event comes before the upload. It is recorded again after each start of agentd while the dump waits; its boot
// id is made from the dump's content, so that the cloud knows it and has it once, whatever was killed when.
package crashes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/host"
	"kennel/edge/agent/outbox"
	"kennel/edge/crash"
	"kennel/edge/env/fifo"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/api/files"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/wake"
)

// FIFO takes the path of a dump from the program that wrote it (VEC-CRS-01).
const FIFO = "run/anki-crash-log"

// Own limits.
const (
	maxLine  = 512       // bytes of a line of the FIFO
	quota    = 64 << 20  // bytes of dumps
	maxLog   = 512 << 10 // bytes of a companion log
	offKnown = time.Minute
)

// The reasons of programs that wrote nothing.
const (
	Killed = "killed, or ended without a word"
	NoWord = "the power was lost, or the whole robot was killed"
)

// Config says how to collect and send.
type Config struct {
	Robot   host.Robot
	Conf    platform.CrashUploader
	Open    bool        // this way to the cloud is open (VEC-LOG-01)
	Always  bool        // dumps are sent without the owner's consent, as the original does (seed line 15139); their logs never are
	Allowed func() bool // the owner's consent
	Host    func() string
	Upload  Uploader

	step func(string) // called between any two changes on disk; tests die there
}

// Collector is safe for concurrent use; its Services are run once.
type Collector struct {
	cfg  Config
	box  *outbox.Outbox
	wake wake.Signal
	seen chan struct{}  // closed after the first look at the folder: dumps are complete
	bad  rate.Sometimes // logged lines of the FIFO

	mu    sync.Mutex // held while the folder changes, and before a dump is sent
	ready map[string]bool
	why   map[int]string // of processes that another part ended, by pid
	told  map[string]bool
	began time.Time // the first look at the folder
	off   string    // how the robot went off before this boot (edge/power/lastoff); "": not known yet
}

// New returns a Collector that does nothing until its Services run.
func New(cfg Config) *Collector {
	if cfg.step == nil {
		cfg.step = func(string) {}
	}
	c := &Collector{cfg: cfg, wake: wake.New(), seen: make(chan struct{}), bad: rate.Sometimes{First: 3, Interval: time.Minute}, ready: map[string]bool{}, why: map[int]string{},
		told: map[string]bool{}}
	oc := outbox.Config{Kind: "crashes", Root: cfg.Robot.Root, Dir: cfg.Conf.Folder, Match: isDump, Quota: quota, Keep: cfg.Conf.KeepLatest, Every: cfg.Conf.Every,
		Allowed: func() bool { return cfg.Always || cfg.Allowed() }, Removed: c.removed, Emit: cfg.Robot.Emit, Log: cfg.Robot.Log}
	if cfg.Open {
		oc.Send = c.send
	}
	c.box = outbox.New(oc)
	return c
}

func isDump(name string) bool {
	return strings.HasSuffix(name, crash.Done) && !strings.HasPrefix(name, ".")
}

// Services collect and send.
func (c *Collector) Services() []runner.Service {
	r := c.cfg.Robot
	return append(c.box.Services(), runner.Service{Name: "crashes", Run: c.run}, runner.Service{Name: "announced crashes", Run: func(ctx context.Context) error {
		return fifo.FIFO{Root: r.Root, Name: FIFO, MaxLine: maxLine, MaxFile: 8 * maxLine, Take: c.announced, Log: r.Log}.Listen(ctx)
	}})
}

// Look says that a program may have crashed, that there is a connection, or that the owner may have changed their mind.
func (c *Collector) Look() {
	c.wake.Set()
	c.box.Look()
}

// Because says why the program with that pid is being ended. Its record will say so.
func (c *Collector) Because(pid int, reason string) {
	c.mu.Lock()
	c.why[pid] = reason
	c.mu.Unlock()
}

// WentOff says how the robot went off before this boot. A program that a meant end took with it did not crash.
func (c *Collector) WentOff(how string) {
	c.mu.Lock()
	known := c.off == how
	c.off = how
	c.mu.Unlock()
	if !known {
		c.wake.Set()
	}
}

func (c *Collector) run(ctx context.Context) error {
	c.began = time.Now()
	if err := c.cfg.Robot.Root.MkdirAll(c.cfg.Conf.Folder, 0o755); err != nil {
		return fmt.Errorf("crash folder: %w", err)
	}
	select {
	case <-c.box.Opened():
	case <-ctx.Done():
		return nil
	}
	first := true
	c.wake.Each(ctx, c.cfg.Conf.Every, func() {
		if err := c.collect(ctx, first); err != nil && ctx.Err() == nil {
			c.cfg.Robot.Log.ErrorContext(ctx, "crashes not collected", logging.Err, err)
		}
		if first {
			close(c.seen)
		}
		first = false
	})
	return nil
}

// announced takes a line of the FIFO: the path of a dump that is complete. Only a plain file of the folder is one.
func (c *Collector) announced(line []byte) {
	name, err := c.named(line)
	if err != nil {
		c.bad.Do(func() { c.cfg.Robot.Log.Warn("line on the crash FIFO ignored", "file", FIFO, logging.Err, err) })
		return
	}
	c.mu.Lock()
	c.ready[name] = true
	c.mu.Unlock()
	c.wake.Set()
}

func (c *Collector) named(line []byte) (string, error) {
	if len(line) > maxLine {
		return "", fmt.Errorf("line of %d bytes or more: want at most %d", len(line), maxLine)
	}
	p := strings.TrimSpace(string(line))
	dir, name := path.Split(p)
	if path.Clean("/" + dir)[1:] != c.cfg.Conf.Folder || !isDump(strings.TrimSuffix(name, "-")) || strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == '\uFFFD' }) {
		return "", fmt.Errorf("%.200q: want the path of a %s file in /%s", p, crash.Done, c.cfg.Conf.Folder)
	}
	info, err := c.cfg.Robot.Root.Lstat(path.Join(c.cfg.Conf.Folder, name))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%.200q: want a plain file", p)
	}
	return name, err
}

// collect completes what programs left, and tells of it.
func (c *Collector) collect(ctx context.Context, first bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := fs.ReadDir(c.cfg.Robot.Root.FS(), c.cfg.Conf.Folder)
	if err != nil {
		return err
	}
	var dumps []string
	logs := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		base, isLog := strings.CutSuffix(name, ".log")
		switch {
		case !e.Type().IsRegular() || robotfs.Unfinished(name):
		case isLog:
			logs[base+crash.Done] = true
		default:
			done, derr := c.complete(e, first)
			err = errors.Join(err, derr)
			if done != "" {
				dumps = append(dumps, done)
			}
		}
	}
	for _, name := range dumps {
		if !logs[name] {
			err = errors.Join(err, c.companion(name))
		}
		delete(logs, name)
		err = errors.Join(err, c.tell(ctx, name))
	}
	for name := range logs { // of dumps that are gone
		c.removeLog(name)
	}
	return err
}

// complete makes a dump of an entry of the folder, and returns the dump's name; "": it is none, or not yet.
func (c *Collector) complete(e fs.DirEntry, first bool) (string, error) {
	name := e.Name()
	at := path.Join(c.cfg.Conf.Folder, name)
	base, running := strings.CutSuffix(name, crash.Running)
	hidden := strings.HasPrefix(name, ".") // a record that is being begun
	if !running && !hidden && !isDump(name) {
		return "", nil
	}
	f, err := c.cfg.Robot.Root.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || crash.Alive(f) {
		return "", err
	}
	switch {
	case first && (info.Size() == 0 || hidden): // VEC-CRS-03
		return "", c.cfg.Robot.Root.Remove(at)
	case !running && !hidden && info.Size() > 0:
		return name, nil
	case !running || info.Size() == 0:
		return "", nil
	}
	b, err := io.ReadAll(io.LimitReader(f, crash.MaxText))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", at, err)
	}
	r, perr := crash.Parse(b)
	if perr != nil { // another program's
		if !first && !c.ready[name] {
			return "", nil
		}
		delete(c.ready, name)
		return base + crash.Done, errors.Join(c.cfg.Robot.Root.Rename(at, path.Join(c.cfg.Conf.Folder, base+crash.Done)), robotfs.SyncDir(c.cfg.Robot.Root, c.cfg.Conf.Folder))
	}
	return c.finish(r, base, info.ModTime())
}

// finish writes the complete record of a program that is gone.
func (c *Collector) finish(r crash.Record, base string, last time.Time) (string, error) {
	root, at := c.cfg.Robot.Root, path.Join(c.cfg.Conf.Folder, base)
	_, err := root.Lstat(at + crash.Done)
	known := err == nil // agentd died before it could remove the beginning
	r.At, r.Reason = last, r.Cause()
	earlier := r.BootID != c.cfg.Robot.Boot
	why := c.why[r.PID]
	switch {
	case known:
	case why != "" && !earlier:
		r.Reason = strings.TrimSuffix(why+"; "+r.Reason, "; ")
	case r.Reason != "":
	case earlier && c.off == "" && time.Since(c.began) < offKnown:
		return "", nil // robotd will say whether that end was meant
	case earlier && c.off == meant:
		return "", root.Remove(at + crash.Running)
	case earlier:
		r.Reason = NoWord
	default:
		r.At, r.Reason = c.cfg.Robot.Now(), Killed
	}
	if !known {
		r.Thing = string(c.cfg.Robot.Thing)
		if err := robotfs.WriteFile(root, at+crash.Done, r.Append(nil), 0o600); err != nil {
			return "", err
		}
		c.cfg.Robot.Log.Warn("program crashed", "program", r.Program, "version", r.OSVersion, "reason", r.Reason, "record", base+crash.Done)
	}
	c.cfg.step("written")
	if err := root.Remove(at + crash.Running); err != nil {
		return "", err
	}
	c.cfg.step("completed")
	delete(c.why, r.PID)
	return base + crash.Done, nil
}

// meant is lastoff.Clean in words.
const meant = "clean"

// companion writes the ends of the robot's logs beside a dump (VEC-CRS-02).
func (c *Collector) companion(name string) error {
	var b bytes.Buffer
	if _, err := faults.Logs(c.cfg.Robot.Root, &b); err != nil {
		fmt.Fprintf(&b, "! %v\n", err)
	}
	b.Next(max(0, b.Len()-maxLog))
	defer c.cfg.step("log")
	return robotfs.WriteFile(c.cfg.Robot.Root, c.logOf(name), b.Bytes(), 0o600)
}

func (c *Collector) logOf(name string) string {
	return path.Join(c.cfg.Conf.Folder, strings.TrimSuffix(name, crash.Done)+".log")
}

// removed removes the companion of a dump that was removed, after it was made.
func (c *Collector) removed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLog(name)
}

func (c *Collector) removeLog(name string) {
	if err := c.cfg.Robot.Root.Remove(c.logOf(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.cfg.Robot.Log.Warn("log of a crash not removed", logging.Err, err)
	}
}

// tell records the event of a dump, once for each start of agentd. It returns when the event is on disk. The caller holds mu.
func (c *Collector) tell(ctx context.Context, name string) error {
	if c.told[name] {
		return nil
	}
	b, err := c.read(name)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	e := events.Event{Source: "agentd", Level: events.Error, Name: "robot.crash", BootID: events.CrashBoot + hex.EncodeToString(sum[:16]), Seq: 1, TS: c.cfg.Robot.Now().UnixMilli(),
		S1: strings.TrimSuffix(name, crash.Done), S2: "minidump", S3: c.cfg.Robot.OS, S4: hex.EncodeToString(sum[:]), I1: events.Num(c.cfg.Robot.Now().UnixMilli())}
	if info, err := c.cfg.Robot.Root.Stat(path.Join(c.cfg.Conf.Folder, name)); err == nil {
		e.I1 = events.Num(info.ModTime().UnixMilli())
	}
	if r, err := crash.Parse(b); err == nil {
		e.S1, e.S2, e.S3, e.RobotVersion = r.Program, r.Reason, r.OSVersion, r.OSVersion
		if !r.At.IsZero() {
			e.I1 = events.Num(r.At.UnixMilli())
		}
	}
	e.TS = e.I1.N
	if err := c.cfg.Robot.Keep(ctx, e); err != nil {
		return err
	}
	c.told[name] = true
	c.cfg.step("told")
	return nil
}

// read reads a dump, as far as the cloud takes one.
func (c *Collector) read(name string) ([]byte, error) {
	f, err := c.cfg.Robot.Root.Open(path.Join(c.cfg.Conf.Folder, name))
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	return io.ReadAll(io.LimitReader(f, files.MaxDump))
}

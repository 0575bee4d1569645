package crash

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kennel/edge/env"
	"kennel/edge/env/robotfs"
	"kennel/infra/cli/version"
	"kennel/infra/logging"
)

// MaxText bounds what is kept of a record's text, in bytes; own default. Beside it a folder may hold larger minidumps.
const MaxText = 1 << 20

// Capture is this process's record. A nil Capture does nothing. Safe for concurrent use.
type Capture struct {
	root *os.Root
	dir  string
	name string // of the file
	file *os.File
	rec  Record
	log  *slog.Logger

	mu   sync.Mutex
	said map[string]bool // panics that are recorded
}

// maxPanics bounds the records of panics that did not end the process; own default.
const maxPanics = 5

// Begin makes the record of program below the robot's folder dir, and sends the runtime's last words to it. It returns nil if that is impossible,
// which is logged, and after a recovery boot, which leaves the user data alone (VEC-BOOT-07).
func Begin(dir, program string, hw env.Hardware, getenv func(string) string, log *slog.Logger) *Capture {
	c, err := begin(dir, program, hw, getenv, log)
	if err != nil {
		log.Warn("crashes of this program leave no record", logging.Err, err)
	}
	return c
}

func begin(dir, program string, hw env.Hardware, getenv func(string) string, log *slog.Logger) (*Capture, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	c := &Capture{root: root, log: log, said: map[string]bool{}}
	if p, err := hw.Boot(root); err != nil || p.Recovery {
		return nil, errors.Join(err, root.Close())
	}
	if c.dir, err = robotfs.CrashFolder(root, getenv); err != nil {
		log.Warn("crash settings ignored", logging.Err, err)
	}
	info := version.Get()
	c.rec = Record{Program: program, Version: info.Version, Build: info.Commit, OSVersion: robotfs.OSVersion(root), PID: os.Getpid(), Started: time.Now()}
	c.rec.BootID, err = robotfs.BootID(root)
	if err == nil {
		err = root.MkdirAll(c.dir, 0o700)
	}
	if err == nil {
		err = c.open()
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	debug.SetTraceback("all")
	if err := debug.SetCrashOutput(c.file, debug.CrashOptions{}); err != nil {
		c.End()
		return nil, err
	}
	return c, nil
}

// open makes the file. It gets its name when it is locked and has its header.
func (c *Capture) open() (err error) {
	c.name = c.dir + "/" + c.rec.Name()
	young := c.dir + "/." + c.rec.Name()
	if c.file, err = c.root.OpenFile(young, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err != nil {
		return err
	}
	if err = unix.Flock(int(c.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = c.file.Write(c.rec.Append(nil))
	}
	if err == nil {
		err = c.file.Sync()
	}
	if err == nil {
		err = c.root.Rename(young, c.name+Running)
	}
	if err == nil {
		return robotfs.SyncDir(c.root, c.dir)
	}
	return errors.Join(err, c.root.Remove(young), c.file.Close())
}

// Name returns the record's file name without its ending.
func (r Record) Name() string {
	return fmt.Sprintf("%s-%s-%d", r.Program, r.Started.UTC().Format("20060102T150405.000Z"), r.PID)
}

// Panicked records a panic that ended a service of the program, but not the program. The same one is recorded once.
func (c *Capture) Panicked(service string, err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	what, _, _ := strings.Cut(err.Error(), "\n")
	if c.said[service+what] || len(c.said) == maxPanics {
		return
	}
	c.said[service+what] = true
	r := c.rec
	r.At = time.Now()
	r.Reason = fmt.Sprintf("%s in service %s, which was started again", what, service)
	stacks := make([]byte, MaxText/2)
	r.Text = fmt.Appendf(nil, "%s\n\n%s", err, stacks[:runtime.Stack(stacks, true)])
	name := fmt.Sprintf("%s.%d%s", c.name, len(c.said), Done)
	if err := robotfs.WriteFile(c.root, name, r.Append(nil), 0o600); err != nil {
		c.log.Warn("panic not recorded", "service", service, logging.Err, err)
	}
}

// End removes the record: the program ends in order.
func (c *Capture) End() {
	if c == nil {
		return
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{}) // fails never with nil
	err := errors.Join(c.root.Remove(c.name+Running), c.file.Close(), c.root.Close())
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a wipe of the user data took it
		c.log.Warn("crash record not removed", logging.Err, err)
	}
}

// Alive reports whether the program of a running record lives.
func Alive(f *os.File) bool {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // closing it does the same
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

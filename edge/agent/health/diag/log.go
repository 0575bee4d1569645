// Package diag collects a robot's logs: as one text (VEC-LOG-06), as a snapshot to upload (VEC-LOG-04), and together with the state of its computer
// and network as an archive (VEC-LOG-07). What is to leave the robot is collected only while the owner allows it (VEC-LOG-08).
package diag

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"

	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// The system's log and, for a robot without one, the folder of its programs' logs, which is also where snapshots are made.
const (
	rotatedLog = "var/log/messages.1.gz"
	currentLog = "var/log/messages"
	workFolder = "vic-logmgr" // in the cache tree
)

// maxPart bounds the end of each log that leaves the robot, in bytes before compression; own default, so that a snapshot fits the quota of its folder.
const maxPart = 4 << 20

// Cat writes the robot's log: the system's rotated log and then its current one (VEC-LOG-06) or, without those, the logs of the robot's programs, each
// below its name. Of each file it writes the last most bytes; 0: all. What of a file cannot be read is said in its place.
func Cat(w io.Writer, root *os.Root, most int64) error {
	names := []string{rotatedLog, currentLog}
	if _, err := root.Stat(currentLog); err != nil {
		if _, err := root.Stat(rotatedLog); err != nil {
			names = nil
		}
	}
	system := len(names) > 0
	if !system {
		folder, err := Work(root)
		if err != nil {
			return err
		}
		if names, err = fs.Glob(root.FS(), folder+"/*.log"); err != nil {
			return err
		}
	}
	out := &sticky{w: w}
	for _, name := range names {
		if !system {
			fmt.Fprintf(out, "==> %s <==\n", name)
		}
		if err := catOne(out, root, name, most); err != nil && (!system || !errors.Is(err, fs.ErrNotExist)) {
			fmt.Fprintf(out, "! %s: %v\n", name, err)
		}
	}
	if len(names) == 0 {
		fmt.Fprintf(out, "! no log: want %s, or logs of programs in the cache tree's %s\n", currentLog, workFolder)
	}
	return out.err
}

// IsOpen reports whether the file by that name is the log of a program, in a cache tree: the program may have it open.
func IsOpen(cache, name string) bool {
	return path.Dir(name) == path.Join(cache, workFolder) && path.Ext(name) == ".log"
}

// Empty empties the robot's logs, also those that programs have open for appending. A read or write that is refused is an error.
func Empty(root *os.Root) error {
	folder, _ := Work(root) // of a configuration that cannot be read, the standard one
	names, err := fs.Glob(root.FS(), folder+"/*.log")
	if err != nil {
		return err
	}
	for _, name := range append(names, currentLog) {
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = root.Remove(name)
		} else if err == nil {
			var f *os.File
			if f, err = root.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
				err = errors.Join(f.Sync(), f.Close())
			}
		}
		if err != nil {
			return err
		}
	}
	if err := root.Remove(rotatedLog); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sticky keeps the first error of a writer, and writes nothing after it.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(b []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.w.Write(b)
	}
	return n, s.err
}

// catOne writes the end of one log, unpacked.
func catOne(w io.Writer, root *os.Root, name string, most int64) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe might take for ever
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if info, err := f.Stat(); err != nil {
		return err
	} else if !info.Mode().IsRegular() { // and so might reading it
		return errors.New("not a file")
	}
	open := func() (r io.Reader, err error) {
		if _, err = f.Seek(0, io.SeekStart); err == nil && path.Ext(name) == ".gz" {
			return gzip.NewReader(f)
		}
		return f, err
	}
	r, err := open()
	if err != nil {
		return err
	}
	if most > 0 {
		all, _ := io.Copy(io.Discard, r) // as much as can be read; the second time its error counts
		if r, err = open(); err == nil && all > most {
			_, err = io.CopyN(io.Discard, r, all-most)
		}
		if err != nil {
			return err
		}
		r = io.LimitReader(r, most) // a program may write to it meanwhile
	}
	_, err = io.Copy(w, r)
	return err
}

// Work returns the folder in which snapshots are made.
func Work(root *os.Root) (string, error) {
	t, err := platform.LoadTrees(root)
	return t.Cache + "/" + workFolder, err
}

// Collector makes files that leave the robot.
type Collector struct {
	Root    *os.Root
	Thing   thing.ID
	Logs    platform.LogUploader
	Host    func() string // of the cloud, to ping; "": none
	Allowed func() bool   // the owner allows uploads
	Now     func() time.Time
	// Run runs a program of the host and returns what it prints; nil: the system does.
	Run func(ctx context.Context, program string, args ...string) ([]byte, error)
}

// A file may say why it is sent: its name on the robot then ends in ~ and that word, which survives a reboot with the file.
const reasonMark = "~"

var faultPattern = regexp.MustCompile(`^fault-[0-9]{1,3}\b`)

// Name returns the name by which a file is uploaded, and why; "": not said. The log of a fault says it by its name.
func Name(file string) (name, reason string) {
	name, reason, _ = strings.Cut(file, reasonMark)
	if !commandwire.IsReason(reason) {
		reason = faultPattern.FindString(name)
	}
	return name, reason
}

// IsSnapshot reports whether a file is one that Snapshot has made.
func IsSnapshot(file string) bool {
	name, _ := Name(file)
	return strings.HasPrefix(name, "victor-") && strings.HasSuffix(name, ".log.gz")
}

func (c *Collector) begin(reason string) error {
	switch {
	case !c.Allowed():
		return errs.New(errs.Denied, "the owner of this robot does not allow uploads of logs")
	case reason != "" && !commandwire.IsReason(reason):
		return errs.New(errs.Invalid, "reason %.60q: want a word of at most 40 letters a to z, digits and hyphens", reason)
	}
	return nil
}

// finish puts what was collected into its folder, unless the owner has said no meanwhile.
func (c *Collector) finish(dir, name, reason string, content []byte) (string, error) {
	if err := c.begin(reason); err != nil {
		return "", err
	}
	if reason != "" {
		reason = reasonMark + reason
	}
	return name, robotfs.WriteFile(c.Root, path.Join(dir, name+reason), content, 0o600)
}

// stamp is the time in names: year-month-day-hour-minute-seconds (VEC-LOG-04).
func (c *Collector) stamp() string { return c.Now().UTC().Format("2006-01-02-15-04-05") }

// Snapshot packs the robot's recent logs into a file of the work folder, from which it is uploaded, and returns the name of the upload.
func (c *Collector) Snapshot(reason string) (name string, err error) {
	if err := c.begin(reason); err != nil {
		return "", err
	}
	dir, err := Work(c.Root)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(Cat(z, c.Root, maxPart), z.Close()); err != nil {
		return "", err
	}
	return c.finish(dir, fmt.Sprintf("victor-%s-%s-%d.log.gz", c.Thing.Serial(), c.stamp(), os.Getpid()), reason, b.Bytes())
}

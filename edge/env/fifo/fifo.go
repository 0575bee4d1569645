// Package fifo reads lines that any program of the robot writes into a named pipe, such as run/fault_code: from writers that come and go, at a bounded
// rate and in bounded memory. While it has no reader, lines may wait in its place, in a plain file.
package fifo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"kennel/infra/logging"
)

// Own limits.
const (
	readBytes = 4 << 10 // at once
	readRate  = 20      // reads a second: a flood waits and costs little, and other writers are read within a second
	readBurst = 20
	idle      = time.Second // after which a line without an end is one, and the file is looked at
	again     = time.Second // to the next attempt where it cannot be opened
)

// FIFO is one named pipe and its reader.
type FIFO struct {
	Root    *os.Root
	Name    string // below Root
	MaxLine int    // bytes of a line; of a longer one, Take gets the first MaxLine+1
	MaxFile int64  // bytes of lines that wait in a plain file; the rest is dropped
	Take    func(line []byte)
	Log     *slog.Logger
}

// Lines cuts input into lines, in bounded memory.
type Lines struct {
	Max  int    // bytes of a line
	line []byte // the unfinished line, at most one byte more than a line may have
}

// Feed calls each with every line that ends in b. Of a line that is too long it has the beginning, which is too long as well.
func (l *Lines) Feed(b []byte, each func(line []byte)) {
	for _, c := range b {
		if c == '\n' {
			each(l.line)
			l.line = l.line[:0]
		} else if len(l.line) <= l.Max {
			l.line = append(l.line, c)
		}
	}
}

// End passes the rest without a newline on as a line.
func (l *Lines) End(each func(line []byte)) {
	if len(l.line) > 0 {
		l.Feed([]byte("\n"), each)
	}
}

// Held returns how many bytes of an unfinished line are kept, and the room for them.
func (l *Lines) Held() (kept, room int) { return len(l.line), cap(l.line) }

// Listen takes lines from the FIFO, which it makes, until ctx ends. A FIFO that is removed or replaced is created again. A failure
// to create it is logged once and tried again.
func (p FIFO) Listen(ctx context.Context) error {
	said := ""
	for ctx.Err() == nil {
		err := p.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, errReplaced) {
			if err.Error() != said {
				said = err.Error()
				p.Log.Error("FIFO not available", "file", p.Name, logging.Err, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(again):
			}
			continue
		}
		said = ""
		p.Log.Warn("FIFO missing or replaced; recreating it", "file", p.Name, logging.Err, err)
	}
	return nil
}

var errReplaced = errors.New("removed or replaced")

// listen reads one FIFO until it is replaced or fails.
func (p FIFO) listen(ctx context.Context) error {
	f, waiting, err := p.open()
	l := Lines{Max: p.MaxLine}
	l.Feed(waiting, p.Take)
	l.End(p.Take)
	if err != nil {
		return err
	}
	defer f.Close() // read only
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })() // a deadline that comes too late fails harmlessly
	turns := rate.NewLimiter(readRate, readBurst)
	buf := make([]byte, readBytes)
	looked := time.Now()
	for {
		if err := turns.Wait(ctx); err != nil {
			return err
		}
		if err := f.SetReadDeadline(time.Now().Add(idle)); err != nil {
			return fmt.Errorf("read %s: %w", p.Name, err)
		}
		if err := ctx.Err(); err != nil { // it may have set its deadline before ours
			return err
		}
		n, err := f.Read(buf)
		l.Feed(buf[:n], p.Take)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.End(p.Take)
		case err != nil:
			return fmt.Errorf("read %s: %w", p.Name, err)
		}
		if time.Since(looked) >= idle {
			looked = time.Now()
			if now, err := p.Root.Lstat(p.Name); err != nil || !os.SameFile(mine, now) {
				return errReplaced
			}
		}
	}
}

// open opens the FIFO, making it if needed. It opens it for reading and writing, so that it stays open when a writer closes,
// and no writer waits for a reader. If a plain file was in its place, open also returns its content, even beside an error.
func (p FIFO) open() (f *os.File, waiting []byte, err error) {
	if err := p.Root.MkdirAll(path.Dir(p.Name), 0o755); err != nil {
		return nil, nil, fmt.Errorf("folder of %s: %w", p.Name, err)
	}
	dir, err := p.Root.Open(path.Dir(p.Name))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close() // read only
	at, name := int(dir.Fd()), path.Base(p.Name)
	for range 4 { // other programs may make and remove it in between
		var st unix.Stat_t
		err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case errors.Is(err, unix.ENOENT):
			if err := unix.Mkfifoat(at, name, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
				return nil, waiting, fmt.Errorf("create FIFO %s: %w", p.Name, err)
			}
			continue
		case err != nil:
			return nil, waiting, fmt.Errorf("stat %s: %w", p.Name, err)
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFIFO:
			fd, err := unix.Openat(at, name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, waiting, fmt.Errorf("open FIFO %s: %w", p.Name, err)
			}
			f := os.NewFile(uintptr(fd), p.Name)
			if info, err := f.Stat(); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
				_ = f.Close() // it became something else between two looks
				continue
			}
			return f, waiting, nil
		case unix.S_IFREG:
			// Move it aside first: later writers find no file and make another.
			aside := p.Name + ".waiting"
			err := p.Root.Rename(p.Name, aside)
			if err == nil {
				var b []byte
				b, err = readSome(p.Root, aside, p.MaxFile)
				waiting = append(waiting, b...)
				err = errors.Join(err, p.Root.Remove(aside))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, waiting, fmt.Errorf("read waiting lines in %s: %w", p.Name, err)
			}
		case unix.S_IFLNK:
			if err := p.Root.Remove(p.Name); err != nil && !errors.Is(err, fs.ErrNotExist) { // a symbolic link is not followed
				return nil, waiting, fmt.Errorf("remove the link in place of the FIFO: %w", err)
			}
		default:
			return nil, waiting, fmt.Errorf("%s is a %s: want a FIFO, or nothing", p.Name, kindOf(st.Mode))
		}
	}
	return nil, waiting, fmt.Errorf("%s keeps changing: want a FIFO", p.Name)
}

// kindOf names a file that is neither a FIFO, a plain file nor a link.
func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "folder"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

// readSome reads the lines that wait in a file, as many as are bounded.
func readSome(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may have been replaced
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no longer a plain file", name), err)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

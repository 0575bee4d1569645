package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"kennel/edge/agent/info/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/logging"
)

// File is the FIFO that takes a fault from any program that writes its number and a newline (VEC-FLT-03). While it has no reader, a code waits in its
// place, in a plain file of the same lines: a service may fail before agentd listens (VEC-BOOT-15).
const File = "run/fault_code"

// Own limits of the FIFO.
const (
	maxLine   = 64      // bytes of a line
	maxFile   = 4 << 10 // bytes of lines that wait in a plain file
	readBytes = 4 << 10 // at once
	readRate  = 20      // reads a second: a flood waits and costs little, and other writers are read within a second
	readBurst = 20
	idle      = time.Second // after which a line without an end is one, and the file is looked at
	again     = time.Second // to the next attempt where it cannot be opened
)

// ErrNone: a line without a code, or with the code 0, says nothing (VEC-FLT-04).
var ErrNone = errors.New("no fault code")

// Parse reads a line of the FIFO. It drops all characters that are not digits, as the original does (VEC-FLT-04); the rest must be a number
// from 1 to 999. ErrNone if it is 0 or empty.
func Parse(line []byte) (faultcode.Code, error) {
	if len(line) > maxLine {
		return 0, fmt.Errorf("fault code: line of %d bytes: want at most %d", len(line), maxLine)
	}
	code := 0
	for _, c := range line {
		if c < '0' || c > '9' {
			continue
		}
		if code = 10*code + int(c-'0'); code > 999 {
			return 0, fmt.Errorf("fault code: line %.40q: want a number from 1 to 999", line)
		}
	}
	if code == 0 {
		return 0, ErrNone
	}
	return faultcode.Code(code), nil
}

// lines cuts input into lines, in bounded memory.
type lines struct {
	line []byte // the unfinished line, at most one byte more than a line may have
}

// feed calls each with every line that ends in b. Of a line that is too long it has the beginning, which is too long as well.
func (l *lines) feed(b []byte, each func(line []byte)) {
	for _, c := range b {
		if c == '\n' {
			each(l.line)
			l.line = l.line[:0]
		} else if len(l.line) <= maxLine {
			l.line = append(l.line, c)
		}
	}
}

// end passes the rest without a newline on as a line.
func (l *lines) end(each func(line []byte)) {
	if len(l.line) > 0 {
		l.feed([]byte("\n"), each)
	}
}

// Listen takes codes from the FIFO, which it makes, until ctx ends. A FIFO that is removed or replaced is created again. A failure
// to create it is logged once and tried again.
func (h *Handler) Listen(ctx context.Context) error {
	said := ""
	for ctx.Err() == nil {
		err := h.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, errReplaced) {
			if err.Error() != said {
				said = err.Error()
				h.cfg.Log.Error("fault FIFO not available", logging.Err, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(again):
			}
			continue
		}
		said = ""
		h.cfg.Log.Warn("fault FIFO missing or replaced; recreating it", logging.Err, err)
	}
	return nil
}

var errReplaced = errors.New(File + " was removed or replaced")

// listen reads one FIFO until it is replaced or fails.
func (h *Handler) listen(ctx context.Context) error {
	f, waiting, err := openPipe(h.cfg.Root)
	var l lines
	l.feed(waiting, h.take)
	l.end(h.take)
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
			return fmt.Errorf("read %s: %w", File, err)
		}
		if err := ctx.Err(); err != nil { // it may have set its deadline before ours
			return err
		}
		n, err := f.Read(buf)
		l.feed(buf[:n], h.take)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.end(h.take)
		case err != nil:
			return fmt.Errorf("read %s: %w", File, err)
		}
		if time.Since(looked) >= idle {
			looked = time.Now()
			if now, err := h.cfg.Root.Lstat(File); err != nil || !os.SameFile(mine, now) {
				return errReplaced
			}
		}
	}
}

// take takes one line of the FIFO in.
func (h *Handler) take(line []byte) {
	code, err := Parse(line)
	switch {
	case errors.Is(err, ErrNone):
	case err != nil:
		h.refused(err)
	case h.busy.Load():
		h.refused(fmt.Errorf("fault %v: another one is being handled", code)) // VEC-FLT-05
	default:
		h.raise(&openFault{posted: true, Fault: Fault{Code: code, Err: errors.New("posted to " + File)}})
	}
}

// refused logs lines of the FIFO that have no effect, at a limited rate.
func (h *Handler) refused(err error) {
	n := h.badly.Add(1)
	h.bad.Do(func() {
		h.cfg.Log.Warn("input on the fault FIFO ignored", "file", File, "so_far", n, logging.Err, err)
	})
}

// openPipe opens the FIFO below root, making it if needed. It opens it for reading and writing, so that it stays open when a writer closes,
// and no writer waits for a reader. If a plain file was in its place, openPipe also returns its content, even beside an error.
func openPipe(root *os.Root) (f *os.File, waiting []byte, err error) {
	if err := root.MkdirAll(path.Dir(File), 0o755); err != nil {
		return nil, nil, fmt.Errorf("folder of %s: %w", File, err)
	}
	dir, err := root.Open(path.Dir(File))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close() // read only
	at, name := int(dir.Fd()), path.Base(File)
	for range 4 { // other programs may make and remove it in between
		var st unix.Stat_t
		err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case errors.Is(err, unix.ENOENT):
			if err := unix.Mkfifoat(at, name, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
				return nil, waiting, fmt.Errorf("make the FIFO %s: %w", File, err)
			}
			continue
		case err != nil:
			return nil, waiting, fmt.Errorf("look at %s: %w", File, err)
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFIFO:
			fd, err := unix.Openat(at, name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, waiting, fmt.Errorf("open the FIFO %s: %w", File, err)
			}
			f := os.NewFile(uintptr(fd), File)
			if info, err := f.Stat(); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
				_ = f.Close() // it became something else between two looks
				continue
			}
			return f, waiting, nil
		case unix.S_IFREG:
			// Move it aside first: later writers find no file and make another.
			aside := File + ".waiting"
			err := root.Rename(File, aside)
			if err == nil {
				var b []byte
				b, err = readSome(root, aside)
				waiting = append(waiting, b...)
				err = errors.Join(err, root.Remove(aside))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, waiting, fmt.Errorf("codes that wait in %s: %w", File, err)
			}
		case unix.S_IFLNK:
			if err := root.Remove(File); err != nil && !errors.Is(err, fs.ErrNotExist) { // a symbolic link is not followed
				return nil, waiting, fmt.Errorf("a link in the place of the FIFO: %w", err)
			}
		default:
			return nil, waiting, fmt.Errorf("%s is a %s: want a FIFO, or nothing", File, kindOf(st.Mode))
		}
	}
	return nil, waiting, fmt.Errorf("%s changes again and again: want a FIFO", File)
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
func readSome(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may have been replaced
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no longer a plain file", name), err)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// Post posts a code to the handler of the robot below root; if none reads, the code waits in a file for the next one. A full FIFO is an
// error after a second.
func Post(root *os.Root, code faultcode.Code) error {
	if code < 1 || code > 999 {
		return fmt.Errorf("fault code %d: want 1 to 999", int(code))
	}
	line := fmt.Appendf(nil, "%v\n", code)
	is, err := root.Lstat(File)
	if err == nil && is.Mode().Type() == fs.ModeSymlink {
		err = fs.ErrNotExist // a symbolic link is not followed
	}
	var f *os.File
	if err == nil {
		f, err = root.OpenFile(File, os.O_WRONLY|unix.O_NONBLOCK|os.O_APPEND, 0)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) { // no FIFO, or no reader
		return robotfs.WriteFile(root, File, line, 0o600)
	}
	if err != nil {
		return fmt.Errorf("post fault %v: %w", code, err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size()+int64(len(line)) > maxFile {
		err = fmt.Errorf("%d bytes of codes wait already", info.Size())
	}
	if err == nil {
		_ = f.SetWriteDeadline(time.Now().Add(time.Second)) // fails for a plain file, which needs none
		_, err = f.Write(line)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("post fault %v: %w", code, err)
	}
	return nil
}

// Pending reports whether a fault of the robot below root is being handled. A program that posts because a service ended does not post then
// (VEC-FLT-03).
func Pending(root *os.Root) bool {
	_, err := root.Lstat(PendingFile)
	return err == nil
}

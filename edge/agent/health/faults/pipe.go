package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"kennel/edge/env/fifo"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/logging"
)

// File is the FIFO that takes a fault from any program that writes its number and a newline (VEC-FLT-03). While it has no reader, a code waits in its
// place, in a plain file of the same lines: a service may fail before agentd listens (VEC-BOOT-15).
const File = "run/fault_code"

// Own limits of the FIFO.
const (
	maxLine = 64      // bytes of a line
	maxFile = 4 << 10 // bytes of lines that wait in a plain file
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

// Listen takes codes from the FIFO, which it makes, until ctx ends.
func (h *Handler) Listen(ctx context.Context) error {
	return fifo.FIFO{Root: h.cfg.Root, Name: File, MaxLine: maxLine, MaxFile: maxFile, Take: h.take, Log: h.cfg.Log}.Listen(ctx)
}

// take takes one line of the FIFO in.
func (h *Handler) take(line []byte) {
	code, err := Parse(line)
	h.mu.Lock()
	for _, p := range h.pulses {
		if err == nil && p.Failed == code {
			p.ended++
		}
	}
	h.mu.Unlock()
	switch {
	case errors.Is(err, ErrNone):
	case err != nil:
		h.refused(err)
	case h.busy.Load():
		h.refused(fmt.Errorf("fault %v: another fault is being handled", code)) // VEC-FLT-05
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
		err = fmt.Errorf("%d bytes of codes already waiting", info.Size())
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

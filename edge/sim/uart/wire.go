package uart

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"kennel/edge/body/rawfd"
)

// Line is the device's end of a serial line. Neither call waits.
type Line interface {
	Read() ([]byte, error)                // what has arrived; good until the next call
	Write(b []byte) (whole bool, _ error) // what the line does not take is lost
}

// Wire reads and writes without ever waiting, like the registers of a UART. The closures are made once, so that a period does not
// allocate.
type Wire struct {
	conn    syscall.RawConn
	readFn  func(fd uintptr) bool
	writeFn func(fd uintptr) bool
	in, out []byte
	n       int
	err     error
}

// NewWire returns the line behind c, such as the master of a pseudo-terminal.
func NewWire(c syscall.Conn) (*Wire, error) {
	conn, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &Wire{conn: conn, in: make([]byte, 4096)}
	w.readFn = func(fd uintptr) bool { w.n, w.err = rawfd.Read(int(fd), w.in); return true }
	w.writeFn = func(fd uintptr) bool { w.n, w.err = rawfd.Write(int(fd), w.out); return true }
	var blocking error
	err = conn.Control(func(fd uintptr) { blocking = unix.SetNonblock(int(fd), true) })
	return w, errors.Join(err, blocking)
}

// Read returns what has arrived; a line without a peer is silent.
func (w *Wire) Read() ([]byte, error) {
	if err := w.conn.Read(w.readFn); err != nil {
		return nil, err
	}
	switch w.err {
	case nil:
		return w.in[:w.n], nil
	case unix.EAGAIN, unix.EINTR, unix.EIO:
		return nil, nil
	}
	return nil, w.err
}

// Write reports whether the line took all of b; what it does not take is lost, as in a UART without a listener.
func (w *Wire) Write(b []byte) (whole bool, err error) {
	if len(b) == 0 {
		return true, nil
	}
	w.out = b
	if err := w.conn.Write(w.writeFn); err != nil {
		return false, err
	}
	switch w.err {
	case nil:
		return w.n == len(b), nil
	case unix.EAGAIN, unix.EINTR, unix.EIO:
		return false, nil
	}
	return false, w.err
}

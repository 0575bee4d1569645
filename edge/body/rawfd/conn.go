package rawfd

import (
	"io"
	"net"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Socket is a connection over a socket of this machine: a *net.TCPConn or *net.UnixConn.
type Socket interface {
	net.Conn
	syscall.Conn
}

// Conn is a Socket whose Read and Write are raw system calls; deadlines and Close are the Socket's. It is for connections that are used tens of times a second
// while the program has nothing else to do. As safe for concurrent use as the Socket is.
type Conn struct {
	Socket
	raw syscall.RawConn
}

// NewConn returns the connection over s; the error says that s is closed.
func NewConn(s Socket) (*Conn, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Conn{s, raw}, nil
}

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.Socket }

// Read is net.Conn's. Of a socket of packets an empty one is io.EOF, as the end is.
func (c *Conn) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	rerr := c.raw.Read(func(fd uintptr) bool {
		n, err = again(Read, fd, b)
		return err != unix.EAGAIN
	})
	switch {
	case rerr != nil:
		return 0, rerr // a deadline, or closed
	case err != nil:
		return 0, c.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write is net.Conn's.
func (c *Conn) Write(b []byte) (n int, err error) {
	werr := c.raw.Write(func(fd uintptr) bool {
		for err = nil; n < len(b) && err == nil; {
			var m int
			m, err = again(Write, fd, b[n:])
			n += m
		}
		return err != unix.EAGAIN
	})
	switch {
	case werr != nil:
		return n, werr
	case err != nil:
		return n, c.failed("write", err)
	}
	return n, nil
}

// WriteFile writes to a unix socket as Write does, and passes f with the first byte. f stays open.
func (c *Conn) WriteFile(b []byte, f *os.File) (n int, err error) {
	rights := unix.UnixRights(int(f.Fd()))
	werr := c.raw.Write(func(fd uintptr) bool {
		n, err = again(func(fd int, b []byte) (int, error) { return unix.SendmsgN(fd, b, rights, nil, 0) }, fd, b)
		return err != unix.EAGAIN
	})
	runtime.KeepAlive(f)
	switch {
	case werr != nil:
		return 0, werr
	case err != nil:
		return 0, c.failed("write", err)
	}
	m, err := c.Write(b[n:])
	return n + m, err
}

// ReadFile reads from a unix socket as Read does, and returns the file that came with the bytes, or nil. Bytes that were sent before the file may
// come in the same read; none that were sent after its own do.
func (c *Conn) ReadFile(b []byte) (n int, f *os.File, err error) {
	if len(b) == 0 {
		return 0, nil, nil
	}
	rights := make([]byte, unix.CmsgSpace(4)) // of one file; the system closes further ones
	var m int
	rerr := c.raw.Read(func(fd uintptr) bool {
		n, err = again(func(fd int, b []byte) (n int, err error) {
			n, m, _, _, err = unix.Recvmsg(fd, b, rights, unix.MSG_CMSG_CLOEXEC)
			return n, err
		}, fd, b)
		return err != unix.EAGAIN
	})
	switch {
	case rerr != nil:
		return 0, nil, rerr // a deadline, or closed
	case err != nil:
		return 0, nil, c.failed("read", err)
	case n == 0:
		return 0, nil, io.EOF
	}
	all, _ := unix.ParseSocketControlMessage(rights[:m]) // as the system wrote it
	for i := range all {
		fds, _ := unix.ParseUnixRights(&all[i])
		for _, fd := range fds {
			_ = f.Close() // only the last counts
			f = os.NewFile(uintptr(fd), "received")
		}
	}
	return n, f, nil
}

// Offer writes b if there is room for it, and otherwise drops it; the error says that the other end is gone. It is for sockets of packets, which take all or nothing.
func (c *Conn) Offer(b []byte) (err error) {
	cerr := c.raw.Control(func(fd uintptr) { _, err = again(Write, fd, b) })
	switch {
	case cerr != nil:
		return cerr
	case err != nil && err != unix.EAGAIN && err != unix.ENOBUFS:
		return c.failed("write", err)
	}
	return nil
}

func (c *Conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// again repeats a call that a signal interrupts.
func again(call func(int, []byte) (int, error), fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = call(int(fd), b); err != unix.EINTR {
			return n, err
		}
	}
}

// Listen returns l with connections that are Conns. Those of l are Sockets.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept is net.Listener's.
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c, err := NewConn(conn.(Socket))
	if err != nil {
		_ = conn.Close() // it is closed
		return conn, nil // its first use says so
	}
	return c, nil
}

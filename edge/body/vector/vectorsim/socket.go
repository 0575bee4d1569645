package vectorsim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kennel/edge/body/rawio"
	"kennel/infra/sockpath"

	"golang.org/x/sys/unix"
)

// socketBuffer is what a Socket keeps of what the head did not read, in the kernel's own count, which is about 15 data frames: as many as a
// pseudo-terminal keeps. What comes later is lost, so that a head that stood still does not live in the past.
const socketBuffer = 32 << 10

// headSends is the most that a Socket takes from the head in one period: more than a head sends in a second of a board that stood still.
const headSends = 64 << 10

// waiting is how many heads may wait; those that gave up while the board had no power are among them.
const waiting = 128

// Socket is a Unix socket that acts like a UART, as PTY does, without the kernel's worker threads between its ends: heads come and go, one at
// a time, and the board goes on. A head that comes while another is there is hung up on. One goroutine at a time.
type Socket struct {
	root *os.Root // its own, of the folder of the name
	name string
	ln   int
	head int // -1: nobody holds the other end
	in   []byte
	turn int // of read
}

// ListenSocket returns a new socket that a head finds at path, below root. It takes the place of a socket that an earlier run left there; any
// other file there is an error. Only this user and root may open it. Close gives it back; a head that still has it open then gets an error.
func ListenSocket(root *os.Root, path string) (*Socket, error) {
	s := &Socket{name: filepath.Base(path), ln: -1, head: -1, in: make([]byte, headSends)}
	if err := s.listen(root, filepath.Dir(path)); err != nil {
		_ = s.Close() // err says more
		return nil, fmt.Errorf("vectorsim: socket %s: %w", path, err)
	}
	return s, nil
}

func (s *Socket) listen(root *os.Root, dir string) (err error) {
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if s.root, err = root.OpenRoot(dir); err != nil {
		return err
	}
	if old, err := s.root.Lstat(s.name); err == nil && old.Mode()&os.ModeSocket == 0 {
		return errors.New("is there and is no socket; want a name that is free")
	}
	fresh := s.name + ".new"
	if err := s.root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Not through package net: that would hand it to the runtime's poller, which then wakes for every byte of the head.
	if s.ln, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	// Bound under another name, and by way of the folder: a head finds a socket that works or none, however long the path to it (an address has
	// room for 107 bytes).
	folder, err := s.root.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close() // read only
	if err := unix.Bind(s.ln, &unix.SockaddrUnix{Name: sockpath.In(folder, fresh)}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := unix.Listen(s.ln, waiting); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := s.root.Chmod(fresh, 0o600); err != nil {
		return err
	}
	return s.root.Rename(fresh, s.name)
}

// Close hangs up and removes the socket.
func (s *Socket) Close() error {
	s.hangUp()
	var err error
	if s.ln >= 0 {
		err = unix.Close(s.ln)
		s.ln = -1
	}
	if s.root == nil {
		return err
	}
	if rerr := s.root.Remove(s.name); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return errors.Join(err, s.root.Close())
}

// RunOn is Run with a socket as the line. What a head said to a board without power is lost.
func (b *Board) RunOn(ctx context.Context, s *Socket) error {
	for {
		in, err := s.read()
		if err != nil {
			return fmt.Errorf("vectorsim: read: %w", err)
		}
		if len(in) < len(s.in) {
			return b.run(ctx, s)
		}
	}
}

func (s *Socket) hangUp() {
	if s.head >= 0 {
		_ = unix.Close(s.head) // nothing waits in it that counts
		s.head = -1
	}
}

// read returns what has arrived, nothing if nobody is there, and picks up.
func (s *Socket) read() ([]byte, error) {
	n := 0
	if s.head >= 0 {
		got, err := rawio.Read(s.head, s.in)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
		case err != nil || got == 0:
			s.hangUp()
		default:
			n = got // more than fits waits
		}
	}
	if s.turn++; s.head >= 0 && s.turn%turnAway != 0 {
		return s.in[:n], nil
	}
	return s.in[:n], s.pickUp()
}

// turnAway is how many periods pass between two looks for a head that comes while another is there: 0.1 s.
const turnAway = 20

// pickUp takes the next head that waits, if none is there, or else turns it away.
func (s *Socket) pickUp() error {
	if s.head >= 0 && gone(s.head) {
		return nil // its end is read first
	}
	for {
		fd, _, err := unix.Accept4(s.ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case err == unix.EAGAIN:
			return nil
		case err == unix.EINTR, err == unix.ECONNABORTED:
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		case s.head >= 0 || gone(fd):
			_ = unix.Close(fd) // nothing was said
			continue
		}
		s.head = fd
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer/2); err != nil { // the kernel doubles it
			return fmt.Errorf("size of the buffer: %w", err)
		}
	}
}

// gone reports whether the other end of fd is closed.
func gone(fd int) bool {
	p := [1]unix.PollFd{{Fd: int32(fd)}}
	_, err := unix.Poll(p[:], 0)
	return err == nil && p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// write reports whether the line took all of b; what it does not take is lost.
func (s *Socket) write(b []byte) (whole bool, err error) {
	if len(b) == 0 {
		return true, nil
	}
	if s.head < 0 {
		return false, nil
	}
	n, err := rawio.Write(s.head, b)
	return err == nil && n == len(b), nil // a head that is gone is seen when it is read
}

package uart

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"kennel/edge/body/rawfd"
	"kennel/infra/sockpath"

	"golang.org/x/sys/unix"
)

// socketBuffer limits what a Socket keeps for a peer that does not read, in the kernel's own count: about 15 data frames of Vector's, as many as
// a pseudo-terminal keeps. Later bytes are lost, so that a peer that paused does not live in the past.
const socketBuffer = 32 << 10

// peerSends is the most that a Socket takes in one call: more than a peer sends while the device pauses for a second.
const peerSends = 64 << 10

// waiting limits how many peers wait in line, including those that gave up while the device was off.
const waiting = 128

// Socket is a Unix or TCP socket that acts like a UART, without the kernel's worker threads of a pseudo-terminal between its ends. Peers come
// and go, one at a time; it hangs up on a peer that comes while another is connected. It serves one goroutine.
type Socket struct {
	root *os.Root // its own, of the folder of the name; nil: a TCP socket
	name string
	ln   int
	peer int // -1: none is connected
	next int // came when the end of peer was not read yet; -1: none
	in   []byte
	turn int  // of read
	gone bool // peer ended since HungUp was asked
}

// ListenSocket returns a new socket that a peer finds at path, below root. It takes the place of a socket that an earlier run left there; any
// other file there is an error. Only this user and root may open it. Close gives it back; a peer that still has it open then gets an error.
func ListenSocket(root *os.Root, path string) (*Socket, error) {
	s := &Socket{name: filepath.Base(path), ln: -1, peer: -1, next: -1, in: make([]byte, peerSends)}
	if err := s.listen(root, filepath.Dir(path)); err != nil {
		_ = s.Close() // err says more
		return nil, fmt.Errorf("uart: socket %s: %w", path, err)
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
		return errors.New("exists and is not a socket; want an unused name")
	}
	fresh := s.name + ".new"
	if err := s.root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Not through package net: that would hand it to the runtime's poller, which then wakes for every byte of the peer.
	if s.ln, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	// Bound under another name, and by way of the folder: a peer finds a socket that works or none, however long the path to it (an address has
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

// ListenTCP returns a new socket that a peer finds at the TCP address addr, and the address that it has; port 0 takes a free one.
func ListenTCP(addr string) (*Socket, net.Addr, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("uart: %w", err)
	}
	defer ln.Close() // s has its own descriptor
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err != nil {
		return nil, nil, fmt.Errorf("uart: %s: %w", addr, err)
	}
	s := &Socket{peer: -1, next: -1, in: make([]byte, peerSends)}
	var dup error
	if err := raw.Control(func(fd uintptr) { s.ln, dup = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || dup != nil {
		return nil, nil, fmt.Errorf("uart: %s: %w", addr, errors.Join(err, dup))
	}
	return s, ln.Addr(), nil
}

// Close hangs up and removes the socket.
func (s *Socket) Close() error {
	s.hangUp()
	s.hangUp() // on the one who waited
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

// Discard drops what has arrived.
func (s *Socket) Discard() error {
	for {
		if in, err := s.Read(); err != nil || len(in) < len(s.in) {
			return err
		}
	}
}

// HungUp reports whether a TCP connection to the line has ended since the last call. A Unix socket plays a cable, whose end nothing shows.
func (s *Socket) HungUp() bool {
	gone := s.gone && s.root == nil
	s.gone = false
	return gone
}

// Connected reports whether a peer is connected, as far as Read has seen.
func (s *Socket) Connected() bool { return s.peer >= 0 }

func (s *Socket) hangUp() {
	if s.peer >= 0 {
		_ = unix.Close(s.peer) // nothing waits in it that counts
		s.gone = true
	}
	s.peer, s.next = s.next, -1
}

// Read returns what has arrived, nothing without a peer, and picks up.
func (s *Socket) Read() ([]byte, error) {
	n := 0
	if s.peer >= 0 {
		got, err := rawfd.Read(s.peer, s.in)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
		case err != nil || got == 0:
			s.hangUp()
		default:
			n = got // more than fits waits
		}
	}
	if s.turn++; s.peer >= 0 && s.turn%turnAway != 0 {
		return s.in[:n], nil
	}
	return s.in[:n], s.pickUp()
}

// turnAway is how many periods pass between two looks for a peer that comes while another is there: 0.1 s.
const turnAway = 20

// pickUp connects the next waiting peer if none is connected, or else hangs up on it.
func (s *Socket) pickUp() error {
	for s.next < 0 {
		fd, err := rawfd.Accept(s.ln)
		switch {
		case err == unix.EAGAIN:
			return nil
		case err == unix.EINTR, err == unix.ECONNABORTED:
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		case gone(fd, unix.POLLHUP), s.peer >= 0 && !gone(s.peer, unix.POLLRDHUP):
			_ = unix.Close(fd) // nothing was said
			continue
		case s.peer >= 0:
			s.next = fd // the end of the other is read first
		default:
			s.peer = fd
		}
		if s.root == nil { // each packet leaves at once
			if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
				return fmt.Errorf("no delay: %w", err)
			}
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer/2); err != nil { // the kernel doubles it
			return fmt.Errorf("size of the buffer: %w", err)
		}
	}
	return nil
}

// gone reports whether the other end of fd is closed: both its ways (unix.POLLHUP), or the one that is read here (unix.POLLRDHUP). A TCP peer
// that closed shows the first only after this end has closed too.
func gone(fd int, how int16) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	_, err := unix.Poll(p[:], 0)
	return err == nil && p[0].Revents&(how|unix.POLLERR) != 0
}

// Write reports whether the line took all of b; what it does not take is lost.
func (s *Socket) Write(b []byte) (whole bool, err error) {
	if len(b) == 0 {
		return true, nil
	}
	if s.peer < 0 {
		return false, nil
	}
	n, err := rawfd.Write(s.peer, b)
	return err == nil && n == len(b), nil // a peer that is gone is seen when it is read
}

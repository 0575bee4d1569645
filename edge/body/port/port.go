// Package port is the line to a body: a tty, a Unix socket or a TCP connection.
package port

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/rawfd"
)

// Port is the line to a body, and the clock of all its times. Open returns one; a simulated body and its time are another. One goroutine
// at a time; only Wait and Drain block.
type Port interface {
	Now() time.Duration
	// Read reads the available bytes; it returns 0 if there are none.
	Read(b []byte) (int, error)
	// Write returns how many bytes the port took, 0 if it is full.
	Write(b []byte) (int, error)
	// Wait returns true when there is something to read, false when the deadline has passed.
	Wait(deadline time.Duration) (bool, error)
	// DropOutput discards bytes that wait to be sent.
	DropOutput() error
	// Drain waits until everything is sent.
	Drain() error
	Close() error
}

// Line is a serial line in raw mode or a stream socket. It reads and writes in the calling thread without going through the runtime's
// poller, because a hand-over to another goroutine costs more than the read (spec/peer-facts section 12). It allocates nothing after Open.
type Line struct {
	fd    int
	hold  bool // Wait in a raw system call
	baud  int  // 0: a socket
	heard bool // a byte has come
	poll  [1]unix.PollFd
	ts    unix.Timespec
}

// connectTimeout is how long Open waits for a TCP connection (own default).
const connectTimeout = 5 * time.Second

// Open opens the line that address names: serial:/dev/ttyS0?baud=9600, tcp:host:8101, or the bare path of a tty or Unix socket
// (AMIGO-LINK-05). baud is the speed of a tty whose address has none. hold makes Wait keep the processor in a raw system call. The error
// says which step failed (AMIGO-LINK-07).
func Open(ctx context.Context, address string, baud int, hold bool) (*Line, error) {
	if host, ok := strings.CutPrefix(address, "tcp:"); ok {
		return openTCP(ctx, host, hold)
	}
	if tty, ok := strings.CutPrefix(address, "serial:"); ok {
		path, query, _ := strings.Cut(tty, "?")
		if query != "" {
			v, err := url.ParseQuery(query)
			if err == nil && (len(v) != 1 || !v.Has("baud")) {
				err = errors.New("want only baud")
			}
			if err == nil {
				baud, err = strconv.Atoi(v.Get("baud"))
			}
			if err == nil && baud <= 0 {
				err = errors.New("baud rate is not positive")
			}
			if err != nil {
				return nil, fmt.Errorf("settings of %s: %w", address, err)
			}
		}
		return openTTY(path, baud, hold)
	}
	var st unix.Stat_t
	if err := unix.Stat(address, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return openSocket(address, hold)
	}
	return openTTY(address, baud, hold)
}

// openTCP connects, then takes the descriptor away from the runtime's poller.
func openTCP(ctx context.Context, host string, hold bool) (*Line, error) {
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, fmt.Errorf("connect to %s: %w; is the robot on, and no other program connected to it?", host, err) // AMRISim listens to one at a time
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", host, err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("descriptor of %s: %w", host, err)
	}
	var fd int
	var dup error
	if err := raw.Control(func(own uintptr) { fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || dup != nil {
		return nil, fmt.Errorf("descriptor of %s: %w", host, errors.Join(err, dup))
	}
	return newLine(fd, 0, hold), nil
}

func newLine(fd, baud int, hold bool) *Line {
	return &Line{fd: fd, hold: hold, baud: baud, poll: [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}}
}

// openSocket connects to a Unix socket. The bytes of a pseudo-terminal go through worker threads of the kernel, which have no real-time
// priority; those of a socket do not. It connects by way of the socket's folder, because a path may be longer than the 107 bytes of an
// address.
func openSocket(path string, hold bool) (*Line, error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the folder of %s: %w", path, err)
	}
	defer unix.Close(dir)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	at := "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: at}); err != nil {
		_ = unix.Close(fd) // the reason why is the error that counts
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return newLine(fd, 0, hold), nil
}

// baudTolerance is how far the speed a tty really took may be off: a UART still samples its last bit right.
const baudTolerance = 0.03

// openTTY opens a tty for one owner (part of VEC-ARCH-08) and sets it to baud, 8N1, raw (VEC-BODY-01). Unread bytes in it are dropped.
func openTTY(path string, baud int, hold bool) (*Line, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := setUp(fd, baud); err != nil {
		_ = unix.Close(fd) // the reason why is the error that counts
		return nil, fmt.Errorf("set up %s: %w", path, err)
	}
	return newLine(fd, baud, hold), nil
}

func setUp(fd, baud int) error {
	// A lock, because TIOCEXCL does not stop root.
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return errors.New("another program controls this body")
		}
		return fmt.Errorf("lock: %w", err)
	}
	pseudo, err := isPseudo(fd)
	if err != nil {
		return err
	}
	if err := setRaw(fd, baud, pseudo); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIOFLUSH); err != nil {
		return fmt.Errorf("discard old bytes: %w", err)
	}
	return nil
}

// setRaw sets 8N1 at baud without any processing. A pseudo-terminal has no speed, so its settings are made with the older ioctls,
// which emulators know too.
func setRaw(fd, baud int, pseudo bool) error {
	get, set, speed := uint(unix.TCGETS2), uint(unix.TCSETS2), uint32(unix.BOTHER)
	if pseudo {
		get, set, speed = unix.TCGETS, unix.TCSETS, unix.B38400
	}
	t, err := unix.IoctlGetTermios(fd, get)
	if err != nil {
		return fmt.Errorf("not a tty: %w", err)
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | speed
	t.Ispeed, t.Ospeed = uint32(baud), uint32(baud)
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, set, t); err != nil {
		return fmt.Errorf("raw mode at %d bit/s: %w", baud, err)
	}
	if pseudo {
		return nil
	}
	// A driver that cannot make the speed takes the nearest one without a word.
	if t, err = unix.IoctlGetTermios(fd, get); err != nil {
		return fmt.Errorf("read settings back: %w", err)
	}
	if off := float64(t.Ospeed)/float64(baud) - 1; off > baudTolerance || off < -baudTolerance {
		return fmt.Errorf("tty runs at %d bit/s, want %d", t.Ospeed, baud)
	}
	return nil
}

// isPseudo reports whether fd is the slave of a pseudo-terminal, by its device number (Linux, admin-guide/devices.txt).
func isPseudo(fd int) (bool, error) {
	const first, last = 136, 143
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	major := unix.Major(uint64(st.Rdev))
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && major >= first && major <= last, nil
}

// Baud returns the speed of a tty in bit/s; 0 if the line is a socket.
func (p *Line) Baud() int { return p.baud }

// SetBaud changes the speed of a tty when everything is sent. A socket has none.
func (p *Line) SetBaud(baud int) error {
	if p.baud == 0 || p.baud == baud {
		return nil
	}
	if err := p.Drain(); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	pseudo, err := isPseudo(p.fd)
	if err != nil {
		return err
	}
	if err := setRaw(p.fd, baud, pseudo); err != nil {
		return err
	}
	p.baud = baud
	return nil
}

// Serial reports whether the line is a real serial line, so neither a socket nor a pseudo-terminal.
func (p *Line) Serial() bool {
	if p.baud == 0 {
		return false
	}
	pseudo, err := isPseudo(p.fd)
	return !pseudo || err != nil
}

// Now is CLOCK_MONOTONIC.
func (p *Line) Now() time.Duration { return monoclock.Now() }

// ErrTaken says that the other end of a socket hung up before it said anything, as a robot does that serves another program (AMIGO-SYNC-17).
var ErrTaken = errors.New("hung up at once; a robot serves one program at a time: is another one connected?")

// hangUp is the error of an end that is gone.
func (p *Line) hangUp() error {
	if p.baud == 0 && !p.heard {
		return ErrTaken
	}
	return errors.New("hung up")
}

// Read reads the available bytes; it returns 0 if there are none.
func (p *Line) Read(b []byte) (int, error) {
	for {
		n, err := rawfd.Read(p.fd, b)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, nil
		case n == 0 && err == nil, err == unix.ECONNRESET:
			return 0, p.hangUp()
		case err != nil:
			return 0, err
		default:
			p.heard = true
			return n, nil
		}
	}
}

// Write returns how many bytes the port took, 0 if it is full.
func (p *Line) Write(b []byte) (int, error) {
	for {
		n, err := rawfd.Write(p.fd, b)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		case unix.EPIPE, unix.ECONNRESET:
			return 0, p.hangUp()
		default:
			return 0, err
		}
	}
}

// Wait sleeps until there is something to read, or until the deadline passed: then it returns false.
func (p *Line) Wait(deadline time.Duration) (bool, error) {
	for {
		left := deadline - monoclock.Now()
		if left <= 0 {
			return false, nil
		}
		p.ts = unix.NsecToTimespec(int64(left))
		p.poll[0].Revents = 0
		n, err := p.ppoll()
		switch {
		case err == unix.EINTR: // the runtime's own signals
		case err != nil:
			return false, err
		case n == 0:
			return false, nil
		case p.poll[0].Revents&unix.POLLIN == 0:
			return false, p.hangUp()
		default:
			return true, nil
		}
	}
}

func (p *Line) ppoll() (int, error) {
	if !p.hold {
		return unix.Ppoll(p.poll[:], &p.ts, nil)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p.poll)), 1, uintptr(unsafe.Pointer(&p.ts)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// DropOutput discards bytes that wait to be sent. With a socket none wait on this side.
func (p *Line) DropOutput() error {
	if p.baud == 0 {
		return nil
	}
	return unix.IoctlSetInt(p.fd, unix.TCFLSH, unix.TCOFLUSH)
}

// Drain waits until everything is sent.
func (p *Line) Drain() error {
	if p.baud == 0 {
		return nil
	}
	return unix.IoctlSetInt(p.fd, unix.TCSBRK, 1)
}

// Close gives the line back.
func (p *Line) Close() error { return unix.Close(p.fd) }

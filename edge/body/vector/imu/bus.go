package imu

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"kennel/edge/body/rawfd"
	"kennel/infra/sockpath"

	"golang.org/x/sys/unix"
)

// DefaultDevice is the chip's channel, below the robot's root (part of VEC-FSY-04).
const DefaultDevice = "dev/spidev0.0"

// MaxTransfer is the longest transfer in bytes.
const MaxTransfer = 32

// Bus does transfers with one chip. One goroutine at a time.
type Bus interface {
	// Transfer sends tx and fills rx with the bytes received at the same time; both have the same length, 1 to MaxTransfer bytes.
	Transfer(tx, rx []byte) error
	Close() error
}

func checkTransfer(tx, rx []byte) error {
	if len(tx) != len(rx) || len(tx) == 0 || len(tx) > MaxTransfer {
		return fmt.Errorf("imu: transfer of %d bytes out and %d in, want the same number, 1 to %d", len(tx), len(rx), MaxTransfer)
	}
	return nil
}

// open opens the bus at path: a character device of spidev, or a Unix socket with a simulated chip.
func open(path string, hertz uint32) (Bus, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case st.Mode()&os.ModeSocket != 0:
		return dial(path)
	}
	return openSPI(path, hertz)
}

const spiMessage = 0x40206b00 // the ioctl of Linux' spidev for a message of one transfer (include/uapi/linux/spi/spidev.h)

// spiTransfer is struct spi_ioc_transfer.
type spiTransfer struct {
	tx, rx           uint64 // addresses
	size, hertz      uint32
	delay            uint16
	bits, change     uint8
	txLines, rxLines uint8
	wordDelay, _     uint8
}

// spidev is a channel of the kernel's. The kernel writes to addresses that the collector does not see: they are of this struct, which is on the heap
// and does not move.
type spidev struct {
	fd      int
	path    string
	message spiTransfer
	tx, rx  [MaxTransfer]byte
}

func openSPI(path string, hertz uint32) (*spidev, error) {
	fd, err := rawfd.OpenSPI(path, hertz)
	if err != nil {
		return nil, err
	}
	return &spidev{fd: fd, path: path, message: spiTransfer{hertz: hertz, bits: 8}}, nil
}

// Transfer implements Bus.
func (s *spidev) Transfer(tx, rx []byte) error {
	if err := checkTransfer(tx, rx); err != nil {
		return err
	}
	copy(s.tx[:], tx)
	s.message.tx, s.message.rx = uint64(uintptr(unsafe.Pointer(&s.tx))), uint64(uintptr(unsafe.Pointer(&s.rx)))
	s.message.size = uint32(len(tx))
	_, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd), spiMessage, uintptr(unsafe.Pointer(&s.message)))
	runtime.KeepAlive(s)
	if no != 0 {
		return fmt.Errorf("%s: transfer: %w", s.path, no)
	}
	copy(rx, s.rx[:])
	return nil
}

// Close implements Bus.
func (s *spidev) Close() error { return unix.Close(s.fd) }

// answerWithin is how long a simulated chip may take, whose machine may have much to do, at least; own default. A real bus has its own clock.
const answerWithin = time.Second

// socket is a chip at the other end of a Unix socket that keeps datagrams apart and in order (SOCK_SEQPACKET).
type socket struct {
	conn   *net.UnixConn
	path   string
	raw    syscall.RawConn
	turn   func(fd uintptr) (done bool) // one transfer; made once, so that it does not allocate
	tx, rx []byte
	sent   bool
	n      int
	err    error
	renew  time.Time // Transfer sets the next deadline from then on; setting one for each transfer costs more than the transfer
}

// dial reaches a socket by a path of any length.
func dial(path string) (*socket, error) {
	var conn *net.UnixConn
	err := sockpath.To(path, func(short string) (err error) {
		conn, err = net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: short, Net: "unixpacket"})
		return bare(err)
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	s := &socket{conn: conn, path: path}
	s.raw, err = conn.SyscallConn()
	s.turn = func(fd uintptr) bool {
		if !s.sent {
			s.sent = true
			if _, s.err = rawfd.Write(int(fd), s.tx); s.err != nil {
				return true
			}
		}
		s.n, s.err = rawfd.Read(int(fd), s.rx)
		return s.err != unix.EAGAIN
	}
	return s, err
}

// bare is err without the address that it was reached by.
func bare(err error) error {
	if op, ok := err.(*net.OpError); ok {
		return op.Err
	}
	return err
}

// Transfer implements Bus. After an error the socket must be closed: an answer may be on its way.
func (s *socket) Transfer(tx, rx []byte) error {
	if err := checkTransfer(tx, rx); err != nil {
		return err
	}
	if now := time.Now(); now.After(s.renew) {
		s.renew = now.Add(answerWithin)
		if err := s.conn.SetReadDeadline(now.Add(2 * answerWithin)); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
	}
	s.tx, s.rx, s.sent, s.err = tx, rx, false, nil
	err := s.raw.Read(s.turn)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: %w in %v", s.path, ErrNoAnswer, answerWithin)
	case err != nil:
		return fmt.Errorf("%s: %w", s.path, bare(err))
	case s.err != nil:
		return fmt.Errorf("%s: transfer: %w", s.path, s.err)
	case s.n != len(rx):
		return fmt.Errorf("%s: %w: got %d bytes, want %d", s.path, ErrNoAnswer, s.n, len(rx))
	}
	return nil
}

// Close implements Bus.
func (s *socket) Close() error { return s.conn.Close() }

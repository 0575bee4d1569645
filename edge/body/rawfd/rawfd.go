// Package rawfd reads and writes non-blocking file descriptors with raw system calls, without notice to Go's scheduler. A call known to the
// scheduler wakes the runtime's monitor thread, which then polls every 20 us for a while: for a program that wakes 200 times a second this
// costs more than the program itself.
package rawfd

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read is read(2); b has at least one byte. The error is a bare unix.Errno, EAGAIN if there is nothing to read.
func Read(fd int, b []byte) (int, error) { return call(unix.SYS_READ, fd, b) }

// Write is write(2); b has at least one byte. The error is a bare unix.Errno, EAGAIN if there is no room.
func Write(fd int, b []byte) (int, error) { return call(unix.SYS_WRITE, fd, b) }

// Accept is accept4(2) of a listening socket, for a connection that does not block and is not inherited. EAGAIN: no connection waits.
func Accept(fd int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func call(number uintptr, fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Timer waits for absolute times of package monoclock's clock, to the accuracy of the kernel's timers; those of the runtime wake up to 1 ms late. One
// goroutine at a time.
type Timer struct {
	file  *os.File
	conn  syscall.RawConn
	wait  func(fd uintptr) bool // made once, so that a wait does not allocate
	at    unix.ItimerSpec
	armed bool
	err   error
}

// NewTimer returns a timer. Close gives it back.
func NewTimer() (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	t := &Timer{file: os.NewFile(uintptr(fd), "timer")}
	t.wait = func(fd uintptr) bool {
		if t.armed {
			return true
		}
		t.armed = true
		_, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&t.at)), 0, 0, 0)
		if errno != 0 {
			t.err = os.NewSyscallError("timerfd_settime", errno)
		}
		return errno != 0
	}
	t.conn, err = t.file.SyscallConn()
	return t, err
}

// SleepUntil returns when the time is at, which is above 0, or later. After Close it returns an error.
func (t *Timer) SleepUntil(at time.Duration) error {
	t.at.Value, t.armed, t.err = unix.NsecToTimespec(int64(at)), false, nil
	if err := t.conn.Read(t.wait); err != nil {
		return err
	}
	return t.err
}

// Close wakes a goroutine that waits and gives the timer back.
func (t *Timer) Close() error { return t.file.Close() }

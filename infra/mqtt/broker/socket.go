package broker

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// greeted waits until the client has sent something, and leaves it unread: a silent one delays no other client.
func greeted(raw net.Conn) error {
	if err := raw.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	var n int
	var failed error
	err := control(raw, func(c syscall.RawConn) error {
		var one [1]byte
		return c.Read(func(fd uintptr) bool {
			n, _, failed = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK)
			return !errors.Is(failed, unix.EAGAIN)
		})
	})
	switch err = cmp.Or(err, failed); { // what ends the waiting leaves EAGAIN in failed
	case err != nil:
		return fmt.Errorf("first byte: %w", err)
	case n == 0:
		return io.EOF
	}
	return raw.SetReadDeadline(time.Time{})
}

// gone reports whether the client has hung up. Reading would not show it, because earlier bytes may still be unread.
func gone(raw net.Conn) bool {
	state := uint8(unix.BPF_TCP_ESTABLISHED)
	err := control(raw, func(c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			var info *unix.TCPInfo
			if info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); failed == nil {
				state = info.State
			}
		})
		return errors.Join(err, failed)
	})
	return err != nil || state != unix.BPF_TCP_ESTABLISHED
}

// control gives use the socket below a connection.
func control(raw net.Conn, use func(syscall.RawConn) error) error {
	c, ok := raw.(syscall.Conn)
	if !ok {
		return fmt.Errorf("%T has no socket", raw)
	}
	s, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return use(s)
}

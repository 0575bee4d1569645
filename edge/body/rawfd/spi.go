package rawfd

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ioctls of Linux' spidev (include/uapi/linux/spi/spidev.h).
const (
	spiWriteMode  = 0x40016b01
	spiWriteBits  = 0x40016b03
	spiWriteHertz = 0x40046b04
)

// OpenSPI opens a channel of the kernel's spidev for one owner (part of VEC-ARCH-08): mode 0, 8 bits, at a clock in hertz.
func OpenSPI(path string, hertz uint32) (fd int, err error) {
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	mode, bits := uint8(0), uint8(8)
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		err = errors.New("another program uses it")
	}
	for _, set := range []struct {
		what    string
		request uintptr
		value   unsafe.Pointer
	}{
		{"mode", spiWriteMode, unsafe.Pointer(&mode)}, {"bits of a word", spiWriteBits, unsafe.Pointer(&bits)},
		{"clock", spiWriteHertz, unsafe.Pointer(&hertz)},
	} {
		if err != nil {
			break
		}
		if _, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), set.request, uintptr(set.value)); no != 0 {
			err = fmt.Errorf("set the %s: %w", set.what, no)
		}
	}
	if err != nil {
		_ = unix.Close(fd) // the reason why is the error that counts
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

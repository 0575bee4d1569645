package hoststats

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ssid asks the driver for the name of the network, at most 32 bytes (SIOCGIWESSID of the kernel's wireless extensions); "" without one.
func ssid(iface string) string {
	const get, most = 0x8B1B, 32
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd) // nothing is buffered
	var name [most + 1]byte
	req := struct { // struct iwreq with its iw_point
		iface  [unix.IFNAMSIZ]byte
		name   unsafe.Pointer
		length uint16
		flags  uint16
		_      [16]byte // the union is larger
	}{name: unsafe.Pointer(&name), length: most}
	copy(req.iface[:unix.IFNAMSIZ-1], iface)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), get, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return ""
	}
	return string(name[:min(req.length, most)])
}

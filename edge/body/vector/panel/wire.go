package panel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"kennel/edge/body/rawfd"
	"kennel/infra/sockpath"

	"golang.org/x/sys/unix"
)

// connect connects to the display of the robot in a folder.
func connect(root *os.Root) (wire, error) {
	st, err := root.Stat(Device)
	switch {
	case err != nil:
		return nil, err
	case st.Mode()&os.ModeSocket != 0:
		return dial(filepath.Join(root.Name(), Device))
	}
	return openSPI(root)
}

// Numbers of the pins, to which the base of their controller is added.
const (
	pinData    = 110
	pinReset   = 96
	pinReset55 = 55  // of the panels of another maker
	pinCommon  = 911 // the base, where no file says it
)

// Folders of the pins' controller, below the root; its file base has the base.
var controllers = []string{"sys/devices/soc/1000000.pinctrl/gpio/gpiochip0", "sys/devices/platform/soc/1000000.pinctrl/gpio/gpiochip0"}

// bus is a controller on a channel of the kernel's, with pins for what the bus has no wire for.
type bus struct {
	root   *os.Root
	fd     int
	data   *os.File // the pin that tells data from commands
	is     bool     // what it says now
	resets []string // folders of pins
}

func openSPI(root *os.Root) (_ *bus, err error) {
	b := &bus{root: root}
	defer func() {
		if err != nil && b.data != nil {
			_ = b.data.Close() // the reason why is the error that counts
		}
	}()
	base := pinBase(root)
	folder, err := pin(root, base+pinData, "high")
	if err != nil {
		return nil, err
	}
	b.is = true
	for _, n := range []int{pinReset, pinReset55} {
		folder, err := pin(root, base+n, "in")
		if err != nil {
			return nil, err
		}
		b.resets = append(b.resets, folder)
	}
	if b.data, err = root.OpenFile(path.Join(folder, "value"), os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	b.fd, err = rawfd.OpenSPI(filepath.Join(root.Name(), Device), hertz)
	return b, err
}

func pinBase(root *os.Root) int {
	for _, folder := range controllers {
		if text, err := root.ReadFile(path.Join(folder, "base")); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				return n
			}
		}
	}
	return pinCommon
}

// pin lets programs use a pin, and returns its folder. Direction "in" lets go of it, "high" and "low" drive it.
func pin(root *os.Root, n int, direction string) (folder string, err error) {
	folder = "sys/class/gpio/gpio" + strconv.Itoa(n)
	if _, err := root.Stat(folder); errors.Is(err, os.ErrNotExist) {
		if err := write(root, "sys/class/gpio/export", strconv.Itoa(n)); err != nil {
			return "", err
		}
	}
	return folder, write(root, path.Join(folder, "direction"), direction)
}

// write writes to a file of the kernel's.
func write(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (b *bus) send(data bool, out []byte) error {
	if data != b.is {
		level := "0"
		if data {
			level = "1"
		}
		if _, err := b.data.WriteAt([]byte(level), 0); err != nil {
			return err
		}
		b.is = data
	}
	switch n, err := rawfd.Write(b.fd, out); {
	case err != nil:
		return fmt.Errorf("%s: %w", Device, err)
	case n < len(out):
		return fmt.Errorf("%s: %w", Device, io.ErrShortWrite)
	}
	return nil
}

// reset pulls both pins: which of them is connected depends on the panel. They are pulled up when nothing drives them.
func (b *bus) reset() error {
	for _, level := range []string{"low", "in"} {
		for _, folder := range b.resets {
			if err := write(b.root, path.Join(folder, "direction"), level); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bus) Close() error { return errors.Join(unix.Close(b.fd), b.data.Close()) }

// Pins are the first byte of each datagram to a simulated display.
const (
	Data  = 1 << iota // the bytes that follow are data, not a command
	Reset             // the reset's pin is pulled
)

// socket is a controller at the other end of a Unix socket that keeps datagrams apart and in order.
type socket struct {
	conn *net.UnixConn
	out  [1 + maxTransfer]byte
}

func dial(at string) (*socket, error) {
	s := &socket{}
	err := sockpath.To(at, func(short string) (err error) {
		s.conn, err = net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: short, Net: "unixpacket"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", at, err)
	}
	return s, nil
}

func (s *socket) send(data bool, out []byte) error {
	s.out[0] = 0
	if data {
		s.out[0] = Data
	}
	_, err := s.conn.Write(s.out[:1+copy(s.out[1:], out)])
	return err
}

func (s *socket) reset() error {
	_, err := s.conn.Write([]byte{Reset})
	return err
}

func (s *socket) Close() error { return s.conn.Close() }

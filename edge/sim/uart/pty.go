package uart

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// PTY is a pseudo-terminal that acts like a UART: raw from the start, and a line that stays when a peer closes its end and another
// opens it.
type PTY struct {
	Master    *os.File // the device's end
	SlavePath string   // what the peer opens
	slave     *os.File // keeps the line alive
}

// OpenPTY returns a new pseudo-terminal. Close gives it back; a peer that still has it open then gets an error.
func OpenPTY() (*PTY, error) {
	p, err := openPTY()
	if err != nil {
		return nil, fmt.Errorf("uart: pseudo-terminal: %w", err)
	}
	return p, nil
}

func openPTY() (_ *PTY, err error) {
	// Not through os.OpenFile: that would hand the file to the runtime's poller, which then wakes for every byte of the peer.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	p := &PTY{Master: os.NewFile(uintptr(fd), "/dev/ptmx")}
	defer func() {
		if err != nil {
			_ = p.Close() // err says more
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("number: %w", err)
	}
	p.SlavePath = fmt.Sprintf("/dev/pts/%d", number)
	slave, err := unix.Open(p.SlavePath, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", p.SlavePath, err)
	}
	p.slave = os.NewFile(uintptr(slave), p.SlavePath)
	// A new terminal echoes and edits lines: the device would hear itself.
	t, err := unix.IoctlGetTermios(slave, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(slave, unix.TCSETS, t); err != nil {
		return nil, fmt.Errorf("raw mode: %w", err)
	}
	return p, nil
}

// Close hangs the line up.
func (p *PTY) Close() error {
	var slave error
	if p.slave != nil {
		slave = p.slave.Close()
	}
	return errors.Join(p.Master.Close(), slave)
}

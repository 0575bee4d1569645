//go:build !arm

// The emulator that runs the tests for arm lacks the ioctls tested here.

package port

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUARTSettings sets the speed of a pseudo-terminal as it would a UART's (VEC-BODY-01, AMIGO-LINK-01). A pseudo-terminal keeps any speed
// that is set.
func TestUARTSettings(t *testing.T) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(master)
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if pseudo, err := isPseudo(fd); err != nil || !pseudo {
		t.Errorf("isPseudo = %t, %v; want true", pseudo, err)
	}

	line, err := Open(t.Context(), fmt.Sprintf("serial:/dev/pts/%d?baud=9600", number), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	if line.Serial() {
		t.Error("a pseudo-terminal is a serial line")
	}
	if !newLine(master, 9600, false).Serial() {
		t.Error("what is neither a socket nor a pseudo-terminal is no serial line")
	}
	if err := line.SetBaud(19200); err != nil || line.Baud() != 19200 {
		t.Errorf("SetBaud: %d, %v; want 19200", line.Baud(), err)
	}
	if _, err := Open(t.Context(), fmt.Sprintf("/dev/pts/%d", number), 9600, false); err == nil {
		t.Error("a line has two owners")
	}

	for _, baud := range []int{9600, 3_000_000, 2_000_000, 2_345_678} {
		if err := setRaw(fd, baud, false); err != nil {
			t.Fatal(err)
		}
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
		if err != nil {
			t.Fatal(err)
		}
		if got.Ispeed != uint32(baud) || got.Ospeed != uint32(baud) || got.Iflag != 0 || got.Oflag != 0 || got.Lflag != 0 ||
			got.Cflag&(unix.CSIZE|unix.PARENB|unix.CSTOPB) != unix.CS8 {
			t.Errorf("at %d bit/s the tty is set to %+v, want raw 8N1 at that speed", baud, got)
		}
	}
}

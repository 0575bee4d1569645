package rawfd

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/edge/body/monoclock"
)

func TestReadAndWrite(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	var b [8]byte
	for _, c := range []struct {
		name string
		do   func() (int, error)
		n    int
		err  error
	}{
		{"nothing there", func() (int, error) { return Read(p[0], b[:]) }, 0, unix.EAGAIN},
		{"write", func() (int, error) { return Write(p[1], []byte("word")) }, 4, nil},
		{"read", func() (int, error) { return Read(p[0], b[:]) }, 4, nil},
		{"wrong end", func() (int, error) { return Write(p[0], b[:]) }, 0, unix.EBADF},
		{"other end closed", func() (int, error) { _ = unix.Close(p[1]); return Read(p[0], b[:]) }, 0, nil},
	} {
		if n, err := c.do(); n != c.n || err != c.err {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, n, err, c.n, c.err)
		}
	}
	if got := string(b[:4]); got != "word" {
		t.Errorf("read %q, want word", got)
	}
}

// A head that has gone must not end the board with a signal.
func TestWriteToAClosedPeer(t *testing.T) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	if err := unix.Close(p[1]); err != nil {
		t.Fatal(err)
	}
	if n, err := Write(p[0], []byte{1}); n != 0 || err != unix.EPIPE {
		t.Errorf("%d, %v; want 0, %v", n, err, unix.EPIPE)
	}
}

func TestTimer(t *testing.T) {
	timer, err := NewTimer()
	if err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{-time.Hour, 0, 3 * time.Millisecond, time.Microsecond} {
		at := max(monoclock.Now()+ahead, 1)
		if err := timer.SleepUntil(at); err != nil || monoclock.Now() < at {
			t.Errorf("%v ahead: %v, %v early; want a wait until then", ahead, err, at-monoclock.Now())
		}
	}
	if n := testing.AllocsPerRun(10, func() { _ = timer.SleepUntil(monoclock.Now() + time.Microsecond) }); n != 0 {
		t.Errorf("a wait allocates %v times, want 0", n)
	}
	woken := make(chan error)
	go func() { woken <- timer.SleepUntil(monoclock.Now() + time.Hour) }()
	if err := timer.Close(); err != nil {
		t.Error(err)
	}
	if err := <-woken; err == nil {
		t.Error("a wait ends without an error when the timer is closed")
	}
}

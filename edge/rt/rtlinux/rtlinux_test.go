package rtlinux

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSleepUntilNeverReturnsEarly(t *testing.T) {
	var c Clock
	for _, d := range []time.Duration{-time.Second, 0, time.Microsecond, 3 * time.Millisecond} {
		want := c.Now() + d
		c.SleepUntil(want)
		if got := c.Now(); got < want {
			t.Errorf("woke %v before the deadline", want-got)
		}
	}
}

func TestClockAllocatesNothing(t *testing.T) {
	var c Clock
	if n := testing.AllocsPerRun(100, func() { c.SleepUntil(c.Now()) }); n != 0 {
		t.Errorf("Now and SleepUntil allocate %v times, want 0", n)
	}
}

// TestEnter sees the thread's policy follow what Enter says, where it is permitted and where it is not.
func TestEnter(t *testing.T) {
	done := make(chan struct{})
	go func() { // its thread is thrown away at the end: it stays locked
		defer close(done)
		runtime.LockOSThread()
		g := Enter(1)
		if (g.FIFOErr == nil) != g.FIFO || (g.LockErr == nil) != g.Lock {
			t.Errorf("grant %+v: an error for what was granted, or none for what was not", g)
		}
		if g.Lock {
			if err := unix.Munlockall(); err != nil {
				t.Error(err)
			}
		}
		if os.Geteuid() == 0 && !g.FIFO {
			t.Logf("root, but no SCHED_FIFO here: %v", g.FIFOErr)
		}
		want := uint32(unix.SCHED_NORMAL)
		if g.FIFO {
			want = unix.SCHED_FIFO
		}
		if got := policy(t); got != want {
			t.Errorf("policy %d inside, want %d", got, want)
		}
		Leave()
		if got := policy(t); got != unix.SCHED_NORMAL {
			t.Errorf("policy %d after Leave, want %d", got, unix.SCHED_NORMAL)
		}
	}()
	<-done
}

func policy(t *testing.T) uint32 {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Error(err)
		return 0
	}
	return attr.Policy
}

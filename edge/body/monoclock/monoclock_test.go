package monoclock

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestNowIsTheSystemsMonotonicClock(t *testing.T) {
	read := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	// The two clocks are paired once at start, in the shortest of several readings. Now may be ahead by that reading and is never behind, or a wait
	// for the system's clock would seem to end early.
	const slack = time.Millisecond
	for range 1000 {
		before, now, after := read(), Now(), read()
		if now < before || now > after+slack {
			t.Fatalf("Now() = %v, want it between %v and %v", now, before, after)
		}
	}
}

func TestNowAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Now() }); n != 0 {
		t.Errorf("Now allocates %v times, want 0", n)
	}
}

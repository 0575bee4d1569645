// Package monoclock reads the clock of package body: CLOCK_MONOTONIC of the system, as a duration since its epoch. Loops that wait with
// clock_nanosleep, drivers that wait with ppoll, and the stamps they leave for other processes all mean this one.
package monoclock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// start and epoch are one instant on two clocks. Go's monotonic time runs on the same clock but hides its epoch; going through it
// keeps Now out of the kernel, which unix.ClockGettime would enter on each call. Of several readings the shortest counts, as the scheduler may step into
// one, and start is before epoch: Now is ahead of the system's clock by less than that reading, and never behind, where a wait would seem to end early.
var start, epoch = func() (start time.Time, epoch time.Duration) {
	shortest := time.Duration(math.MaxInt64)
	for range 16 {
		var ts unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			panic("monoclock: the system has no monotonic clock: " + err.Error())
		}
		if took := time.Since(before); took < shortest {
			shortest, start, epoch = took, before, time.Duration(ts.Nano())
		}
	}
	return start, epoch
}()

// Now returns the monotonic time. It allocates nothing and is safe for concurrent use.
func Now() time.Duration { return epoch + time.Since(start) }

// Package monoclock reads the clock of package body: CLOCK_MONOTONIC of the system, as a duration since its epoch. Loops that wait with
// clock_nanosleep, drivers that wait with ppoll, and the stamps they leave for other processes all mean this one.
package monoclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// start and epoch are one instant on two clocks. Go's monotonic time runs on the same clock but hides its epoch; going through it
// keeps Now out of the kernel, which unix.ClockGettime would enter on each call.
var start, epoch = func() (time.Time, time.Duration) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("monoclock: the system has no monotonic clock: " + err.Error())
	}
	return time.Now(), time.Duration(ts.Nano())
}()

// Now returns the monotonic time. It allocates nothing and is safe for concurrent use.
func Now() time.Duration { return epoch + time.Since(start) }

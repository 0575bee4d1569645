// Package rtlinux gives the real-time loop its thread and its clock on Linux: absolute sleeps by raw system call, SCHED_FIFO and locked
// memory where the system permits them.
//
// The sleep is a raw call: the runtime does not take the processor (its P) away from a thread that sleeps there, so that the loop never waits
// for one on waking. The price: a stop of the world waits for the sleeper, up to one period. Keep other goroutines of the process few and
// their garbage little, and GOMAXPROCS above the number of busy ones (spec/peer-facts.md section 12).
package rtlinux

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kennel/edge/body/mono"
)

// Clock is CLOCK_MONOTONIC, the clock of package body.
type Clock struct{}

// Now returns the monotonic time.
func (Clock) Now() time.Duration { return mono.Now() }

// SleepUntil returns when the monotonic time is t or later.
func (c Clock) SleepUntil(t time.Duration) {
	const absolute = 1 // TIMER_ABSTIME
	ts := unix.NsecToTimespec(int64(t))
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, absolute, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		// The runtime's signals interrupt it; the deadline is absolute, so it just goes on. And where processors' clocks differ by
		// microseconds, the one we wake on may not have got there yet.
		if e != unix.EINTR && (e != 0 || c.Now() >= t) {
			return
		}
	}
}

// Grant says what the system permitted. The reasons are nil for what was granted.
type Grant struct {
	FIFO    bool
	FIFOErr error
	Lock    bool
	LockErr error
}

// DefaultPriority is the loop's SCHED_FIFO priority: above what a desktop or an original robot gives to anything else, below the kernel's own.
const DefaultPriority = 60

// Enter gives the calling thread SCHED_FIFO at priority (1 to 99) and locks the process's memory, as far as permitted. Lock the goroutine to
// its thread first; Leave gives the priority back. Threads started from here do not inherit the priority.
func Enter(priority int) Grant {
	var g Grant
	g.FIFOErr = setScheduler(unix.SCHED_FIFO|unix.SCHED_RESET_ON_FORK, priority)
	g.FIFO = g.FIFOErr == nil
	g.LockErr = lockMemory()
	g.Lock = g.LockErr == nil
	return g
}

// Leave gives the calling thread the normal priority again.
func Leave() { _ = setScheduler(unix.SCHED_NORMAL, 0) } // never refused

func setScheduler(policy, priority int) error {
	param := int32(priority) // struct sched_param
	_, _, e := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, uintptr(policy), uintptr(unsafe.Pointer(&param)))
	runtime.KeepAlive(&param)
	if e != 0 {
		return fmt.Errorf("sched_setscheduler to policy %#x, priority %d: %w", policy, priority, e)
	}
	return nil
}

// lockMemory locks pages as they are first used. Kernels before 4.4 know no such thing and lock all that is mapped now; later pages may
// then fault once.
func lockMemory() error {
	err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	if err == unix.EINVAL {
		err = unix.Mlockall(unix.MCL_CURRENT)
	}
	if err != nil {
		return fmt.Errorf("mlockall: %w", err)
	}
	return nil
}

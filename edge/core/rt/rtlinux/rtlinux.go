// Package rtlinux gives the real-time loop its thread and its clock on Linux: absolute sleeps by raw system call, SCHED_FIFO and locked
// memory where the system permits them.
//
// The sleep is a raw call: the runtime does not take the processor (its P) away from a thread that sleeps there, so that the loop never waits
// for one on waking. The price: a stop of the world waits for the sleeper, up to one period. Keep other goroutines of the process few and
// their garbage little, and GOMAXPROCS above the number of busy ones (spec/peer-facts.md section 12).
package rtlinux

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kennel/edge/body/monoclock"
)

// Clock is CLOCK_MONOTONIC, the clock of package body.
type Clock struct{}

// Now returns the monotonic time.
func (Clock) Now() time.Duration { return monoclock.Now() }

// SleepUntil returns when the monotonic time is t or later.
func (c Clock) SleepUntil(t time.Duration) {
	const absolute = 1 // TIMER_ABSTIME
	ts := unix.NsecToTimespec(int64(t))
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, absolute, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		// The runtime's signals interrupt the sleep; the deadline is absolute, so it just sleeps again. If the processors' clocks differ by
		// microseconds, the one we wake on may not have reached the deadline yet.
		if e != unix.EINTR && (e != 0 || c.Now() >= t) {
			return
		}
	}
}

// Thread is how a thread is scheduled.
type Thread struct {
	Priority int // of SCHED_FIFO, 1 to 99; 0: normal scheduling
	CPU      int // processor that it stays on, counted from 0, if it has a priority; or AnyCPU
}

// AnyCPU leaves it to the kernel where the thread runs.
const AnyCPU = -1

// Grant says what the system permitted. The reasons are nil for what was granted.
type Grant struct {
	FIFO    bool
	FIFOErr error
	Lock    bool
	LockErr error
	CPUErr  error // also nil if AnyCPU was asked for
	NiceErr error

	moved bool
	where unix.CPUSet // it might run on before
	nice  int         // it had before
}

// niceness is set on a process whose loop has a real-time priority: its threads then run before those of ordinary processes. The runtime
// stops the world now and then, and the loop then waits for the thread that does so, which must not queue behind busy processes.
const niceness = -15

// DefaultPriority is the loop's SCHED_FIFO priority: above what a desktop or an original robot gives to anything else, below the kernel's own.
const DefaultPriority = 60

// Check says what is wrong with t: a value no thread can have, or a processor that this process may not run on.
func (t Thread) Check() error {
	if t.Priority < 0 || t.Priority > 99 {
		return fmt.Errorf("priority %d: want 1 to 99, or 0 for normal scheduling", t.Priority)
	}
	if t.CPU != AnyCPU && t.Priority == 0 {
		return fmt.Errorf("cpu %d: want a priority as well", t.CPU)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	if t.CPU == AnyCPU || set.IsSet(t.CPU) {
		return nil
	}
	var have []string
	for i := range 8 * int(unsafe.Sizeof(set)) {
		if set.IsSet(i) {
			have = append(have, strconv.Itoa(i))
		}
	}
	return fmt.Errorf("cpu %d: want one of the processors %s, or %d for any", t.CPU, strings.Join(have, ", "), AnyCPU)
}

// Enter makes the calling thread such a one, with a priority, locks the process's memory and puts all its threads before those of other
// processes, as far as permitted. Lock the goroutine to its thread first; Grant.Leave takes it back. Threads started from here do not inherit
// the priority.
//
// On the processor that the body's interrupts come to the loop wakes soonest: another may be asleep, and has to be woken by that one.
func (t Thread) Enter() Grant {
	var g Grant
	g.FIFOErr = setScheduler(unix.SCHED_FIFO|unix.SCHED_RESET_ON_FORK, t.Priority)
	g.FIFO = g.FIFOErr == nil
	g.LockErr = lockMemory()
	g.Lock = g.LockErr == nil
	if t.CPU != AnyCPU {
		g.CPUErr = g.stay(t.CPU)
		g.moved = g.CPUErr == nil
	}
	g.nice, g.NiceErr = ownNiceness()
	if g.NiceErr == nil {
		g.NiceErr = setNiceness(niceness)
	}
	return g
}

// Err returns what was not permitted, and why.
func (g *Grant) Err() error { return errors.Join(g.FIFOErr, g.LockErr, g.CPUErr, g.NiceErr) }

// Leave gives the calling thread, which entered, the normal priority and all its processors again, and the process its place among others. The
// memory stays locked.
func (g *Grant) Leave() {
	if g.NiceErr == nil {
		_ = setNiceness(g.nice) // permitted, as the lower one was
	}
	_ = setScheduler(unix.SCHED_NORMAL, 0) // never refused
	if g.moved {
		_ = unix.SchedSetaffinity(0, &g.where) // where it was before
	}
}

// stay keeps the calling thread on cpu.
func (g *Grant) stay(cpu int) error {
	if err := unix.SchedGetaffinity(0, &g.where); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil { // EINVAL: there is no such processor, or not for this process
		return fmt.Errorf("sched_setaffinity to processor %d: %w", cpu, err)
	}
	return nil
}

func ownNiceness() (int, error) {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0, fmt.Errorf("getpriority: %w", err)
	}
	return 20 - p, nil // the system call adds 20, so that no answer looks like an error
}

// setNiceness sets it for all threads that the process has; those to come inherit it.
func setNiceness(n int) error {
	for range 2 { // one may have been started by another whose turn had not come
		if err := niceThreads(n); err != nil {
			return err
		}
	}
	return nil
}

func niceThreads(n int) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("threads of this process: %w", err)
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("threads of this process: /proc/self/task: %w", err)
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, n); err != nil && err != unix.ESRCH { // it has ended since
			return fmt.Errorf("setpriority to niceness %d: %w", n, err)
		}
	}
	return nil
}

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

package rtlinux

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
		before := processors(t)
		last := before[len(before)-1]
		nice, err := ownNiceness()
		if err != nil {
			t.Error(err)
		}
		g := Thread{1, last}.Enter()
		if got := processors(t); g.CPUErr != nil || len(got) != 1 || got[0] != last {
			t.Errorf("it may run on processors %v, want on %d alone: %v", got, last, g.CPUErr)
		}
		if (g.FIFOErr == nil) != g.FIFO || (g.LockErr == nil) != g.Lock {
			t.Errorf("grant %+v: an error for what was granted, or none for what was not", g)
		}
		wantNice := nice
		if g.NiceErr == nil {
			wantNice = niceness
		} else if os.Geteuid() == 0 {
			t.Logf("root, and it may not go before others: %v", g.NiceErr)
		}
		nicenessOfAll(t, wantNice)
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
		g.Leave()
		if got := processors(t); !slices.Equal(got, before) {
			t.Errorf("it may run on processors %v after Leave, want %v", got, before)
		}
		if got := policy(t); got != unix.SCHED_NORMAL {
			t.Errorf("policy %d after Leave, want %d", got, unix.SCHED_NORMAL)
		}
		nicenessOfAll(t, nice)
	}()
	<-done
}

// TestCheck: what no thread can have is refused, and what it can is named.
func TestCheck(t *testing.T) {
	have := processors(t)
	for _, ok := range []Thread{{99, have[0]}, {1, AnyCPU}, {0, AnyCPU}} {
		if err := ok.Check(); err != nil {
			t.Error(err)
		}
	}
	for want, bad := range map[string]Thread{
		"priority -1: want 1 to 99":                                       {-1, AnyCPU},
		"priority 100: want 1 to 99":                                      {100, AnyCPU},
		"cpu 0: want a priority":                                          {0, 0},
		fmt.Sprintf("cpu -2: want one of the processors %d", have[0]):     {1, -2},
		fmt.Sprintf("cpu 100000: want one of the processors %d", have[0]): {1, 100000},
	} {
		if err := bad.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", bad, err, want)
		}
	}
}

// processors are those that this thread may run on.
func processors(t *testing.T) (list []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Error(err)
	}
	for i := range 1024 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list
}

// nicenessOfAll wants n of every thread of the process, those started meanwhile too.
func nicenessOfAll(t *testing.T, n int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
	}
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Error(err)
		}
		if got, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && 20-got != n {
			t.Errorf("thread %d has niceness %d, want %d", id, 20-got, n)
		}
	}
}

func policy(t *testing.T) uint32 {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Error(err)
		return 0
	}
	return attr.Policy
}

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process no longer exists.
var ErrGone = errors.New("process is gone")

// Identity names one process for all time: its pid, its start in clock ticks since boot (field 22 of /proc/PID/stat), and the boot.
type Identity struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// Identify returns the identity of the process that has pid now, or ErrGone. A zombie is gone.
func Identify(pid int) (Identity, error) {
	boot, err := bootID()
	if err != nil {
		return Identity{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Identity{}, fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	if err != nil {
		return Identity{}, err
	}
	state, start, err := parseStat(string(stat))
	if err != nil {
		return Identity{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	if state == 'Z' || state == 'X' {
		return Identity{}, fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	return Identity{Pid: pid, Start: start, Boot: boot}, nil
}

// Alive reports whether this very process still runs.
func (id Identity) Alive() bool {
	now, err := Identify(id.Pid)
	return err == nil && now == id
}

// Signal sends sig to this very process; ErrGone if it has ended, even if another process has its pid now.
func (id Identity) Signal(sig syscall.Signal) error {
	p, err := id.open()
	if err != nil {
		return err
	}
	defer p.Release()
	if err := p.Signal(sig); errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("pid %d: %w", id.Pid, ErrGone)
	} else if err != nil {
		return fmt.Errorf("signal %v to pid %d: %w", sig, id.Pid, err)
	}
	return nil
}

// Wait returns nil once the process has ended, which need not be a child of ours, or the context's error.
func (id Identity) Wait(ctx context.Context) error {
	p, err := id.open()
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Release()
	for ctx.Err() == nil {
		var ended bool
		err := p.WithHandle(func(fd uintptr) {
			// The handle becomes readable at the end. 50 ms bound how late a cancelled context is noticed.
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50)
			ended = err == nil && n > 0
		})
		if err != nil { // a kernel before 5.3 has no handles: look from time to time
			ended = !id.Alive()
			time.Sleep(10 * time.Millisecond)
		}
		if ended {
			return nil
		}
	}
	return fmt.Errorf("pid %d is still running: %w", id.Pid, context.Cause(ctx))
}

// Stop sends the signals one after the other, waiting patience for the end after each. The error says that the process outlived them
// all.
func (id Identity) Stop(ctx context.Context, patience time.Duration, signals ...syscall.Signal) error {
	for _, sig := range signals {
		if err := id.Signal(sig); errors.Is(err, ErrGone) {
			return nil
		} else if err != nil {
			return err
		}
		wctx, cancel := context.WithTimeout(ctx, patience)
		err := id.Wait(wctx)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("pid %d still running after signals %v and a wait of %v after each", id.Pid, signals, patience)
}

// open returns a handle that cannot slip to another process: the pid is pinned first and compared then.
func (id Identity) open() (*os.Process, error) {
	if id.Pid <= 1 {
		return nil, fmt.Errorf("pid %d: want one above 1", id.Pid)
	}
	p, err := os.FindProcess(id.Pid)
	if err != nil {
		return nil, err
	}
	if !id.Alive() {
		p.Release()
		return nil, fmt.Errorf("pid %d: %w", id.Pid, ErrGone)
	}
	return p, nil
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// parseStat reads state and start time from the text of /proc/PID/stat. Field 2 is the command's name in parentheses and may itself
// hold spaces and parentheses, so fields are counted after the last one.
func parseStat(s string) (state byte, start uint64, err error) {
	end := strings.LastIndexByte(s, ')')
	if end < 0 {
		return 0, 0, errors.New("no command name in parentheses")
	}
	f := strings.Fields(s[end+1:])
	const startField = 22 - 3 // the first field here is number 3
	if len(f) <= startField {
		return 0, 0, fmt.Errorf("%d fields after the command name, want at least %d", len(f), startField+1)
	}
	if len(f[0]) != 1 {
		return 0, 0, fmt.Errorf("state %q, want one letter", f[0])
	}
	if start, err = strconv.ParseUint(f[startField], 10, 64); err != nil {
		return 0, 0, fmt.Errorf("start time: %w", err)
	}
	return f[0][0], start, nil
}

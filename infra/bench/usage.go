package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux that Go runs on.
const tick = time.Second / 100

// Usage holds the resources that a process has used so far.
type Usage struct {
	CPU time.Duration // of all its threads, user and system, in steps of 10 ms
	RSS int64         // bytes of memory that are resident now
}

// UsageOf reads the usage of one process.
func UsageOf(pid int) (Usage, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	s, err := parseStat(string(b))
	if err != nil {
		return Usage{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return s.usage, nil
}

// UsageOfAll adds up processes; those that are gone count nothing.
func UsageOfAll(pids ...int) Usage {
	var all Usage
	for _, pid := range pids {
		if u, err := UsageOf(pid); err == nil {
			all.CPU += u.CPU
			all.RSS += u.RSS
		}
	}
	return all
}

// Family lists pid and every process below it.
func Family(pid int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is sound
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		if s, err := parseStat(string(b)); err == nil {
			children[s.parent] = append(children[s.parent], s.pid)
		}
	}
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i]]...)
	}
	return out
}

type stat struct {
	pid, parent int
	usage       Usage
}

// parseStat reads a line of /proc/PID/stat (proc(5)). The second field is a name in brackets that may hold anything.
func parseStat(line string) (stat, error) {
	name := strings.LastIndexByte(line, ')')
	head, _, ok := strings.Cut(line, " ")
	if name < 0 || !ok {
		return stat{}, fmt.Errorf("%.60q: want PID (NAME) STATE and so on", line)
	}
	f := strings.Fields(line[name+1:]) // f[0] is field 3
	if len(f) < 22 {
		return stat{}, fmt.Errorf("%d fields after the name: want at least 22", len(f))
	}
	var n [5]int64
	for i, s := range []string{head, f[1], f[11], f[12], f[21]} { // pid, ppid, utime, stime, rss
		var err error
		if n[i], err = strconv.ParseInt(s, 10, 64); err != nil {
			return stat{}, fmt.Errorf("%.40q: want a number", s)
		}
	}
	return stat{pid: int(n[0]), parent: int(n[1]),
		usage: Usage{CPU: time.Duration(n[2]+n[3]) * tick, RSS: n[4] * int64(os.Getpagesize())}}, nil
}

// quietFor is how long a process may use no more than one tick, to be called quiet.
const quietFor = 200 * time.Millisecond

// Quiet waits until the process has as good as nothing to do: the end of work that is not reported.
func Quiet(ctx context.Context, pid int) error {
	t := time.NewTicker(quietFor)
	defer t.Stop()
	last, err := UsageOf(pid)
	for err == nil {
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("process %d does not become idle: %w", pid, context.Cause(ctx))
		}
		var now Usage
		if now, err = UsageOf(pid); err == nil && now.CPU-last.CPU <= tick {
			return nil
		}
		last = now
	}
	return err
}

// SettledRSS is a process's resident memory in KiB once it is quiet.
func SettledRSS(ctx context.Context, pid int) (float64, error) {
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := Quiet(wait, pid); err != nil {
		return 0, err
	}
	u, err := UsageOf(pid)
	return float64(u.RSS) / 1024, err
}

// ForgetPeak makes the kernel count a process's peak of resident memory from now on (proc(5), clear_refs).
func ForgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600)
}

// PeakRSS is the peak of a process's resident memory, in KiB.
func PeakRSS(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/status: no VmHWM", pid)
}

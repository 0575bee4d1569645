package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kennel/infra/proc"
)

// leftoverPatience is how long a leftover server may take for a fast stop, with its checkpoint, and again after SIGQUIT and SIGKILL.
const leftoverPatience = 10 * time.Second

// StopLeftovers ends every server process that works in the cluster's folder, also one that another program started, and then removes a stale
// postmaster.pid, which after a reboot may name an unrelated process. A Postgres process is recognised by its working directory, which is
// always its cluster. It returns the pids it ended; a cluster that does not exist has none. Call it only while holding whatever lock keeps
// a second program off the cluster.
func StopLeftovers(ctx context.Context, log *slog.Logger, cluster string) ([]int, error) {
	dir, err := filepath.EvalSymlinks(cluster)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ended []int
	// The postmaster first: its fast stop also ends its sessions and workers. Any process left after that has lost its postmaster.
	if pid, err := postmasterPid(dir); err == nil && worksIn(pid, dir) {
		log.Warn("leftover server of an earlier run found; stopping it", "pid", pid, "dir", dir)
		if err := end(ctx, pid, syscall.SIGINT); err != nil {
			return nil, fmt.Errorf("postgres: leftover server: %w", err)
		}
		ended = append(ended, pid)
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return ended, err
	}
	for _, e := range procs {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !worksIn(pid, dir) {
			continue
		}
		if err := end(ctx, pid, syscall.SIGQUIT); err != nil {
			return ended, fmt.Errorf("postgres: leftover server process: %w", err)
		}
		ended = append(ended, pid)
	}
	if err := os.Remove(filepath.Join(dir, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ended, err
	}
	return ended, nil
}

// RemoveCluster ends every server process that works in the folder and removes it. An initdb that died leaves a grandchild that may
// write for another moment, so it tries for two seconds.
func RemoveCluster(ctx context.Context, log *slog.Logger, cluster string) error {
	for try := 0; ; try++ {
		_, err := StopLeftovers(ctx, log, cluster)
		if err = cmp.Or(err, os.RemoveAll(cluster)); err == nil || try == 40 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func end(ctx context.Context, pid int, first syscall.Signal) error {
	id, err := proc.Identify(pid)
	if errors.Is(err, proc.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	return id.Stop(ctx, leftoverPatience, first, syscall.SIGQUIT, syscall.SIGKILL)
}

// worksIn reports whether pid is a Postgres process whose working directory is dir.
func worksIn(pid int, dir string) bool {
	if pid <= 1 {
		return false
	}
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil || cwd != dir {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "postgres"
}

// postmasterPid reads the first line of postmaster.pid.
func postmasterPid(dir string) (int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}

package onebox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"kennel/infra/errs"
	"kennel/infra/proc"
)

// CheckListen reports, before anything starts, whether the TCP address can be listened on. name says which part would listen there, flag how
// the address is changed. The error (kind Conflict, code "port_in_use", or Denied for a port that needs root) names the port, who
// holds it if that can be known, and the flag.
func CheckListen(name, addr, flag string) error {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		return l.Close()
	}
	_, port, splitErr := net.SplitHostPort(addr)
	switch {
	case splitErr != nil:
		return errs.Coded(errs.Invalid, "bad_address", "%s: address %q: want HOST:PORT; set it with %s", name, addr, flag)
	case errors.Is(err, syscall.EADDRINUSE):
		by := "another process"
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			if pid := holder(uint16(n)); pid != "" {
				by = describe(pid)
			}
		}
		return errs.Coded(errs.Conflict, "port_in_use", "%s: port %s (%s) is in use by %s: stop it, or choose another port with %s", name, port, addr, by, flag)
	case errors.Is(err, syscall.EACCES):
		return errs.Coded(errs.Denied, "port_denied", "%s: port %s (%s) is only for root: choose one above 1023 with %s", name, port, addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return errs.Coded(errs.Invalid, "no_address", "%s: this machine has no address %s: choose another with %s", name, addr, flag)
	}
	return errs.Coded(errs.Invalid, "bad_address", "%s: cannot listen on %s: %w; set another with %s", name, addr, err, flag)
}

// FreePort ends a part of this data folder that listens on the TCP address and of which no record is left, because its parent was killed before it
// wrote one. It works in the data folder, or the folder is named in its command line; others are left alone. Call it after StopLeftovers.
func (i *Instance) FreePort(ctx context.Context, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil // CheckListen says so
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	for { // the next one may hold the same socket
		pid, err := strconv.Atoi(holder(uint16(n)))
		if err != nil || pid == os.Getpid() || !i.worksHere(pid) {
			return nil
		}
		id, err := proc.Identify(pid)
		if errors.Is(err, proc.ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		i.log.Warn("leftover process of an earlier run stopped", "pid", pid, "addr", addr)
		if err := id.Stop(ctx, leftoverPatience, syscall.SIGINT, syscall.SIGKILL); err != nil {
			return err
		}
	}
}

// worksHere reports whether a process belongs to this data folder.
func (i *Instance) worksHere(pid int) bool {
	inside := func(path string) bool { return path == i.Paths.Root || strings.HasPrefix(path, i.Paths.Root+"/") }
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && inside(cwd) {
		return true
	}
	words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it is gone, or another user's
	return slices.ContainsFunc(strings.Split(string(words), "\x00"), inside)
}

// holder returns the pid of a process that listens on port, or "". It sees the files of all processes as root, else of our own.
func holder(port uint16) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if f, err := os.Open(table); err == nil {
			listeners(f, port, inodes)
			f.Close()
		}
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the only error is a bad pattern
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(link, "socket:["); ok && inodes[strings.TrimSuffix(inode, "]")] {
			return strings.Split(fd, "/")[2]
		}
	}
	return ""
}

// listeners adds the inodes of sockets that listen on port, from the text of /proc/net/tcp: columns "sl local_address rem_address st
// tx:rx tr:when retrnsmt uid timeout inode", with the port in hex after the last colon of local_address and state 0A for listening.
func listeners(r io.Reader, port uint16, inodes map[string]bool) {
	want := fmt.Sprintf(":%04X", port)
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) >= 10 && f[3] == "0A" && strings.HasSuffix(f[1], want) {
			inodes[f[9]] = true
		}
	}
}

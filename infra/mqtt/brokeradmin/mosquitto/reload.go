package mosquitto

import (
	"bytes"
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

	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Our own limits (the source gives none).
const (
	lookEvery  = 250 * time.Millisecond // a file changes without an event
	handlerGap = 20 * time.Millisecond  // between looks at a Mosquitto that is starting
	tellAgain  = 3 * time.Second        // after each telling; longer than Mosquitto reads its files
	maxPIDFile = 32                     // bytes
)

// Reloader makes a Mosquitto on this machine read its revocation list whenever the list was written, with SIGHUP. To be permitted to send
// it, this process must run under the same account or as root. Otherwise another program must send it: infra/compose/mosquitto/run.sh does
// so for the Mosquitto that it starts, and systemd can with a path unit.
//
// Mosquitto 2.0.11 reads crlfile again on SIGHUP and refuses the listed certificates from the next handshake on. Open sessions stay; Kick
// and Block end them. It forgets a SIGHUP that comes while it reads for another one, so each list is signalled twice.
type Reloader struct {
	List    string // Broker.DeviceCRL
	PIDFile string // Broker.PIDFile
	Log     *slog.Logger
}

// Run signals Mosquitto for the existing list and for each new one, until ctx ends; then it returns nil. It repeats signals that fail.
func (r Reloader) Run(ctx context.Context) error {
	var told stamp
	var again time.Time // when to signal the list a second time; zero: done
	said := ""
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now, err := stampOf(r.List)
		switch {
		case err != nil:
		case now != told:
			if err = r.Reload(ctx); err == nil {
				told, again = now, time.Now().Add(tellAgain)
			}
		case !again.IsZero() && time.Now().After(again):
			if err = r.Reload(ctx); err == nil {
				again = time.Time{}
			}
		}
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			r.Log.WarnContext(ctx, "revocation list not loaded by mosquitto; retrying", logging.Err, err, "retry_in", lookEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// stamp distinguishes one version of a file from the next: replacing it makes another inode.
type stamp struct {
	inode uint64
	size  int64
	at    time.Time
}

func stampOf(file string) (stamp, error) {
	fi, err := os.Stat(file)
	if err != nil {
		return stamp{}, err
	}
	s := stamp{size: fi.Size(), at: fi.ModTime()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s, nil
}

// Reload sends SIGHUP once. It returns nil too if no Mosquitto runs: one that starts reads the list then. One that is starting may have read
// it, and would die of the signal, so its handler is waited for until ctx ends.
func (r Reloader) Reload(ctx context.Context) error {
	for {
		// Mosquitto writes the file before it reads its lists, and again at each start: without one there is no process to signal.
		b, err := os.ReadFile(r.PIDFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(b)) > 0 { // else it is being written
			pid, err := parsePID(b)
			if err != nil {
				return fmt.Errorf("%s: %w", r.PIDFile, err)
			}
			if ready, err := hangUp(pid); err != nil || ready {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(handlerGap):
		}
	}
}

func parsePID(b []byte) (int, error) {
	text := strings.TrimSpace(string(b[:min(len(b), maxPIDFile)]))
	pid, err := strconv.ParseInt(text, 10, 32)
	if err != nil || pid < 1 || len(b) > maxPIDFile {
		return 0, errs.New(errs.Invalid, "%q: want the process id of a mosquitto", text)
	}
	return int(pid), nil
}

// hangUp sends SIGHUP to a Mosquitto that handles it. done is false for one that does not do so yet; it is true without a signal if the
// process is gone, or is another program that got its number.
func hangUp(pid int) (done bool, err error) {
	p, err := os.FindProcess(pid) // a handle: the process checked below is the one that gets the signal
	if err != nil {
		return true, nil // gone
	}
	defer p.Release() // nothing is lost
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || err == nil && strings.TrimSpace(string(name)) != "mosquitto" {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !handles(status, syscall.SIGHUP) {
		return false, nil
	}
	switch err := p.Signal(syscall.SIGHUP); {
	case err == nil, errors.Is(err, os.ErrProcessDone), errors.Is(err, syscall.ESRCH):
		return true, nil
	default:
		return false, errs.New(errs.Denied, "signal mosquitto, process %d: %w: run both under one account", pid, err)
	}
}

// handles says whether a process catches a signal, by its /proc/PID/status.
func handles(status []byte, sig syscall.Signal) bool {
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && n&(1<<(uint(sig)-1)) != 0
		}
	}
	return false
}

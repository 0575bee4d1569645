package mosquitto

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/infra/errs"
)

// sleeper starts a program that handles no SIGHUP, under a name.
func sleeper(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b, 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(file, "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // as if it had not ended before
		err := c.Wait()
		if x, ok := errors.AsType[*exec.ExitError](err); !ok || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("%s ended by %v, want it to be alive until the test's end", name, err)
		}
	})
	return c
}

// TestReloadSparesOthers: the signal that Mosquitto handles ends other programs, so only Mosquitto gets it.
func TestReloadSparesOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	r := Reloader{PIDFile: file, Log: slog.New(slog.DiscardHandler)}
	if err := r.Reload(t.Context()); err != nil {
		t.Errorf("no pid file: %v", err)
	}
	other := sleeper(t, "another")
	starting := sleeper(t, "mosquitto") // until it handles the signal, it would die of it
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		want func(error) bool
	}{
		"another program with its number": {fmt.Sprintln(other.Process.Pid), func(err error) bool { return err == nil }},
		"nobody":                          {fmt.Sprintln(gone.Process.Pid), func(err error) bool { return err == nil }},
		"one that starts":                 {fmt.Sprintln(starting.Process.Pid), func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"a file that is being written":    {"", func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"no number": {"soon\n", func(err error) bool {
			return errs.KindOf(err) == errs.Invalid && strings.Contains(err.Error(), file) && strings.Contains(err.Error(), "soon")
		}},
		"everybody": {"-1\n", func(err error) bool { return errs.KindOf(err) == errs.Invalid }},
		"a group":   {"0\n", func(err error) bool { return errs.KindOf(err) == errs.Invalid }},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := r.Reload(ctx); !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// deaf is a Mosquitto 2.0.11 as far as SIGHUP goes: what comes while it reads is forgotten, because it ends reading by clearing its mark.
const deaf = `#!/bin/bash
marked=1 # it reads at its start
trap 'marked=1' HUP
echo $$ >pid
while :; do
	if [ -n "$marked" ]; then
		cat list >reading
		sleep 1
		mv reading read
		marked=
	fi
	sleep 0.02
done
`

// TestReloadWhileReading: of a list that is written while Mosquitto reads the one before, it hears nevertheless.
func TestReloadWhileReading(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(in("new"), []byte(text), 0o600), os.Rename(in("new"), in("list"))); err != nil {
			t.Fatal(err)
		}
	}
	await := func(file, want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			b, err := os.ReadFile(in(file))
			if err == nil && string(b) == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s says %q, %v; want %q", file, b, err, want)
			}
		}
	}
	if err := os.WriteFile(in("mosquitto"), []byte(deaf), 0o700); err != nil {
		t.Fatal(err)
	}
	write("first")
	if signal.Ignored(syscall.SIGHUP) { // under nohup: no shell could trap it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	c := exec.Command(in("mosquitto"))
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	defer func() {
		cancel()
		if err := errors.Join(<-done, syscall.Kill(-c.Process.Pid, syscall.SIGKILL)); err != nil {
			t.Error(err)
		}
		_ = c.Wait() // killed
	}()
	go func() {
		done <- Reloader{List: in("list"), PIDFile: in("pid"), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}.Run(ctx)
	}()
	await("reading", "first")
	write("second")
	await("read", "second")
}

// FuzzPID: whatever a file says, what comes out is one process.
func FuzzPID(f *testing.F) {
	f.Add([]byte("1234\n"), []byte("Name:\tmosquitto\nSigCgt:\t0000000000014a03\n"))
	f.Add([]byte("-1"), []byte("SigCgt:\tx\n"))
	f.Add([]byte(strings.Repeat("1", 40)), []byte("SigCgt:"))
	f.Fuzz(func(t *testing.T, b, status []byte) {
		pid, err := parsePID(b)
		if err == nil && (pid < 1 || fmt.Sprint(pid) != strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(string(b)), "+"), "0")) {
			t.Errorf("%q is %d", b, pid)
		}
		if handles(status, syscall.SIGHUP) && !strings.Contains(string(status), "SigCgt:") {
			t.Errorf("%q handles SIGHUP", status)
		}
	})
}

func TestHandles(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tmosquitto\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000004a03\n": true,
		"SigIgn:\t0000000000000001\nSigCgt:\t0000000000004a02\n":                   false,
		"SigCgt:\tzz\n": false,
		"":              false,
	} {
		if got := handles([]byte(status), syscall.SIGHUP); got != want {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}

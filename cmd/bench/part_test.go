package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/infra/bench"
	"kennel/infra/proc"
)

// parts are what the test binary is when a benchmark starts it as a process of its own: robotd's company, or the hand that holds a process still.
var parts = map[string]func(ctx context.Context, args []string) error{
	"spin":      func(ctx context.Context, _ []string) error { return spin(ctx) },
	"pester":    func(ctx context.Context, args []string) error { return pester(ctx, args[0], os.Stdout) },
	followSlots: func(ctx context.Context, args []string) error { return followFile(ctx, args[0], os.Stdout) },
	turnAround:  func(ctx context.Context, args []string) error { return turnFile(ctx, args[0], os.Stdout) },
	abuse:       func(ctx context.Context, args []string) error { return abuseRobot(ctx, args[0], os.Stdout) },
	hearStates:  func(ctx context.Context, args []string) error { return hearFile(ctx, args[0], os.Stdout) },
	watchCamera: func(ctx context.Context, args []string) error { return watchFile(ctx, args[0], os.Stdout) },
	lookAtWorld: func(ctx context.Context, args []string) error { return lookFile(ctx, args[0], os.Stdout) },
	readSlots:   func(ctx context.Context, args []string) error { return readFile(ctx, args[0], os.Stdout) },
	"follow":    func(ctx context.Context, args []string) error { return follow(ctx, args[0], os.Stdout) },
	"hold": func(ctx context.Context, args []string) error {
		pid, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return holdStill(ctx, pid, os.Stdin, os.Stdout)
	},
	"tick": func(ctx context.Context, args []string) error {
		period, err1 := time.ParseDuration(args[0])
		long, err2 := time.ParseDuration(args[1])
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		return tick(ctx, period, long, os.Stdout)
	},
}

func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "part" {
		code := m.Run()
		removePrograms()
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := parts[os.Args[2]](ctx, os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startPart starts the test binary as a part. deathsig is the signal that it gets when we die; 0: SIGKILL.
func startPart(deathsig syscall.Signal, args ...string) (*bench.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return bench.Start(proc.Spec{Name: "part " + args[0], Path: self, Args: append([]string{"part"}, args...), Deathsig: deathsig})
}

// holdStill stops the family of pid and resumes it when in or ctx ends; both end if the bench is killed.
func holdStill(ctx context.Context, pid int, in io.Reader, out io.Writer) error {
	if pid <= 1 {
		return fmt.Errorf("-pid %d: want the process to hold", pid)
	}
	// The parent first, so that it starts no further children.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	family := bench.Family(pid)
	defer func() {
		for _, p := range family {
			_ = syscall.Kill(p, syscall.SIGCONT) // a child may have exited
		}
	}()
	for _, p := range family[1:] {
		if err := syscall.Kill(p, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", p, err)
		}
	}
	fmt.Fprintln(out, "holding", len(family))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in) // only the end matters
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}

// comm is the name of a process as the kernel keeps it; "" if it is gone.
func comm(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}

// TestHold: a held process continues when its holder is gone, in whatever way.
func TestHold(t *testing.T) {
	for name, end := range map[string]func(in *io.PipeWriter, cancel context.CancelFunc){
		"input ends":     func(in *io.PipeWriter, _ context.CancelFunc) { in.Close() },
		"a signal comes": func(_ *io.PipeWriter, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath("sh")
			if err != nil {
				t.Fatal(err)
			}
			p, err := bench.Start(proc.Spec{Name: "sh", Path: path, Args: []string{"-c", "echo here; while read x; do echo heard $x; done"}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			wait, cancelWait := context.WithTimeout(t.Context(), time.Minute)
			defer cancelWait()
			if _, err := p.Await(wait, "here"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in, feed := io.Pipe()
			said, told := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- holdStill(ctx, p.Pid(), in, told) }()
			if _, err := said.Read(make([]byte, 100)); err != nil { // it holds
				t.Fatal(err)
			}
			if state := stateOf(t, p.Pid()); state != "T" {
				t.Errorf("state %s while held, want T", state)
			}
			end(feed, cancel)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if _, err := p.Ask(wait, "again", "heard again"); err != nil {
				t.Error(err)
			}
		})
	}
	if err := holdStill(t.Context(), 1, nil, io.Discard); err == nil {
		t.Error("held the first process of the machine")
	}
}

func stateOf(t *testing.T, pid int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

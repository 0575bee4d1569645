package proc

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// drainTimeout bounds how long output pipes of a dead child are read; a grandchild may hold them open for ever.
const drainTimeout = 2 * time.Second

// maxLog is the size in bytes at which a log file is set aside at the next start.
const maxLog = 16 << 20

// Keep runs the child until ctx ends and restarts it whenever it ends before; it returns nil once the child is stopped and waited for.
// It returns an error only if the very first start is impossible (no such program, no permission): that is a mistake in s, while a
// later failure to start is treated like an exit.
func Keep(ctx context.Context, log *slog.Logger, s Spec) error {
	s = s.withDefaults()
	log = log.With("child", s.Name)
	b := backoff{policy: s.Restart}
	for first := true; ; first = false {
		exit, err := s.once(ctx)
		if err != nil && first {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		pause, gaveUp := b.next(time.Now())
		log.Warn("child exited; restarting", "exit", exit, "err", err, "pause", pause)
		if gaveUp && s.OnGiveUp != nil {
			s.OnGiveUp(len(b.recent))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Once runs the child to its end. It returns nil if the child left with status 0, and otherwise an error with the last lines of its
// output, also when ctx ended it. Once collects the output itself; Log and LogFile receive it as well.
func Once(ctx context.Context, s Spec) error {
	s = s.withDefaults()
	t := &tail{next: s.Log}
	s.Log = t
	exit, err := s.once(ctx)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%s: stopped: %w", s.Name, context.Cause(ctx))
	case exit.Signal != 0:
		return fmt.Errorf("%s: ended by %v: %s", s.Name, exit.Signal, t)
	case exit.Code != 0:
		return fmt.Errorf("%s: exit status %d: %s", s.Name, exit.Code, t)
	}
	return nil
}

// once runs one life of the child. The error says that it could not be started.
func (s Spec) once(ctx context.Context) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", s.Name, context.Cause(ctx))
	}
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.WaitDelay = s.Env, s.Dir, s.Stdin, drainTimeout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: s.Deathsig, Credential: s.Credential}
	closeLog, err := s.output(cmd)
	if err != nil {
		return Exit{}, err
	}
	defer closeLog()

	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The thread that starts the child must outlive it: see the package comment.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the state says how it ended; an error of output copying is not the child's
		}
	}()
	if err := <-started; err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", s.Name, err)
	}
	pid, born := cmd.Process.Pid, time.Now()
	if s.PidFile != "" {
		if err := WriteRecord(s.PidFile, s.Name, pid); err != nil {
			killGroup(pid)
			<-ended
			return Exit{}, err
		}
		defer os.Remove(s.PidFile)
	}
	if s.OnStart != nil {
		s.OnStart(pid)
	}

	asked := false
	select {
	case <-ended:
	case <-ctx.Done():
		asked = true
		_ = cmd.Process.Signal(s.StopSignal) // it may just have ended
		select {
		case <-ended:
		case <-time.After(s.StopTimeout):
		}
	}
	killGroup(pid) // the processes that the child left in its group, or the child itself if it ignored the signal
	<-ended

	exit := Exit{Pid: pid, Code: cmd.ProcessState.ExitCode(), Lifetime: time.Since(born), Asked: asked}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit.Signal = ws.Signal()
	}
	if s.OnExit != nil {
		s.OnExit(exit)
	}
	return exit, nil
}

// killGroup kills every process of the group that pid leads. The kernel does not reuse a pid while a group of that number exists.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// output connects standard output and error.
func (s Spec) output(cmd *exec.Cmd) (done func(), err error) {
	done = func() {}
	var w io.Writer
	if s.LogFile != "" {
		if fi, err := os.Stat(s.LogFile); err == nil && fi.Size() > maxLog {
			_ = os.Rename(s.LogFile, s.LogFile+".1") // if it fails the log only stays long
		}
		f, err := os.OpenFile(s.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return nil, fmt.Errorf("log of %s: %w", s.Name, err)
		}
		w, done = f, func() { f.Close() }
	}
	switch {
	case w == nil:
		w = s.Log
	case s.Log != nil:
		w = io.MultiWriter(w, s.Log)
	}
	if w != nil { // a nil interface, not a nil file: exec would take the latter for a writer
		cmd.Stdout, cmd.Stderr = w, w
	}
	if s.Stdout != nil {
		cmd.Stdout = s.Stdout
	}
	return done, nil
}

// backoff decides the pause before the next restart.
type backoff struct {
	policy Restart
	recent []time.Time // restarts inside the window, oldest first
	pause  time.Duration
}

// next records a restart at now. gaveUp is true for the restart that reaches the limit.
func (b *backoff) next(now time.Time) (pause time.Duration, gaveUp bool) {
	for len(b.recent) > 0 && now.Sub(b.recent[0]) > b.policy.Window {
		b.recent = b.recent[1:]
	}
	if len(b.recent) == 0 {
		b.pause = b.policy.MinBackoff
	}
	b.recent = append(b.recent, now)
	pause = b.pause
	if len(b.recent) > b.policy.Limit {
		pause = b.policy.MaxBackoff
		gaveUp = len(b.recent) == b.policy.Limit+1
	}
	b.pause = min(2*b.pause, b.policy.MaxBackoff)
	return pause/2 + rand.N(pause/2+1), gaveUp
}

// tail keeps the last bytes written to it.
type tail struct {
	next io.Writer
	b    []byte
}

const tailBytes = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > tailBytes {
		t.b = append(t.b[:0], t.b[len(t.b)-tailBytes:]...)
	}
	if t.next != nil {
		return t.next.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }

package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

// TestMain lets the test binary play the parent that dies.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PROC_TEST_PARENT"); dir != "" {
		parent(dir)
	}
	os.Exit(m.Run())
}

// parent keeps a child, has dir removed after its death, reports the child's identity on standard output and waits to be killed.
func parent(dir string) {
	if _, err := RemoveAfterDeath(dir); err != nil {
		panic(err)
	}
	err := Keep(context.Background(), quiet, Spec{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"},
		PidFile: filepath.Join(dir, "..", "child.pid"),
		OnStart: func(pid int) {
			id, err := Identify(pid)
			if err != nil {
				panic(err)
			}
			if err := json.NewEncoder(os.Stdout).Encode(id); err != nil {
				panic(err)
			}
		}})
	panic(err)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestKilledParentLeavesNothing(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "work")
	if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "PROC_TEST_PARENT="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var child Identity
	if err := json.Unmarshal([]byte(line), &child); err != nil {
		t.Fatal(err)
	}
	if !child.Alive() {
		t.Fatalf("child %+v does not run", child)
	}
	if r, err := ReadRecord(filepath.Join(base, "child.pid")); err != nil || r.Identity != child || r.Name != "sleep" {
		t.Errorf("record = %+v, %v; want %+v", r, err, child)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := child.Wait(within(t, 10*time.Second)); err != nil {
		t.Errorf("the child lives on: %v", err)
	}
	for {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			break
		}
		select {
		case <-within(t, 10*time.Second).Done():
			t.Fatal("the folder of the killed parent is still there")
		case <-time.After(10 * time.Millisecond):
		}
	}
	stopped, err := StopLeftover(t.Context(), filepath.Join(base, "child.pid"), syscall.SIGTERM, time.Second)
	if stopped || err != nil {
		t.Errorf("stop leftover: %v, %v; want nothing to stop", stopped, err)
	}
}

// A parent-death signal fires when the creating thread ends; goroutines that end while locked take their threads with them.
func TestChildSurvivesEndingThreads(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	started, exits := make(chan int, 10), make(chan Exit, 10)
	done := make(chan error, 1)
	go func() {
		done <- Keep(ctx, quiet, Spec{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"},
			OnStart: func(pid int) { started <- pid }, OnExit: func(e Exit) { exits <- e }})
	}()
	pid := <-started
	for range 200 {
		ended := make(chan struct{})
		go func() { defer close(ended); runtime.LockOSThread() }()
		<-ended
	}
	if id, err := Identify(pid); err != nil {
		t.Fatalf("child %v: %v", id, err)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process group %d, %v; want the child's own, away from the terminal's Ctrl-C", group, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e := <-exits; e.Pid != pid || e.Signal != syscall.SIGTERM || !e.Asked || e.Code != -1 {
		t.Errorf("exit = %+v, want SIGTERM of %d, asked for", e, pid)
	}
}

func TestKeepRestartsAndSaysWhenItSlowsDown(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var starts, gaveUp atomic.Int64
	err := Keep(ctx, quiet, Spec{Name: "false", Path: "/bin/false",
		Restart: Restart{Limit: 3, Window: time.Minute, MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond},
		OnStart: func(int) {
			if starts.Add(1) == 8 {
				stop()
			}
		},
		OnGiveUp: func(n int) { gaveUp.Add(int64(n)) }})
	if err != nil || starts.Load() != 8 || gaveUp.Load() != 4 {
		t.Errorf("err %v, %d starts, gave up at %d; want nil, 8, once at restart 4", err, starts.Load(), gaveUp.Load())
	}
}

func TestKeepRefusesWhatCannotStart(t *testing.T) {
	err := Keep(t.Context(), quiet, Spec{Name: "ghost", Path: "/no/such/program"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "start ghost") {
		t.Errorf("err = %v, want one that names ghost and says that it does not exist", err)
	}
}

// The child ignores the polite signal and has a child of its own.
func TestDeafChildIsKilledWithItsGroup(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "log")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var exit Exit
	go func() {
		done <- Keep(ctx, quiet, Spec{Name: "deaf", Path: "/bin/sh", LogFile: pids, StopTimeout: 100 * time.Millisecond,
			Args:   []string{"-c", `trap "" TERM; sleep 1000 & echo $! ready; while :; do wait; done`},
			OnExit: func(e Exit) { exit = e }})
	}()
	var grandchild int
	for ; ; time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(pids)
		if n, _ := fmt.Sscanf(string(b), "%d ready", &grandchild); n == 1 && strings.Contains(string(b), "ready") {
			break
		}
	}
	id, err := Identify(grandchild)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if exit.Signal != syscall.SIGKILL {
		t.Errorf("exit = %+v, want SIGKILL", exit)
	}
	if err := id.Wait(within(t, 5*time.Second)); err != nil {
		t.Errorf("grandchild: %v", err)
	}
}

func TestOnceTellsTheLastWords(t *testing.T) {
	err := Once(t.Context(), Spec{Name: "tool", Path: "/bin/sh", Args: []string{"-c", "echo disk is full >&2; exit 3"}})
	if want := "tool: exit status 3: disk is full"; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
	if err := Once(t.Context(), Spec{Name: "tool", Path: "/bin/true"}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Once(ctx, Spec{Name: "tool", Path: "/bin/sleep", Args: []string{"1000"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want deadline exceeded", err)
	}
}

func TestBackoff(t *testing.T) {
	b := backoff{policy: Restart{Limit: 2, Window: time.Minute, MinBackoff: time.Second, MaxBackoff: 10 * time.Second}}
	now := time.Unix(0, 0)
	for i, c := range []struct {
		after  time.Duration
		max    time.Duration // the pause lies between half of it and it
		gaveUp bool
	}{
		{0, time.Second, false},
		{time.Second, 2 * time.Second, false},
		{time.Second, 10 * time.Second, true},
		{time.Second, 10 * time.Second, false},
		{2 * time.Minute, time.Second, false}, // the window has passed: a fresh start
	} {
		now = now.Add(c.after)
		pause, gaveUp := b.next(now)
		if pause < c.max/2 || pause > c.max || gaveUp != c.gaveUp {
			t.Errorf("restart %d: pause %v, gave up %v; want up to %v, %v", i, pause, gaveUp, c.max, c.gaveUp)
		}
	}
}

func TestReusedPidIsNeverSignalled(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]Identity{
		"earlier process of that pid": {id.Pid, id.Start - 1, id.Boot},
		"earlier boot":                {id.Pid, id.Start, "00000000-0000-0000-0000-000000000000"},
	} {
		file := filepath.Join(t.TempDir(), "pid")
		b, err := json.Marshal(Record{"x", other})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		stopped, err := StopLeftover(t.Context(), file, syscall.SIGKILL, time.Second)
		if stopped || err != nil || !id.Alive() {
			t.Errorf("%s: stopped %v, err %v, alive %v; want it left alone", name, stopped, err, id.Alive())
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the record is still there", name)
		}
		if err := other.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
			t.Errorf("%s: signal: %v, want ErrGone", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "pid")
	if err := WriteRecord(file, "sleep", id.Pid); err != nil {
		t.Fatal(err)
	}
	stopped, err := StopLeftover(t.Context(), file, syscall.SIGTERM, 5*time.Second)
	if !stopped || err != nil || id.Alive() {
		t.Errorf("stop leftover: stopped %v, err %v, alive %v", stopped, err, id.Alive())
	}
}

func TestLogIsSetAsideWhenLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, maxLog+1); err != nil {
		t.Fatal(err)
	}
	if err := Once(t.Context(), Spec{Name: "echo", Path: "/bin/echo", Args: []string{"new"}, LogFile: file}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || string(b) != "new\n" {
		t.Errorf("log = %q, %v; want the new line alone", b, err)
	}
	if fi, err := os.Stat(file + ".1"); err != nil || fi.Size() != maxLog+1 {
		t.Errorf("old log: %v, %v", fi, err)
	}
}

func TestParseStat(t *testing.T) {
	fields := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20\n"
	for name, c := range map[string]struct {
		in    string
		state byte
		start uint64
		ok    bool
	}{
		"plain":               {"12 (cat)" + fields, 'S', 4242, true},
		"spaces, parentheses": {"12 (a) R 1 (b)" + fields, 'S', 4242, true},
		"no name":             {"12 cat S 1", 0, 0, false},
		"too short":           {"12 (cat) S 1 2", 0, 0, false},
		"no state":            {"12 (cat)" + strings.Replace(fields, "S", "Sleeping", 1), 0, 0, false},
		"start no number":     {"12 (cat)" + strings.Replace(fields, "4242", "-1", 1), 0, 0, false},
	} {
		state, start, err := parseStat(c.in)
		if state != c.state || start != c.start || (err == nil) != c.ok {
			t.Errorf("%s: %c %d %v, want %c %d ok=%v", name, state, start, err, c.state, c.start, c.ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("12 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20")
	f.Fuzz(func(t *testing.T, s string) {
		if state, _, err := parseStat(s); err == nil && !strings.Contains(s, string(rune(state))) && state < 0x80 {
			t.Errorf("state %q is not in %q", state, s)
		}
	})
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"name":"postgres","pid":12,"start":4242,"boot":"b"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseRecord(again); err != nil || back != r {
			t.Errorf("%+v reads back as %+v, %v", r, back, err)
		}
	})
}

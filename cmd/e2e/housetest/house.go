package housetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/freeaddr"
	"kennel/infra/testwait"
)

// Bin holds the programs under test, built once; Work is a folder that an unprivileged Postgres can reach, also when the tests run as root.
var Bin, Work string

// Run is TestMain of every package of tests: it builds the programs, unless KENNEL_BIN names the folder that has them, and returns the exit code.
func Run(m *testing.M) int {
	// A process that ignores SIGHUP passes that on to its children, and a shell among them cannot even trap it: under nohup the broker's shell
	// would miss the signal.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // the channel is not read: SIGHUP stays ignored in this process alone
	}
	dir, err := os.MkdirTemp("", "kennel-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	Work = dir
	if Bin = os.Getenv("KENNEL_BIN"); Bin != "" { // make test builds them once
		return m.Run()
	}
	Bin = filepath.Join(dir, "bin")
	build := exec.Command("go", "build", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", Bin+"/", "kennel/cmd/kenneld", "kennel/cmd/kennelctl", "kennel/cmd/agentd",
		"kennel/cmd/robotd", "kennel/cmd/mindd", "kennel/cmd/robotsim", "kennel/cmd/robotkit", "kennel/cmd/s3d")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// logDir is where a robot keeps what its processes say.
const logDir = "data/data/com.anki.victor/cache/vic-logmgr"

// Soak reports whether the full run is asked for, by KENNEL_SOAK: more of the same.
func Soak() bool { return os.Getenv("KENNEL_SOAK") != "" }

// House is a running one-machine mode.
type House struct {
	T    *testing.T
	Dir  string // of its data
	args []string

	Cmd    *exec.Cmd // nil: it does not run
	exited chan error
	Out    *SyncBuffer // what kenneld says, over all starts
	Ready  ReadyFile   // of the latest start
}

// ReadyFile is the content of the file that -ready-file writes.
type ReadyFile struct {
	Endpoints map[string]string `json:"endpoints"`
	Pids      map[string]int    `json:"pids"`
	Files     map[string]string `json:"files"`
}

// New prepares a house with its own data folder and ports.
func New(t *testing.T, args ...string) *House {
	t.Helper()
	dir, err := os.MkdirTemp(Work, "data-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &House{T: t, Dir: dir}
	h.args = append([]string{"onebox", "-data", dir}, ListenArgs(t)...)
	h.args = append(h.args, args...)
	if !slices.Contains(args, "-recognizers") {
		h.args = append(h.args, "-recognizers", "none")
	}
	if !slices.Contains(args, "-weather") {
		h.args = append(h.args, "-weather", "none") // tests ask no server outside
	}
	t.Cleanup(func() {
		if h.Out != nil {
			h.noSecretsShown()
		}
		if h.Cmd != nil {
			h.Stop()
		}
		if t.Failed() {
			t.Logf("kenneld said:\n%s", Tail(h.Out.String(), 60))
			for _, f := range []string{"agentd.log", "robotd.log"} {
				logs, _ := filepath.Glob(filepath.Join(dir, "robots", "*", logDir, f))
				for _, l := range logs[:min(1, len(logs))] {
					b, _ := os.ReadFile(l)
					t.Logf("%s:\n%s", l, Tail(string(b), 40))
				}
			}
		}
		os.RemoveAll(dir)
	})
	return h
}

// ListenArgs picks free ports below the ephemeral range for every part.
func ListenArgs(t *testing.T) []string {
	t.Helper()
	var args []string
	for _, part := range []string{"api", "console", "robots", "mqtt", "postgres", "s3"} {
		args = append(args, "-listen", part+"="+freeaddr.For(t))
	}
	return args
}

// Start runs the house and returns when it is ready. It fails the test if kenneld ends before, or takes more than five minutes.
func (h *House) Start() {
	h.T.Helper()
	ready := filepath.Join(h.Dir, "ready-for-test.json")
	_ = os.Remove(ready) // of an earlier start
	h.Cmd = exec.Command(filepath.Join(Bin, "kenneld"), append(slices.Clone(h.args), "-ready-file", ready)...)
	h.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if h.Out == nil {
		h.Out = &SyncBuffer{}
	}
	h.Cmd.Stderr = h.Out
	stdout, err := h.Cmd.StdoutPipe()
	if err != nil {
		h.T.Fatal(err)
	}
	started := time.Now()
	StartLocked(h.T, h.Cmd)
	h.exited = make(chan error, 1)
	isReady := make(chan struct{})
	go func() {
		sc := bufio.NewScanner(io.TeeReader(stdout, h.Out))
		once := sync.Once{}
		for sc.Scan() {
			if strings.Contains(sc.Text(), "Kennel is ready") {
				once.Do(func() { close(isReady) })
			}
		}
		h.exited <- h.Cmd.Wait()
	}()
	select {
	case <-isReady:
	case err := <-h.exited:
		h.Cmd = nil
		h.T.Fatalf("kenneld ended before it was ready: %v\n%s", err, Tail(h.Out.String(), 40))
	case <-time.After(5 * time.Minute): // the promise is 60 s; a fivefold ceiling
		h.T.Fatalf("kenneld is not ready\n%s", Tail(h.Out.String(), 40))
	}
	h.T.Logf("ready after %v", time.Since(started).Round(10*time.Millisecond))
	b, err := os.ReadFile(ready)
	if err != nil {
		h.T.Fatal(err)
	}
	h.Ready = ReadyFile{}
	if err := json.Unmarshal(b, &h.Ready); err != nil {
		h.T.Fatal(err)
	}
}

// StartLocked starts cmd from a thread that lives as long as the test binary: a parent-death signal belongs to the thread.
func StartLocked(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	errc := make(chan error)
	starter <- func() { errc <- cmd.Start() }
	if err := <-errc; err != nil {
		t.Fatal(err)
	}
}

var starter = func() chan<- func() {
	c := make(chan func())
	go func() {
		lockThread()
		for f := range c {
			f()
		}
	}()
	return c
}()

// Stop is Ctrl-C; it returns the exit code.
func (h *House) Stop() int {
	h.T.Helper()
	if h.Cmd == nil {
		return 0
	}
	_ = h.Cmd.Process.Signal(os.Interrupt)
	_ = h.Cmd.Process.Signal(os.Interrupt) // as make, timeout and terminals together do
	select {
	case <-h.exited:
	case <-time.After(time.Minute):
		h.T.Errorf("kenneld does not stop\n%s", Tail(h.Out.String(), 40))
		h.KillTree()
	}
	code := h.Cmd.ProcessState.ExitCode()
	h.Cmd = nil
	return code
}

// KillTree is SIGKILL for kenneld and everything under it.
func (h *House) KillTree() {
	h.T.Helper()
	pids := append(Descendants(h.Cmd.Process.Pid), h.Cmd.Process.Pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-h.exited
	h.Cmd = nil
}

// Descendants lists the processes below pid.
func Descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue // it is gone
		}
		_, rest, ok := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); ok && len(f) > 1 {
			ppid, _ := strconv.Atoi(f[1])
			me, _ := strconv.Atoi(strings.Split(s, "/")[2])
			children[ppid] = append(children[ppid], me)
		}
	}
	var out []int
	for queue := children[pid]; len(queue) > 0; queue = queue[1:] {
		out = append(out, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return out
}

// Survivors lists processes that still work in dir: their command line or environment names it.
func Survivors(dir string) []string {
	var out []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		if p == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		cmdline, _ := os.ReadFile(p + "/cmdline")
		if strings.Contains(string(cmdline), dir) {
			out = append(out, filepath.Base(p)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return out
}

// Ctl runs kennelctl on this house and returns what it printed.
func (h *House) Ctl(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(h.T.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(Bin, "kennelctl"), append([]string{"-onebox", h.Dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+h.Dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("kennelctl %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// CtlJSON runs kennelctl with -o json into v. A doctor that finds something wrong prints its report and fails.
func (h *House) CtlJSON(v any, args ...string) error {
	out, err := h.Ctl(append(args, "-o", "json")...)
	if bad := json.Unmarshal(out, v); err == nil && bad != nil {
		return fmt.Errorf("kennelctl %v: %w in %s", args, bad, out)
	}
	return err
}

// RobotRow is one robot as kennelctl robots list prints it.
type RobotRow struct {
	Thing    string `json:"thing"`
	Presence string `json:"presence"`
}

// AwaitPresent waits until n robots are present and returns their things.
func (h *House) AwaitPresent(n int) []string {
	h.T.Helper()
	var things []string
	Await(h.T, 3*time.Minute, fmt.Sprintf("%d robots present", n), func() error {
		var rows []RobotRow
		if err := h.CtlJSON(&rows, "robots", "list"); err != nil {
			return err
		}
		things = nil
		for _, r := range rows {
			if r.Presence == "present" {
				things = append(things, r.Thing)
			}
		}
		if len(things) < n {
			return fmt.Errorf("%d of %d present: %+v", len(things), n, rows)
		}
		return nil
	})
	slices.Sort(things)
	return things
}

// RobotRoot returns the folder of a robot that the house runs.
func (h *House) RobotRoot(thing string) string {
	return filepath.Join(h.Dir, "robots", strings.Replace(thing, ":", "-", 1))
}

// RobotPids reads which processes a robot consists of: their pids by program; nil if it does not run.
func RobotPids(root string) map[string]int {
	var s struct{ Pids map[string]int }
	b, err := os.ReadFile(filepath.Join(root, "run/sim.json"))
	if err != nil || json.Unmarshal(b, &s) != nil {
		return nil
	}
	return s.Pids
}

// Await is how the tests of the house wait.
var Await = testwait.Until

// SyncBuffer collects output of a process. It is safe for concurrent use; the String of a nil one is "".
type SyncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p; the error is always nil.
func (s *SyncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String returns all output so far.
func (s *SyncBuffer) String() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Tail returns the last lines of s.
func Tail(s string, lines int) string {
	all := strings.Split(s, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Kenneld runs a command of kenneld to its end and returns all it printed.
func Kenneld(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(Bin, "kenneld"), args...).CombinedOutput()
	return string(out), err
}

// ReadJSON decodes a file into v.
func ReadJSON(name string, v any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// DB opens the house's database until the test ends.
func (h *House) DB(t *testing.T) *pgx.Conn {
	t.Helper()
	dsn, err := os.ReadFile(h.Ready.Files["postgres_dsn"])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, strings.TrimSpace(string(dsn)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// PartPid reads the pid that one-machine mode recorded for a part; 0 if there is none.
func (h *House) PartPid(name string) int {
	var r ReadyFile
	if err := ReadJSON(filepath.Join(h.Dir, "run/ready.json"), &r); err != nil {
		return 0
	}
	return r.Pids[name]
}

// Program runs one of the programs to its end and returns what it printed.
func Program(t *testing.T, stdin string, env []string, name string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(Bin, name), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// Pick returns full in a full run, else light.
func Pick(light, full int) int {
	if Soak() {
		return full
	}
	return light
}

// Pause blocks for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

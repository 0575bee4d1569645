package e2e

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

	"kennel/infra/freeaddr"
	"kennel/infra/testwait"
)

// bin holds the programs under test, built once; work is a folder that an unprivileged Postgres can reach, also when the tests run as root.
var bin, work string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
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
	work = dir
	if bin = os.Getenv("KENNEL_BIN"); bin != "" { // make test builds them once
		return m.Run()
	}
	bin = filepath.Join(dir, "bin")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin+"/", "kennel/cmd/kenneld", "kennel/cmd/kennelctl", "kennel/cmd/agentd",
		"kennel/cmd/robotd", "kennel/cmd/robotsim", "kennel/cmd/s3d")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// logDir is where a robot keeps what its processes say.
const logDir = "data/data/com.anki.victor/cache/vic-logmgr"

// soak asks for the full run: more of the same.
func soak() bool { return os.Getenv("KENNEL_SOAK") != "" }

// house is a running one-machine mode.
type house struct {
	t    *testing.T
	dir  string
	args []string

	cmd    *exec.Cmd
	exited chan error
	out    *syncBuffer
	ready  readyFile
}

// readyFile is the content of the file that -ready-file writes.
type readyFile struct {
	Endpoints map[string]string `json:"endpoints"`
	Pids      map[string]int    `json:"pids"`
	Files     map[string]string `json:"files"`
}

// newHouse prepares a house with its own data folder and ports.
func newHouse(t *testing.T, args ...string) *house {
	t.Helper()
	dir, err := os.MkdirTemp(work, "data-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, dir: dir}
	h.args = append([]string{"onebox", "-data", dir}, listenArgs(t)...)
	h.args = append(h.args, args...)
	if !slices.Contains(args, "-recognizers") {
		h.args = append(h.args, "-recognizers", "none")
	}
	t.Cleanup(func() {
		if h.out != nil {
			h.noSecretsShown()
		}
		if h.cmd != nil {
			h.stop()
		}
		if t.Failed() {
			t.Logf("kenneld said:\n%s", tail(h.out.String(), 60))
			for _, f := range []string{"agentd.log", "robotd.log"} {
				logs, _ := filepath.Glob(filepath.Join(dir, "robots", "*", logDir, f))
				for _, l := range logs[:min(1, len(logs))] {
					b, _ := os.ReadFile(l)
					t.Logf("%s:\n%s", l, tail(string(b), 40))
				}
			}
		}
		os.RemoveAll(dir)
	})
	return h
}

// listenArgs picks free ports below the ephemeral range for every part.
func listenArgs(t *testing.T) []string {
	var args []string
	for _, part := range []string{"api", "console", "robots", "mqtt", "postgres", "s3"} {
		args = append(args, "-listen", part+"="+freeaddr.For(t))
	}
	return args
}

func (h *house) start() {
	h.t.Helper()
	ready := filepath.Join(h.dir, "ready-for-test.json")
	_ = os.Remove(ready) // of an earlier start
	h.cmd = exec.Command(filepath.Join(bin, "kenneld"), append(slices.Clone(h.args), "-ready-file", ready)...)
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if h.out == nil {
		h.out = &syncBuffer{}
	}
	h.cmd.Stderr = h.out
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	started := time.Now()
	startLocked(h.t, h.cmd)
	h.exited = make(chan error, 1)
	isReady := make(chan struct{})
	go func() {
		sc := bufio.NewScanner(io.TeeReader(stdout, h.out))
		once := sync.Once{}
		for sc.Scan() {
			if strings.Contains(sc.Text(), "Kennel is ready") {
				once.Do(func() { close(isReady) })
			}
		}
		h.exited <- h.cmd.Wait()
	}()
	select {
	case <-isReady:
	case err := <-h.exited:
		h.cmd = nil
		h.t.Fatalf("kenneld ended before it was ready: %v\n%s", err, tail(h.out.String(), 40))
	case <-time.After(5 * time.Minute): // the promise is 60 s; a fivefold ceiling
		h.t.Fatalf("kenneld is not ready\n%s", tail(h.out.String(), 40))
	}
	h.t.Logf("ready after %v", time.Since(started).Round(10*time.Millisecond))
	b, err := os.ReadFile(ready)
	if err != nil {
		h.t.Fatal(err)
	}
	h.ready = readyFile{}
	if err := json.Unmarshal(b, &h.ready); err != nil {
		h.t.Fatal(err)
	}
}

// startLocked starts cmd from a thread that lives as long as the test binary: a parent-death signal belongs to the thread.
func startLocked(t *testing.T, cmd *exec.Cmd) {
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

// stop is Ctrl-C; it returns the exit code.
func (h *house) stop() int {
	h.t.Helper()
	if h.cmd == nil {
		return 0
	}
	_ = h.cmd.Process.Signal(os.Interrupt)
	_ = h.cmd.Process.Signal(os.Interrupt) // as make, timeout and terminals together do
	select {
	case <-h.exited:
	case <-time.After(time.Minute):
		h.t.Errorf("kenneld does not stop\n%s", tail(h.out.String(), 40))
		h.killTree()
	}
	code := h.cmd.ProcessState.ExitCode()
	h.cmd = nil
	return code
}

// killTree is SIGKILL for kenneld and everything under it.
func (h *house) killTree() {
	h.t.Helper()
	pids := append(descendants(h.cmd.Process.Pid), h.cmd.Process.Pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-h.exited
	h.cmd = nil
}

// descendants lists the processes below pid.
func descendants(pid int) []int {
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

// survivors lists processes that still work in dir: their command line or environment names it.
func survivors(dir string) []string {
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

// ctl runs kennelctl on this house and returns what it printed.
func (h *house) ctl(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kennelctl"), append([]string{"-onebox", h.dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+h.dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("kennelctl %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// ctlJSON runs kennelctl with -o json into v. A doctor that finds something wrong prints its report and fails.
func (h *house) ctlJSON(v any, args ...string) error {
	out, err := h.ctl(append(args, "-o", "json")...)
	if bad := json.Unmarshal(out, v); err == nil && bad != nil {
		return fmt.Errorf("kennelctl %v: %w in %s", args, bad, out)
	}
	return err
}

type robotRow struct {
	Thing    string `json:"thing"`
	Presence string `json:"presence"`
}

// awaitPresent waits until n robots are present and returns their things.
func (h *house) awaitPresent(n int) []string {
	h.t.Helper()
	var things []string
	await(h.t, 3*time.Minute, fmt.Sprintf("%d robots present", n), func() error {
		var rows []robotRow
		if err := h.ctlJSON(&rows, "robots", "list"); err != nil {
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

// robotRoot returns the folder of a robot that the house runs.
func (h *house) robotRoot(thing string) string {
	return filepath.Join(h.dir, "robots", strings.Replace(thing, ":", "-", 1))
}

// robotPids reads which processes a robot consists of.
func robotPids(root string) map[string]int {
	var s struct{ Pids map[string]int }
	b, err := os.ReadFile(filepath.Join(root, "run/sim.json"))
	if err != nil || json.Unmarshal(b, &s) != nil {
		return nil
	}
	return s.Pids
}

// await is how the tests of this package wait.
var await = testwait.Until

// syncBuffer collects output of a process.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func tail(s string, lines int) string {
	all := strings.Split(s, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// kenneld runs a command of kenneld to its end and returns all it printed.
func kenneld(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(bin, "kenneld"), args...).CombinedOutput()
	return string(out), err
}

func readJSONFile(name string, v any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

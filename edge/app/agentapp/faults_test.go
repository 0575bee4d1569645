package agentapp

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/das"
	"kennel/edge/agent/health/faults"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/cli"
)

// scriptedCore is a real-time core that says what a test wants it to say.
type scriptedCore struct{ says chan corelink.Message }

func (c scriptedCore) Run(ctx context.Context, handle func(corelink.Message)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-c.says:
			handle(m)
		}
	}
}

func (scriptedCore) Hello() (corelink.Hello, bool) { return corelink.Hello{}, false }
func (scriptedCore) Send(corelink.Message) error   { return corelink.ErrNotConnected }

// shows waits until the robot shows that.
func shows(t *testing.T, root *os.Root, want faultcode.Code) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, err := faults.Showing(root)
		if err != nil {
			t.Fatal(err)
		}
		if got == want && !faults.Pending(root) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the robot shows %v, want %v", got, want)
		}
	}
}

// TestCoreThatHangs: VEC-WDOG-04, VEC-WDOG-05, with a process: a robotd that says nothing new is
// shown as 916 and ended, by force if need be; what the link repeats to who joins is no word of it.
// One that speaks again is well.
func TestCoreThatHangs(t *testing.T) {
	t.Parallel()
	core := scriptedCore{make(chan corelink.Message)}
	asked := filepath.Join(t.TempDir(), "asked")
	dir, root, _ := newRobot(t, nil)
	if err := robotfs.WriteFile(root, platform.FaultHandlerFile, []byte("ON_FAULT_RESTART=1\nTIMEOUT_SIGTERM_SEC=1\nTIMEOUT_RESTART_SEC=0\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, dir, root, func(c *Config) {
		c.Core, c.Silence, c.Restart = core, 2*time.Second, []string{"/bin/sh", "-c", `echo "$1" >>"$0"`, asked}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	robot := exec.Command("/bin/sh", "-c", `trap "" TERM ABRT; echo up; while :; do sleep 60; done`) // it does not listen
	up, err := robot.StdoutPipe()
	if err == nil {
		err = robot.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	if _, err := up.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- robot.Wait() }()
	hello := &corelink.Hello{Program: "robotd", PID: uint32(robot.Process.Pid)}
	core.says <- hello
	core.says <- &corelink.LoopStats{UptimeUS: 1}
	core.says <- &corelink.Fault{Code: 960, Text: faultcode.Code(960).Text()} // which stops nothing
	shows(t, root, 960)
	core.says <- &corelink.Fault{}
	shows(t, root, 0)
	// A new link repeats the messages of the old one.
	stale := time.NewTicker(200 * time.Millisecond)
	defer stale.Stop()
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-stale.C:
			core.says <- hello
			core.says <- &corelink.LoopStats{UptimeUS: 1}
		case <-time.After(30 * time.Second):
			_ = robot.Process.Kill()
			t.Fatal("a core that hangs is left alone")
		}
	}
	shows(t, root, faultcode.RobotFailed)
	if b, err := os.ReadFile(asked); err != nil || string(b) != "robotd\n" {
		t.Errorf("the command to restart it was asked for %q, %v", b, err)
	}
	m := a.Status()
	if i := slices.IndexFunc(m.Problems, func(p string) bool {
		return strings.HasPrefix(p, "fault 916: ") && strings.HasSuffix(p, "the robot shows it")
	}); i < 0 {
		t.Errorf("problems %q", m.Problems)
	}
	if !slices.ContainsFunc(a.facts().Faults, func(f string) bool { return strings.HasPrefix(f, "fault 916") }) {
		t.Errorf("the report knows of %q", a.facts().Faults)
	}
	core.says <- &corelink.Hello{Program: "robotd", PID: uint32(os.Getpid())}
	core.says <- &corelink.LoopStats{UptimeUS: 5}
	shows(t, root, 0)
}

// TestFaultCommands: VEC-FLT-03, VEC-FLT-11, VEC-BOOT-15: a service's exit hook, and a person at the robot; with and without an agentd.
func TestFaultCommands(t *testing.T) {
	t.Parallel()
	dir, root, _ := newRobot(t, nil)
	result := "success"
	run := func(args ...string) (int, string, string) {
		t.Helper()
		var out, errOut strings.Builder
		code := Main(append([]string{"fault"}, append(args, "-root", dir)...), func(k string) string {
			return map[string]string{"SERVICE_RESULT": result}[k]
		}, &out, &errOut)
		return code, out.String(), errOut.String()
	}
	for _, wrong := range []string{"0", "1000", "x", "-5"} {
		if code, _, errOut := run("post", wrong); code != cli.ExitUsage {
			t.Errorf("post %s: code %d, %s", wrong, code, errOut)
		}
	}
	if code, _, errOut := run("post", "-on-exit", "914"); code != cli.ExitOK {
		t.Errorf("post: code %d, %s", code, errOut)
	}
	if _, err := root.Lstat(faults.File); err == nil {
		t.Error("a service that ended well has posted")
	}
	result = "signal"
	if code, _, errOut := run("post", "-on-exit", "914"); code != cli.ExitOK {
		t.Errorf("post: code %d, %s", code, errOut)
	}
	if b, err := robotfs.ReadFile(root, faults.File); err != nil || string(b) != "914\n" {
		t.Errorf("what waits is %q, %v", b, err)
	}
	a := newAgent(t, dir, root, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	shows(t, root, 914)
	if code, out, errOut := run("show"); code != cli.ExitOK || !strings.Contains(out, "914") ||
		!strings.Contains(out, "Vic-engine was unable to start") {
		t.Errorf("show: code %d, %s%s", code, out, errOut)
	}
	if code, out, errOut := run("show", "-o", "json"); code != cli.ExitOK || !strings.Contains(out, `"fault": 914`) {
		t.Errorf("show: code %d, %s%s", code, out, errOut)
	}
	if code, _, errOut := run("clear"); code != cli.ExitOK {
		t.Errorf("clear: code %d, %s", code, errOut)
	}
	for end := time.Now().Add(20 * time.Second); len(a.health.Problems()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q stand after they were cleared", a.health.Problems())
		}
	}
	if code, _, errOut := run("post", "921"); code != cli.ExitOK {
		t.Errorf("post: code %d, %s", code, errOut)
	}
	shows(t, root, 921)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := errors.Join(faults.Clear(root), root.WriteFile(faults.PendingFile, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := run("post", "-on-exit", "916"); code != cli.ExitOK {
		t.Errorf("post: code %d, %s", code, errOut)
	}
	if info, err := root.Lstat(faults.File); err != nil || info.Mode().IsRegular() {
		t.Errorf("posted while another was pending: %v, %v", info.Mode(), err)
	}
	if code, out, errOut := run("show"); code != cli.ExitOK || !strings.Contains(out, "no fault") {
		t.Errorf("show: code %d, %s%s", code, out, errOut)
	}
}

// TestAgentThatCannotStart: VEC-BOOT-15: no other program can show the fault, if the reason has one; an agentd that starts clears it.
func TestAgentThatCannotStart(t *testing.T) {
	dir, root, _ := newRobot(t, nil)
	cfg := Config{Root: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if err := errors.Join(root.MkdirAll("data/kennel", 0o755), root.WriteFile(das.QuarantineDir, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), root, cfg); err == nil || faultcode.Of(err) != 0 {
		t.Fatal(err)
	}
	if got, err := faults.Showing(root); got != 0 || err != nil {
		t.Errorf("shown: %v, %v; want none", got, err)
	}
	if err := errors.Join(root.Remove(das.QuarantineDir), root.Rename("dev/block/bootdevice/by-name/emr", "dev/block/bootdevice/by-name/away")); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), root, cfg); faultcode.Of(err) != faultcode.CloudESN {
		t.Fatal(err)
	}
	if got, err := faults.Showing(root); got != faultcode.CloudESN || err != nil {
		t.Errorf("shown: %v, %v; want 852", got, err)
	}
	if err := root.Rename("dev/block/bootdevice/by-name/away", "dev/block/bootdevice/by-name/emr"); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, dir, root, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	shows(t, root, 0)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestPlannedEnd: an agentd that ends because of a restart request ends with code 0: its supervisor posts no fault (VEC-WDOG-04).
func TestPlannedEnd(t *testing.T) {
	t.Parallel()
	dir, _, _ := newRobot(t, nil)
	done := make(chan int, 1)
	var out, errOut strings.Builder
	go func() { done <- Main([]string{"-root", dir}, func(string) string { return "" }, &out, &errOut) }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		code, _, said := runCommand(dir, "", "clear-user-data", "-yes")
		if code == cli.ExitOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("clear-user-data: code %d, %s", code, said)
		}
	}
	if code := <-done; code != cli.ExitOK || !strings.Contains(errOut.String(), "to be restarted") {
		t.Errorf("code %d, want 0; it said\n%s", code, errOut.String())
	}
}

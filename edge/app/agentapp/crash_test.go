package agentapp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/core/corelink"
	"kennel/edge/crash"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/testexec"
	"kennel/infra/testwait"
)

// The test binary runs itself as a robotd that hangs.
const envHang = "KENNEL_AGENTAPP_TEST_HANG"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envHang); dir != "" {
		crash.Begin(dir, "robotd", hardware, func(string) string { return "" }, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		fmt.Println("up")
		hangs()
	}
	os.Exit(m.Run())
}

//go:noinline
func hangs() { time.Sleep(time.Hour) }

// TestHungCoreLeavesItsStacks: VEC-CRS-01, VEC-WDOG-05, with a process: a robotd that hangs is ended so that its record has the stacks of its goroutines, and
// that crash is an event.
func TestHungCoreLeavesItsStacks(t *testing.T) {
	t.Parallel()
	core := scriptedCore{make(chan corelink.Message)}
	dir, root := born(t, nil)
	if err := robotfs.WriteFile(root, platform.FaultHandlerFile, []byte("ON_FAULT_RESTART=1\nTIMEOUT_SIGTERM_SEC=60\nTIMEOUT_RESTART_SEC=0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, dir, root, func(c *Config) { c.Core, c.Silence = core, time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	robot := testexec.Command(ctx, t, []string{envHang + "=" + dir})
	out, err := robot.StdoutPipe()
	if err == nil {
		err = robot.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	core.says <- &corelink.Hello{Program: "robotd", PID: uint32(robot.Process.Pid)}
	core.says <- &corelink.LoopStats{UptimeUS: 1}
	_ = robot.Wait() // its end is awaited, not how
	shows(t, root, faultcode.RobotFailed)
	testwait.Until(t, 5*testwait.Long, "record", func() error {
		names, _ := filepath.Glob(filepath.Join(dir, robotfs.Cache, "crashDumps", "robotd-*.dmp"))
		if len(names) != 1 {
			return fmt.Errorf("records %q", names)
		}
		b, err := os.ReadFile(names[0])
		if err != nil {
			return err
		}
		r, err := crash.Parse(b)
		if err == nil && (r.Reason != "it hung, and agentd ended it; SIGABRT: abort" || !strings.Contains(string(r.Text), "agentapp.hangs")) {
			err = fmt.Errorf("%s", b)
		}
		return err
	})
	testwait.Until(t, 5*testwait.Long, "event", func() error {
		if got := inOrder(t, root, "robot.crash"); len(got) != 1 || got[0] != "robotd" {
			return errors.New(strings.Join(got, " "))
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

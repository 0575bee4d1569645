package robotapp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/core/corelink"
	"kennel/infra/cli"
)

// TestRunInProcess is the same wiring where the race detector sees it.
func TestRunInProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.powerOn()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, slog.New(slog.DiscardHandler), configOf(b.root, "vector", b.device))
	}()
	c := b.peer()
	await(c, "state", linked)
	for _, m := range []corelink.Message{&corelink.Do{Line: "led[0].r = 1"}, &corelink.Halt{}, &corelink.Raw{Name: "newer", Payload: []byte{9}}} {
		c.send(m)
	}
	await(c, "halted", func(s *corelink.State) bool { return s.Halted })
	await(c, "statistics", func(l *corelink.LoopStats) bool { return l.Steps > 0 })
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Run does not end")
	}
}

// TestSecondRobotd: a root has one robotd, and the error names the other.
func TestSecondRobotd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.start(nil)
	c := b.peer()
	await(c, "hello", func(*corelink.Hello) bool { return true })
	second := b.start(nil)
	if code := second.wait(); code == 0 || !strings.Contains(second.log.String(), fmt.Sprintf("pid %d", p.cmd.Process.Pid)) {
		t.Errorf("exit code %d, said %q; want a failure that names the first", code, second.log)
	}
}

func TestCommandLine(t *testing.T) {
	for _, line := range cli.Lint(command()) {
		t.Error(line)
	}
	env := func(string) string { return "" }
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-version"}, 0, "robotd version "},
		{[]string{"-help"}, 0, "robotd -root ./r1"},
		{[]string{"-body", "cozmo"}, cli.ExitUsage, `-body "cozmo": want one of vector, amigobot`},
		{[]string{"-imu-rate", "7"}, cli.ExitUsage, "imu-rate"},
		{[]string{"-priority", "100"}, cli.ExitUsage, "want 1 to 99"},
		{[]string{"-cpu", "1000000"}, cli.ExitUsage, "processors 0"},
		{[]string{"-cpu", "0", "-priority", "0"}, cli.ExitUsage, "want a priority"},
		{[]string{"-record-limit", "0"}, cli.ExitUsage, "want 1 to"},
		{[]string{"-root", t.TempDir(), "-log-level", "loud"}, cli.ExitUsage, "want debug, info, warn or error"},
		{[]string{"-root", filepath.Join(t.TempDir(), "none")}, cli.ExitUsage, "want the robot's folder"},
		{[]string{"-nonsense"}, cli.ExitUsage, "nonsense"},
	} {
		var out bytes.Buffer
		if code := Main(tc.args, env, &out, io.Writer(&out)); code != tc.code || !strings.Contains(out.String(), tc.want) {
			t.Errorf("robotd %v: code %d, %q; want %d, %q", tc.args, code, out.String(), tc.code, tc.want)
		}
	}
}

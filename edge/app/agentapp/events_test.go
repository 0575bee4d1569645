package agentapp

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/agent/eventlog"
	"kennel/edge/agent/experiments"
	"kennel/edge/env/robotfs"
	"kennel/infra/cli"
	"kennel/infra/testwait"
)

// shared is a buffer that a program writes while a test reads.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestEventsFromOutside is VEC-LOG-09 and VEC-DAS-17: agentd's own events are lines of its text log, as are those that the command line posts and those in
// the logs of other programs; VEC-DAS-16: the robot's experiments are events, too.
func TestEventsFromOutside(t *testing.T) {
	dir, root := born(t, nil)
	const plan = `{"meta":{"version":2,"revision":1},"experiments":[{"key":"faster","activation_mode":"automatic","variations":[{"key":"treatment","pop_fract_pct":100}]}]}`
	if err := robotfs.WriteFile(root, experiments.File, []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	var log shared
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, command(func(string) string { return "" }), []string{"-root", dir}, func(string) string { return "" }, &log, &log)
	}()
	said := func(want string) {
		t.Helper()
		testwait.Until(t, time.Minute, want, testwait.Holds(func() bool { return strings.Contains(log.String(), want) }))
	}
	said(" info agentd: @robot.boot_info\x1f")
	said(" info agentd: @experiment.assigned\x1ffaster\x1ftreatment\x1f2.1\x1fdrawn\x1f0\x1f")
	awaitCommand(t, dir, "", "want module.name", "event", "poked")
	testwait.Until(t, time.Minute, "an event posted by command", testwait.Holds(func() bool {
		code, _, _ := runCommand(dir, "", "event", "robot.poked", "hello", "7", "i3=-1", "-source", "test")
		return code == cli.ExitOK
	}))
	said(" info test: @robot.poked\x1fhello\x1f\x1f\x1f\x1f7\x1f\x1f-1\x1f\x1f")
	for args, want := range map[string]string{
		"event robot.poked i1=x":        "i1 \"x\": want a 64-bit integer",
		"event robot.poked a b c d e":   "s1 to s4 are given",
		"event robot.poked 1 2 3 4 5":   "i1 to i4 are given",
		"event robot.poked -level LOUD": "level \"LOUD\": want a lower-case word",
	} {
		if code, _, errOut := runCommand(dir, "", strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(errOut, want) {
			t.Errorf("%s: code %d, %s; want %s", args, code, errOut, want)
		}
	}
	f, err := root.OpenFile(eventlog.File, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("Nov 23 warn vic-engine[8]: @mood.event\x1fhappy\n")
		_ = f.Close() // a FIFO
	}
	if err != nil {
		t.Fatal(err)
	}
	said(" warning vic-engine: @mood.event\x1fhappy\x1f")
	if code, out, _ := runCommand(dir, "", "experiments"); code != cli.ExitOK || strings.Join(strings.Fields(out), " ") != "faster treatment drawn" {
		t.Errorf("experiments: code %d, %q", code, out)
	}
	if code, out, errOut := runCommand(dir, "", "profile", "-every", "10ms", "-count", "2", "-pid", "1"); code != cli.ExitOK || strings.Count(out, "KiB") != 2 {
		t.Errorf("profile: code %d, %s%s", code, out, errOut)
	}
	// 30.5: of a simulated robot it says at once that there is nothing to see, instead of an empty line every ten seconds.
	if code, out, errOut := runCommand(dir, "", "profile", "-every", "10ms", "-count", "1", "-o", "json"); code != cli.ExitNotFound || out != "" || !strings.Contains(errOut, "nothing_to_see") {
		t.Errorf("profile of nothing: code %d, %s%s", code, out, errOut)
	}
	if code, out, errOut := runCommand(dir, "", "trace", "-seconds", "1"); code != cli.ExitOK {
		t.Errorf("trace: code %d, %s", code, errOut)
	} else if b, err := root.ReadFile(strings.TrimSpace(out)); err != nil || !bytes.HasPrefix(b, []byte("go 1.")) {
		t.Errorf("trace in %q: %v", out, err)
	}
	if code, _, errOut := runCommand(dir, "", "trace", "-seconds", "31"); code != cli.ExitUsage || !strings.Contains(errOut, "want 1s to 30s") {
		t.Errorf("a long trace: code %d, %s", code, errOut)
	}
	stop()
	if code := testwait.For(t, ended, "the end of agentd"); code != cli.ExitOK {
		t.Errorf("code %d: %s", code, log.String())
	}
}

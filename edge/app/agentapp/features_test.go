package agentapp

import (
	"context"
	"strings"
	"testing"
	"time"

	"kennel/infra/cli"
	"kennel/infra/testwait"
)

// TestFeatureCommands: a developer sees the features of a running agent, overrides one, and ends that (VEC-DOC-11, VEC-DOC-12).
func TestFeatureCommands(t *testing.T) {
	t.Parallel()
	dir, root, _ := newRobot(t, nil)
	run := func(args ...string) (int, string) {
		t.Helper()
		var out, errOut strings.Builder
		code := Main(append([]string{"features"}, append(args, "-root", dir)...), func(string) string { return "" }, &out, &errOut)
		return code, out.String() + errOut.String()
	}
	a := newAgent(t, dir, root, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	shows := func(want string) func() bool {
		return func() bool {
			code, out := run("-o", "json")
			return code == cli.ExitOK && strings.Contains(strings.Join(strings.Fields(out), ""), want)
		}
	}
	testwait.Until(t, 20*time.Second, "the features of a running agent", testwait.Holds(shows(`{"feature":"Volume","enabled":true,"override":"none"}`)))
	if code, out := run("set", "Volume", "disabled"); code != cli.ExitOK || !shows(`{"feature":"Volume","enabled":false,"override":"disabled"}`)() {
		t.Errorf("set: code %d, %s", code, out)
	}
	if code, out := run("set", "Fly", "disabled"); code != cli.ExitNotFound || !strings.Contains(out, "Fly") {
		t.Errorf("set an unknown one: code %d, %s", code, out)
	}
	if code, out := run("set", "Volume", "maybe"); code != cli.ExitUsage {
		t.Errorf("set to no state: code %d, %s", code, out)
	}
	if code, out := run("reset"); code != cli.ExitOK || !shows(`{"feature":"Volume","enabled":true,"override":"none"}`)() {
		t.Errorf("reset: code %d, %s", code, out)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

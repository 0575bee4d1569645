package agentapp

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"kennel/infra/cli"
)

// TestNoRobotWithoutFlags (30.5): without -root agentd takes its default for a robot only if it looks like one, not the root of a desk machine.
func TestNoRobotWithoutFlags(t *testing.T) {
	cmd := command(func(string) string { return "" })
	if err := cmd.PersistentFlags().Lookup("root").Value.Set(t.TempDir()); err != nil { // the default of this test
		t.Fatal(err)
	}
	cli.AddOutput(cmd)
	var out, errOut bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of a program that runs on
	defer cancel()
	code := cli.Run(ctx, cmd, []string{"-o", "json"}, func(string) string { return "" }, &out, &errOut)
	if code != cli.ExitUsage || !strings.Contains(errOut.String(), `"no_robot"`) {
		t.Errorf("code %d, %s%s; want a refusal", code, &out, &errOut)
	}
}

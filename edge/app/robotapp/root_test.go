package robotapp

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"kennel/infra/cli"
)

// TestNoRobotWithoutFlags (30.5): without -root robotd takes its default for a robot only if it looks like one, not the root of a desk machine.
func TestNoRobotWithoutFlags(t *testing.T) {
	cmd := command()
	if err := cmd.Flags().Lookup("root").Value.Set(t.TempDir()); err != nil { // the default of this test
		t.Fatal(err)
	}
	cli.AddOutput(cmd)
	var out, errOut bytes.Buffer
	code := cli.Run(context.Background(), cmd, []string{"-o", "json"}, func(string) string { return "" }, &out, &errOut)
	if code != cli.ExitUsage || !strings.Contains(errOut.String(), `"no_robot"`) {
		t.Errorf("code %d, %s%s; want a refusal", code, &out, &errOut)
	}
}

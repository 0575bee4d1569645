package ctl

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"kennel/infra/cli"
)

// TestDownloadsGoWhereTheyAreAsked: without -to a file is written to standard output, and refused where a person would see it; with a folder it has a name of its own
// there. Nothing appears in the current folder.
func TestDownloadsGoWhereTheyAreAsked(t *testing.T) {
	c := newCloud(t)
	dir, here, there := c.onebox(t), t.TempDir(), t.TempDir()
	t.Chdir(here)
	export := func(args ...string) (int, string, string) {
		return run(t.Context(), nil, "", append([]string{"-onebox", dir, "events", "export", "-format", "csv"}, args...)...)
	}
	const csv = "received,thing\n2026-05-06T12:00:00Z,vic:00e20100\n"
	if code, out, errOut := export(); code != 0 || out != csv {
		t.Errorf("to no terminal: exit %d, %q, %s", code, out, errOut)
	}
	terminal := onTerminal
	t.Cleanup(func() { onTerminal = terminal })
	onTerminal = func(io.Writer) bool { return true }
	for _, args := range [][]string{{"events", "export"}, {"diag", "vic:00e20100"}, {"logs", "get", "vic:00e20100", "x"}, {"crashes", "get", "x"}, {"account", "export"}} {
		before := c.sent()
		if code, out, errOut := run(t.Context(), nil, "", append([]string{"-onebox", dir}, args...)...); code != cli.ExitUsage || out != "" || c.sent() != before {
			t.Errorf("%v to a terminal: exit %d, %q, %s, sent %s", args, code, out, errOut, c.sent())
		}
	}
	if code, out, _ := export("-to", "-"); code != 0 || out != csv {
		t.Errorf("-to -: exit %d, %q", code, out)
	}
	code, out, errOut := export("-to", there, "-o", "json")
	var saved struct {
		File   string
		Events int
	}
	if err := json.Unmarshal([]byte(out), &saved); err != nil || code != 0 || saved.Events != 1 || filepath.Dir(saved.File) != there {
		t.Fatalf("exit %d, %s%s, %v", code, out, errOut, err)
	}
	if b, err := os.ReadFile(saved.File); err != nil || string(b) != csv {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(here); err != nil || len(left) > 0 {
		t.Errorf("in the current folder: %v, %v", left, err)
	}
}

package agentapp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/cli"
)

// TestRobotBuild: agentd builds for the robot's processor without cgo and fits (under 30 MB).
func TestRobotBuild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentd")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "kennel/cmd/agentd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm", "GOARM=7")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Size() >= 30_000_000 {
		t.Errorf("agentd for linux/arm v7 has %d bytes, want less than 30 MB", fi.Size())
	}
	t.Logf("agentd for linux/arm v7: %.1f MiB", float64(fi.Size())/(1<<20))
}

// TestCommandLine: help has examples, mistakes are usage errors with the reason.
func TestCommandLine(t *testing.T) {
	noenv := func(string) string { return "" }
	var out, errOut bytes.Buffer
	if code := Main([]string{"-help"}, noenv, &out, &errOut); code != cli.ExitOK || !strings.Contains(out.String(), "agentd -root") {
		t.Errorf("help: code %d\n%s%s", code, &out, &errOut)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-root", "/nonexistent-kennel"}, "want the robot's folder"},
		{[]string{"-log-level", "loud"}, "want debug, info, warn or error"},
		{[]string{"-rot", "x"}, "rot"},
		{[]string{"-root", t.TempDir()}, "serial number"},
	} {
		errOut.Reset()
		if code := Main(tc.args, noenv, &out, &errOut); code == cli.ExitOK || !strings.Contains(errOut.String(), tc.want) {
			t.Errorf("%v: code %d, %s; want %q", tc.args, code, &errOut, tc.want)
		}
	}
}

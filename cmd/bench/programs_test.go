package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// programNames are the programs that benchmarks start.
var programNames = []string{"agentd", "kenneld", "robotd", "robotsim", "s3d"}

var (
	programsMu  sync.Mutex
	programsDir string // "": not there yet
	programsTmp string // what was made
)

// programs returns the folder with the programs to measure: those in KENNEL_BIN, which must be of one build, because a robotsim of last week beside
// today's kenneld fails in the middle of a long run, or measures a mix that no user has. Without it they are built from the source, into a folder of this
// run alone, so that they do not change while they are measured.
func programs(tb testing.TB) string {
	tb.Helper()
	programsMu.Lock()
	defer programsMu.Unlock()
	if programsDir != "" {
		return programsDir
	}
	dir := os.Getenv("KENNEL_BIN")
	if dir == "" {
		var err error
		if dir, err = buildPrograms(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := oneBuild(tb.Context(), dir, programNames); err != nil {
		tb.Fatal(err)
	}
	programsDir = dir
	return dir
}

func buildPrograms(ctx context.Context) (string, error) {
	// A folder that the unprivileged account of Postgres can reach.
	dir, err := os.MkdirTemp("", "kennel-bench-bin-")
	if err != nil {
		return "", err
	}
	programsTmp = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	args := []string{"build", "-ldflags=-s -w", "-o", dir + "/"}
	for _, n := range programNames {
		args = append(args, "kennel/cmd/"+n)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %.2000s", strings.Join(programNames, ", "), err, out)
	}
	return dir, nil
}

// removePrograms removes what programs built.
func removePrograms() {
	if programsTmp != "" {
		_ = os.RemoveAll(programsTmp) // the temporary folder is cleaned by others too
	}
}

// oneBuild returns the version that all programs in dir say they are.
func oneBuild(ctx context.Context, dir string, names []string) (string, error) {
	first, of := "", ""
	for _, n := range names {
		out, err := exec.CommandContext(ctx, filepath.Join(dir, n), "version").Output()
		if err != nil {
			return "", fmt.Errorf("version of %s: %w (make build makes the programs; without -bin bench builds its own)", filepath.Join(dir, n), err)
		}
		v := versionOf(out)
		switch {
		case v == "":
			return "", fmt.Errorf("version of %s: %.80q: want NAME VERSION", filepath.Join(dir, n), out)
		case first == "":
			first, of = v, n
		case v != first:
			return "", fmt.Errorf("programs of different builds in %s: %s is %s, %s is %s (make build makes them all; without -bin bench builds its own)", dir, of, first, n, v)
		}
	}
	return first, nil
}

// versionOf reads what a program's version command printed: its name, its version, and more.
func versionOf(out []byte) string {
	if f := strings.Fields(string(out)); len(f) >= 2 {
		return f[1]
	}
	return ""
}

// TestOneBuild: programs of different builds are refused before anything is measured, not met in the middle of a run.
func TestOneBuild(t *testing.T) {
	dir := t.TempDir()
	say := func(name, line string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range programNames {
		say(n, "echo "+n+" v1.2.0 and more")
	}
	if build, err := oneBuild(t.Context(), dir, programNames); err != nil || build != "v1.2.0" {
		t.Errorf("%q, %v", build, err)
	}
	for line, want := range map[string]string{
		"echo robotsim v1.1.9": "agentd is v1.2.0, robotsim is v1.1.9",
		"echo":                 "want NAME VERSION",
		"exit 3":               "exit status 3",
	} {
		say("robotsim", line)
		if _, err := oneBuild(t.Context(), dir, programNames); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one that says %q", line, err, want)
		}
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"kennel/infra/bench"
	"kennel/infra/cli/version"
)

// neededBy lists the programs that benches start, each once, in order.
func neededBy(benches []bench.Bench) []string {
	var out []string
	for _, b := range benches {
		out = append(out, b.Programs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// programsFor returns the folder with the programs to measure and their version. With a bin they are those in it, which must be of one build:
// a robotsim of last week beside today's kenneld fails in the middle of a long run, or measures what nobody has. Without they are built from
// the source that bench is run in, as make build does, into a folder of this run alone, so that nobody changes them while they are measured.
// done removes what was made.
func programsFor(ctx context.Context, bin string, names []string, log func(format string, args ...any)) (dir, build string, done func(), err error) {
	if bin != "" {
		if bin, err = filepath.Abs(bin); err != nil {
			return "", "", nil, err
		}
		build, err = oneBuild(ctx, bin, names)
		return bin, build, func() {}, err
	}
	// A folder that the unprivileged account of Postgres can reach.
	if dir, err = os.MkdirTemp("", "kennel-bench-bin-"); err != nil {
		return "", "", nil, err
	}
	done = func() { _ = os.RemoveAll(dir) } // the temporary folder is cleaned by others too
	defer func() {
		if err != nil {
			done()
		}
	}()
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", "", nil, err
	}
	log("building %s", strings.Join(names, ", "))
	// Without -trimpath, so that what the tests have compiled is used again.
	args := []string{"build", "-ldflags", "-s -w -X kennel/infra/cli/version.version=" + version.String(), "-o", dir + "/"}
	for _, n := range names {
		args = append(args, "kennel/cmd/"+n)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", nil, fmt.Errorf("build %s: %w: %.2000s (run bench in the source, or name built programs with -bin)", strings.Join(names, ", "), err, out)
	}
	build, err = oneBuild(ctx, dir, names)
	return dir, build, done, err
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

// Command bench runs every benchmark of this source that measures beside a reference (infra/bench) and prints one table. The benchmarks of a package
// stand beside it; those of the whole system are tests of this command.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/bench"
	"kennel/infra/cli"
	"kennel/infra/cli/version"
)

func main() { os.Exit(cli.Main(command(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }

// options are those of one run.
type options struct {
	pattern, bin, out, costs  string
	count                     int
	list, strict, long, quick bool
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure, each number beside a reference",
		Long: `Measure on this machine what the source in the current folder does. Measurement and reference take turns, -count times each; what is
printed are the medians. A ratio above 1 is better than the reference. All results are also in bench.json, in -out.`,
		Example: "  bench\n  bench -list\n  bench -run 'logins|events' -count 5 -strict\n  bench -run recovery -long -o json\n  bench -bin /opt/kennel/bin -out /tmp",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.pattern, "run", "", "only benchmarks whose name matches this regular expression")
	f.StringVar(&o.bin, "bin", "", "folder with built programs (default: build them from the source in the current folder)")
	f.StringVar(&o.out, "out", "bin", "folder for results")
	f.StringVar(&o.costs, "costs", "", "the benchmark costs also writes its results to this `FILE`, for kenneld plan")
	f.IntVar(&o.count, "count", 3, "turns of each measurement and of its reference")
	f.BoolVar(&o.list, "list", false, "list the benchmarks and exit")
	f.BoolVar(&o.strict, "strict", false, "fail if a ratio is below its bound")
	f.BoolVar(&o.long, "long", false, "the full run: an outage of ten minutes instead of 20 s")
	f.BoolVar(&o.quick, "quick", false, "a tenth of the work: shows that everything runs, measures little")
	cli.AddOutput(cmd)
	return cmd
}

func run(cmd *cobra.Command, o options) error {
	pattern, err := regexp.Compile(o.pattern)
	switch {
	case err != nil:
		return cli.Usage("-run: %w", err)
	case o.count < 1:
		return cli.Usage("-count %d: want at least 1", o.count)
	case o.long && o.quick:
		return cli.Usage("-long and -quick: want one of them")
	}
	all, err := find(".")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(b benchmark) bool { return !pattern.MatchString(b.name) })
	if len(all) == 0 { // a typing mistake must not look like success
		return cli.Usage("-run: no benchmark of the current folder matches %.80q", o.pattern)
	}
	if o.list {
		for _, b := range all {
			fmt.Fprintf(cmd.OutOrStdout(), "%-12s %-28s %s\n", b.name, b.pkg, b.about)
		}
		return nil
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return err
	}
	if o.costs != "" { // the go command changes to the package's folder
		if o.costs, err = filepath.Abs(o.costs); err != nil {
			return err
		}
	}
	results := filepath.Join(o.out, bench.ResultsFile)
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if err := os.Remove(results); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	rep := report{Started: time.Now().UTC(), Version: version.String(), Machine: thisMachine()}
	for _, b := range all {
		if err := b.run(cmd.Context(), o, cmd.ErrOrStderr()); err != nil {
			if cmd.Context().Err() != nil {
				return context.Cause(cmd.Context())
			}
			rep.Failed = append(rep.Failed, failure{b.name, err.Error()})
		}
	}
	if rep.Results, err = readResults(results); err != nil {
		return err
	}
	if err := rep.save(filepath.Join(o.out, "bench.json")); err != nil {
		return err
	}
	if err := rep.write(cmd.OutOrStdout(), cli.JSON(cmd)); err != nil {
		return err
	}
	return rep.verdict(o.strict)
}

// benchmark is one of the source.
type benchmark struct {
	name  string // what it measures, in lower case: "logins"
	pkg   string // "./infra/mqtt/broker"
	fn    string
	about string // the first sentence of its comment
}

// benchmarkPattern finds benchmarks with their comment.
var benchmarkPattern = regexp.MustCompile(`(?m)((?:^//.*\n)*)^func (Benchmark([A-Z]\w*)Beside[A-Z]\w*)\(`)

// find lists the benchmarks below dir that measure beside a reference, those of the whole system last.
func find(dir string) ([]benchmark, error) {
	var out []benchmark
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != dir && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(file)
		for _, m := range benchmarkPattern.FindAllStringSubmatch(string(b), -1) {
			comment := strings.ReplaceAll(strings.ReplaceAll(m[1], "\n// ", " "), "// ", "")
			first, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(comment, m[2])), ". ")
			out = append(out, benchmark{strings.ToLower(m[3]), "./" + filepath.ToSlash(filepath.Dir(file)), m[2], strings.TrimSuffix(strings.TrimSpace(first), ".")})
		}
		return err
	})
	slices.SortStableFunc(out, func(a, b benchmark) int { return strings.Compare(order(a.pkg), order(b.pkg)) })
	return out, err
}

func order(pkg string) string {
	if strings.HasPrefix(pkg, "./cmd/") {
		return "~" + pkg
	}
	return pkg
}

// run runs one benchmark alone with the go command, which tells progress what it does. Its results are in the run's folder.
func (b benchmark) run(ctx context.Context, o options, progress io.Writer) error {
	fmt.Fprintf(progress, "%s: %s\n", b.name, b.about)
	args := []string{"test", "-run=^$", "-bench=^" + b.fn + "$", "-benchtime=" + strconv.Itoa(o.count) + "x", "-timeout=0"}
	if o.quick {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, b.pkg)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it waits for what it started
	cmd.Env = append(os.Environ(), bench.OutVar+"="+o.out)
	if o.long {
		cmd.Env = append(cmd.Env, bench.LongVar+"=1")
	}
	if o.bin != "" {
		bin, err := filepath.Abs(o.bin)
		if err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, "KENNEL_BIN="+bin)
	}
	if o.costs != "" {
		cmd.Env = append(cmd.Env, "KENNEL_BENCH_COSTS="+o.costs)
	}
	start := time.Now()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(progress, "%s: %v\n%s", b.name, err, out.Bytes())
		return fmt.Errorf("%w: %s", err, why(out.String()))
	}
	fmt.Fprintf(progress, "%s: %v\n", b.name, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// why is the line of a failed go test that says what went wrong.
func why(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines[:len(lines)-1] {
		if strings.Contains(line, "--- FAIL") {
			return strings.TrimSpace(lines[i+1])
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

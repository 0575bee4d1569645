// Command bench measures the whole system, each number beside a reference taken in the same run (infra/bench). It builds what it measures
// from the source that it is run in, or takes the built programs that -bin names.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kennel/infra/bench"
	"kennel/infra/cli"
)

func main() { os.Exit(cli.Main(command(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }

// table is every bench, in the order in which they run; those that share a house do so in common. A new one is a new line here and a file
// beside this one.
func table(common *commonHouse) []bench.Bench {
	cloud := []string{"kenneld", "s3d"}
	robots := append(cloud, "agentd", "robotd", "robotsim")
	return []bench.Bench{
		common.bench(bench.Bench{Name: "passwords", Programs: cloud, About: "memory of a flood of logins with passwords, beside what the line lets through; hashes, beside bare argon2id"}, passwords),
		common.bench(bench.Bench{Name: "logins", Programs: cloud, About: "robots that connect and subscribe, beside bare TLS handshakes"}, logins),
		common.bench(bench.Bench{Name: "tokens", Programs: cloud, About: "robots' tokens refreshed over gRPC, beside a bare handler that verifies, reads, inserts and signs"}, tokens),
		common.bench(bench.Bench{Name: "certificates", Programs: cloud, About: "device certificates with their inventory row, beside bare parse, verify and sign"}, certificates),
		common.bench(bench.Bench{Name: "consoles", Programs: cloud, About: "open consoles on a large fleet that comes and goes, beside half a core; how soon they are right again"}, consoles),
		{Name: "storm", Programs: cloud, About: "robots that all connect in one moment, until the last is in, beside bare TLS handshakes", Run: storm},
		{Name: "events", Programs: cloud, About: "events from publish to row, beside COPY of the same rows", Run: eventsToRows},
		{Name: "spine", About: "data frames of Vector's serial line, parsed and made, beside a copy with CRC-32 of the same bytes", Run: spineFrames},
		{Name: "memory", Programs: cloud, About: "memory of idle connections, beside bare TLS connections", Run: connectionMemory},
		{Name: "cpu", Programs: robots, About: "processor time of idle robots and of the cloud they are connected to", Run: idleCPU},
		{Name: "settings", Programs: robots, About: "a changed setting until it is in the robot's file, beside a bare HTTP and a bare MQTT round trip", Run: settings},
		{Name: "rpc", Programs: cloud, About: "requests of a robot over MQTT, beside bare messages there and back", Run: requests},
		{Name: "loop", Programs: []string{"robotd", "robotsim"}, About: "a minute of the robot's loop alone, with one busy process and with many, beside its budget and cyclictest", Run: realTime},
		{Name: "loop-alone", About: "the real-time loop without a board, each 5.12 ms and each millisecond, beside cyclictest in the same minute", Run: loopAlone},
		{Name: "recovery", Programs: cloud, About: "Postgres stands still while robots send events: nothing lost, no storm afterwards", Run: recovery},
	}
}

func command() *cobra.Command {
	var pattern, bin, out string
	var count int
	var list, strict, long, quick bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the whole system, each number beside a reference",
		Long: `Measure the whole system on this machine: the source in the current folder, built for this run alone, or the built programs in
-bin. Measurement and reference take turns, -count times each; what is printed are the medians. A ratio above 1 is better than the
reference. All results are also in bench.json, in -out.`,
		Example: "  bench\n  bench -list\n  bench -run 'logins|events' -count 5 -strict\n  bench -run recovery -long -o json\n  bench -bin /opt/kennel/bin -out /tmp",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var common commonHouse
			benches, err := bench.Select(table(&common), pattern)
			switch {
			case err != nil:
				return cli.Usage("-run: %w", err)
			case count < 1:
				return cli.Usage("-count %d: want at least 1", count)
			case list:
				return printList(cmd.OutOrStdout(), benches)
			case long && quick:
				return cli.Usage("-long and -quick: want one of them")
			}
			if out, err = filepath.Abs(out); err != nil {
				return err
			}
			if err := os.MkdirAll(out, 0o755); err != nil {
				return err
			}
			log := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			bin, build, done, err := programsFor(cmd.Context(), bin, neededBy(benches), log)
			if err != nil {
				return err
			}
			defer done()
			common.expect(benches)
			defer common.stop()
			env := &bench.Env{Count: count, Long: long, Quick: quick, Bin: bin, Out: out, Log: log}
			rep := bench.Run(cmd.Context(), benches, env)
			rep.Version = build // of what was measured
			if err := rep.Save(filepath.Join(out, "bench.json")); err != nil {
				return err
			}
			if err := rep.Write(cmd.OutOrStdout(), cli.JSON(cmd)); err != nil {
				return err
			}
			return verdict(rep, strict)
		},
	}
	f := cmd.Flags()
	f.StringVar(&pattern, "run", "", "only benches whose name matches this regular expression")
	f.StringVar(&bin, "bin", "", "folder with built programs (default: build them from the source in the current folder)")
	f.StringVar(&out, "out", "bin", "folder for results")
	f.IntVar(&count, "count", 3, "turns of each measurement and of its reference")
	f.BoolVar(&list, "list", false, "list the benches and exit")
	f.BoolVar(&strict, "strict", false, "fail if a ratio is below its bound")
	f.BoolVar(&long, "long", false, "the full run: an outage of ten minutes instead of 20 s")
	f.BoolVar(&quick, "quick", false, "a tenth of the work: shows that everything runs, measures little")
	cmd.AddCommand(partCommand())
	cli.AddOutput(cmd)
	return cmd
}

// verdict is the error to end with.
func verdict(rep *bench.Report, strict bool) error {
	if n := len(rep.Failed); n > 0 {
		return fmt.Errorf("%d benches failed, the first: %s: %s", n, rep.Failed[0].Name, rep.Failed[0].Error)
	}
	if missed := rep.Missed(); strict && len(missed) > 0 {
		return fmt.Errorf("%d ratios below their bound, the first: %s is %.2f, want %.2f", len(missed), missed[0].Name, missed[0].Ratio, missed[0].Bound)
	}
	return nil
}

func printList(w io.Writer, benches []bench.Bench) error {
	for _, b := range benches {
		if _, err := fmt.Fprintf(w, "%-12s %s\n", b.Name, b.About); err != nil {
			return err
		}
	}
	return nil
}

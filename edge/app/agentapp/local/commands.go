package local

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/agent/experiments"
	"kennel/edge/agent/features"
	"kennel/edge/agent/host"
	"kennel/edge/agent/intents"
	"kennel/edge/agent/localapi"
	"kennel/edge/bodies"
	"kennel/edge/body/vector/factory/emr"
	"kennel/edge/env/hoststats"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// AtRobot makes run's command one about the robot below -root.
type AtRobot func(cmd *cobra.Command, run func(cmd *cobra.Command, root *os.Root) error) *cobra.Command

// Commands returns the commands of this package.
func Commands(at AtRobot) []*cobra.Command {
	return []*cobra.Command{emrCommand(at), eventCommand(at), profileCommand(at), experimentsCommand(at), featuresCommand(at), traceCommand(at)}
}

func emrCommand(at AtRobot) *cobra.Command {
	return at(&cobra.Command{Use: "emr", Short: "Print the electronic medical record", Example: "  agentd emr -root ./r1"},
		func(cmd *cobra.Command, root *os.Root) error {
			r, err := emr.Read(root)
			if err != nil {
				return err
			}
			if cli.JSON(cmd) {
				return cli.Print(cmd, r, nil)
			}
			return r.Dump(cmd.OutOrStdout())
		})
}

// eventCommand is the original's vic-log-event (VEC-DAS-17).
func eventCommand(at AtRobot) *cobra.Command {
	var source, level string
	cmd := at(&cobra.Command{
		Use: "event CODE [VALUE]...", Short: "Post an event, as a program of the robot would",
		Long: `Post an event to the running agentd. CODE is its name, such as module.name. A VALUE that is a whole number goes to the next of i1 to i4, any other to the
next of s1 to s4; s1=TEXT or i1=NUMBER names the field. The event is on disk when the command ends. Programs can instead write a line to
run/das_events: @name, s1 to s4, i1 to i4, separated by unit separators (1F).`,
		Example: "  agentd event robot.poked -root ./r1\n  agentd event robot.docking.status docked i2=3 -source my-script -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		e, err := parseEvent(cmd.Flags().Args())
		if err != nil {
			return err
		}
		e.Source, e.Level = source, events.Level(level)
		_, err = localapi.Ask[localapi.Nothing](cmd.Context(), root, "/event", e)
		return err
	})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().StringVar(&source, "source", "vic-log-event", "program that posts the event")
	cmd.Flags().StringVar(&level, "level", "info", "debug, info, warning or error")
	return cmd
}

// parseEvent reads the arguments of eventCommand.
func parseEvent(args []string) (e events.Event, err error) {
	e.Name = strings.TrimSpace(args[0])
	if err := events.CheckName(e.Name); err != nil {
		return e, cli.Usage("%w", err)
	}
	texts, numbers := [...]*string{&e.S1, &e.S2, &e.S3, &e.S4}, [...]*events.Int{&e.I1, &e.I2, &e.I3, &e.I4}
	next := map[byte]int{} // by kind of field
	for _, arg := range args[1:] {
		kind, at, value := fieldOf(arg)
		n, nerr := strconv.ParseInt(value, 10, 64)
		if kind == 0 {
			if kind = 's'; nerr == nil {
				kind = 'i'
			}
			at = next[kind]
		}
		next[kind] = at + 1
		switch {
		case at >= len(texts):
			return e, cli.Usage("value %.40q: no field left, %c1 to %c4 are given", arg, kind, kind)
		case kind == 's':
			*texts[at] = value
		case nerr != nil:
			return e, cli.Usage("i%d %.40q: want a 64-bit integer", at+1, value)
		default:
			*numbers[at] = events.Num(n)
		}
	}
	return e, nil
}

// fieldOf splits s1=TEXT and i1=NUMBER; kind is 0 for another argument.
func fieldOf(arg string) (kind byte, at int, value string) {
	key, value, ok := strings.Cut(arg, "=")
	if !ok || len(key) != 2 || (key[0] != 's' && key[0] != 'i') || key[1] < '1' || key[1] > '4' {
		return 0, 0, arg
	}
	return key[0], int(key[1] - '1'), value
}

// profileCommand is the original's vic-powerstatus.sh (VEC-DAS-15). It runs only when it is called.
func profileCommand(at AtRobot) *cobra.Command {
	var every time.Duration
	var count int
	var pids []int
	cmd := at(&cobra.Command{
		Use: "profile", Short: "Print processor clock, temperature and load of each service periodically",
		Long: `Print the processor's clock and temperature, and processor time and memory of each service, every ten seconds until interrupted. Works without
agentd. A simulated robot has no proc below its root: name its processes with -pid.`,
		Example: "  agentd profile\n  agentd profile -every 1s -count 60 -pid 4711 -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		if every < 10*time.Millisecond {
			return cli.Usage("-every %v: want 10ms or more", every)
		}
		known := map[string]int{}
		for _, pid := range pids {
			known[strconv.Itoa(pid)] = pid
		}
		source := hoststats.Robot(root, cmd.Flag("root").Value.String())
		if cpu := source.Read().CPU; cpu.KHz == 0 && cpu.MilliC == 0 && len(source.Processes(known)) == 0 {
			return errs.Coded(errs.NotFound, "nothing_to_see", "%s has no processor and none of the robot's services, as a simulated robot; -pid names processes to look at", cmd.Flag("root").Value)
		}
		var meter hoststats.Meter
		meter.Measure(source.Processes(known), time.Now())
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; count == 0 || n < count; n++ {
			select {
			case <-cmd.Context().Done():
				return nil
			case <-tick.C:
			}
			now := time.Now()
			p := profile{now, source.Read().CPU, meter.Measure(source.Processes(known), now)}
			if err := cli.Print(cmd, p, p.rows); err != nil {
				return err
			}
		}
		return nil
	})
	f := cmd.Flags()
	f.DurationVar(&every, "every", 10*time.Second, "interval")
	f.IntVar(&count, "count", 0, "number of measurements; 0: until interrupted")
	f.IntSliceVar(&pids, "pid", nil, "also measure this process; may be repeated")
	return cmd
}

// profile is one look.
type profile struct {
	At    time.Time        `json:"at"`
	CPU   hoststats.CPU    `json:"cpu"`
	Loads []hoststats.Load `json:"services"`
}

func (p profile) rows(t *cli.Table) {
	clock, heat := "", ""
	if p.CPU.KHz != 0 {
		clock = fmt.Sprintf("%.1f MHz", float64(p.CPU.KHz)/1000)
	}
	if p.CPU.MilliC != 0 {
		heat = fmt.Sprintf("%.1f °C", float64(p.CPU.MilliC)/1000)
	}
	if clock+heat != "" { // a simulated robot has none
		t.Row(p.At.Format(time.TimeOnly), "processor", clock, heat)
	}
	for _, l := range p.Loads {
		share := "new"
		if l.Permille >= 0 {
			share = fmt.Sprintf("%.1f %%", float64(l.Permille)/10)
		}
		t.Row(p.At.Format(time.TimeOnly), l.Name, share, fmt.Sprintf("%d KiB", l.KiB))
	}
}

func experimentsCommand(at AtRobot) *cobra.Command {
	return at(&cobra.Command{
		Use: "experiments", Short: "Show the robot's variation of each experiment, and why",
		Long: `Show the robot's current variation of each experiment, and why. Experiments are defined in ` + experiments.File + `.
The robot's tags are its serial number, id, species and release, and AUDIENCE_TAGS in ` + host.EnvFile + `.`,
		Example: "  agentd experiments -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		id, err := platform.ID(root, bodies.Hardware{})
		if err != nil {
			return err
		}
		env := robotfs.LoadEnv(root, host.EnvFile, cli.Getenv(cmd.Context()))
		plan, err := experiments.Load(root)
		if err != nil {
			return err
		}
		out := []experiments.Assignment{}
		for _, e := range plan.Experiments {
			out = append(out, e.Assign(subject(id, platform.OSVersion(root), env), time.Now()))
		}
		return cli.Print(cmd, out, func(t *cli.Table) {
			if len(out) == 0 {
				t.Text("no experiments")
			}
			for _, a := range out {
				t.Row(a.Key, a.Variation, a.Why)
			}
		})
	})
}

// featuresCommand takes the place of the original's developer tool for features (VEC-DOC-12).
func featuresCommand(at AtRobot) *cobra.Command {
	ask := func(change func(args []string) intents.FeatureChange) func(*cobra.Command, *os.Root) error {
		return func(cmd *cobra.Command, root *os.Root) error {
			got, err := localapi.Ask[[]features.Feature](cmd.Context(), root, "/features", change(cmd.Flags().Args()))
			if err != nil {
				return err
			}
			return cli.Print(cmd, got, func(t *cli.Table) {
				t.Row("FEATURE", "ENABLED", "OVERRIDE")
				for _, f := range got {
					t.Row(f.Name, f.On, f.Override)
				}
			})
		}
	}
	set := at(&cobra.Command{
		Use: "set FEATURE STATE", Short: "Turn a feature on or off until it is reset",
		Long:    "Turn a feature on or off, also after restarts, until it is reset. STATE is enabled, disabled, or none, which gives it back.",
		Example: "  agentd features set Volume disabled -root ./r1",
	}, ask(func(args []string) intents.FeatureChange {
		return intents.FeatureChange{Feature: args[0], Override: features.State(args[1])}
	}))
	set.Args = cobra.ExactArgs(2)
	reset := at(&cobra.Command{Use: "reset", Short: "End all overrides of features", Example: "  agentd features reset -root ./r1"},
		ask(func([]string) intents.FeatureChange { return intents.FeatureChange{Reset: true} }))
	cmd := at(&cobra.Command{
		Use: "features", Short: "Show which features of the robot's software are on, and override them",
		Long:    "Show which features of the robot's software are on: as delivered, as " + features.File + " says, and as overridden here.",
		Example: "  agentd features -root ./r1\n  agentd features set Volume disabled -root ./r1",
	}, ask(func([]string) intents.FeatureChange { return intents.FeatureChange{} }))
	cmd.AddCommand(set, reset)
	return cmd
}

// traceCommand is the original's ankitrace (VEC-DGN-08).
func traceCommand(at AtRobot) *cobra.Command {
	var r TraceRequest
	cmd := at(&cobra.Command{
		Use: "trace", Short: "Record an execution trace of the running agentd, for go tool trace",
		Long: `Record an execution trace of the running agentd for some seconds, for go tool trace, and print the file's name. With ON_FAULT_UPLOAD_TRACE=1 in
` + platform.FaultHandlerFile + ` agentd always keeps the last seconds and uploads them with the log of a fault.`,
		Example: "  agentd trace -seconds 5 -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		got, err := localapi.Ask[TraceFile](cmd.Context(), root, "/trace", r)
		if err != nil {
			return err
		}
		return cli.Print(cmd, got, func(t *cli.Table) { t.Text(got.File) })
	})
	cmd.Flags().IntVar(&r.Seconds, "seconds", 5, "duration in seconds, up to 30")
	return cmd
}

// subject is the robot as experiments see it.
func subject(id thing.ID, release string, env *robotfs.Env) experiments.Robot {
	tags := append(strings.Fields(env.String("AUDIENCE_TAGS", "")), id.String(), string(id.Species()), release)
	return experiments.Robot{Serial: id.Serial(), Tags: tags}
}

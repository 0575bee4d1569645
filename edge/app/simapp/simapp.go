// Package simapp is the program robotsim: simulated robots on a desk.
package simapp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kennel/edge/agent/health/faults"
	"kennel/edge/sim"
	"kennel/infra/cli"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Main runs the program and returns its exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "robotsim",
		Short: "Simulate robots: the programs of real ones with simulated bodies",
		Example: `  robotsim make -root ./r1 -thing vic:00e20100 -secret-file s.txt -api https://localhost:8443 -ca root.crt
  robotsim make -species amigobot -root ./r2 -thing 00e20101 -secret-file s.txt -api https://localhost:8443 -ca root.crt
  robotsim make -species pleo -card demo/build -root ./r3 -thing 00e20102 -secret-file s.txt -api https://localhost:8443 -ca root.crt
  robotsim robot -root ./r1
  robotsim poke touch -root ./r1
  robotsim vector-board -pty /tmp/ttyHS0
  robotsim amigobot -listen localhost:8101
  robotsim fleet -n 200 -root ./fleet -api https://localhost:8443 -ca root.crt -token-file operator.token`,
	}
	root.AddCommand(makeCommand(), robotCommand(getenv), pokeCommand(), boardCommand(), amigobotCommand(), firmwareCommand(), fleetCommand())
	cli.AddOutput(root)
	return cli.Main(root, args, getenv, stdout, stderr)
}

func makeCommand() *cobra.Command {
	var b sim.Birth
	var dir, id, species, secretFile, caFile, releaseKey, releaseRoot string
	cmd := &cobra.Command{
		Use:   "make",
		Short: "Create a robot's folder, as a factory would",
		Long: `Create a robot's folder, as a factory would: serial number, claim secret, trusted root, endpoints and assets. An existing folder of
the same robot keeps its data; only endpoints and trusted root are updated, and slots are added if it has none.`,
		Example: `  robotsim make -root ./r1 -thing vic:00e20100 -secret-file s.txt -api https://localhost:8443 -ca root.crt`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if !strings.Contains(id, ":") {
				kind, err := thing.Named(species)
				if err != nil {
					return cli.Usage("-species: %w", err)
				}
				id = string(kind) + ":" + id
			}
			if b.Thing, err = thing.Parse(id); err != nil {
				return cli.Usage("%w", err)
			}
			if err := errors.Join(load(&b.RootPEM, "-ca", caFile), load(&b.ReleaseKey, "-release-key", releaseKey), load(&b.ReleaseRoot, "-release-root", releaseRoot)); err != nil {
				return err
			}
			if secretFile != "" {
				s, err := os.ReadFile(secretFile)
				if err != nil {
					return fmt.Errorf("claim secret: %w", err)
				}
				b.Secret = strings.TrimSpace(string(s))
			}
			return sim.Make(dir, b)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "root", "", "the robot's folder `DIR` (required)")
	f.StringVar(&id, "thing", "", "`THING` id such as vic:00e20100, or the serial number alone (required)")
	f.StringVar(&species, "species", sim.Species()[0], "species, if -thing is a serial number: "+strings.Join(sim.Species(), ", "))
	f.StringVar(&b.Model, "model", "", "`MODEL` of a species that has several, such as ers-210 (default: the usual one)")
	f.StringVar(&b.Card, "card", "", "`FOLDER` with what is on the robot's memory card, such as the build folder of robotkit pleo build")
	f.StringVar(&secretFile, "secret-file", "", "`FILE` with the claim secret; not needed if the folder exists")
	f.StringVar(&caFile, "ca", "", "`FILE` with the root certificate (PEM) that the robot trusts (required)")
	f.StringVar(&b.Endpoints.Kennel.API, "api", "", "`URL` of the cloud, https://host:port (required)")
	f.StringVar(&b.Endpoints.Kennel.MQTT, "mqtt", "", "`URL` of the broker, ssl://host:port (default: as the cloud says)")
	releaseFlags(f, &releaseKey, &releaseRoot)
	f.StringVar(&b.OSVersion, "os-version", "2.0.0.6074", "`VERSION` that the robot runs")
	f.Float64Var(&b.World.BatteryVolts, "battery", 0, "battery voltage at the first boot (default: well charged)")
	f.BoolVar(&b.World.OnCharger, "on-charger", false, "start on the charger")
	f.Uint64Var(&b.World.Seed, "seed", 1, "seed of the body's random behaviour")
	for _, name := range []string{"root", "thing", "ca", "api"} {
		_ = cmd.MarkFlagRequired(name) // the flags exist
	}
	return cmd
}

func releaseFlags(f *pflag.FlagSet, key, root *string) {
	f.StringVar(key, "release-key", "", "`FILE` with the public key (PEM) of releases; gives the robot two slots, so that it installs updates")
	f.StringVar(root, "release-root", "", "`FILE` with the first root of release metadata; the robot then installs only what the metadata names")
}

// tellCode is the robot's display.
func tellCode(w io.Writer, code string) {
	if code != "" {
		fmt.Fprintf(w, "claim code %s\n", code)
	}
}

// tellFault is the robot's display while a fault is shown (part of VEC-FLT-10).
func tellFault(w io.Writer, digits string) {
	code, err := faults.Parse([]byte(digits))
	if err != nil {
		return // none is shown, or nothing that can be
	}
	fmt.Fprintf(w, "fault %v: %s\n", code, code.Text())
}

func robotCommand(getenv func(string) string) *cobra.Command {
	cfg := sim.Config{Getenv: getenv}
	var where string
	cmd := &cobra.Command{
		Use:   "robot",
		Short: "Run one whole robot: its body, robotd, agentd and mindd, until interrupted",
		Example: `  robotsim robot -root ./r1
  robotsim robot -root ./r1 -world room
  robotsim robot -root ./r1 -log-level debug`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logging.New(cmd.ErrOrStderr(), cfg.LogLevel, "text")
			if err != nil {
				return cli.Usage("%w", err)
			}
			cfg.Log = log
			if cfg.World, err = readWorld(where); err != nil {
				return err
			}
			if cfg.Root, err = filepath.Abs(cfg.Root); err != nil {
				return err
			}
			if cfg.Bin == "" {
				self, err := os.Executable()
				if err != nil {
					return fmt.Errorf("find robotd and agentd (see -bin): %w", err)
				}
				cfg.Bin = filepath.Dir(self)
			}
			cfg.OnCode = func(code string) { tellCode(cmd.OutOrStdout(), code) }
			cfg.OnFault = func(digits string) { tellFault(cmd.OutOrStdout(), digits) }
			return sim.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Root, "root", "", "the robot's folder `DIR` (required)")
	f.StringVar(&cfg.Bin, "bin", "", "folder `DIR` with robotd, agentd and mindd (default: beside this program)")
	f.StringVar(&cfg.LogLevel, "log-level", "info", "`LEVEL`: debug, info, warn or error")
	f.StringVar(&where, "world", "", worldUsage)
	f.DurationVar(&cfg.Press, "press", 0, pressUsage)
	f.DurationVar(&cfg.BootDelay, "boot-delay", 300*time.Millisecond, "time from power-on to the first process (the original: 20.5s)")
	_ = cmd.MarkFlagRequired("root") // the flag exists
	return cmd
}

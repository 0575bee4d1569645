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
		Short: "Simulated robots: the same programs as on a real one, with a simulated body",
		Example: `  robotsim make -root ./r1 -thing vic:00e20100 -secret-file s.txt -api https://localhost:8443 -ca root.crt
  robotsim make -species amigobot -root ./r2 -thing 00e20101 -secret-file s.txt -api https://localhost:8443 -ca root.crt
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
		Short: "Make a robot's folder, as a factory would",
		Long: `Make a robot's folder, as a factory would: serial number, claim secret, trust root, endpoints and assets.
A folder that already holds this robot keeps its data; only endpoints and trust root are renewed, and slots are added if it has none.`,
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
	f.StringVar(&dir, "root", "", "the robot's folder (required)")
	f.StringVar(&id, "thing", "", "thing id such as vic:00e20100, or the serial number alone (required)")
	f.StringVar(&species, "species", sim.Species()[0], "species where -thing is a serial number: "+strings.Join(sim.Species(), ", "))
	f.StringVar(&secretFile, "secret-file", "", "file with the claim secret; not needed when the folder exists")
	f.StringVar(&caFile, "ca", "", "PEM file with the root the robot shall trust (required)")
	f.StringVar(&b.Endpoints.Kennel.API, "api", "", "https://host:port of the cloud (required)")
	f.StringVar(&b.Endpoints.Kennel.MQTT, "mqtt", "", "ssl://host:port of the broker (default: what the cloud says)")
	releaseFlags(f, &releaseKey, &releaseRoot)
	f.StringVar(&b.OSVersion, "os-version", "2.0.0.6074", "release the robot runs")
	f.Float64Var(&b.World.BatteryVolts, "battery", 0, "battery at its first boot, in volts (default: charged well)")
	f.BoolVar(&b.World.OnCharger, "on-charger", false, "it stands on the charger")
	f.Uint64Var(&b.World.Seed, "seed", 1, "seed of all that is random in its body")
	for _, name := range []string{"root", "thing", "ca", "api"} {
		_ = cmd.MarkFlagRequired(name) // the flags exist
	}
	return cmd
}

func releaseFlags(f *pflag.FlagSet, key, root *string) {
	f.StringVar(key, "release-key", "", "PEM file with the public key that signs releases; with it a robot has two slots and installs them")
	f.StringVar(root, "release-root", "", "file with the first root of release metadata; with it a robot installs only what they name")
}

// tellCode is the robot's display.
func tellCode(w io.Writer, code string) {
	if code != "" {
		fmt.Fprintf(w, "claim code %s\n", code)
	}
}

// tellFault is the robot's display while a fault is shown (VEC-FLT-10).
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
		Short: "Run one whole robot: its body, robotd and agentd, until interrupted",
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
					return fmt.Errorf("find robotd and agentd (say -bin): %w", err)
				}
				cfg.Bin = filepath.Dir(self)
			}
			cfg.OnCode = func(code string) { tellCode(cmd.OutOrStdout(), code) }
			cfg.OnFault = func(digits string) { tellFault(cmd.OutOrStdout(), digits) }
			return sim.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Root, "root", "", "the robot's folder (required)")
	f.StringVar(&cfg.Bin, "bin", "", "folder with robotd and agentd (default: beside this program)")
	f.StringVar(&cfg.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&where, "world", "", worldUsage)
	f.DurationVar(&cfg.Press, "press", 0, pressUsage)
	f.DurationVar(&cfg.BootDelay, "boot-delay", 300*time.Millisecond, "from power to the first process; the original needs 20.5s")
	_ = cmd.MarkFlagRequired("root") // the flag exists
	return cmd
}

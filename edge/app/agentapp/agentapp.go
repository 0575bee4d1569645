// Package agentapp wires agentd: all of a robot that faces the network. The parts are in edge/agent; this package connects them.
package agentapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
	_ "time/tzdata" // a robot may have no database of time zones, and has nights

	"github.com/spf13/cobra"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/host"
	"kennel/edge/agent/release"
	"kennel/edge/app/agentapp/local"
	"kennel/edge/app/agentapp/recovery"
	"kennel/edge/bodies"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/edge/gateway"
	"kennel/infra/cli"
	"kennel/infra/logging"
	"kennel/infra/sdnotify"
)

// Config configures agentd. Root and Log are required; the zero values of the rest suit a real robot.
type Config struct {
	Root string // the robot's folder by name, for files that no os.Root reaches
	Log  *slog.Logger
	// Console is the text log behind Log; nil: there is no other program whose log it must fit.
	Console *local.Console
	// Telemetry is how often battery and loop are reported as events; 30 s.
	Telemetry time.Duration
	// Latency is how often, on average, it is measured how fast name servers and the cloud's endpoints answer; 0: never.
	Latency time.Duration
	// Flush is how long events wait for company before they are sent; 2 s.
	Flush time.Duration
	// Status is the interval of status messages; 0: presence.Interval. The lease follows from it.
	Status time.Duration
	// TracePermille is the share of this robot's requests, of a thousand, that ask the cloud to keep their trace.
	TracePermille int
	// Recovery leaves the user data alone (edge/app/agentapp/recovery). Run sets it too when the kernel was told so.
	Recovery bool
	// Nightly says when the robot is rebooted (VEC-BOOT-16); nil: never.
	Nightly *platform.Rebooter
	// Reboot is the program that reboots the whole robot, with its arguments; empty: agentd exits, as after a restart command, and its
	// supervisor does the rest (edge/sim boots the simulated robot).
	Reboot []string
	// Silence is how long robotd may say nothing before it hangs, a second at least; faults.HungAfter.
	Silence time.Duration
	// Restart is the command, with its arguments, that restarts a service of the robot, whose name follows; none: the service's supervisor
	// restarts it, as systemd and robotsim do (VEC-WDOG-04).
	Restart []string
	// Trial says when a new release is well; the zero value: our own defaults.
	Trial release.Trial
	// Gateway is where programs reach the robot, as host:port; gateway.Anywhere: port 443 or 8443 of every address; "": nowhere.
	Gateway string
	// Getenv overrides the robot's .env files; nil: nothing does.
	Getenv func(string) string
	// Supervisor started agentd and is notified when agentd is ready and while it is healthy; the zero value: none.
	Supervisor sdnotify.Supervisor

	// The next fields replace the machine below an agent that shares its process with others.

	Core Core                                                                       // the real-time core; nil: robotd, below Root
	Now  func() time.Time                                                           // the robot's clock, which may be wrong; nil: the system's
	Dial func(ctx context.Context, network, addr string) (conn net.Conn, err error) // below TLS; nil: the system's
	// Frugal saves resources in a process of many robots: fewer parts (Agent.light), no watch on files, and no event file open between writes.
	Frugal bool
	OnUp   func()          // there is a connection to the broker and it is subscribed; must not block
	OnDown func(err error) // it ended or could not be made; must not block
}

// Core is the real-time core as the agent sees it (corelink.Client).
type Core interface {
	// Run hands every message to handle until ctx ends.
	Run(ctx context.Context, handle func(corelink.Message)) error
	// Hello returns the core's message about itself and its body; false while the core is absent.
	Hello() (corelink.Hello, bool)
	Send(corelink.Message) error
}

func (c Config) withDefaults() Config {
	c.Telemetry, c.Flush = cmp.Or(c.Telemetry, defaultTelemetry), cmp.Or(c.Flush, defaultFlush)
	c.Silence = cmp.Or(c.Silence, faults.HungAfter)
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnUp == nil {
		c.OnUp = func() {}
	}
	if c.OnDown == nil {
		c.OnDown = func(error) {}
	}
	return c
}

// hardware is the same for all robots: those that we simulate have a Vector's record and boot parameters, whatever their species.
var hardware bodies.Hardware

// Our own defaults.
const (
	defaultTelemetry = 30 * time.Second
	defaultLatency   = time.Hour
	defaultFlush     = 2 * time.Second
)

// Main runs agentd and returns its exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	root := command(getenv)
	root.AddCommand(localCommands()...)
	cli.AddOutput(root)
	return cli.Main(root, args, getenv, stdout, stderr)
}

func command(getenv func(string) string) *cobra.Command {
	var cfg Config
	var level string
	cmd := &cobra.Command{
		Use:   "agentd",
		Short: "Run a robot's agent: identity, cloud link, settings, events",
		Long: `Run the agent that connects a robot to the cloud. It reads the robot's identity and the cloud's address from files below the root,
and works offline until the cloud answers. It exits with code 0 on SIGTERM and when it needs a restart.

After a recovery boot (kernel parameter anki.unbrick=1), or with -recovery, it opens no user data: no settings apply, no events are
stored, and the robot cannot be claimed. If the robot was enrolled before, the cloud sees it and can send commands.`,
		Example: "  agentd -root /\n  agentd -root ./r1 -log-level debug\n  agentd -root ./r1 -recovery\n  agentd doctor -root ./r1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if cfg.Root, err = filepath.Abs(cfg.Root); err != nil {
				return err
			}
			cfg.Supervisor.Addr = getenv("NOTIFY_SOCKET")
			if cfg.Supervisor.Every, err = sdnotify.Interval(getenv); err != nil {
				return err
			}
			root, err := os.OpenRoot(cfg.Root)
			if err != nil {
				return cli.Usage("-root: want the robot's folder: %w", err)
			}
			defer root.Close() // all writes are synced
			if cfg.Console, err = local.OpenConsole(root, cmd.ErrOrStderr(), level); err != nil {
				return err
			}
			if !cmd.Flags().Changed(rootFlag) {
				if err := robotfs.CheckDefault(root); err != nil {
					return err
				}
			}
			cfg.Log = cfg.Console.Log
			env := robotfs.LoadEnv(root, host.EnvFile, getenv)
			cfg.Telemetry = env.Millis("TELEMETRY_MS", defaultTelemetry, 10*time.Millisecond, 24*time.Hour)
			cfg.Latency = env.Seconds("LATENCY_SEC", defaultLatency, 24*time.Hour)
			cfg.Flush = env.Millis("FLUSH_MS", defaultFlush, 10*time.Millisecond, time.Hour)
			cfg.Silence = env.Seconds("CORE_SILENCE_SEC", faults.HungAfter, time.Hour)
			cfg.Trial = release.Trial{Settle: env.Seconds("TRIAL_SETTLE_SEC", release.Settle, time.Hour), Ends: env.Int("TRIAL_CORE_ENDS", release.Ends, 1, 1000),
				Patience: env.Seconds("TRIAL_PATIENCE_SEC", release.Patience, 24*time.Hour)}
			cfg.Restart = strings.Fields(env.String("FAULT_RESTART_COMMAND", ""))
			if cfg.Gateway = env.String("GATEWAY", gateway.Anywhere); cfg.Gateway == "off" {
				cfg.Gateway = ""
			}
			cfg.Getenv = getenv
			cfg.TracePermille = env.Int("TRACE_PERMILLE", 10, 0, 1000)
			cfg.Reboot = strings.Fields(env.String("REBOOT_COMMAND", ""))
			nightly, err := platform.LoadRebooter(root, getenv)
			cfg.Nightly = &nightly
			if err := errors.Join(env.Err(), err); err != nil {
				cfg.Log.Error("settings ignored", logging.Err, err) // a robot does not stay down for a typing mistake
			}
			err = Run(cmd.Context(), root, cfg)
			if host.Ended(err) { // a requested end: the supervisor starts it again and counts no failure
				cfg.Log.Warn("agentd exits to be restarted", logging.Err, err)
				return nil
			}
			return err
		},
	}
	f := cmd.Flags()
	cmd.PersistentFlags().StringVar(&cfg.Root, rootFlag, "/", "the robot's folder `DIR`")
	f.StringVar(&level, "log-level", "info", "`LEVEL`: debug, info, warn or error")
	f.BoolVar(&cfg.Recovery, "recovery", false, "do not touch user data, as after a recovery boot")
	return cmd
}

// Run is agentd until ctx ends.
func Run(ctx context.Context, root *os.Root, cfg Config) error {
	boot, err := hardware.Boot(root)
	if err != nil {
		cfg.Log.Error("boot parameters unreadable; assuming a normal boot", logging.Err, err)
	}
	if cfg.Recovery = cfg.Recovery || boot.Recovery; cfg.Recovery {
		area, err := recovery.Area(root)
		if err != nil {
			return fmt.Errorf("recovery: %w", err)
		}
		defer area.Close() // nothing of it outlives the boot
		cfg.Log.Warn("recovery boot; user data not touched")
		root, cfg.Frugal = area, true
	}
	a, err := New(root, cfg)
	if err != nil {
		if code := faultcode.Of(err); code != 0 { // no other program can show it (VEC-BOOT-15)
			if serr := faults.Show(root, code); serr != nil {
				cfg.Log.Error("fault not displayed", "fault", int(code), logging.Err, serr)
			}
		}
		return err
	}
	return a.Run(ctx)
}

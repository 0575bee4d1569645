// Package robotapp is the program robotd: it opens the robot's body, runs the real-time core on it (edge/rt) and tells the robot's other
// programs what it measures (edge/corelink). It uses no network, does no heavy work, and touches no files but its sockets, the body's
// firmware at start, the processor's temperature and short notes of failures.
//
// A body that is silent or gone is a fault (898, 899) that peers see, not an end: robotd keeps trying to open it. SIGTERM and SIGINT halt the body
// and end the program with code 0; so does a Shutdown from a peer, after the body was told to cut its power.
//
// If robotd dies, by a signal or a panic outside the loop, the motors keep their last setting until the body's own watchdog ends it (Vector:
// 1.024 s, VEC-WDOG-01). So its supervisor runs robotd -halt at once, which halts the body and ends. A robotd that starts later continues from
// standstill: opening the body halts it.
package robotapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/vector/factory"
	"kennel/edge/body/vector/imu"
	"kennel/edge/consolefilter"
	"kennel/edge/corelink"
	"kennel/edge/crash"
	"kennel/edge/rt"
	"kennel/edge/rt/rtlinux"
	"kennel/infra/cli"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// Config configures robotd.
type Config struct {
	Root      string
	Body      string         // key of kinds
	Device    string         // "": the body's usual one below Root
	IMU       string         // the inertial sensors' device; "": the usual one below Root, if it exists
	IMURate   int            // samples a second; 0: 200
	Factory   bool           // answer the factory's command line, on a robot that has not left it
	Firmware  string         // file with the body's own program; "": the body's usual one below Root
	Record    string         // file for a recording of the run; "": none
	RecordMiB int            // its most, in MiB
	Thread    rtlinux.Thread // the loop's; without a priority the memory is not locked either
	CPUClock  string         // file that takes the processor's highest clock, in kHz; "": the clock is not set
	Notify    string         // address of the supervisor's notification socket; "": none

	kind   Kind                  // of Body
	filter *consolefilter.Filter // of the log; nil: none
	crash  *crash.Capture        // of this process; nil: none
}

// Named is a kind of body under the name that -body takes.
type Named struct {
	Name string
	Kind Kind
}

// Main runs robotd and returns its exit code. It can drive further kinds of bodies beside its own.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer, more ...Named) int {
	return cli.Main(command(more...), args, getenv, stdout, stderr)
}

func command(more ...Named) *cobra.Command {
	all := maps.Clone(kinds)
	for _, k := range more {
		all[k.Name] = k.Kind
	}
	var cfg Config
	var level string
	var onlyHalt bool
	cmd := &cobra.Command{
		Use:   "robotd",
		Short: "The robot's real-time core: one step per frame of its body, and nothing else",
		Long: `The robot's real-time core: reads and writes the body once per frame, on a locked thread, with real-time priority where that is permitted.
Other programs of the robot reach it through the socket ` + corelink.SocketPath + ` below the robot's root.
SIGTERM or SIGINT stop all motion and end it with code 0.`,
		Example: `  robotd -root /
  robotd -root ./r1 -device /dev/pts/4 -log-level debug
  robotd -root ./r1 -priority 0 -imu ./imu.sock
  robotd -root ./r1 -record run.krt
  robotd -root ./r1 -firmware ./syscon.dfu
  ExecStopPost=-/usr/bin/robotd -root /var/lib/robot -halt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ok bool
			if cfg.kind, ok = all[cfg.Body]; !ok {
				return cli.Usage("-body %q: want one of %s", cfg.Body, kindNames(all))
			}
			if err := cfg.Thread.Check(); err != nil {
				return cli.Usage("-%w", err)
			}
			if _, err := imu.RateOf(cfg.IMURate); err != nil {
				return cli.Usage("-imu-rate: %w", err)
			}
			if cfg.RecordMiB < 1 || cfg.RecordMiB > 1<<20 {
				return cli.Usage("-record-limit %d: want 1 to %d MiB", cfg.RecordMiB, 1<<20)
			}
			var err error
			if cfg.Root, err = filepath.Abs(cfg.Root); err != nil {
				return err
			}
			root, err := os.OpenRoot(cfg.Root)
			if err != nil {
				return errs.New(errs.Invalid, "-root: want the robot's folder: %w", err)
			}
			defer root.Close() // read only
			log, filter, err := consolefilter.Logger(root, cmd.ErrOrStderr(), level)
			if err != nil {
				return cli.Usage("-log-level: %w", err)
			}
			cfg.filter = filter
			if onlyHalt {
				if cli.Getenv(cmd.Context())("SERVICE_RESULT") == "success" { // systemd.exec: it ended cleanly, and halted the body
					return nil
				}
				return halt(cmd.Context(), cfg)
			}
			cfg.Notify = cli.Getenv(cmd.Context())("NOTIFY_SOCKET")
			// The loop keeps its processor while it waits: one more than it for the rest, and one in hand.
			runtime.GOMAXPROCS(max(3, runtime.NumCPU()))
			cfg.crash = crash.Begin(cfg.Root, "robotd", factory.Hardware{}, cli.Getenv(cmd.Context()), log)
			defer cfg.crash.End()
			return Run(cmd.Context(), log, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Root, "root", "/", "the robot's root folder")
	f.StringVar(&cfg.Body, "body", "vector", "kind of body: "+kindNames(all))
	f.StringVar(&cfg.Device, "device", "", "the body's port: a tty, or a Unix socket of a simulated body (default: its usual one below the root)")
	f.StringVar(&cfg.IMU, "imu", "", "device of the inertial sensors: a spidev channel, or a Unix socket of simulated ones; one that is "+
		"named and does not work is fault 960 (default: "+
		imu.DefaultDevice+" below the root, if it is there)")
	f.IntVar(&cfg.IMURate, "imu-rate", 200, "samples of the inertial sensors a second: 25, 50, 100, 200, 400, 800 or 1600")
	f.StringVar(&cfg.Firmware, "firmware", "", "file with the program of the body's own processor, installed when the body runs another "+
		"version (default: its usual one below the root)")
	f.BoolVar(&cfg.Factory, "factory", false, "answer the factory's command line on the charging pad, on a robot whose medical record says "+
		"that it has not left the factory")
	f.IntVar(&cfg.Thread.Priority, "priority", rtlinux.DefaultPriority, "real-time priority of the loop, 1 to 99; 0 is normal scheduling")
	f.IntVar(&cfg.Thread.CPU, "cpu", rtlinux.AnyCPU, "processor that the loop stays on, counted from 0, best the one that the body's "+
		"interrupts come to; -1: any")
	f.StringVar(&cfg.CPUClock, "cpu-clock", "", "file that takes the processor's highest clock in kHz, such as "+
		"/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq: it follows heat, battery and sleep (default: the clock is left alone)")
	f.BoolVar(&onlyHalt, "halt", false, "halt the body and end: for the supervisor of a robotd that died and left the motors running; with "+
		"SERVICE_RESULT=success do nothing")
	f.StringVar(&cfg.Record, "record", "", "file to record every step of the loop in, for robotkit replay; what is there is lost")
	f.IntVar(&cfg.RecordMiB, "record-limit", recordLimitMiB, "the most that -record writes, in MiB; the recording ends there and the robot runs on")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// kickEvery is the watchdog's period (VEC-WDOG-02).
const kickEvery = 250 * time.Millisecond

// Run runs robotd until ctx ends or the body was shut down (nil), or until the loop itself fails.
func Run(ctx context.Context, log *slog.Logger, cfg Config) error {
	s := newStart(log, cfg)
	defer s.close()
	// Quick, and not ended halfway: the note that the robot is on must be followed by the note how it went off.
	if err := s.rec.Walk(context.WithoutCancel(ctx), s.before()...); err != nil {
		return err
	}
	if err := s.rec.Walk(context.WithoutCancel(ctx), s.core.how.before...); err != nil {
		return err
	}
	log.InfoContext(ctx, "robotd running", "version", version.String(), "root", cfg.Root, logging.Body, cfg.Body)
	c := s.core
	err := runner.Run(ctx, log, runner.Config{OnPanic: cfg.crash.Panicked}, s.services()...)
	if err == nil || errors.Is(err, rt.ErrShutdown) {
		c.peers.GoingOff() // the end was decided, by a signal, a peer or the battery; any other end leaves no note (VEC-PWR-42)
	}
	if errors.Is(err, rt.ErrShutdown) {
		log.Info("body cutting its power")
		return nil
	}
	if err != nil {
		return fmt.Errorf("robotd: %w", err)
	}
	return nil
}

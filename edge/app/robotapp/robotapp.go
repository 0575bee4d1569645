// Package robotapp is the program robotd: it opens the robot's body, runs the real-time core on it (edge/core/rt) and tells the robot's other
// programs what it measures (edge/core/corelink). It uses no network, does no heavy work, and touches no files but its sockets, the body's
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
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/bodies"
	"kennel/edge/body/species"
	"kennel/edge/consolefilter"
	"kennel/edge/core/corelink"
	"kennel/edge/core/rt"
	"kennel/edge/core/rt/rtlinux"
	"kennel/edge/crash"
	"kennel/edge/env/robotfs"
	"kennel/infra/cli"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/thing"
)

// Config configures robotd.
type Config struct {
	Root      string
	Body      string         // word of its species
	Device    string         // "": the body's usual one below Root
	Record    string         // file for a recording of the run; "": none
	RecordMiB int            // its most, in MiB
	Thread    rtlinux.Thread // the loop's; without a priority the memory is not locked either
	CPUClock  string         // file that takes the processor's highest clock, in kHz; "": the clock is not set
	Notify    string         // address of the supervisor's notification socket; "": none

	species species.Species                             // of Body
	begin   func(species.Host) (species.Opening, error) // instead of its Open; nil: none
	filter  *consolefilter.Filter                       // of the log; nil: none
	crash   *crash.Capture                              // of this process; nil: none
}

// Main runs robotd and returns its exit code. It can drive further species beside those of edge/bodies.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer, more ...species.Species) int {
	return cli.Main(command(more...), args, getenv, stdout, stderr)
}

func command(more ...species.Species) *cobra.Command {
	all := append(bodies.Driven(), more...)
	begin := map[thing.Species]func(species.Host) (species.Opening, error){}
	var cfg Config
	var level string
	var onlyHalt bool
	cmd := &cobra.Command{
		Use:   "robotd",
		Short: "Run a robot's real-time core: one step per frame of the body",
		Long: `Run the robot's real-time core. It reads and writes the body once per frame, on a locked thread with real-time priority if permitted.
Other programs on the robot connect to the socket ` + corelink.SocketPath + ` below the root. SIGTERM and SIGINT stop all motion and exit with code 0.`,
		Example: `  robotd -root /
  robotd -root ./r1 -device /dev/pts/4 -log-level debug
  robotd -root ./r1 -priority 0 -imu ./imu.sock
  robotd -root ./r1 -record run.krt
  robotd -root ./r1 -firmware ./syscon.dfu
  ExecStopPost=-/usr/bin/robotd -root /var/lib/robot -halt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			i := slices.IndexFunc(all, func(s species.Species) bool { return s.Word() == cfg.Body })
			if i < 0 {
				return cli.Usage("-body %q: want one of %s", cfg.Body, bodies.Words(all))
			}
			cfg.species, cfg.begin = all[i], begin[all[i].Species]
			if err := cfg.Thread.Check(); err != nil {
				return cli.Usage("-%w", err)
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
			if !cmd.Flags().Changed("root") {
				if err := robotfs.CheckDefault(root); err != nil {
					return err
				}
			}
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
			cfg.crash = crash.Begin(cfg.Root, "robotd", bodies.Hardware{}, cli.Getenv(cmd.Context()), log)
			defer cfg.crash.End()
			return Run(cmd.Context(), log, cfg)
		},
	}
	f := cmd.Flags()
	for _, s := range all {
		if s.Equip != nil {
			begin[s.Species] = s.Equip(f)
		}
	}
	f.StringVar(&cfg.Root, "root", "/", "the robot's root folder `DIR`")
	f.StringVar(&cfg.Body, "body", "vector", "kind of body: "+bodies.Words(all))
	f.StringVar(&cfg.Device, "device", "", "the body's port: a tty, or the Unix socket of a simulated body (default: the usual one below the root)")
	f.IntVar(&cfg.Thread.Priority, "priority", rtlinux.DefaultPriority, "real-time priority of the loop, 1 to 99; 0: normal scheduling")
	f.IntVar(&cfg.Thread.CPU, "cpu", rtlinux.AnyCPU, "pin the loop to this processor, counted from 0, ideally the one with the body's "+
		"interrupts; -1: any")
	f.StringVar(&cfg.CPUClock, "cpu-clock", "", "file for the processor's maximum clock in kHz, such as "+
		"/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq, set by heat, battery and sleep (default: not set)")
	f.BoolVar(&onlyHalt, "halt", false, "only halt the body: for supervisors, after a robotd died with its motors running; with "+
		"SERVICE_RESULT=success do nothing")
	f.StringVar(&cfg.Record, "record", "", "record every step of the loop in this file, for robotkit replay; an existing file is overwritten")
	f.IntVar(&cfg.RecordMiB, "record-limit", recordLimitMiB, "maximum size of the recording in MiB; the robot continues without it")
	f.StringVar(&level, "log-level", "info", "`LEVEL`: debug, info, warn or error")
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
	if err := s.rec.Walk(context.WithoutCancel(ctx), s.core.how.Before...); err != nil {
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

// Package agentapp wires agentd: all of a robot that faces the network. What each part does is in edge/agent; this says who knows whom.
package agentapp

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/agent/robotfs"
	"kennel/infra/cli"
	"kennel/infra/logging"
)

// envFile holds what an operator may want to change on a robot; a variable KENNEL_<KEY> of the process overrides it.
const envFile = "anki/etc/kennel-agent.env"

// Config is what agentd can be told.
type Config struct {
	Root string
	Log  *slog.Logger
	// Telemetry is how often battery and loop are reported as events.
	Telemetry time.Duration
	// Flush is how long events wait for company before they are sent.
	Flush time.Duration
	// TracePermille is the share of this robot's requests, of a thousand, that ask the cloud to keep their trace.
	TracePermille int
}

// Main runs agentd and returns its exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return cli.Main(command(getenv), args, getenv, stdout, stderr)
}

func command(getenv func(string) string) *cobra.Command {
	var cfg Config
	var level string
	cmd := &cobra.Command{
		Use:   "agentd",
		Short: "The part of a robot that faces the network: identity, cloud link, settings, events",
		Long: `The part of a robot that faces the network. It reads who the robot is and whom to call from the files below its
root, and works without a cloud until one answers. SIGTERM ends it with code 0.`,
		Example: "  agentd -root /\n  agentd -root ./r1 -log-level debug",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if cfg.Log, err = logging.New(cmd.ErrOrStderr(), level, "text"); err != nil {
				return cli.Usage("-log-level: %w", err)
			}
			if cfg.Root, err = filepath.Abs(cfg.Root); err != nil {
				return err
			}
			root, err := os.OpenRoot(cfg.Root)
			if err != nil {
				return cli.Usage("-root: want the robot's folder: %w", err)
			}
			defer root.Close() // what was written is synced
			env := robotfs.LoadEnv(root, envFile, getenv)
			cfg.Telemetry = env.Millis("TELEMETRY_MS", 30*time.Second, 10*time.Millisecond, 24*time.Hour)
			cfg.Flush = env.Millis("FLUSH_MS", 2*time.Second, 10*time.Millisecond, time.Hour)
			cfg.TracePermille = env.Int("TRACE_PERMILLE", 10, 0, 1000)
			if err := env.Err(); err != nil {
				cfg.Log.Error("settings ignored", logging.Err, err) // a robot does not stay down for a typing mistake
			}
			return Run(cmd.Context(), root, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Root, "root", "/", "the robot's folder")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// goodbyeTime bounds what an orderly stop may still say.
const goodbyeTime = 2 * time.Second

// Run is agentd until ctx ends.
func Run(ctx context.Context, root *os.Root, cfg Config) error {
	a, err := newAgent(root, cfg)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

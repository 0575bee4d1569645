package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/config"
	"kennel/infra/logging"
	"kennel/infra/mqtt/broker"
	"kennel/infra/onebox"
)

// EnvPrefix begins the variables that override settings: KENNELD_MQTT_URL is mqtt.url.
const EnvPrefix = "KENNELD_"

// Main is the program kenneld; it returns the exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return cli.Main(command(getenv), args, getenv, stdout, stderr)
}

func command(getenv func(string) string) *cobra.Command {
	root := serveCommand("kenneld")
	root.Short = "The cloud that companion robots phone home to"
	root.Long = `The cloud that companion robots phone home to.

kenneld onebox brings up everything on one machine. With -config, kenneld runs some or all roles against
a Postgres, an S3 and an MQTT broker of yours.`
	root.Example = `  kenneld onebox -robots 5
  kenneld -roles all -config /etc/kennel/kenneld.yaml
  kenneld -config /etc/kennel/kenneld.yaml -check-config`
	serve := serveCommand("serve")
	root.AddCommand(oneboxCommand(getenv), serve, backupCommand(getenv), restoreCommand(getenv), installCommand(), prepareCommand(), caCommand(), partCommand())
	return root
}

func serveCommand(use string) *cobra.Command {
	var roles, file string
	var check bool
	cmd := &cobra.Command{
		Use:   use,
		Short: "Run roles of the cloud against parts of your own",
		Example: `  kenneld serve -config /etc/kennel/kenneld.yaml
  kenneld serve -roles bridge,jobs -config /etc/kennel/kenneld.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usage("-config FILE is missing: it names Postgres, S3, the broker and the authorities; or run kenneld onebox")
			}
			cfg := Defaults()
			if err := config.Load(&cfg, file, EnvPrefix, os.Environ()); err != nil {
				return cli.Usage("%w", err)
			}
			if roles != "" {
				cfg.Roles = strings.Split(roles, ",")
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
			if check {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "configuration is sound")
				return err
			}
			log, err := logging.New(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			if err != nil {
				return cli.Usage("%w", err)
			}
			return Serve(cmd.Context(), cfg, log, func() { log.Info("serving", "roles", cfg.Roles) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "YAML file with settings")
	f.StringVar(&roles, "roles", "", "all, or some of bridge,api,jobs (default: as the file says, else all)")
	f.BoolVar(&check, "check-config", false, "check the configuration and exit")
	return cmd
}

func oneboxCommand(getenv func(string) string) *cobra.Command {
	o := Onebox{Listen: DefaultListen}
	var listen []string
	var robots string
	cmd := &cobra.Command{
		Use:   "onebox",
		Short: "Bring up everything on this machine, with simulated robots if you like",
		Long: `Bring up everything on this machine: a private Postgres, an S3 gateway, an MQTT broker, certificate
authorities, all roles of the cloud, and simulated robots if you like. Ctrl-C stops all of it; the next start goes on
with the same data. Only this machine can connect, unless -listen says otherwise.`,
		Example: `  kenneld onebox -robots 5
  kenneld onebox -robots vector:3,amigobot:2
  kenneld onebox -data /srv/kennel -listen api=0.0.0.0:8443 -listen mqtt=0.0.0.0:8883
  kenneld onebox -ready-file /tmp/ready.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, l := range listen {
				if err := o.Listen.Set(l); err != nil {
					return err
				}
			}
			var err error
			if o.Robots, err = ParseRobots(robots); err != nil {
				return cli.Usage("-robots: %w", err)
			}
			for _, e := range o.RobotEnv {
				if !strings.Contains(e, "=") {
					return cli.Usage("-robot-env %q: want KEY=VALUE", e)
				}
			}
			log, err := logging.New(cmd.ErrOrStderr(), o.LogLevel, "text")
			if err != nil {
				return cli.Usage("%w", err)
			}
			o.Log, o.Out = log, cmd.OutOrStdout()
			if o.Data, err = dataDir(o.Data, getenv); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "data folder (default: /var/lib/kennel as root, else ~/.local/share/kennel)")
	f.StringVar(&robots, "robots", "0", "how many simulated robots: a number of Vectors, or by species, such as vector:3,amigobot:2")
	f.StringArrayVar(&listen, "listen", nil, "part=host:port; parts: api, console, robots, mqtt, postgres, s3, metrics (may be repeated)")
	f.StringVar(&o.ReadyFile, "ready-file", "", "write endpoints, pids and files here, as JSON, when everything is up")
	f.StringArrayVar(&o.RobotEnv, "robot-env", nil, "KEY=VALUE for simulated robots (may be repeated)")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}

func dataDir(dir string, getenv func(string) string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	return onebox.DefaultDir(getenv)
}

func backupCommand(getenv func(string) string) *cobra.Command {
	var data, out string
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Save a one-machine instance into one file, also while it runs",
		Long:    "Save a one-machine instance into one file: database, objects, authorities and secrets. The file is as secret as they are.",
		Example: "  kenneld backup -out kennel.backup\n  kenneld backup -data /srv/kennel -out kennel.backup",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withInstance(cmd, data, getenv, func(ctx context.Context, dir string) error {
				return onebox.Backup(ctx, dir, out, commandLog(cmd))
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data folder (default: as kenneld onebox)")
	cmd.Flags().StringVar(&out, "out", "", "file to write (required)")
	_ = cmd.MarkFlagRequired("out") // the flag exists
	return cmd
}

func restoreCommand(getenv func(string) string) *cobra.Command {
	var data, in string
	cmd := &cobra.Command{
		Use:     "restore",
		Short:   "Make an instance from a backup, in an empty folder",
		Example: "  kenneld restore -in kennel.backup -data /srv/kennel",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withInstance(cmd, data, getenv, func(ctx context.Context, dir string) error {
				return onebox.Restore(ctx, in, dir, commandLog(cmd))
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data folder, absent or empty (default: as kenneld onebox)")
	cmd.Flags().StringVar(&in, "in", "", "file that kenneld backup wrote (required)")
	_ = cmd.MarkFlagRequired("in") // the flag exists
	return cmd
}

func withInstance(cmd *cobra.Command, data string, getenv func(string) string, f func(context.Context, string) error) error {
	dir, err := dataDir(data, getenv)
	if err != nil {
		return err
	}
	return f(cmd.Context(), dir)
}

// partCommand is how onebox starts itself again as one of its parts; it is not for people.
func partCommand() *cobra.Command {
	part := &cobra.Command{Use: "part", Hidden: true, Short: "Parts of one-machine mode", Example: "  kenneld part broker -config broker.json"}
	var conf string
	mq := &cobra.Command{
		Use: "broker", Short: "The embedded MQTT broker", Example: "  kenneld part broker -config broker.json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return broker.Main(cmd.Context(), conf, cmd.ErrOrStderr()) },
	}
	mq.Flags().StringVar(&conf, "config", "", "JSON file")
	part.AddCommand(mq)
	return part
}

// commandLog returns the logger of a one-off command.
func commandLog(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

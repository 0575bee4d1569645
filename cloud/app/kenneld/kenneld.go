// Package kenneld is the program kenneld: its commands.
package kenneld

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/app"
	"kennel/cloud/app/cluster"
	"kennel/cloud/app/onebox"
	"kennel/cloud/app/plan"
	"kennel/infra/cli"
	"kennel/infra/config"
	"kennel/infra/logging"
)

// Main is the program kenneld; it returns the exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return cli.Main(command(getenv), args, getenv, stdout, stderr)
}

func command(getenv func(string) string) *cobra.Command {
	root := serveCommand("kenneld")
	root.Short = "The cloud that companion robots phone home to"
	root.Long = `The cloud that companion robots phone home to.

kenneld onebox runs everything on one machine. With -config, kenneld runs some or all roles with your own Postgres,
S3 and MQTT broker.`
	root.Example = `  kenneld onebox -robots 5
  kenneld -roles all -config /etc/kennel/kenneld.yaml
  kenneld -config /etc/kennel/kenneld.yaml -check-config`
	root.AddCommand(serveCommand("serve"))
	root.AddCommand(append(onebox.Commands(getenv), cluster.Command(), cluster.NATSCommand(), plan.Command())...)
	return root
}

func serveCommand(use string) *cobra.Command {
	var roles, file string
	var check bool
	cmd := &cobra.Command{
		Use:   use,
		Short: "Run roles of the cloud with your own Postgres, S3 and MQTT broker",
		Example: `  kenneld serve -config /etc/kennel/kenneld.yaml
  kenneld serve -roles bridge,jobs -config /etc/kennel/kenneld.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usage("missing -config FILE, which names Postgres, S3, the broker and the authorities; to run everything here: kenneld onebox")
			}
			cfg := app.Defaults()
			if err := config.Load(&cfg, file, app.EnvPrefix, os.Environ()); err != nil {
				return cli.Usage("%w", err)
			}
			if roles != "" {
				cfg.Roles = strings.Split(roles, ",")
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
			if check {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "configuration is valid")
				return err
			}
			log, err := logging.New(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			if err != nil {
				return cli.Usage("%w", err)
			}
			return app.Serve(cmd.Context(), cfg, log, func() { log.Info("serving", "roles", cfg.Roles) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "settings `FILE` (YAML)")
	f.StringVar(&roles, "roles", "", "`ROLES`: all, or some of bridge,api,jobs (default: as configured, else all)")
	f.BoolVar(&check, "check-config", false, "check the configuration and exit")
	return cmd
}

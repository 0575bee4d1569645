package agentapp

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/agent/localapi"
	"kennel/edge/agent/release"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// follow is how often the command line looks how far an update is.
const follow = 250 * time.Millisecond

// updateCommand is the original's update-os.
func updateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "update", Short: "Install a release, show progress, stop, restart into it"}
	ask := func(cmd *cobra.Command, root *os.Root, path string, body any) (release.Report, error) {
		return localapi.Ask[release.Report](cmd.Context(), root, "/update/"+path, body)
	}
	show := func(cmd *cobra.Command, r release.Report, err error) error {
		if err != nil {
			return err
		}
		return cli.Print(cmd, r, func(t *cli.Table) { t.Text(words(r)) })
	}
	simple := func(use, short string) *cobra.Command {
		return atRobot(&cobra.Command{Use: use, Short: short, Example: "  agentd update " + use + " -root ./r1"},
			func(cmd *cobra.Command, root *os.Root) error {
				r, err := ask(cmd, root, use, localapi.Nothing{})
				return show(cmd, r, err)
			})
	}
	o := release.Order{Downgrade: true} // as the original's
	start := atRobot(&cobra.Command{
		Use: "start [URL]", Short: "Install a release and wait until done",
		Long: `Install the release at URL, else the one that the cloud has set, else the one named in the updater's files, and wait until done. A running
update is followed. Development robots also accept older versions. If the update fails, the exit code is the updater's, 200 to 219.
An interrupt only ends the wait; the update continues.`,
		Example: "  agentd update start -root ./r1\n  agentd update start https://example.com/1.8.1.ota -force -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		o.URL = cmd.Flags().Arg(0)
		r, err := ask(cmd, root, "start", o)
		for said := ""; err == nil && (r.Runs || r.Soon()); {
			if text := words(r); !cli.JSON(cmd) && text != said {
				said = text
				fmt.Fprintln(cmd.ErrOrStderr(), text)
			}
			select {
			case <-cmd.Context().Done():
				return context.Cause(cmd.Context())
			case <-time.After(follow):
			}
			r, err = ask(cmd, root, "status", localapi.Nothing{})
		}
		if err := show(cmd, r, err); err != nil {
			return err
		}
		if r.Why != "" && !r.Done {
			return cli.WithStatus(int(r.Code), errs.New(errs.Internal, "%s", r.Why))
		}
		return nil
	})
	start.Args = cobra.MaximumNArgs(1)
	start.Flags().BoolVar(&o.Force, "force", false, "ignore battery and temperature")
	cmd.AddCommand(start, simple("status", "Show the progress of an update"), simple("stop", "Stop the running update"),
		atRobot(&cobra.Command{Use: "restart", Short: "Restart the robot into the installed release", Example: "  agentd update restart -root ./r1"},
			func(cmd *cobra.Command, root *os.Root) error {
				_, err := localapi.Ask[localapi.Nothing](cmd.Context(), root, "/update/restart", localapi.Nothing{})
				return err
			}))
	return cmd
}

// words says in one line how far an update is.
func words(r release.Report) string {
	switch {
	case r.Done:
		return fmt.Sprintf("%s installed; starts with the next boot", r.Version)
	case r.Runs && r.Expected > 0:
		return fmt.Sprintf("downloading %s: %d %% of %.1f MB", r.Version, 100*r.Progress/r.Expected, float64(r.Expected)/1e6)
	case r.Runs:
		return "checking for an update"
	case r.Waits != "":
		return fmt.Sprintf("%s waiting: %s", r.Wanted, r.Waits)
	case r.Code != 0:
		return fmt.Sprintf("code %d: %s", int(r.Code), r.Error)
	}
	return "running " + r.Running + "; no update available"
}

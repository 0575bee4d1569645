package agentapp

import (
	"os"

	"github.com/spf13/cobra"

	"kennel/edge/agent/health/diag"
	"kennel/edge/agent/localapi"
	"kennel/infra/cli"
)

// logCommand is the original's vic-log-cat, vic-logmgr-upload and diagnostics-logger.
func logCommand() *cobra.Command {
	r := diag.Request{}
	send := atRobot(&cobra.Command{
		Use: "send", Short: "Send the robot's recent logs to the cloud",
		Long: `Send the robot's recent logs to the cloud as soon as it is online. The owner must allow it.`, Example: "  agentd log send -root ./r1\n  agentd log send -diagnostics -reason battery-drain -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		q, err := localapi.Ask[diag.Queued](cmd.Context(), root, "/logs/send", r)
		if err != nil {
			return err
		}
		return cli.Print(cmd, q, func(t *cli.Table) { t.Text(q.Name + " waits for its upload") })
	})
	send.Flags().BoolVar(&r.Diagnostics, "diagnostics", false, "include the state of the robot's computer and network")
	send.Flags().StringVar(&r.Reason, "reason", "local", "a `WORD` stored with the log")
	cmd := &cobra.Command{Use: "log", Short: "Print the robot's log, or send it to the cloud"}
	cmd.AddCommand(send, atRobot(&cobra.Command{
		Use: "cat", Short: "Print the robot's log, oldest lines first", Example: "  agentd log cat -root ./r1 | grep wifi",
	}, func(cmd *cobra.Command, root *os.Root) error { return diag.Cat(cmd.OutOrStdout(), root, 0) }))
	return cmd
}

package agentapp

import (
	"context"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"kennel/edge/agent/health"
	"kennel/edge/agent/ownership"
	"kennel/infra/cli"
)

// queuedAnswer names an upload.
type queuedAnswer struct {
	Name string `json:"name"`
}

// logRequests are the requests about logs on agentd's socket: the command line's, and those of the program that serves the robot's API (VEC-DGN-11).
//
//	POST /logs/send  health.LogRequest -> {"name"}
func logRequests(l health.Logs) map[string]http.Handler {
	return map[string]http.Handler{"POST /logs/send": ownership.Answer(func(ctx context.Context, r health.LogRequest) (queuedAnswer, error) {
		name, err := l.Send(ctx, r)
		return queuedAnswer{name}, err
	})}
}

// logCommand is the original's vic-log-cat, vic-logmgr-upload and diagnostics-logger.
func logCommand() *cobra.Command {
	r := health.LogRequest{}
	send := atRobot(&cobra.Command{
		Use: "send", Short: "Send the robot's recent logs to the cloud",
		Long: `Send the robot's recent logs to the cloud, as soon as there is a connection. The owner must allow it. With -diagnostics the state of its computer
and network is sent too.`, Example: "  agentd log send -root ./r1\n  agentd log send -diagnostics -reason battery-drain -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		q, err := ownership.Ask[queuedAnswer](cmd.Context(), root, "/logs/send", r)
		if err != nil {
			return err
		}
		return cli.Print(cmd, q, func(t *cli.Table) { t.Text(q.Name + " waits for its upload") })
	})
	send.Flags().BoolVar(&r.Diagnostics, "diagnostics", false, "with the state of computer and network")
	send.Flags().StringVar(&r.Reason, "reason", "local", "`WORD` that the cloud shows with the log")
	cmd := &cobra.Command{Use: "log", Short: "Print the robot's log, or send it to the cloud"}
	cmd.AddCommand(send, atRobot(&cobra.Command{
		Use: "cat", Short: "Print the robot's log: the rotated one, then the current one", Example: "  agentd log cat -root ./r1 | grep wifi",
	}, func(cmd *cobra.Command, root *os.Root) error { return health.CatLog(cmd.OutOrStdout(), root) }))
	return cmd
}

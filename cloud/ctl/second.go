package ctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) second() *cobra.Command {
	return group(describe("second", "Manage your second factor, an authenticator app", "second status", "second add"),
		a.secondAdd(),
		prompts(a, &cobra.Command{Use: "remove", Short: "Remove your authenticator app",
			Long: "Prompts for your password.", Example: "  kennelctl second remove"}, a.connect, []input{knownPassword},
			func(ctx context.Context, _ *conn, got []string) (reply[client.Accepted], error) {
				r, err := a.api.PostMeSecondRemove(ctx, client.SecondBegin{Password: got[0]})
				return then(r, err, "App removed. You now sign in with your password alone.")
			}, showAccepted))
}

func (a *app) secondAdd() *cobra.Command {
	var cmd *cobra.Command
	cmd = prompts(a, &cobra.Command{Use: "add", Short: "Add an authenticator app",
		Long:    "Prompts for your password, shows the secret for the app, and prompts for the app's first code. Prints recovery codes, which are shown only once.",
		Example: "  kennelctl second add"}, a.connect, []input{knownPassword},
		func(ctx context.Context, _ *conn, got []string) (r reply[client.SecondCodes], err error) {
			app, err := a.api.PostMeSecondBegin(ctx, client.SecondBegin{Password: got[0]})
			if err != nil {
				return r, err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "Enter this in your authenticator app:\n"+app.Value.Uri)
			code, err := ask(cmd, a.stdin, "Code from the app: ")
			if err != nil {
				return r, err
			}
			return a.api.PostMeSecond(ctx, client.SecondCode{Code: code})
		}, func(t *cli.Table, v client.SecondCodes) {
			t.Text("Recovery codes, each valid once. Keep them safe:\n" + strings.Join(v.RecoveryCodes, "\n"))
		})
	return cmd
}

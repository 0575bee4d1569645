package ctl

import (
	"context"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) my() *cobra.Command {
	return group(describe("my", "Manage your own robots",
		"my claim K7QM-3XW9", "my list", "my transfer vic:00e20100 bob@example.org"),
		prompts(a, &cobra.Command{Use: "transfer THING TO", Short: "Offer a robot to another person", ValidArgsFunction: a.completeMine,
			Long: "TO is an e-mail address or an account id. Prompts for your password. The robot stays yours until the other person accepts. " +
				"The offer is valid for a week; a new offer replaces it.",
			Example: "  kennelctl my transfer vic:00e20100 bob@example.org"}, a.connect, []input{knownPassword},
			func(ctx context.Context, _ *conn, got []string) (reply[client.Transfer], error) {
				return a.api.PostMyRobotsThingTransfer(ctx, got[0], client.TransferRequest{To: got[1], Password: got[2]})
			}, func(t *cli.Table, o client.Transfer) {
				pairs(t, "transfer", o.ID, "thing", o.Thing, "expires", o.Expires)
			}),
		a.says(&cobra.Command{Use: "say THING TEXT...", Short: "Tell a robot what to do, in your words", ValidArgsFunction: a.completeMine,
			Example: "  kennelctl my say vic:00e20100 go forward\n  kennelctl my say vic:00e20100 'set a timer for five minutes'"}, a.api.PostMyRobotsThingIntents),
		describe("audio", "Choose whether recordings of what your robot hears are kept", "my audio show vic:00e20100", "my audio keep vic:00e20100 yes"),
		describe("talk", "Choose what the language model does for your robot", "my talk show vic:00e20100", "my talk personality vic:00e20100 'You are a grumpy pirate.'"),
		describe("programs", "Let programs drive your robot, and remove programs and apps", "my programs list vic:00e20100", "my programs add vic:00e20100 wanderer -rights look,move -o json > robot.json"))
}

func (a *app) completeMine(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return offers(cmd, args, "", none(a.api.GetMyRobots), func(r client.Robot) (string, string) { return r.Thing, r.Name })
}

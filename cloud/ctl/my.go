package ctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) my() *cobra.Command {
	return group(describe("my", "Your own robots: claim, name, hand on, release",
		"my claim K7QM-3XW9", "my robots", "my transfer vic:00e20100 bob@example.org"),
		shows(a, describe("robots", "List your robots", "my robots"), none(a.api.GetMyRobots),
			rows("THING|NAME|YOURS SINCE|BY", func(r client.Robot) cells { return cells{r.Thing, r.Name, r.Since, r.How} })),
		a.myClaim(),
		shows(a, &cobra.Command{Use: "rename THING NAME", Short: "Give a robot a name; an empty one takes it away", ValidArgsFunction: a.completeMine,
			Example: "  kennelctl my rename vic:00e20100 Rex\n  kennelctl my rename vic:00e20100 ''"},
			func(ctx context.Context, args []string) (reply[client.Robot], error) {
				return a.api.PatchMyRobotsThing(ctx, args[0], client.NameRequest{Name: args[1]})
			}, showMine),
		shows(a, &cobra.Command{Use: "release THING", Short: "Give up a robot, which then has no owner", ValidArgsFunction: a.completeMine,
			Long:    "Its apps and access tokens end. A person who has the robot in hand can claim it.",
			Example: "  kennelctl my release vic:00e20100"}, first(a.api.DeleteMyRobotsThing), nil),
		prompts(a, &cobra.Command{Use: "transfer THING TO", Short: "Offer a robot to another person", ValidArgsFunction: a.completeMine,
			Long: "TO is an e-mail, or the id of an account. Asks for your password. The robot stays yours until it is accepted; " +
				"the offer is good for a week, and the next takes its place.",
			Example: "  kennelctl my transfer vic:00e20100 bob@example.org"}, a.connect, []input{knownPassword},
			func(ctx context.Context, _ *conn, got []string) (reply[client.Transfer], error) {
				return a.api.PostMyRobotsThingTransfer(ctx, got[0], client.TransferRequest{To: got[1], Password: got[2]})
			}, func(t *cli.Table, o client.Transfer) {
				pairs(t, "transfer", o.ID, "thing", o.Thing, "expires", o.Expires)
			}),
		a.says(&cobra.Command{Use: "say THING TEXT...", Short: "Tell a robot what to do, in your words", ValidArgsFunction: a.completeMine,
			Example: "  kennelctl my say vic:00e20100 go forward\n  kennelctl my say vic:00e20100 'set a timer for five minutes'"}, a.api.PostMyRobotsThingIntents),
		shows(a, describe("transfers", "List robots that you offer, and that are offered to you", "my transfers"),
			none(a.api.GetMyTransfers), rows("TRANSFER|THING|GOOD UNTIL|OFFERED", func(o client.Transfer) cells {
				return cells{o.ID, o.Thing, o.Expires, map[bool]string{true: "by you", false: "to you"}[o.Mine]}
			})),
		shows(a, describe("accept TRANSFER", "Take a robot that is offered to you", "my accept "+anID),
			first(a.api.PostMyTransfersIDAccept), showMine),
		shows(a, describe("decline TRANSFER", "Decline a robot that is offered to you, or take back your offer",
			"my decline "+anID), first(a.api.DeleteMyTransfersID), nil),
		group(describe("audio", "What your robot hears: whether it is kept, and what is kept", "my audio show vic:00e20100", "my audio keep vic:00e20100 yes"),
			shows(a, describe("show THING", "List what is kept", "my audio show vic:00e20100"), first(a.api.GetMyRobotsThingAudio), showAudio),
			shows(a, describe("keep THING WORD", "Have it kept for a week (yes), or not (no), which deletes all recordings", "my audio keep vic:00e20100 no"),
				func(ctx context.Context, args []string) (r reply[client.AudioWish], err error) {
					if args[1] != "yes" && args[1] != "no" {
						return r, cli.Usage("%.20q: want yes or no", args[1])
					}
					return a.api.PutMyRobotsThingAudio(ctx, args[0], client.Keep{Keep: args[1] == "yes"})
				}, showAudio)))
}

func showAudio(t *cli.Table, w client.AudioWish) {
	pairs(t, "kept", map[bool]string{true: fmt.Sprintf("for %d days", w.KeepDays), false: "no"}[w.Keep])
	if len(w.Recordings) > 0 {
		rows("RECORDING|HEARD|BYTES", func(r client.Recording) cells { return cells{r.Name, r.At, r.Size} })(t, w.Recordings)
	}
}

func showMine(t *cli.Table, r client.Robot) {
	pairs(t, "thing", r.Thing, "name", r.Name, "yours", since(r.Since), "by", r.How)
}

func (a *app) myClaim() *cobra.Command {
	var id string
	cmd := shows(a, &cobra.Command{Use: "claim CODE", Short: "Claim the robot that shows this code",
		Long: "A robot without an owner shows a code for ten minutes; after five wrong tries it needs another. Case, blanks and dashes do not matter.\n" +
			"A robot that another person owns shows none until that person releases it or hands it on, or its user data are cleared.",
		Example: "  kennelctl my claim K7QM-3XW9\n  kennelctl my claim k7qm3xw9 -robot vic:00e20100"},
		func(ctx context.Context, args []string) (r reply[client.Robot], err error) {
			if id != "" {
				if _, err := parseThing(id); err != nil {
					return r, err
				}
			}
			return a.api.PostMyRobotsClaim(ctx, client.ClaimRequest{Code: args[0], Thing: id})
		}, showMine)
	cmd.Flags().StringVar(&id, "robot", "", "only if it is the code of `THING`")
	return cmd
}

func (a *app) completeMine(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return offers(cmd, args, "", none(a.api.GetMyRobots), func(r client.Robot) (string, string) { return r.Thing, r.Name })
}

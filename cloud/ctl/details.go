package ctl

import (
	"context"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

// robotDetails are the commands of robots that ask for one side of one robot.
func (a *app) robotDetails() []*cobra.Command {
	return []*cobra.Command{
		a.robotsHistory(),
		shows(a, &cobra.Command{Use: "certificates THING", Short: "List the certificates that a robot was given, the newest first",
			Example: "  kennelctl robots certificates vic:00e20100"}, first(a.api.GetThingsThingCertificates),
			rows("SERIAL|FOR|FROM|UNTIL|REVOKED|REASON", func(c client.Certificate) cells {
				return cells{c.Serial, c.Method, c.NotBefore, c.NotAfter, c.Revoked, c.Reason}
			})),
		group(&cobra.Command{Use: "tokens", Short: "Access tokens with which a robot acts for its owner", Example: "  kennelctl robots tokens list vic:00e20100"},
			shows(a, &cobra.Command{Use: "list THING", Short: "List a robot's access tokens", Example: "  kennelctl robots tokens list vic:00e20100"},
				first(a.api.GetThingsThingTokens), rows("TOKEN|ISSUED|UNTIL|BY|REVOKED|REASON", func(k client.Token) cells {
					return cells{k.ID, k.IssuedAt, k.ExpiresAt, k.How, k.RevokedAt, k.Reason}
				})),
			revoker(a, "tokens", "TOKEN", a.api.DeleteThingsThingTokens, a.api.DeleteThingsThingTokensToken)),
		group(&cobra.Command{Use: "apps", Short: "Apps and SDK programs that may talk to a robot", Example: "  kennelctl robots apps list vic:00e20100"},
			shows(a, &cobra.Command{Use: "list THING", Short: "List a robot's apps", Example: "  kennelctl robots apps list vic:00e20100"},
				first(a.api.GetThingsThingApps), rows("APP|NAME|PROGRAM|SINCE", func(p client.App) cells { return cells{p.ID, p.ClientName, p.AppID, p.IssuedAt} })),
			revoker(a, "apps", "APP", a.api.DeleteThingsThingApps, a.api.DeleteThingsThingAppsApp)),
		shows(a, &cobra.Command{Use: "owner THING", Short: "Show whose a robot is and was; people by the id of their account", Example: "  kennelctl robots owner vic:00e20100"},
			first(a.api.GetThingsThingOwner), func(t *cli.Table, o client.OwnerOwner) {
				past := o.Past
				if o.Account != "" {
					past = append([]client.Past{{Account: o.Account, Since: o.Since, How: o.How}}, past...)
				}
				rows("ACCOUNT|SINCE|BY|UNTIL|ENDED", func(p client.Past) cells { return cells{p.Account, p.Since, p.How, p.Until, p.Ended} })(t, past)
			}),
		reasoned(a, &cobra.Command{Use: "disown THING", Short: "Take a robot from its owner, for people who cannot do so themselves",
			Example: "  kennelctl robots disown vic:00e20100 -reason 'sold, the seller cannot be reached (case 17)'"},
			func(ctx context.Context, args []string, reason string) (reply[client.None], error) {
				return a.api.DeleteThingsThingOwner(ctx, args[0], client.ReleaseRequest{Reason: reason})
			}, said[client.None]("%s has no owner now")),
	}
}

func (a *app) whoami() *cobra.Command {
	return shows(a, &cobra.Command{Use: "whoami", Short: "Show who you are to the cloud, and what you may do", Example: "  kennelctl whoami"}, none(a.api.GetMe),
		func(t *cli.Table, m client.Account) {
			pairs(t, "e-mail", m.Email, "role", m.Role, "id", m.ID)
			if m.MustChange {
				t.Text("the password is a first one: change it with kennelctl password")
			}
		})
}

func (a *app) fleet() *cobra.Command {
	return shows(a, &cobra.Command{Use: "fleet", Short: "Count the robots that are present and absent", Example: "  kennelctl fleet\n  kennelctl fleet -o json"},
		none(a.api.GetFleet), func(t *cli.Table, c client.Count) { pairs(t, "present", c.Present, "absent", c.Absent) })
}

func (a *app) passkeys() *cobra.Command {
	return group(&cobra.Command{Use: "passkeys", Short: "Your passkeys; a browser adds them", Example: "  kennelctl passkeys list\n  kennelctl passkeys remove ID"},
		shows(a, &cobra.Command{Use: "list", Short: "List your passkeys", Example: "  kennelctl passkeys list"}, none(a.api.GetMePasskeys),
			rows("PASSKEY|NAME|SINCE|LAST USED", func(p client.Passkey) cells { return cells{p.ID, p.Name, p.Created, p.LastUsed} })),
		does(a, &cobra.Command{Use: "remove PASSKEY", Short: "Remove one of your passkeys", Example: "  kennelctl passkeys remove ID"},
			first(a.api.DeleteMePasskeysID), said[client.None]("%s is removed")))
}

func (a *app) robotsHistory() *cobra.Command {
	var q client.GetThingsThingHistoryQuery
	cmd := shows(a, &cobra.Command{Use: "history THING", Short: "List when a robot came and went, the newest first", Example: "  kennelctl robots history vic:00e20100 -limit 10"},
		func(ctx context.Context, args []string) (reply[[]client.RegistryChange], error) {
			return a.api.GetThingsThingHistory(ctx, args[0], q)
		},
		rows("TIME|PRESENCE", func(c client.RegistryChange) cells {
			return cells{c.At, map[bool]string{true: "present", false: "absent"}[c.Present]}
		}))
	q.Limit = cmd.Flags().Int64("limit", 50, "show at most `N`")
	return cmd
}

// revoker makes the command that takes one or all of a robot's entries away.
func revoker[T any](a *app, what, one string, everything func(context.Context, string) (reply[T], error), entry func(context.Context, string, string) (reply[T], error)) *cobra.Command {
	var all bool
	cmd := does(a, &cobra.Command{Use: "revoke THING [" + one + "]", Short: "Take one of a robot's " + what + " away, or with -all every one",
		Example: "  kennelctl robots " + what + " revoke vic:00e20100 ID\n  kennelctl robots " + what + " revoke vic:00e20100 -all"},
		func(ctx context.Context, args []string) (r reply[T], err error) {
			switch {
			case (len(args) == 2) == all:
				return r, cli.Usage("want one or -all")
			case all:
				r, err = everything(ctx, args[0])
			default:
				r, err = entry(ctx, args[0], args[1])
			}
			return reply[T]{}, err
		}, func(args []string, _ T) string {
			if all {
				return "all " + what + " of " + args[0] + " are revoked"
			}
			return args[1] + " is revoked"
		})
	cmd.Flags().BoolVar(&all, "all", false, "every one")
	return cmd
}

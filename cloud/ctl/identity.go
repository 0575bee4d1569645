package ctl

import (
	"context"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func showRegistration(t *cli.Table, r client.Registration) {
	pairs(t, "thing", r.Thing, "secret", r.Secret)
}

// batches is manufacturing batches, whose robots are let in for their factory certificates.
func (a *app) batches() *cobra.Command {
	return describe("batches", "Manufacturing batches whose factory certificates are accepted", "batches list", "batches put lot-2018 -bundle factory-2018.pem")
}

// robotDetails are the commands of robots that ask for one side of one robot.
func (a *app) robotDetails() []*cobra.Command {
	return []*cobra.Command{
		a.robotsDeviceToken(),
		group(describe("tokens", "Access tokens with which a robot acts for its owner", "robots tokens list vic:00e20100"),
			revoker(a, "tokens", "TOKEN", a.api.DeleteThingsThingTokens, a.api.DeleteThingsThingTokensToken)),
		group(describe("apps", "Apps and SDK programs that may talk to a robot", "robots apps list vic:00e20100"),
			revoker(a, "apps", "APP", a.api.DeleteThingsThingApps, a.api.DeleteThingsThingAppsApp)),
		shows(a, describe("owner THING", "Show a robot's owner and earlier owners, by the ids of their accounts", "robots owner vic:00e20100"),
			first(a.api.GetThingsThingOwner), func(t *cli.Table, o client.OwnerOwner) {
				past := o.Past
				if o.Account != "" {
					past = append([]client.Past{{Account: o.Account, Since: o.Since, How: o.How}}, past...)
				}
				rows("ACCOUNT|SINCE|BY|UNTIL|ENDED", func(p client.Past) cells { return cells{p.Account, p.Since, p.How, p.Until, p.Ended} })(t, past)
			}),
	}
}

func (a *app) robotsDeviceToken() *cobra.Command {
	var none bool
	cmd := a.runs(&cobra.Command{Use: "device-token THING", Short: "Make the token of a device that runs SWUpdate",
		Long:    "The device shows it as suricatta's targettoken. It takes the place of an earlier one and is shown only once. -none takes it away.",
		Example: "  kennelctl robots device-token amigo:arm-7"},
		func(cmd *cobra.Command, args []string) error {
			if none {
				_, err := a.api.DeleteThingsThingDeviceToken(cmd.Context(), args[0])
				return err
			}
			r, err := a.api.PostThingsThingDeviceToken(cmd.Context(), args[0])
			return show(cmd, r, err, func(t *cli.Table, k client.DeviceToken) { pairs(t, "thing", k.Thing, "token", k.Token) })
		})
	cmd.Flags().BoolVar(&none, "none", false, "take the token away")
	return cmd
}

// revoker makes the command that takes one or all of a robot's entries away.
func revoker[T any](a *app, what, one string, everything func(context.Context, string) (reply[T], error),
	entry func(context.Context, string, string) (reply[T], error)) *cobra.Command {
	var all bool
	cmd := does(a, &cobra.Command{Use: "revoke THING [" + one + "]", Short: "Take one of a robot's " + what + " away, or with -all every one",
		Example: "  kennelctl robots " + what + " revoke vic:00e20100 ID\n  kennelctl robots " + what + " revoke vic:00e20100 -all"},
		func(ctx context.Context, args []string) (r reply[T], err error) {
			switch {
			case (len(args) == 2) == all:
				return r, cli.Usage("want one or -all")
			case all:
				_, err = everything(ctx, args[0])
			default:
				_, err = entry(ctx, args[0], args[1])
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

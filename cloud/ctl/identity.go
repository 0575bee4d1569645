package ctl

import (
	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func showRegistration(t *cli.Table, r client.Registration) {
	pairs(t, "thing", r.Thing, "secret", r.Secret)
}

// batches is manufacturing batches, whose robots are let in for their factory certificates.
func (a *app) batches() *cobra.Command {
	return describe("batches", "Manage manufacturing batches, whose factory certificates are accepted", "batches list", "batches put lot-2018 -bundle factory-2018.pem")
}

// robotDetails are the commands of robots that ask for one side of one robot.
func (a *app) robotDetails() []*cobra.Command {
	return []*cobra.Command{
		a.robotsDeviceToken(),
		describe("tokens", "List and revoke access tokens with which a robot acts for its owner", "robots tokens list vic:00e20100"),
		describe("apps", "List and revoke apps and SDK programs that may talk to a robot", "robots apps list vic:00e20100"),
		shows(a, describe("owner THING", "Show the account ids of a robot's owners", "robots owner vic:00e20100"),
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
	cmd := a.runs(&cobra.Command{Use: "device-token THING", Short: "Create a token for a device that runs SWUpdate",
		Long:    "Configure it as suricatta's targettoken. It replaces an earlier one and is shown only once.",
		Example: "  kennelctl robots device-token amigo:arm-7"},
		func(cmd *cobra.Command, args []string) error {
			if none {
				_, err := a.api.DeleteThingsThingDeviceToken(cmd.Context(), args[0])
				return err
			}
			r, err := a.api.PostThingsThingDeviceToken(cmd.Context(), args[0])
			return show(cmd, r, err, func(t *cli.Table, k client.DeviceToken) { pairs(t, "thing", k.Thing, "token", k.Token) })
		})
	cmd.Flags().BoolVar(&none, "none", false, "revoke the token instead")
	return cmd
}

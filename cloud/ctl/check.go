package ctl

import (
	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) check() *cobra.Command {
	return a.runs(&cobra.Command{Use: "check", Short: "Check whether this installation is ready for the internet",
		Long: "Check, at this moment, what the installation lacks before strangers may reach it: name and certificate, mail, second factors, backup\n" +
			"and restore drill, disk, time, retention, open ports. The exit status is 1 while something is missing.",
		Example: "  kennelctl check\n  kennelctl check -o json"},
		func(cmd *cobra.Command, _ []string) error {
			r, err := a.api.GetCheck(cmd.Context())
			if err := show(cmd, r, err, rowsOfCheck); err != nil || r.Value.Ready {
				return err
			}
			return errs.New(errs.Conflict, "not ready for the internet: the list says what is missing")
		})
}

func rowsOfCheck(t *cli.Table, c client.Checklist) {
	t.Row("STATE", "CHECK", "FOUND")
	for _, i := range c.Items {
		t.Row(i.State, i.Title, i.Says)
		if i.Do != "" {
			t.Row("", "", i.Do)
		}
	}
}

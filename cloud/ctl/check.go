package ctl

import (
	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) check() *cobra.Command {
	return a.runs(&cobra.Command{Use: "check", Short: "Check whether this installation is ready for the internet",
		Long: "Check name and certificate, mail, second factors, backup and restore drill, disk, clock, retention and open ports.\n" +
			"The exit code is 1 while something is missing.",
		Example: "  kennelctl check\n  kennelctl check -o json"},
		func(cmd *cobra.Command, _ []string) error {
			r, err := a.api.GetCheck(cmd.Context())
			if err := show(cmd, r, err, rowsOfCheck); err != nil || r.Value.Ready {
				return err
			}
			return errs.New(errs.Conflict, "not ready for the internet: see the list")
		})
}

func rowsOfCheck(t *cli.Table, c client.Checklist) {
	t.Row("STATE", "CHECK", "RESULT")
	for _, i := range c.Items {
		t.Row(i.State, i.Title, i.Says)
		if i.Do != "" {
			t.Row("", "", i.Do)
		}
	}
}

package ctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) operators() *cobra.Command {
	return &cobra.Command{Use: "operators", Short: "Operators: who they are and what they may do",
		Long: "Roles: viewer sees; support helps owners and steers robots; release-manager also releases; admin also manages robots and people.\n" +
			"OPERATOR is an e-mail address or an id.",
		Example: "  kennelctl operators list\n  kennelctl operators add grace@example.org -role support"}
}

// operatorID returns the id of an operator who is named by e-mail or id.
func (a *app) operatorID(ctx context.Context, name string) (string, error) {
	if !strings.Contains(name, "@") {
		return name, nil
	}
	all, err := a.api.GetOperators(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range all.Value {
		if o.Email == strings.ToLower(strings.TrimSpace(name)) {
			return o.ID, nil
		}
	}
	return "", errs.New(errs.NotFound, "no operator has the e-mail %.80q", name)
}

func (a *app) audit() *cobra.Command {
	return group(describe("audit", "Audit log: list it, and verify that it is complete",
		"audit list", "audit verify"), a.auditVerify())
}

func (a *app) auditVerify() *cobra.Command {
	var from string
	cmd := &cobra.Command{Use: "verify", Short: "Verify the audit log and name the first broken line",
		Long: "Prints an anchor, the last line's number and hash. Keep it away from the cloud: with -from a later run finds out " +
			"if the log up to that line\nwas replaced as a whole, which the chain alone cannot tell. kenneld also logs an anchor each hour.",
		Example: "  kennelctl audit verify\n  kennelctl audit verify -from 1200:5f1c..."}
	a.runs(cmd, func(cmd *cobra.Command, _ []string) error {
		all := client.AuditReport{Anchor: from}
		for !all.Done {
			got, err := a.api.GetAuditVerify(cmd.Context(), client.GetAuditVerifyQuery{From: &all.Anchor})
			r := got.Value
			switch {
			case err != nil:
				return err
			case r.Broken != nil:
				return errs.Coded(errs.Corrupt, "audit_broken", "the audit log is broken at line %d: %s; it is whole up to %s",
					r.Broken.ID, r.Broken.Why, r.Anchor)
			case !r.Done && r.Checked == 0:
				return errs.New(errs.Corrupt, "%s makes no progress with the check", a.conn.s.Server)
			}
			r.Checked, r.Forgotten = r.Checked+all.Checked, r.Forgotten+all.Forgotten
			all = r
		}
		return cli.Print(cmd, all, func(t *cli.Table) {
			t.Text(fmt.Sprintf("the audit log is whole: %d lines checked, %d of them without their address", all.Checked, all.Forgotten))
			t.Text("anchor " + all.Anchor)
		})
	})
	cmd.Flags().StringVar(&from, "from", "", "continue from `ANCHOR`, as an earlier run printed it, or a line's number")
	return cmd
}

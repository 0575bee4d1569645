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
	return &cobra.Command{Use: "operators", Short: "Manage operators",
		Long: "Roles: viewer may look; support also helps owners and controls robots; release-manager also manages releases; admin also manages robots and operators.\n" +
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
	return "", errs.New(errs.NotFound, "no operator with e-mail %.80q", name)
}

func (a *app) audit() *cobra.Command {
	return group(describe("audit", "Show and verify the audit log",
		"audit list", "audit verify"), a.auditVerify())
}

func (a *app) auditVerify() *cobra.Command {
	var from string
	cmd := &cobra.Command{Use: "verify", Short: "Verify the audit log and name the first broken line",
		Long: "Prints an anchor: the number and hash of the last line. Keep it outside the cloud: a later run with -from then detects if the log up to\n" +
			"that line was replaced as a whole, which the hash chain alone cannot. kenneld also logs an anchor every hour.",
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
				return errs.Coded(errs.Corrupt, "audit_broken", "audit log altered at line %d: %s; intact up to %s",
					r.Broken.ID, r.Broken.Why, r.Anchor)
			case !r.Done && r.Checked == 0:
				return errs.New(errs.Corrupt, "%s: the check makes no progress", a.conn.s.Server)
			}
			r.Checked, r.Forgotten = r.Checked+all.Checked, r.Forgotten+all.Forgotten
			all = r
		}
		return cli.Print(cmd, all, func(t *cli.Table) {
			line := "Audit log intact: " + cli.Count(all.Checked, "line") + " checked"
			if all.Forgotten > 0 {
				line += fmt.Sprintf(", %d without the address of the caller", all.Forgotten)
			}
			t.Text(line)
			t.Text("anchor " + all.Anchor)
		})
	})
	cmd.Flags().StringVar(&from, "from", "", "continue from an earlier run's `ANCHOR`, or from a line number")
	return cmd
}

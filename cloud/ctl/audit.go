package ctl

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) audit() *cobra.Command {
	return group(&cobra.Command{Use: "audit", Short: "What people and robots did, and whether that record is whole",
		Example: "  kennelctl audit list\n  kennelctl audit verify"}, a.auditList(), a.auditVerify())
}

func (a *app) auditList() *cobra.Command {
	var q client.GetAuditQuery
	cmd := shows(a, &cobra.Command{Use: "list", Short: "List the audit log, the newest line first",
		Long:    "Lines hold ids; the e-mail is that of the account now. Addresses are kept for 90 days, or until the person leaves.",
		Example: "  kennelctl audit list -limit 20\n  kennelctl audit list -before 1200 -o json"},
		func(ctx context.Context, _ []string) (reply[[]client.AuditEntry], error) {
			return a.api.GetAudit(ctx, q)
		},
		rows("LINE|TIME|WHO|ROLE|FROM|ACTION|OBJECT|DETAIL", func(r client.AuditEntry) cells {
			return cells{r.ID, clock(r.At), cmp.Or(r.Name, r.Actor), r.Role, r.Addr, r.Action, r.Object, r.Detail}
		}))
	q.Limit = cmd.Flags().Int64("limit", 100, "at most `N` lines, up to 1000")
	q.Before = cmd.Flags().Int64("before", 0, "only lines before line `N`; 0: from the newest")
	return cmd
}

func (a *app) auditVerify() *cobra.Command {
	var from string
	cmd := &cobra.Command{Use: "verify", Short: "Compute the audit log's chain again and name the first broken line",
		Long: "Prints an anchor, the last line's number and hash. Keep it away from the cloud: with -from a later run finds out if the log up to that line\n" +
			"was replaced as a whole, which the chain alone cannot tell. kenneld also logs an anchor each hour.",
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
				return errs.Coded(errs.Corrupt, "audit_broken", "the audit log is broken at line %d: %s; it is whole up to %s", r.Broken.ID, r.Broken.Why, r.Anchor)
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

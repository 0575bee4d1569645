package ctl

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"kennel/cloud/account/accountapi"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) audit() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "What people and robots did, and whether that record is whole",
		Example: "  kennelctl audit list\n  kennelctl audit verify"}
	cmd.AddCommand(a.auditList(), a.auditVerify())
	return cmd
}

func (a *app) auditList() *cobra.Command {
	var limit int
	var before int64
	cmd := &cobra.Command{
		Use: "list", Short: "List the audit log, the newest line first", Args: cobra.NoArgs,
		Long:    "Lines hold ids; the e-mail is that of the account now. Addresses are kept for 90 days, or until the person leaves.",
		Example: "  kennelctl audit list -limit 20\n  kennelctl audit list -before 1200 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{"limit": {strconv.Itoa(limit)}, "before": {strconv.FormatInt(before, 10)}}
			return list(a, cmd, "/v1/audit?"+q.Encode(), func(t *cli.Table, rows []accountapi.AuditEntry) {
				t.Row("LINE", "TIME", "WHO", "ROLE", "FROM", "ACTION", "OBJECT", "DETAIL")
				for _, r := range rows {
					who := r.Actor
					if r.Name != "" {
						who = r.Name
					}
					t.Row(r.ID, clock(r.At), who, r.Role, r.Addr, r.Action, r.Object, r.Detail)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "at most `N` lines, up to 1000")
	cmd.Flags().Int64Var(&before, "before", 0, "only lines before line `N`; 0: from the newest")
	return cmd
}

func (a *app) auditVerify() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "verify", Short: "Compute the audit log's chain again and name the first broken line", Args: cobra.NoArgs,
		Long: "Prints an anchor, the last line's number and hash. Keep it away from the cloud: with -from a later run finds out if the log up to that line\n" +
			"was replaced as a whole, which the chain alone cannot tell. kenneld also logs an anchor each hour.",
		Example: "  kennelctl audit verify\n  kennelctl audit verify -from 1200:5f1c...",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			all := accountapi.AuditReport{Anchor: from}
			for !all.Done {
				var r accountapi.AuditReport
				if _, err := c.do(cmd.Context(), http.MethodGet, "/v1/audit/verify?"+url.Values{"from": {all.Anchor}}.Encode(), nil, &r); err != nil {
					return err
				}
				if r.Broken != nil {
					return errs.Coded(errs.Corrupt, "audit_broken", "the audit log is broken at line %d: %s; it is whole up to %s", r.Broken.ID, r.Broken.Why, r.Anchor)
				}
				if !r.Done && r.Checked == 0 {
					return errs.New(errs.Corrupt, "%s makes no progress with the check", c.s.Server)
				}
				all.Checked, all.Forgotten, all.Anchor, all.Done = all.Checked+r.Checked, all.Forgotten+r.Forgotten, r.Anchor, r.Done
			}
			return cli.Print(cmd, all, func(t *cli.Table) {
				t.Text(fmt.Sprintf("the audit log is whole: %d lines checked, %d of them without their address", all.Checked, all.Forgotten))
				t.Text("anchor " + all.Anchor)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "continue from `ANCHOR`, as an earlier run printed it, or a line's number")
	return cmd
}

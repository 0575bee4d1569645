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
	return group(&cobra.Command{Use: "operators", Short: "Operators: who they are and what they may do",
		Long: "Roles: viewer sees; support helps owners and steers robots; release-manager also releases; admin also manages robots and people.\n" +
			"OPERATOR is an e-mail address or an id.",
		Example: "  kennelctl operators list\n  kennelctl operators add grace@example.org -role support"},
		shows(a, describe("list", "List operators", "operators list"), none(a.api.GetOperators),
			rows("E-MAIL|ROLE|SESSIONS|LAST SEEN|SINCE|NOTE|ID", func(o client.Operator) cells {
				note := ""
				switch {
				case o.Disabled:
					note = "disabled"
				case o.MustChange:
					note = "has a first password"
				}
				return cells{o.Email, o.Role, o.Sessions, o.LastSeen, o.Created, note, o.ID}
			})),
		a.operatorsAdd(),
		does(a, describe("role OPERATOR ROLE", "Give an operator another role", "operators role grace@example.org release-manager"),
			operator(a, func(ctx context.Context, id string, args []string) (reply[client.None], error) {
				return a.api.PatchOperatorsID(ctx, id, client.OperatorChange{Role: &args[1]})
			}),
			func(args []string, _ client.None) string { return args[0] + " is " + args[1] + " now" }),
		a.operatorsAble("disable", "Stop an operator; the sessions end", true), a.operatorsAble("enable", "Let a stopped operator in again", false),
		shows(a, describe("password OPERATOR", "Give an operator a one-time password; the sessions end", "operators password grace@example.org"),
			operator(a, func(ctx context.Context, id string, _ []string) (reply[client.FirstPassword], error) {
				return a.api.PostOperatorsIDPassword(ctx, id)
			}), showFirst),
		does(a, &cobra.Command{Use: "remove OPERATOR", Short: "Remove an operator and what is held about the person",
			Long:    "The audit log keeps what the operator did, under an id that no longer has a name.",
			Example: "  kennelctl operators remove grace@example.org"},
			operator(a, func(ctx context.Context, id string, _ []string) (reply[client.None], error) {
				return a.api.DeleteOperatorsID(ctx, id)
			}),
			said[client.None]("%s is removed")),
		shows(a, describe("sessions OPERATOR", "List where an operator is signed in", "operators sessions grace@example.org"),
			operator(a, func(ctx context.Context, id string, _ []string) (reply[[]client.Session], error) {
				return a.api.GetOperatorsIDSessions(ctx, id)
			}),
			rows("SESSION|SINCE|LAST SEEN|UNTIL|FROM", func(s client.Session) cells { return cells{s.ID, s.Created, s.LastSeen, s.Expires, s.Addr} })),
		does(a, describe("end OPERATOR [SESSION]", "End an operator's sessions, or one of them",
			"operators end grace@example.org", "operators end grace@example.org 0f3a5c7e9b1d2f40"),
			operator(a, func(ctx context.Context, id string, args []string) (reply[client.Ended], error) {
				if len(args) == 1 {
					return a.api.DeleteOperatorsIDSessions(ctx, id)
				}
				_, err := a.api.DeleteOperatorsIDSessionsSession(ctx, id, args[1])
				return answerOf(client.Ended{Ended: 1}, err)
			}),
			showEnded))
}

func showEnded(_ []string, e client.Ended) string { return fmt.Sprintf("sessions ended: %d", e.Ended) }

// operator makes a question about the operator whom the first argument names by e-mail or id.
func operator[T any](a *app, ask func(ctx context.Context, id string, args []string) (reply[T], error)) question[T] {
	return func(ctx context.Context, args []string) (r reply[T], err error) {
		if !strings.Contains(args[0], "@") {
			return ask(ctx, args[0], args)
		}
		all, err := a.api.GetOperators(ctx)
		if err != nil {
			return r, err
		}
		for _, o := range all.Value {
			if o.Email == strings.ToLower(strings.TrimSpace(args[0])) {
				return ask(ctx, o.ID, args)
			}
		}
		return r, errs.New(errs.NotFound, "no operator has the e-mail %.80q", args[0])
	}
}

// showFirst prints a one-time password.
func showFirst(t *cli.Table, f client.FirstPassword) {
	pairs(t, "id", f.ID, "password", f.Password)
	t.Text("shown only once; use it to set your own password")
}

func (a *app) operatorsAdd() *cobra.Command {
	var role string
	cmd := shows(a, describe("add E-MAIL", "Make an operator, and print a one-time password", "operators add grace@example.org -role support"),
		func(ctx context.Context, args []string) (reply[client.FirstPassword], error) {
			return a.api.PostOperators(ctx, client.NewOperator{Email: args[0], Role: role})
		}, showFirst)
	cmd.Flags().StringVar(&role, "role", "viewer", "`ROLE`: viewer, support, release-manager or admin")
	return cmd
}

func (a *app) operatorsAble(word, short string, disabled bool) *cobra.Command {
	return does(a, describe(word+" OPERATOR", short, "operators "+word+" grace@example.org"),
		operator(a, func(ctx context.Context, id string, _ []string) (reply[client.None], error) {
			return a.api.PatchOperatorsID(ctx, id, client.OperatorChange{Disabled: &disabled})
		}), said[client.None]("%s is "+word+"d"))
}

func (a *app) audit() *cobra.Command {
	return group(describe("audit", "Audit log: list it, and verify that it is complete",
		"audit list", "audit verify"), a.auditList(), a.auditVerify())
}

func (a *app) auditList() *cobra.Command {
	var q client.GetAuditQuery
	cmd := shows(a, &cobra.Command{Use: "list", Short: "List the audit log, the newest line first",
		Long:    "Lines hold ids; the e-mail is that of the account now. Addresses are kept for 90 days, or until the person leaves.",
		Example: "  kennelctl audit list -limit 20\n  kennelctl audit list -before 1200 -o json"},
		func(ctx context.Context, _ []string) (reply[[]client.AuditEntry], error) {
			return a.api.GetAudit(ctx, q)
		},
		rows("LINE|TIME|WHO|ROLE|FROM|ACTION|OBJECT|RESULT|DETAIL", func(r client.AuditEntry) cells {
			return cells{r.ID, clock(r.At), r.Name, r.Role, r.Addr, r.Action, r.On, r.Result, r.Detail}
		}))
	q.Limit = cmd.Flags().Int64("limit", 100, "at most `N` lines, up to 1000")
	q.Before = cmd.Flags().Int64("before", 0, "only lines before line `N`; 0: from the newest")
	return cmd
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

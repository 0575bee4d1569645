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
	return group(&cobra.Command{Use: "operators", Short: "People of the staff: who they are and what they may do",
		Long: "Roles: viewer sees; support helps owners and steers robots; release-manager also releases; admin also manages robots and people.\n" +
			"OPERATOR is an e-mail address or an id.",
		Example: "  kennelctl operators list\n  kennelctl operators add grace@example.org -role support"},
		shows(a, &cobra.Command{Use: "list", Short: "List operators", Example: "  kennelctl operators list"}, none(a.api.GetOperators),
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
		does(a, &cobra.Command{Use: "role OPERATOR ROLE", Short: "Give an operator another role", Example: "  kennelctl operators role grace@example.org release-manager"},
			operator(a, func(ctx context.Context, id string, args []string) (reply[client.None], error) {
				return a.api.PatchOperatorsID(ctx, id, client.OperatorChange{Role: &args[1]})
			}),
			func(args []string, _ client.None) string { return args[0] + " is " + args[1] + " now" }),
		a.operatorsAble("disable", "Stop an operator; the sessions end", true), a.operatorsAble("enable", "Let a stopped operator in again", false),
		shows(a, &cobra.Command{Use: "password OPERATOR", Short: "Give an operator a one-time password; the sessions end",
			Example: "  kennelctl operators password grace@example.org"},
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
		shows(a, &cobra.Command{Use: "sessions OPERATOR", Short: "List where an operator is signed in", Example: "  kennelctl operators sessions grace@example.org"},
			operator(a, func(ctx context.Context, id string, _ []string) (reply[[]client.Session], error) {
				return a.api.GetOperatorsIDSessions(ctx, id)
			}),
			rows("SESSION|SINCE|LAST SEEN|UNTIL|FROM", func(s client.Session) cells { return cells{s.ID, s.Created, s.LastSeen, s.Expires, s.Addr} })),
		does(a, &cobra.Command{Use: "end OPERATOR [SESSION]", Short: "End an operator's sessions, or one of them",
			Example: "  kennelctl operators end grace@example.org\n  kennelctl operators end grace@example.org 0f3a5c7e9b1d2f40"},
			operator(a, func(ctx context.Context, id string, args []string) (reply[client.Ended], error) {
				if len(args) == 1 {
					return a.api.DeleteOperatorsIDSessions(ctx, id)
				}
				_, err := a.api.DeleteOperatorsIDSessionsSession(ctx, id, args[1])
				return oneEnded, err
			}),
			showEnded))
}

// oneEnded says that one session was ended.
var oneEnded = reply[client.Ended]{Value: client.Ended{Ended: 1}, Raw: []byte(`{"ended":1}`)}

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
	cmd := shows(a, &cobra.Command{Use: "add E-MAIL", Short: "Make an operator, and print a one-time password", Example: "  kennelctl operators add grace@example.org -role support"},
		func(ctx context.Context, args []string) (reply[client.FirstPassword], error) {
			return a.api.PostOperators(ctx, client.NewOperator{Email: args[0], Role: role})
		}, showFirst)
	cmd.Flags().StringVar(&role, "role", "viewer", "`ROLE`: viewer, support, release-manager or admin")
	return cmd
}

func (a *app) operatorsAble(word, short string, disabled bool) *cobra.Command {
	return does(a, &cobra.Command{Use: word + " OPERATOR", Short: short, Example: "  kennelctl operators " + word + " grace@example.org"},
		operator(a, func(ctx context.Context, id string, _ []string) (reply[client.None], error) {
			return a.api.PatchOperatorsID(ctx, id, client.OperatorChange{Disabled: &disabled})
		}), said[client.None]("%s is "+word+"d"))
}

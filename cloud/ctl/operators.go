package ctl

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/account/accountapi"
	"kennel/infra/auth"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) operators() *cobra.Command {
	cmd := &cobra.Command{Use: "operators", Short: "People of the staff: who they are and what they may do",
		Long: "Roles: viewer sees; support helps owners and steers robots; release-manager also releases; admin also manages robots and people.\n" +
			"OPERATOR is an e-mail address or an id.",
		Example: "  kennelctl operators list\n  kennelctl operators add grace@example.org -role support"}
	cmd.AddCommand(a.operatorsList(), a.operatorsAdd(), a.operatorsRole(), a.operatorsAble("disable", "Stop an operator; the sessions end", true),
		a.operatorsAble("enable", "Let a stopped operator in again", false), a.operatorsPassword(), a.operatorsRemove(), a.operatorsSessions(), a.operatorsEnd())
	return cmd
}

// operator returns the path of the operator that a person names by e-mail or id.
func (a *app) operator(cmd *cobra.Command, name string) (path string, err error) {
	if strings.Contains(name, "@") {
		var all []accountapi.Operator
		if err := a.do(cmd, http.MethodGet, "/v1/operators", nil, &all); err != nil {
			return "", err
		}
		email := strings.ToLower(strings.TrimSpace(name))
		for _, o := range all {
			if o.Email == email {
				return "/v1/operators/" + url.PathEscape(string(o.ID)), nil
			}
		}
		return "", errs.New(errs.NotFound, "no operator has the e-mail %.80q", name)
	}
	return "/v1/operators/" + url.PathEscape(name), nil
}

func (a *app) operatorsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List operators", Args: cobra.NoArgs, Example: "  kennelctl operators list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, "/v1/operators", func(t *cli.Table, rows []accountapi.Operator) {
				t.Row("E-MAIL", "ROLE", "SESSIONS", "LAST SEEN", "SINCE", "NOTE", "ID")
				for _, o := range rows {
					note := ""
					switch {
					case o.Disabled:
						note = "disabled"
					case o.MustChange:
						note = "has a first password"
					}
					t.Row(o.Email, o.Role, o.Sessions, ago(o.LastSeen), ago(o.Created), note, o.ID)
				}
			})
		},
	}
}

// showFirst prints a one-time password.
func showFirst(cmd *cobra.Command, f accountapi.FirstPassword) error {
	return cli.Print(cmd, f, func(t *cli.Table) {
		t.Row("id", f.ID)
		t.Row("password", f.Password)
		t.Text("shown only once; use it to set your own password")
	})
}

func (a *app) operatorsAdd() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use: "add E-MAIL", Short: "Make an operator, and print a one-time password", Args: cobra.ExactArgs(1),
		Example: "  kennelctl operators add grace@example.org -role support",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			var f accountapi.FirstPassword
			body := accountapi.NewOperator{Email: args[0], Role: auth.Role(role)}
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/operators", body, &f); err != nil {
				return err
			}
			return showFirst(cmd, f)
		},
	}
	cmd.Flags().StringVar(&role, "role", string(auth.Viewer), "`ROLE`: viewer, support, release-manager or admin")
	return cmd
}

func (a *app) operatorsRole() *cobra.Command {
	return &cobra.Command{
		Use: "role OPERATOR ROLE", Short: "Give an operator another role", Args: cobra.ExactArgs(2),
		Example: "  kennelctl operators role grace@example.org release-manager",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.operator(cmd, args[0])
			if err != nil {
				return err
			}
			return a.order(cmd, http.MethodPatch, path, map[string]string{"role": args[1]}, nil, func() string { return args[0] + " is " + args[1] + " now" })
		},
	}
}

func (a *app) operatorsAble(word, short string, disabled bool) *cobra.Command {
	return &cobra.Command{
		Use: word + " OPERATOR", Short: short, Args: cobra.ExactArgs(1), Example: "  kennelctl operators " + word + " grace@example.org",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.operator(cmd, args[0])
			if err != nil {
				return err
			}
			return a.order(cmd, http.MethodPatch, path, map[string]bool{"disabled": disabled}, nil, func() string { return args[0] + " is " + word + "d" })
		},
	}
}

func (a *app) operatorsPassword() *cobra.Command {
	return &cobra.Command{
		Use: "password OPERATOR", Short: "Give an operator a one-time password; the sessions end", Args: cobra.ExactArgs(1),
		Example: "  kennelctl operators password grace@example.org",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.operator(cmd, args[0])
			if err != nil {
				return err
			}
			var f accountapi.FirstPassword
			if err := a.do(cmd, http.MethodPost, path+"/password", nil, &f); err != nil {
				return err
			}
			return showFirst(cmd, f)
		},
	}
}

func (a *app) operatorsRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove OPERATOR", Short: "Remove an operator and what is held about the person", Args: cobra.ExactArgs(1),
		Long:    "The audit log keeps what the operator did, under an id that no longer has a name.",
		Example: "  kennelctl operators remove grace@example.org",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.operator(cmd, args[0])
			if err != nil {
				return err
			}
			return a.order(cmd, http.MethodDelete, path, nil, nil, func() string { return args[0] + " is removed" })
		},
	}
}

func (a *app) operatorsSessions() *cobra.Command {
	return &cobra.Command{
		Use: "sessions OPERATOR", Short: "List where an operator is signed in", Args: cobra.ExactArgs(1), Example: "  kennelctl operators sessions grace@example.org",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.operator(cmd, args[0])
			if err != nil {
				return err
			}
			return list(a, cmd, path+"/sessions", func(t *cli.Table, rows []accountapi.Session) {
				t.Row("SESSION", "SINCE", "LAST SEEN", "UNTIL", "FROM")
				for _, s := range rows {
					t.Row(s.ID, ago(s.Created), ago(s.LastSeen), ago(s.Expires), s.Addr)
				}
			})
		},
	}
}

func (a *app) operatorsEnd() *cobra.Command {
	return &cobra.Command{
		Use: "end OPERATOR [SESSION]", Short: "End an operator's sessions, or one of them", Args: cobra.RangeArgs(1, 2),
		Example: "  kennelctl operators end grace@example.org\n  kennelctl operators end grace@example.org 0f3a5c7e9b1d2f40",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.operator(cmd, args[0])
			if err != nil {
				return err
			}
			ended := accountapi.Ended{Ended: 1}
			path += "/sessions"
			if len(args) == 2 {
				path += "/" + url.PathEscape(args[1])
			}
			return a.order(cmd, http.MethodDelete, path, nil, &ended, func() string { return fmt.Sprintf("sessions ended: %d", ended.Ended) })
		},
	}
}

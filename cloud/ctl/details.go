package ctl

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/account/accountapi"
	"kennel/cloud/owner/ownerapi"
	"kennel/cloud/registry"
	"kennel/infra/cli"
)

// robotDetails are the commands of robots that ask for one side of one robot.
func (a *app) robotDetails() []*cobra.Command {
	return []*cobra.Command{a.robotsHistory(), a.robotsCertificates(), a.robotsTokens(), a.robotsApps(), a.robotsOwner(), a.robotsTakeFrom()}
}

func (a *app) whoami() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show who you are to the cloud, and what you may do", Args: cobra.NoArgs, Example: "  kennelctl whoami",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/me", nil, func(t *cli.Table, m accountapi.Account) {
				t.Row("e-mail", m.Email)
				t.Row("role", m.Role)
				t.Row("id", m.ID)
				if m.MustChange {
					t.Text("the password is a first one: change it with kennelctl password")
				}
			})
		},
	}
}

func (a *app) fleet() *cobra.Command {
	return &cobra.Command{
		Use: "fleet", Short: "Count the robots that are present and absent", Args: cobra.NoArgs, Example: "  kennelctl fleet\n  kennelctl fleet -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/fleet", nil, func(t *cli.Table, c registry.Count) {
				t.Row("present", c.Present)
				t.Row("absent", c.Absent)
			})
		},
	}
}

func (a *app) passkeys() *cobra.Command {
	cmd := &cobra.Command{Use: "passkeys", Short: "Your passkeys; a browser adds them", Example: "  kennelctl passkeys list\n  kennelctl passkeys remove ID"}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List your passkeys", Args: cobra.NoArgs, Example: "  kennelctl passkeys list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, "/v1/me/passkeys", func(t *cli.Table, rows []accountapi.Passkey) {
				t.Row("PASSKEY", "NAME", "SINCE", "LAST USED")
				for _, p := range rows {
					t.Row(p.ID, p.Name, ago(p.Created), ago(p.LastUsed))
				}
			})
		},
	}, &cobra.Command{
		Use: "remove PASSKEY", Short: "Remove one of your passkeys", Args: cobra.ExactArgs(1), Example: "  kennelctl passkeys remove ID",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd, http.MethodDelete, "/v1/me/passkeys/"+url.PathEscape(args[0]), nil, nil, func() string { return args[0] + " is removed" })
		},
	})
	return cmd
}

func (a *app) robotsHistory() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history THING", Short: "List when a robot came and went, the newest first", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl robots history vic:00e20100 -limit 10",
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := fetch[[]registry.Change](a, cmd, args[0], "/history?limit="+strconv.Itoa(limit))
			if err != nil {
				return err
			}
			return got.print(cmd, func(t *cli.Table, rows []registry.Change) {
				t.Row("TIME", "PRESENCE")
				for _, c := range rows {
					t.Row(ago(c.At), map[bool]string{true: "present", false: "absent"}[c.Present])
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most `N`")
	return cmd
}

// certificate is one of a robot, as the public API shows it.
type certificate struct {
	Serial    string     `json:"serial"`
	Method    string     `json:"method"`
	NotBefore time.Time  `json:"not_before"`
	NotAfter  time.Time  `json:"not_after"`
	Revoked   *time.Time `json:"revoked"`
	Reason    string     `json:"reason"`
}

func (a *app) robotsCertificates() *cobra.Command {
	return &cobra.Command{
		Use: "certificates THING", Short: "List the certificates that a robot was given, the newest first", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl robots certificates vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := fetch[[]certificate](a, cmd, args[0], "/certificates")
			if err != nil {
				return err
			}
			return got.print(cmd, func(t *cli.Table, rows []certificate) {
				t.Row("SERIAL", "FOR", "FROM", "UNTIL", "REVOKED", "REASON")
				for _, c := range rows {
					t.Row(c.Serial, c.Method, ago(c.NotBefore), ago(c.NotAfter), agoOf(c.Revoked), c.Reason)
				}
			})
		},
	}
}

// accessToken is one of a robot, as the public API shows it.
type accessToken struct {
	ID      string     `json:"id"`
	Issued  time.Time  `json:"issued_at"`
	Expires time.Time  `json:"expires_at"`
	How     string     `json:"how"`
	Revoked *time.Time `json:"revoked_at"`
	Reason  string     `json:"reason"`
}

// revoker makes the command that takes one or all of a robot's entries away.
func (a *app) revoker(what, one, path string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "revoke THING [" + one + "]", Short: "Take one of a robot's " + what + " away, or with -all every one", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl robots " + what + " revoke vic:00e20100 ID\n  kennelctl robots " + what + " revoke vic:00e20100 -all",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			if (len(args) == 2) == all {
				return cli.Usage("want one or -all")
			}
			url, text := "/v1/things/"+string(id)+path+pathOf(args[1:]), "all "+what+" of "+string(id)+" are revoked"
			if !all {
				text = args[1] + " is revoked"
			}
			return a.order(cmd, http.MethodDelete, url, nil, nil, func() string { return text })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every one")
	return cmd
}

// pathOf makes the end of a path of at most one name.
func pathOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return "/" + url.PathEscape(args[0])
}

func (a *app) robotsTokens() *cobra.Command {
	cmd := &cobra.Command{Use: "tokens", Short: "Access tokens with which a robot acts for its owner", Example: "  kennelctl robots tokens list vic:00e20100"}
	cmd.AddCommand(&cobra.Command{
		Use: "list THING", Short: "List a robot's access tokens", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing, Example: "  kennelctl robots tokens list vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := fetch[[]accessToken](a, cmd, args[0], "/tokens")
			if err != nil {
				return err
			}
			return got.print(cmd, func(t *cli.Table, rows []accessToken) {
				t.Row("TOKEN", "ISSUED", "UNTIL", "BY", "REVOKED", "REASON")
				for _, k := range rows {
					t.Row(k.ID, ago(k.Issued), ago(k.Expires), k.How, agoOf(k.Revoked), k.Reason)
				}
			})
		},
	}, a.revoker("tokens", "TOKEN", "/tokens"))
	return cmd
}

// robotApp is a program that may talk to a robot, as the public API shows it.
type robotApp struct {
	ID     string    `json:"id"`
	Name   string    `json:"client_name"`
	AppID  string    `json:"app_id"`
	Issued time.Time `json:"issued_at"`
}

func (a *app) robotsApps() *cobra.Command {
	cmd := &cobra.Command{Use: "apps", Short: "Apps and SDK programs that may talk to a robot", Example: "  kennelctl robots apps list vic:00e20100"}
	cmd.AddCommand(&cobra.Command{
		Use: "list THING", Short: "List a robot's apps", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing, Example: "  kennelctl robots apps list vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := fetch[[]robotApp](a, cmd, args[0], "/apps")
			if err != nil {
				return err
			}
			return got.print(cmd, func(t *cli.Table, rows []robotApp) {
				t.Row("APP", "NAME", "PROGRAM", "SINCE")
				for _, p := range rows {
					t.Row(p.ID, p.Name, p.AppID, ago(p.Issued))
				}
			})
		},
	}, a.revoker("apps", "APP", "/apps"))
	return cmd
}

func (a *app) robotsOwner() *cobra.Command {
	return &cobra.Command{
		Use: "owner THING", Short: "Show whose a robot is and was; people by the id of their account", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl robots owner vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := fetch[ownerapi.Owner](a, cmd, args[0], "/owner")
			if err != nil {
				return err
			}
			return got.print(cmd, func(t *cli.Table, o ownerapi.Owner) {
				t.Row("ACCOUNT", "SINCE", "BY", "UNTIL", "ENDED")
				if o.Account != "" {
					t.Row(o.Account, agoOf(o.Since), o.How, "", "")
				}
				for _, p := range o.Past {
					t.Row(p.Account, ago(p.Since), p.How, ago(p.Until), p.Ended)
				}
			})
		},
	}
}

func (a *app) robotsTakeFrom() *cobra.Command {
	var reason *string
	cmd := &cobra.Command{
		Use: "disown THING", Short: "Take a robot from its owner, for people who cannot do so themselves", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl robots disown vic:00e20100 -reason 'sold, the seller cannot be reached (case 17)'",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			return a.order(cmd, http.MethodDelete, "/v1/things/"+string(id)+"/owner", map[string]string{"reason": *reason}, nil,
				func() string { return fmt.Sprintf("%s has no owner now", id) })
		},
	}
	reason = reasonFlag(cmd)
	return cmd
}

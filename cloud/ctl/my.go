package ctl

import (
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/thing"
)

// myRobot is a robot as the public API shows it to its owner.
type myRobot struct {
	Thing thing.ID  `json:"thing"`
	Name  string    `json:"name"`
	How   string    `json:"how"`
	Since time.Time `json:"since"`
}

// transfer is a robot that one person offers to another.
type transfer struct {
	ID      string    `json:"id"`
	Thing   thing.ID  `json:"thing"`
	Expires time.Time `json:"expires"`
	Mine    bool      `json:"mine"`
}

func (a *app) my() *cobra.Command {
	cmd := &cobra.Command{Use: "my", Short: "Your own robots: claim, name, hand on, release",
		Example: "  kennelctl my claim K7QM-3XW9\n  kennelctl my robots\n  kennelctl my transfer vic:00e20100 bob@example.org"}
	cmd.AddCommand(a.myRobots(), a.myClaim(), a.myRename(), a.myRelease(), a.myTransfer(), a.myTransfers(), a.myAccept(), a.myDecline())
	return cmd
}

// mine makes one request as the owner and prints the answer.
func mine[T any](a *app, cmd *cobra.Command, method, path string, body any, table func(*cli.Table, T)) error {
	c, err := a.client(cmd.Context())
	if err != nil {
		return err
	}
	var out answer[T]
	if _, err := c.do(cmd.Context(), method, path, body, &out.raw); err != nil || out.raw == nil {
		return err
	}
	return out.print(cmd, table)
}

func showMine(t *cli.Table, r myRobot) {
	t.Row("thing", r.Thing)
	t.Row("name", r.Name)
	t.Row("yours", since(r.Since))
	t.Row("by", r.How)
}

func (a *app) myRobots() *cobra.Command {
	return &cobra.Command{
		Use: "robots", Short: "List your robots", Args: cobra.NoArgs, Example: "  kennelctl my robots",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/my/robots", nil, func(t *cli.Table, all []myRobot) {
				t.Row("THING", "NAME", "YOURS SINCE", "BY")
				for _, r := range all {
					t.Row(r.Thing, r.Name, ago(r.Since), r.How)
				}
			})
		},
	}
}

func (a *app) myClaim() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use: "claim CODE", Short: "Make the robot yours that shows this code", Args: cobra.ExactArgs(1),
		Long: "A robot without an owner shows a code for ten minutes; after five wrong tries it needs another. Case, blanks and dashes do not matter.\n" +
			"A robot that another person owns shows none until that person releases it or hands it on, or its user data are cleared.",
		Example: "  kennelctl my claim K7QM-3XW9\n  kennelctl my claim k7qm3xw9 -robot vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]string{"code": args[0]}
			if id != "" {
				th, err := parseThing(id)
				if err != nil {
					return err
				}
				body["thing"] = string(th)
			}
			return mine(a, cmd, http.MethodPost, "/v1/my/robots/claim", body, showMine)
		},
	}
	cmd.Flags().StringVar(&id, "robot", "", "only if it is the code of `THING`")
	return cmd
}

// myThing is a command about one of the caller's robots.
func (a *app) myThing(cmd *cobra.Command, run func(cmd *cobra.Command, path string, args []string) error) *cobra.Command {
	cmd.ValidArgsFunction = a.completeMine
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseThing(args[0])
		if err != nil {
			return err
		}
		return run(cmd, "/v1/my/robots/"+string(id), args[1:])
	}
	return cmd
}

func (a *app) completeMine(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.client(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []myRobot
	if _, err := c.do(cmd.Context(), http.MethodGet, "/v1/my/robots", nil, &all); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]string, 0, len(all))
	for _, r := range all {
		out = append(out, string(r.Thing)+"\t"+r.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) myRename() *cobra.Command {
	return a.myThing(&cobra.Command{Use: "rename THING NAME", Short: "Give a robot a name; an empty one takes it away", Args: cobra.ExactArgs(2),
		Example: "  kennelctl my rename vic:00e20100 Rex\n  kennelctl my rename vic:00e20100 ''"},
		func(cmd *cobra.Command, path string, args []string) error {
			return mine(a, cmd, http.MethodPatch, path, map[string]string{"name": args[0]}, showMine)
		})
}

func (a *app) myRelease() *cobra.Command {
	return a.myThing(&cobra.Command{Use: "release THING", Short: "Give up a robot, which then has no owner", Args: cobra.ExactArgs(1),
		Long:    "Its apps and access tokens end. Whoever has the robot in hand can claim it.",
		Example: "  kennelctl my release vic:00e20100"},
		func(cmd *cobra.Command, path string, _ []string) error {
			return mine[myRobot](a, cmd, http.MethodDelete, path, nil, nil)
		})
}

func (a *app) myTransfer() *cobra.Command {
	return a.myThing(&cobra.Command{Use: "transfer THING TO", Short: "Offer a robot to another person", Args: cobra.ExactArgs(2),
		Long:    "TO is an e-mail, or the id of an account. The robot stays yours until it is accepted; the offer is good for a week, and the next takes its place.",
		Example: "  kennelctl my transfer vic:00e20100 bob@example.org"},
		func(cmd *cobra.Command, path string, args []string) error {
			return mine(a, cmd, http.MethodPost, path+"/transfer", map[string]string{"to": args[0]}, func(t *cli.Table, o transfer) {
				t.Row("transfer", o.ID)
				t.Row("thing", o.Thing)
				t.Row("expires", ago(o.Expires))
			})
		})
}

func (a *app) myTransfers() *cobra.Command {
	return &cobra.Command{
		Use: "transfers", Short: "List robots that you offer, and that are offered to you", Args: cobra.NoArgs, Example: "  kennelctl my transfers",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/my/transfers", nil, func(t *cli.Table, all []transfer) {
				t.Row("TRANSFER", "THING", "GOOD UNTIL", "OFFERED")
				for _, o := range all {
					t.Row(o.ID, o.Thing, ago(o.Expires), map[bool]string{true: "by you", false: "to you"}[o.Mine])
				}
			})
		},
	}
}

func (a *app) myAccept() *cobra.Command {
	return &cobra.Command{
		Use: "accept TRANSFER", Short: "Take a robot that is offered to you", Args: cobra.ExactArgs(1),
		Example: "  kennelctl my accept 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine(a, cmd, http.MethodPost, "/v1/my/transfers/"+url.PathEscape(args[0])+"/accept", nil, showMine)
		},
	}
}

func (a *app) myDecline() *cobra.Command {
	return &cobra.Command{
		Use: "decline TRANSFER", Short: "Decline a robot that is offered to you, or take back your offer", Args: cobra.ExactArgs(1),
		Example: "  kennelctl my decline 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine[transfer](a, cmd, http.MethodDelete, "/v1/my/transfers/"+url.PathEscape(args[0]), nil, nil)
		},
	}
}

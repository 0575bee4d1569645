package ctl

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/command"
	wire "kennel/infra/api/commands"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) commands() *cobra.Command {
	cmd := &cobra.Command{Use: "commands", Aliases: []string{"cmd"}, Short: "Ask a robot to do something, and see what became of it",
		Example: "  kennelctl commands send vic:00e20100 ping\n  kennelctl commands list vic:00e20100"}
	cmd.AddCommand(a.commandsSend(), a.commandsList(), a.commandsShow())
	return cmd
}

func (a *app) commandsSend() *cobra.Command {
	var ttl time.Duration
	var key string
	cmd := &cobra.Command{
		Use: "send THING KIND [KEY=VALUE...]", Short: "Give a robot a command", Args: cobra.MinimumNArgs(2),
		Long: "A robot gets its commands in the order they were given, also after days offline, until they expire. Each ends with one\n" +
			"result or its expiry. VALUE is JSON if it is JSON, else text.\n\n" +
			"Kinds: ping; set_lights lights=[four of {\"r\":0-255,\"g\":..,\"b\":..}]; sync (documents); flush_events;\n" +
			"restart_agent; robot_do, robot_poke, robot_stop, robot_hold and robot_release (kennelctl robot says more); intent intent=NAME params={...} (recorded by\n" +
			"robots of this release, not acted on).",
		Example: "  kennelctl commands send vic:00e20100 ping -ttl 1m\n" +
			"  kennelctl commands send vic:00e20100 set_lights 'lights=[{\"r\":255},{\"r\":255},{\"r\":255},{\"r\":255}]'\n" +
			"  kennelctl commands send vic:00e20100 intent intent=intent_system_charger -key job-17",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return wire.Kinds(), cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeThing(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			set, err := parseSet(args[2:])
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("ttl") {
				ttl = min(ttl, wire.MaxTTLOf(args[1]))
			}
			if ttl < command.MinTTL || ttl > wire.MaxTTL {
				return cli.Usage("-ttl %v: want %v to %v", ttl, command.MinTTL, wire.MaxTTL)
			}
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			got := answer[command.Command]{}
			body := map[string]any{"kind": args[1], "args": set, "expires_in_ms": ttl.Milliseconds()}
			if key != "" {
				body["key"] = key
			}
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/things/"+string(id)+"/commands", body, &got.raw); err != nil {
				return err
			}
			return got.print(cmd, showCommand)
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", command.DefaultTTL, "how long the robot may take to begin, such as 10m")
	cmd.Flags().StringVar(&key, "key", "", "`WORD` of yours: the same key again is the same command, not a second one")
	return cmd
}

func (a *app) commandsList() *cobra.Command {
	var open bool
	var limit int
	cmd := &cobra.Command{
		Use: "list THING", Short: "List a robot's commands, the newest first", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl commands list vic:00e20100\n  kennelctl commands list vic:00e20100 -open",
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if open {
				query.Set("open", "true")
			}
			list, err := fetch[[]command.Command](a, cmd, args[0], "/commands?"+query.Encode())
			if err != nil {
				return err
			}
			return list.print(cmd, func(t *cli.Table, list []command.Command) {
				t.Row("COMMAND", "KIND", "STATE", "CREATED", "BY", "RESULT")
				for _, c := range list {
					t.Row(c.ID, c.Kind, c.State, ago(c.Created), c.By, resultText(c))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "only those without a result")
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most `N` commands")
	return cmd
}

func (a *app) commandsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show THING COMMAND", Short: "Show one command and its result", Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl commands show vic:00e20100 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !wire.IsID(args[1]) {
				return errs.New(errs.Invalid, "command %.64q: want an id such as kennelctl commands list shows", args[1])
			}
			got, err := fetch[command.Command](a, cmd, args[0], "/commands/"+args[1])
			if err != nil {
				return err
			}
			return got.print(cmd, showCommand)
		},
	}
}

func showCommand(t *cli.Table, c command.Command) {
	t.Row("command", c.ID)
	t.Row("thing", c.Thing)
	t.Row("kind", c.Kind)
	t.Row("args", string(c.Args))
	t.Row("state", c.State)
	t.Row("given", ago(c.Created)+" by "+c.By)
	t.Row("expires", ago(c.Expires))
	t.Row("sent", strconv.Itoa(c.Sends)+" times")
	if c.Closed != nil {
		t.Row("closed", ago(*c.Closed))
	}
	if c.State.Closed() {
		t.Row("result", resultText(c))
	}
}

// resultText says what became of a command, in a few words.
func resultText(c command.Command) string {
	switch {
	case c.Result != nil:
		return cmp.Or(c.Result.Detail, string(c.Result.Status))
	case c.State == command.Expired:
		return "no result came in time"
	}
	return ""
}

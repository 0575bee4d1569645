package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/command"
	"kennel/cloud/openapi/client"
	"kennel/infra/api/commandwire"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) commands() *cobra.Command {
	return group(&cobra.Command{Use: "commands", Aliases: []string{"cmd"}, Short: "Send commands to a robot and see their results",
		Example: "  kennelctl commands send vic:00e20100 ping\n  kennelctl commands list vic:00e20100"},
		a.commandsSend(),
		shows(a, describe("show THING COMMAND", "Show one command and its result", "commands show vic:00e20100 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11"),
			func(ctx context.Context, args []string) (r reply[client.Command], err error) {
				if !commandwire.IsID(args[1]) {
					return r, errs.New(errs.Invalid, "command %.64q: want an id such as kennelctl commands list shows", args[1])
				}
				return a.api.GetThingsThingCommandsID(ctx, args[0], args[1])
			}, showCommand))
}

func (a *app) commandsSend() *cobra.Command {
	ttl, key := command.DefaultTTL, ""
	cmd := &cobra.Command{Use: "send THING KIND [KEY=VALUE...]", Short: "Give a robot a command",
		Long: "A robot gets its commands in the order they were given, also after days offline, until they expire. Each ends with one\n" +
			"result or its expiry. VALUE is JSON if it is JSON, else text.\n\n" +
			"Kinds: ping; set_lights lights=[four of {\"r\":0-255,\"g\":..,\"b\":..}]; sync (documents); flush_events; send_logs (kennelctl logs\n" +
			"request); restart_agent; robot_do, robot_poke, robot_stop, robot_hold and robot_release (kennelctl robot says more); " +
			"intent intent=NAME params={...}\n" +
			"(kennelctl robot say finds it for a sentence).",
		Example: "  kennelctl commands send vic:00e20100 ping -ttl 1m\n" +
			"  kennelctl commands send vic:00e20100 set_lights 'lights=[{\"r\":255},{\"r\":255},{\"r\":255},{\"r\":255}]'\n" +
			"  kennelctl commands send vic:00e20100 intent intent=intent_system_charger -key job-17",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return commandwire.Kinds(), cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeThing(cmd, args, typed)
		}}
	shows(a, cmd, func(ctx context.Context, args []string) (r reply[client.Command], err error) {
		set, err := parseSet(args[2:])
		if err != nil {
			return r, err
		}
		if !cmd.Flags().Changed("ttl") {
			ttl = min(ttl, commandwire.MaxTTLOf(args[1]))
		}
		if ttl < command.MinTTL || ttl > commandwire.MaxTTL {
			return r, cli.Usage("-ttl %v: want %v to %v", ttl, command.MinTTL, commandwire.MaxTTL)
		}
		raw, err := json.Marshal(set)
		if err != nil {
			return r, err
		}
		return a.api.PostThingsThingCommands(ctx, args[0], client.CommandRequest{Kind: args[1], Args: raw, ExpiresInMS: ttl.Milliseconds(), Key: key})
	}, showCommand)
	cmd.Flags().DurationVar(&ttl, "ttl", ttl, "how long the robot may take to begin, such as 10m")
	cmd.Flags().StringVar(&key, "key", "", "`WORD` of yours: the same key again is the same command, not a second one")
	return cmd
}

func showCommand(t *cli.Table, c client.Command) {
	pairs(t, "command", c.ID, "thing", c.Thing, "kind", c.Kind, "args", string(c.Args), "state", c.State, "given", ago(c.Created)+" by "+c.By,
		"expires", c.Expires, "sent", fmt.Sprint(c.Sends, " times"))
	if !c.Closed.IsZero() {
		pairs(t, "closed", c.Closed)
	}
	if command.State(c.State).Closed() {
		pairs(t, "result", resultText(c))
	}
}

// resultText says what became of a command, in a few words.
func resultText(c client.Command) string {
	switch {
	case c.Result != nil:
		return cmp.Or(c.Result.Detail, c.Result.Status)
	case c.State == string(command.Expired):
		return "no result came in time"
	}
	return ""
}

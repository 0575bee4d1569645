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
	return group(&cobra.Command{Use: "commands", Aliases: []string{"cmd"}, Short: "Send commands to a robot and show their results",
		Example: "  kennelctl commands send vic:00e20100 ping\n  kennelctl commands list vic:00e20100"},
		a.commandsSend(),
		shows(a, describe("show THING COMMAND", "Show a command and its result", "commands show vic:00e20100 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11"),
			func(ctx context.Context, args []string) (r reply[client.Command], err error) {
				if !commandwire.IsID(args[1]) {
					return r, errs.New(errs.Invalid, "command %.64q: want an id from kennelctl commands list", args[1])
				}
				return a.api.GetThingsThingCommandsID(ctx, args[0], args[1])
			}, showCommand))
}

func (a *app) commandsSend() *cobra.Command {
	ttl, key, wait := command.DefaultTTL, "", false
	cmd := &cobra.Command{Use: "send THING KIND [KEY=VALUE...]", Short: "Send a robot a command",
		Long: "A robot gets its commands in order, even after days offline, until they expire. Each ends with a result or expires.\n" +
			"VALUE is JSON, or plain text.\n\n" +
			"Kinds: ping; set_lights lights=[four of {\"r\":0-255,\"g\":..,\"b\":..}]; sync (documents); flush_events; send_logs (kennelctl logs\n" +
			"request); restart_agent; robot_do, robot_poke, robot_stop, robot_hold and robot_release (see kennelctl robot); " +
			"intent intent=NAME params={...}\n" +
			"(kennelctl robot say finds the intent of a sentence).",
		Example: "  kennelctl commands send vic:00e20100 ping -ttl 1m\n" +
			"  kennelctl commands send vic:00e20100 set_lights 'lights=[{\"r\":255},{\"r\":255},{\"r\":255},{\"r\":255}]'\n" +
			"  kennelctl commands send vic:00e20100 intent intent=intent_system_charger -key job-17",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return commandwire.Kinds(), cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeThing(cmd, args, typed)
		}}
	a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		set, err := parseSet(args[2:])
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("ttl") {
			ttl = min(ttl, commandwire.MaxTTLOf(args[1]))
		}
		if ttl < command.MinTTL || ttl > commandwire.MaxTTL {
			return cli.Usage("-ttl %v: want %v to %v", ttl, command.MinTTL, commandwire.MaxTTL)
		}
		raw, err := json.Marshal(set)
		if err != nil {
			return err
		}
		r, err := a.api.PostThingsThingCommands(cmd.Context(), args[0], client.CommandRequest{Kind: args[1], Args: raw, ExpiresInMS: ttl.Milliseconds(), Key: key})
		if err == nil && wait {
			r, err = a.settled(cmd.Context(), args[0], r, ttl, func(string) { say(cmd, "waiting for the answer of %s", args[0]) })
		}
		if err != nil {
			return err
		}
		return show(cmd, r, nil, showCommand)
	})
	cmd.Flags().DurationVar(&ttl, "ttl", ttl, "how long the robot may take to start, such as 10m")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the answer and print it; fail if the robot did not do it")
	cmd.Flags().StringVar(&key, "key", "", "a `WORD` of your choice: repeating it does not send a second command")
	return cmd
}

func showCommand(t *cli.Table, c client.Command) {
	pairs(t, "command", c.ID, "thing", c.Thing, "kind", c.Kind, "args", string(c.Args), "state", c.State, "given", ago(c.Created)+" by "+c.By,
		"expires", c.Expires, "sent", cli.Count(c.Sends, "time"))
	if !c.Closed.IsZero() {
		pairs(t, "closed", c.Closed)
	}
	if command.State(c.State).Closed() {
		pairs(t, "result", resultText(c))
	} else {
		t.Text(fmt.Sprintf("No answer yet. Look again with: kennelctl commands show %s %s", c.Thing, c.ID))
	}
}

// resultText says what became of a command, in a few words.
func resultText(c client.Command) string {
	switch {
	case c.Result != nil:
		return cmp.Or(c.Result.Detail, c.Result.Status)
	case c.State == string(command.Expired):
		return "no result in time"
	}
	return ""
}

package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/command"
	"kennel/cloud/openapi/client"
	"kennel/cloud/page"
	"kennel/infra/api/commandwire"
	"kennel/infra/backoff"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// How the command line waits for a log; own defaults.
const (
	uploadTime  = 10 * time.Minute // from the robot's answer to the stored log
	followEvery = 2 * time.Second
)

// logOrder asks a robot for its logs.
type logOrder struct {
	commandwire.LogRequest
	ttl time.Duration
}

func (o *logOrder) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Reason, "reason", "request", "a `WORD` stored with the log, such as battery-drain")
	cmd.Flags().DurationVar(&o.ttl, "ttl", 10*time.Minute, "how long the robot may take to start; an offline robot gets the request when it is back")
}

// give sends the request.
func (a *app) give(ctx context.Context, id string, o logOrder) (r reply[client.Command], err error) {
	args, err := json.Marshal(o.LogRequest)
	if err != nil {
		return r, err
	}
	if _, err := commandwire.ParseLogRequest(args); err != nil {
		return r, cli.Usage("%s", strings.TrimPrefix(err.Error(), commandwire.SendLogs+": "))
	}
	if o.ttl < command.MinTTL || o.ttl > commandwire.MaxTTL {
		return r, cli.Usage("-ttl %v: want %v to %v", o.ttl, command.MinTTL, commandwire.MaxTTL)
	}
	return a.api.PostThingsThingCommands(ctx, id, client.CommandRequest{Kind: commandwire.SendLogs, Args: args, ExpiresInMS: o.ttl.Milliseconds()})
}

// say tells on standard error how far a command is.
func say(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintf(cmd.ErrOrStderr(), "kennelctl: %s\n", cli.Clean(fmt.Sprintf(format, args...)))
}

// await waits until the log that a robot was asked for is stored, and tells on standard error how far it is.
func (a *app) await(cmd *cobra.Command, id string, r reply[client.Command], ttl time.Duration) (log reply[[]client.Log], err error) {
	ctx := cmd.Context()
	r, err = a.settled(ctx, id, r, ttl, func(state string) {
		if state == string(command.Sent) {
			say(cmd, "%s is collecting its logs", id)
		} else {
			say(cmd, "waiting for %s to connect", id)
		}
	})
	if err != nil {
		return log, err
	}
	name, ok := commandwire.ParseQueued(resultText(r.Value))
	if !ok {
		return log, errs.New(errs.Corrupt, "%s answered %.100q: want the name of a log", id, resultText(r.Value))
	}
	say(cmd, "%s is uploading %s", id, name)
	for deadline := time.Now().Add(uploadTime); ; {
		if log, err = a.api.GetThingsThingLogs(ctx, id, client.GetThingsThingLogsQuery{Name: &name}); err != nil || len(log.Value) > 0 {
			return log, err
		}
		if time.Now().After(deadline) {
			return log, errs.New(errs.Unavailable, "%s is not stored yet; look again with kennelctl logs list %s -name %s", name, id, name)
		}
		if err := backoff.Sleep(ctx, resultEvery); err != nil {
			return log, err
		}
	}
}

func (a *app) logsRequest() *cobra.Command {
	var o logOrder
	var wait bool
	cmd := a.runs(&cobra.Command{Use: "request THING", Short: "Ask a robot to upload its recent logs now",
		Long: "The robot uploads its recent logs, if its owner allows data collection. With -wait the command shows progress, ends when the logs are\n" +
			"stored, and prints the log's id.",
		Example: "  kennelctl logs request vic:00e20100 -wait\n  kennelctl logs request vic:00e20100 -reason battery-drain -ttl 24h"},
		func(cmd *cobra.Command, args []string) error {
			r, err := a.give(cmd.Context(), args[0], o)
			if err != nil || !wait {
				return show(cmd, r, err, func(t *cli.Table, c client.Command) {
					t.Text(fmt.Sprintf("Requested. See progress with: kennelctl commands show %s %s", c.Thing, c.ID))
				})
			}
			log, err := a.await(cmd, args[0], r, o.ttl)
			return show(cmd, log, err, logRows)
		})
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.Diagnostics, "diagnostics", false, "include the state of the robot's computer and network")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the logs are stored")
	return cmd
}

func (a *app) diag() *cobra.Command {
	o, to := logOrder{LogRequest: commandwire.LogRequest{Diagnostics: true}}, destination{}
	cmd := a.runs(&cobra.Command{Use: "diag THING", Short: "Download a robot's logs and the state of its computer and network",
		Long: "Requests diagnostics, waits for the upload and downloads it: a .tar.bz2 with the same ten files as the original's. The owner must allow\n" +
			"data collection. An existing file is not overwritten.",
		Example: "  kennelctl diag vic:00e20100 -to diag.tar.bz2\n  kennelctl diag vic:00e20100 | tar -xj log.txt"},
		func(cmd *cobra.Command, args []string) error {
			if err := to.check(cmd); err != nil {
				return err
			}
			r, err := a.give(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			log, err := a.await(cmd, args[0], r, o.ttl)
			if err != nil {
				return err
			}
			return a.downloadLog(cmd, args[0], log.Value[0].ID, to.named("diagnostics-"+log.Value[0].ID+".tar.bz2")) // a robot's names are no names of files here
		})
	o.flags(cmd)
	to.flag(cmd)
	return cmd
}

func (a *app) logsFollow() *cobra.Command {
	var logs whichLogs
	var lines bool
	cmd := a.runs(&cobra.Command{Use: "follow THING", Short: "Print a robot's logs as they are stored, until interrupted",
		Long:    "Shows logs stored from now on. With -o json, prints one line of JSON per log.",
		Example: "  kennelctl logs follow vic:00e20100\n  kennelctl logs follow vic:00e20100 -lines -kind fault"},
		func(cmd *cobra.Command, args []string) error {
			ctx, pause := cmd.Context(), backoff.Pause{Min: followEvery, Max: 15 * time.Second}
			var seen map[string]time.Time // by id; nil: not asked yet
			for {
				r, err := a.api.GetThingsThingLogs(ctx, args[0], client.GetThingsThingLogsQuery{Name: given(logs.name), Day: given(logs.day),
					Version: given(logs.version), Kind: given(logs.kind), Reason: given(logs.reason)})
				wait := followEvery
				switch {
				case ctx.Err() != nil:
					return nil
				case err != nil && (seen == nil || errs.KindOf(err) != errs.Unavailable):
					return err
				case err != nil:
					fmt.Fprintf(cmd.ErrOrStderr(), "kennelctl: %s; trying again\n", cli.Clean(err.Error()))
					wait = pause.Next(nil)
				default:
					pause.Reset()
					now := map[string]time.Time{}
					for i := len(r.Value) - 1; i >= 0; i-- { // the oldest first
						l := r.Value[i]
						if now[l.ID] = l.At; seen != nil && !seen[l.ID].Equal(l.At) {
							if err := a.printLog(cmd, l, lines); err != nil {
								return err
							}
						}
					}
					seen = now
				}
				if backoff.Sleep(ctx, wait) != nil {
					return nil
				}
			}
		})
	logs.flags(cmd)
	cmd.Flags().BoolVar(&lines, "lines", false, "also print the lines of each log")
	return cmd
}

// printLog prints a log that was stored just now.
func (a *app) printLog(cmd *cobra.Command, l client.Log, lines bool) error {
	err := cli.PrintLine(cmd, l, func() string {
		return fmt.Sprintf("%s  %s  %s  %s  %s", clock(l.At), l.ID, l.Name, page.Bytes(l.Size), strings.TrimSpace(l.Reason+"  "+l.OS))
	})
	if err != nil || !lines || cli.JSON(cmd) {
		return err
	}
	c, err := a.api.GetThingsThingLogsLog(cmd.Context(), l.Thing, l.ID, client.GetThingsThingLogsLogQuery{})
	if errs.KindOf(err) == errs.Invalid { // not text
		return nil
	}
	if err != nil {
		return err
	}
	for _, line := range c.Value.Lines {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), "  "+cli.Clean(line.Text)); err != nil {
			return err
		}
	}
	return nil
}

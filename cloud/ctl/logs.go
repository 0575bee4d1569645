package ctl

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/telemetry/uploads/logfile"
	"kennel/infra/cli"
)

func (a *app) logs() *cobra.Command {
	return group(&cobra.Command{Use: "logs", Short: "Read and request robots' logs",
		Long: "Robots upload their logs to the cloud, which keeps them for some weeks. Packed logs are shown as text.",
		Example: "  kennelctl logs request vic:00e20100 -wait\n  kennelctl logs list vic:00e20100\n  kennelctl logs show vic:00e20100 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11 -level warning\n" +
			"  kennelctl logs search vic:00e20100 -text \"no route\" -day 2026-05-06"},
		a.logsShow(), a.logsSearch(), a.logsGet(), a.logsRequest(), a.logsFollow())
}

// whichLogs are the flags that choose logs.
type whichLogs struct{ name, day, version, kind, reason string }

func (w *whichLogs) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.name, "name", "", "only logs whose name contains `TEXT`")
	f.StringVar(&w.day, "day", "", "only logs uploaded on `DATE` (UTC), such as 2026-05-06")
	f.StringVar(&w.version, "version", "", "only logs of robots whose version begins with `VERSION`")
	f.StringVar(&w.kind, "kind", "", "only logs of `KIND`: "+strings.Join(uploads.Kinds, ", "))
	f.StringVar(&w.reason, "reason", "", "only logs that the robot sent for `REASON`, such as request or fault-914")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(uploads.Kinds, cobra.ShellCompDirectiveNoFileComp))
}

var logRows = rows("LOG|THING|NAME|SIZE|UPLOADED|REASON|RELEASE|EXPIRES", func(l client.Log) cells {
	return cells{l.ID, l.Thing, l.Name, page.Bytes(l.Size), l.At, cmp.Or(l.Reason, l.Kind), cmp.Or(l.OS, "–"), l.Expires}
})

// completeLog offers thing ids, then ids of logs.
func (a *app) completeLog(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeThing(cmd, args, typed)
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	r, err := a.api.GetThingsThingLogs(cmd.Context(), args[0], client.GetThingsThingLogsQuery{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, l := range r.Value {
		out = append(out, cobra.CompletionWithDesc(l.ID, cli.Clean(l.Name)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// whichLines are the flags that choose lines.
type whichLines struct{ text, level, from, to string }

func (w *whichLines) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.text, "text", "", "only lines that contain `TEXT` (case-insensitive)")
	f.StringVar(&w.level, "level", "", "only lines of at least `LEVEL`: debug, info, warning or error")
	f.StringVar(&w.from, "from", "", "only lines written since `TIME`: a duration such as 2h, or 2026-05-06T12:00:00Z")
	f.StringVar(&w.to, "to", "", "only lines written before `TIME`")
	_ = cmd.RegisterFlagCompletionFunc("level", func(*cobra.Command, []string, string) (out []string, _ cobra.ShellCompDirective) {
		for _, l := range logfile.Levels {
			out = append(out, string(l))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

func (w *whichLines) times() (from, to *time.Time, err error) {
	for _, t := range []struct {
		text string
		to   **time.Time
	}{{w.from, &from}, {w.to, &to}} {
		if t.text == "" {
			continue
		}
		at, err := parseSince(t.text, time.Now())
		if err != nil {
			return nil, nil, err
		}
		*t.to = &at
	}
	return from, to, nil
}

func (a *app) logsShow() *cobra.Command {
	var which whichLines
	var file string
	var skip, limit int64
	cmd := shows(a, &cobra.Command{Use: "show THING LOG", Short: "Print the lines of a log", ValidArgsFunction: a.completeLog,
		Long: "LOG is an id from kennelctl logs list. A line without a time takes the time of the line before it; " +
			"a line without a level counts as info.",
		Example: "  kennelctl logs show vic:00e20100 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11 -level error\n" +
			"  kennelctl logs show vic:00e20100 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11 -text wifi -from 2h"},
		func(ctx context.Context, args []string) (r reply[client.Contents], err error) {
			from, to, err := which.times()
			if err != nil {
				return r, err
			}
			return a.api.GetThingsThingLogsLog(ctx, args[0], args[1], client.GetThingsThingLogsLogQuery{
				Text: given(which.text), Level: given(which.level), From: from, To: to,
				File: given(file), Skip: &skip, Limit: &limit})
		}, func(t *cli.Table, c client.Contents) {
			showLines(t, c)
			switch {
			case c.More > 0:
				t.Text(fmt.Sprintf("%s in all; continue with -skip %d", cli.Count(c.Found, "line"), c.More))
			case c.Found == 0:
				t.Text("no matching lines")
			}
			for _, f := range c.Files {
				if !f.Text {
					t.Text(f.Name + " is not text; download it with kennelctl logs get")
				}
			}
		})
	which.flags(cmd)
	cmd.Flags().StringVar(&file, "file", "", "only lines of `FILE`, of a log with several files")
	cmd.Flags().Int64Var(&skip, "skip", 0, "skip the first `N` lines")
	cmd.Flags().Int64Var(&limit, "limit", 200, "show at most `N` lines")
	return cmd
}

// showLines prints lines as they are in the log, each with its file where the log has several.
func showLines(t *cli.Table, c client.Contents) {
	for _, l := range c.Lines {
		if len(c.Files) > 1 {
			t.Text(l.File + ": " + l.Text)
		} else {
			t.Text(l.Text)
		}
	}
	if c.Problem != "" {
		t.Text("! " + c.Problem)
	}
}

func (a *app) logsSearch() *cobra.Command {
	var which whichLines
	var logs whichLogs
	var after string
	var limit int64
	cmd := shows(a, describe("search THING", "Find lines in a robot's logs, the newest log first", "logs search vic:00e20100 -text \"no route\"",
		"logs search vic:00e20100 -level error -day 2026-05-06"),
		func(ctx context.Context, args []string) (r reply[client.Found], err error) {
			from, to, err := which.times()
			if err != nil {
				return r, err
			}
			return a.api.GetThingsThingLogsSearch(ctx, args[0], client.GetThingsThingLogsSearchQuery{
				Text: given(which.text), Level: given(which.level), From: from, To: to,
				Name: given(logs.name), Day: given(logs.day), Version: given(logs.version), Kind: given(logs.kind), Reason: given(logs.reason),
				After: given(after), Limit: &limit})
		}, func(t *cli.Table, f client.Found) {
			for _, c := range f.Logs {
				t.Text(fmt.Sprintf("%s %s, %s:", c.Log.ID, c.Log.Name, cli.Count(c.Found, "line")))
				showLines(t, c)
			}
			t.Text(cli.Count(f.Read, "log") + " searched")
			if f.Next != "" {
				t.Text("continue with -after " + f.Next)
			}
		})
	which.flags(cmd)
	logs.flags(cmd)
	cmd.Flags().StringVar(&after, "after", "", "continue after the log with this `ID`")
	cmd.Flags().Int64Var(&limit, "limit", 100, "show at most `N` lines")
	return cmd
}

func (a *app) logsGet() *cobra.Command {
	var to destination
	cmd := a.runs(&cobra.Command{Use: "get THING LOG", Short: "Download a log as it was uploaded", ValidArgsFunction: a.completeLog,
		Long:    "An existing file is not overwritten.",
		Example: "  kennelctl logs get vic:00e20100 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11 -to log.gz"},
		func(cmd *cobra.Command, args []string) error {
			if err := to.check(cmd); err != nil {
				return err
			}
			return a.downloadLog(cmd, args[0], args[1], to.named(args[1]+".log"))
		})
	to.flag(cmd)
	return cmd
}

// downloadLog saves a log as it was uploaded.
func (a *app) downloadLog(cmd *cobra.Command, id, log, to string) error {
	_, err := a.download(cmd, "/v1/things/"+url.PathEscape(id)+"/logs/"+url.PathEscape(log)+"/content", to)
	return err
}

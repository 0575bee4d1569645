package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

const askHelp = "A value is named by its field (s1 to s4 for text, i1 to i4 for numbers) or, with -name, as in the event's description.\n" +
	"A time is a duration before now, such as 24h or 7d, or a moment such as 2026-05-06T12:00:00Z."

// eventAsk are the flags of what asks the store of events.
type eventAsk struct {
	words   map[string]*string // by parameter
	values  []string
	misfits bool
	robot   bool
}

func (f *eventAsk) flags(a *app, cmd *cobra.Command) {
	f.words = map[string]*string{}
	for _, w := range []struct{ name, about string }{
		{"thing", "only events of `THING`"}, {"robots", "only events of robots that `FILTER` selects, such as cohort:beta"}, {"event", "only events whose name begins with `PREFIX`"},
		{"name", "only events named `NAME`"}, {"version", "only events of robots with release `VERSION`; may end in *"}, {"level", "only events of at least this `LEVEL`: debug, info, warning or error"},
		{"source", "only events of the robot's `PROGRAM`"}, {"since", "only events received since `TIME`"}, {"until", "only events received before `TIME`"}} {
		f.words[w.name] = cmd.Flags().String(w.name, "", w.about)
	}
	cmd.Flags().StringArrayVar(&f.values, "value", nil, "only events whose value meets `CONDITION`, such as battery<3500 or s1=low; may be repeated")
	cmd.Flags().BoolVar(&f.misfits, "misfits", false, "only events that do not match their description")
	cmd.Flags().BoolVar(&f.robot, "robot-clock", false, "-since and -until refer to the robots' clocks")
	_ = cmd.RegisterFlagCompletionFunc("thing", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.completeThing(cmd, nil, typed)
	})
	_ = cmd.RegisterFlagCompletionFunc("robots", completeFilter)
}

// query returns the parameters of a request.
func (f *eventAsk) query() (url.Values, error) {
	v := url.Values{}
	for name, s := range f.words {
		if *s != "" {
			v.Set(name, *s)
		}
	}
	if s := *f.words["thing"]; s != "" {
		if _, err := parseThing(s); err != nil {
			return nil, err
		}
	}
	v["value"] = f.values
	if f.misfits {
		v.Set("fits", "no")
	}
	if f.robot {
		v.Set("clock", "robot")
	}
	return v, nil
}

func (a *app) eventsQuery() *cobra.Command {
	var ask eventAsk
	var by, of string
	var limit int64
	cmd := describe("query", "Find or count events",
		"events query -robots cohort:beta -name robot.fault_code -since 7d", "events query -name battery.low -value \"battery<3400\"",
		"events query -by day -since 30d -event robot.crash", "events query -name robot.cpu_info -of load -by hour", "events query -by event -misfits")
	cmd.Long = "Lists events, the newest first. With -by, counts them and their robots instead; with -of, adds quantiles of a number.\n" + askHelp
	a.runs(cmd, func(cmd *cobra.Command, _ []string) error {
		v, err := ask.query()
		if err != nil {
			return err
		}
		if by == "" && of == "" {
			v.Set("limit", fmt.Sprint(limit))
			r, err := get[[]client.DasRecord](cmd.Context(), a, "/v1/events?"+v.Encode())
			if err == nil && len(r.Value) == int(limit) {
				fmt.Fprintf(cmd.ErrOrStderr(), "kennelctl: cut after %s; see -limit, -until and events export\n", cli.Count(limit, "event"))
			}
			return show(cmd, r, err, rows("RECEIVED|THING|VERSION|LEVEL|EVENT|VALUES", func(r client.DasRecord) cells {
				return cells{r.Received, r.Thing, r.RobotVersion, r.Level, r.Event, eventValues(r)}
			}))
		}
		v.Set("by", cmp.Or(by, "hour"))
		if of != "" {
			v.Set("of", of)
		}
		r, err := get[client.DasCounts](cmd.Context(), a, "/v1/events/counts?"+v.Encode())
		if err == nil && r.Value.Cut {
			fmt.Fprintf(cmd.ErrOrStderr(), "kennelctl: cut after %s; the total counts all\n", cli.Count(len(r.Value.Groups), "group"))
		}
		return show(cmd, r, err, showCounts)
	})
	ask.flags(a, cmd)
	cmd.Flags().StringVar(&by, "by", "", "count by `WHAT`: hour, day, event, version, source, level or robot")
	cmd.Flags().StringVar(&of, "of", "", "show quantiles of the number `VALUE`")
	cmd.Flags().Int64Var(&limit, "limit", 100, "show at most `N` events")
	return cmd
}

// get asks for what the generated client has no method for: a parameter that is given several times.
func get[T any](ctx context.Context, a *app, path string) (r reply[T], err error) {
	b, _, err := a.api.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return r, err
	}
	r.Raw = b
	return r, json.Unmarshal(b, &r.Value)
}

func showCounts(t *cli.Table, c client.DasCounts) {
	head := []any{strings.ToUpper(c.By), "EVENTS", "ROBOTS", "MISFITS"}
	if c.Of != "" {
		head = append(head, "MIN", "P50", "MEAN", "P90", "P99", "MAX")
	}
	t.Row(head...)
	for _, g := range append([]client.DasCount{c.Total}, c.Groups...) {
		line := []any{cmp.Or(g.Key, "total"), g.Events, g.Robots, g.Misfits}
		if n := g.Numbers; n != nil {
			line = append(line, n.Min, n.P50, fmt.Sprintf("%.1f", n.Mean), n.P90, n.P99, n.Max)
		}
		t.Row(line...)
	}
}

func (a *app) eventsExport() *cobra.Command {
	var ask eventAsk
	var to destination
	var format string
	cmd := describe("export", "Download events as Parquet, CSV or NDJSON", "events export -format parquet -since 7d -to week.parquet", "events export -format csv -thing vic:00e20100 -since 24h -to -")
	cmd.Long = "Writes the matching events, at most the oldest million. An existing file is not overwritten.\n" + askHelp
	a.runs(cmd, func(cmd *cobra.Command, _ []string) error {
		v, err := ask.query()
		if err = cmp.Or(err, to.check(cmd)); err != nil {
			return err
		}
		v.Set("format", format)
		end, err := a.download(cmd, "/v1/events/export?"+v.Encode(), to.named("events-"+time.Now().UTC().Format("20060102T150405Z")+"."+format))
		if err == nil && end.Get("Kennel-Cut") != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "kennelctl: more than a million events match; narrow them with -since and -until")
		}
		return err
	})
	ask.flags(a, cmd)
	to.flag(cmd)
	cmd.Flags().StringVar(&format, "format", "parquet", "file `FORMAT`: parquet, csv or ndjson")
	return cmd
}

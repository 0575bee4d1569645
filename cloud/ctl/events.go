package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) events() *cobra.Command {
	return group(&cobra.Command{Use: "events", Aliases: []string{"das"}, Short: "Read events that robots report",
		Example: "  kennelctl events list -thing vic:00e20100 -limit 20\n  kennelctl events tail"}, a.eventsList(), a.eventsTail(), a.eventsQuery(), a.eventsExport())
}

// eventFilter are the flags of both list and tail.
type eventFilter struct{ thing, event string }

func (f *eventFilter) flags(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.thing, "thing", "", "only events of `THING`")
	cmd.Flags().StringVar(&f.event, "event", "", "only events whose name begins with `PREFIX`")
	_ = cmd.RegisterFlagCompletionFunc("thing", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.completeThing(cmd, nil, typed)
	})
}

func (f *eventFilter) check() error {
	if f.thing == "" {
		return nil
	}
	_, err := parseThing(f.thing)
	return err
}

func (a *app) eventsList() *cobra.Command {
	var filter eventFilter
	var since string
	var limit int64
	cmd := shows(a, describe("list", "List stored events, the newest first", "events list -thing vic:00e20100 -event robot.boot -since 24h"),
		func(ctx context.Context, _ []string) (r reply[[]client.DasRecord], err error) {
			if err := filter.check(); err != nil {
				return r, err
			}
			q := client.GetEventsQuery{Thing: given(filter.thing), Event: given(filter.event), Limit: &limit}
			if since != "" {
				from, err := parseSince(since, time.Now())
				if err != nil {
					return r, err
				}
				q.Since = given(from.UTC().Format(time.RFC3339Nano))
			}
			return a.api.GetEvents(ctx, q)
		},
		rows("RECEIVED|THING|LEVEL|EVENT|VALUES", func(r client.DasRecord) cells { return cells{r.Received, r.Thing, r.Level, r.Event, eventValues(r)} }))
	filter.flags(a, cmd)
	cmd.Flags().StringVar(&since, "since", "", "only events received since `TIME`: a duration such as 2h, or 2026-05-06T12:00:00Z")
	cmd.Flags().Int64Var(&limit, "limit", 100, "show at most `N` events")
	return cmd
}

// parseSince reads a duration before now, or a moment.
func parseSince(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.Time{}, cli.Usage("-since %.40q: want a duration such as 2h, or a time such as 2026-05-06T12:00:00Z", s)
}

// eventValues returns the values of an event, each with its name.
func eventValues(r client.DasRecord) string {
	e := events.Event{Name: r.Event, S1: r.S1, S2: r.S2, S3: r.S3, S4: r.S4}
	for to, n := range map[*events.Int]*int64{&e.I1: r.I1, &e.I2: r.I2, &e.I3: r.I3, &e.I4: r.I4} {
		if n != nil {
			*to = events.Num(*n)
		}
	}
	return e.Words()
}

func (a *app) eventsTail() *cobra.Command {
	var filter eventFilter
	cmd := a.runs(&cobra.Command{Use: "tail", Short: "Print events as they are stored, until interrupted",
		Long: "Reconnects when the connection is lost; events stored in the meantime are skipped (see events list -since). " +
			"With -o json, one line of JSON per event.",
		Example: "  kennelctl events tail\n  kennelctl events tail -thing vic:00e20100 -o json"},
		func(cmd *cobra.Command, _ []string) error {
			if err := filter.check(); err != nil {
				return err
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			path := "/v1/events/tail?" + client.GetEventsTailQuery{Thing: given(filter.thing), Event: given(filter.event)}.Encode()
			return c.tail(cmd.Context(), path, func(data []byte) error { return printEvent(cmd, data) }, func(err error) {
				fmt.Fprintf(cmd.ErrOrStderr(), "kennelctl: %s; reconnecting\n", cli.Clean(err.Error()))
			})
		})
	filter.flags(a, cmd)
	return cmd
}

func printEvent(cmd *cobra.Command, data []byte) error {
	var r client.DasRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return errs.New(errs.Corrupt, "read event: %w (newer cloud than this kennelctl?)", err)
	}
	if r.Event == "" {
		return nil // word of the stream itself, for newer programs
	}
	return cli.PrintLine(cmd, json.RawMessage(data), func() string {
		return strings.TrimRight(fmt.Sprintf("%s  %s  %-5s  %s  %s", clock(r.Received), r.Thing, r.Level, r.Event, eventValues(r)), " ")
	})
}

// tail follows a stream until ctx ends, connecting again with growing pauses after a loss, which lost hears of. The first connection must
// succeed, and a refusal ends it at any time. An interrupt is the ordinary end.
func (c *conn) tail(ctx context.Context, path string, f func(data []byte) error, lost func(error)) error {
	pause, lastID := backoff.Pause{Min: time.Second, Max: 15 * time.Second}, ""
	var connected bool
	for {
		err := c.stream(ctx, path, lastID, func(id string, data []byte) error {
			lastID, connected = id, true
			pause.Reset()
			return f(data)
		})
		ended := errors.Is(err, errStreamEnded)
		switch {
		case ctx.Err() != nil:
			return nil
		case !ended && errs.KindOf(err) != errs.Unavailable, !ended && !connected:
			return err
		case !ended:
			lost(err)
		}
		connected = true
		if backoff.Sleep(ctx, pause.Next(nil)) != nil {
			return nil
		}
	}
}

package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/api/events"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// record is a stored event, as the public API writes it.
type record struct {
	Thing    string    `json:"thing"`
	Received time.Time `json:"received"`
	events.Event
}

func (a *app) events() *cobra.Command {
	cmd := &cobra.Command{Use: "events", Aliases: []string{"das"}, Short: "Read what robots report",
		Example: "  kennelctl events list -thing vic:00e20100 -limit 20\n  kennelctl events tail"}
	cmd.AddCommand(a.eventsList(), a.eventsTail())
	return cmd
}

// eventFilter is what list and tail share.
type eventFilter struct{ thing, event string }

func (f *eventFilter) flags(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.thing, "thing", "", "only events of `THING`")
	cmd.Flags().StringVar(&f.event, "event", "", "only events whose name begins with `PREFIX`")
	_ = cmd.RegisterFlagCompletionFunc("thing", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.completeThing(cmd, nil, typed)
	})
}

func (f *eventFilter) query() (url.Values, error) {
	q := url.Values{}
	if f.thing != "" {
		if _, err := parseThing(f.thing); err != nil {
			return nil, err
		}
		q.Set("thing", f.thing)
	}
	if f.event != "" {
		q.Set("event", f.event)
	}
	return q, nil
}

func (a *app) eventsList() *cobra.Command {
	var filter eventFilter
	var since string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List stored events, the newest first", Args: cobra.NoArgs,
		Example: "  kennelctl events list -thing vic:00e20100 -event robot.boot -since 24h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := filter.query()
			if err != nil {
				return err
			}
			if since != "" {
				from, err := parseSince(since, time.Now())
				if err != nil {
					return err
				}
				q.Set("since", from.UTC().Format(time.RFC3339Nano))
			}
			q.Set("limit", strconv.Itoa(limit))
			var list answer[[]record]
			if err := a.do(cmd, http.MethodGet, "/v1/events?"+q.Encode(), nil, &list.raw); err != nil {
				return err
			}
			return list.print(cmd, func(t *cli.Table, records []record) {
				t.Row("RECEIVED", "THING", "LEVEL", "EVENT", "VALUES")
				for _, r := range records {
					t.Row(ago(r.Received), r.Thing, r.Level, r.Name, r.values())
				}
			})
		},
	}
	filter.flags(a, cmd)
	cmd.Flags().StringVar(&since, "since", "", "only events received since `TIME`: a duration such as 2h, or 2026-05-06T12:00:00Z")
	cmd.Flags().IntVar(&limit, "limit", 100, "show at most `N` events")
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
	return time.Time{}, cli.Usage("-since %.40q; want a duration such as 2h, or a time such as 2026-05-06T12:00:00Z", s)
}

// values prints what an event carries besides its name.
func (r record) values() string {
	var out []string
	for i, s := range []string{r.S1, r.S2, r.S3, r.S4} {
		if s != "" {
			out = append(out, fmt.Sprintf("s%d=%s", i+1, s))
		}
	}
	for i, n := range []events.Int{r.I1, r.I2, r.I3, r.I4} {
		if n.Set {
			out = append(out, fmt.Sprintf("i%d=%d", i+1, n.N))
		}
	}
	return strings.Join(out, " ")
}

const (
	tailMinPause = time.Second
	tailMaxPause = 15 * time.Second
)

func (a *app) eventsTail() *cobra.Command {
	var filter eventFilter
	cmd := &cobra.Command{
		Use: "tail", Short: "Print events as they are stored, until interrupted", Args: cobra.NoArgs,
		Long:    "Connects again when the connection is lost; what was stored meanwhile is not repeated (see events list -since). With -o json, one line of JSON per event.",
		Example: "  kennelctl events tail\n  kennelctl events tail -thing vic:00e20100 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := filter.query()
			if err != nil {
				return err
			}
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			path := "/v1/events/tail"
			if len(q) > 0 {
				path += "?" + q.Encode()
			}
			return c.tail(cmd.Context(), path, func(data []byte) error { return printEvent(cmd, data) }, func(err error) {
				fmt.Fprintf(cmd.ErrOrStderr(), "kennelctl: %s; connecting again\n", cli.Clean(err.Error()))
			})
		},
	}
	filter.flags(a, cmd)
	return cmd
}

func printEvent(cmd *cobra.Command, data []byte) error {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return errs.New(errs.Corrupt, "an event is not what this version of kennelctl understands: %w", err)
	}
	if r.Name == "" {
		return nil // word of the stream itself, for newer programs
	}
	return cli.PrintLine(cmd, json.RawMessage(data), func() string {
		return strings.TrimRight(fmt.Sprintf("%s  %s  %-5s  %s  %s", clock(r.Received), r.Thing, r.Level, r.Name, r.values()), " ")
	})
}

// tail follows a stream until ctx ends, connecting again with growing pauses after a loss, which lost hears of. The first connection must
// succeed, and a refusal ends it at any time. An interrupt is the ordinary end.
func (c *client) tail(ctx context.Context, path string, f func(data []byte) error, lost func(error)) error {
	pause := tailMinPause
	lastID := ""
	var connected bool
	for {
		err := c.stream(ctx, path, lastID, func(id string, data []byte) error {
			pause, lastID, connected = tailMinPause, id, true
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
		t := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		pause = min(2*pause, tailMaxPause)
	}
}

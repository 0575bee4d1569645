package ctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/openapi/client"
	"kennel/cloud/page"
	"kennel/infra/api/status"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) robots() *cobra.Command {
	return group(group(&cobra.Command{Use: "robots", Aliases: []string{"things"}, Short: "List, show and register robots",
		Example: "  kennelctl robots list\n  kennelctl robots show vic:00e20100"},
		a.robotsList(),
		shows(a, describe("show THING", "Show a robot and its last status", "robots show vic:00e20100"),
			first(a.api.GetThingsThing), showThing),
		a.robotsRegister(),
		a.robotsCounts(), a.robotsTag(), a.robotsBulk()), a.robotDetails()...)
}

func (a *app) robotsList() *cobra.Command {
	var presence, search, sort, text string
	var asCSV bool
	cmd := a.runs(&cobra.Command{Use: "list [FILTER]", Short: "List robots", Long: filterHelp, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: completeFilter,
		Example: "  kennelctl robots list -presence offline\n  kennelctl robots list -q vic: -o json\n" +
			"  kennelctl robots list \"version:<2.1 battery:low\" -sort -seen\n" +
			"  kennelctl robots list tag:lab -csv > lab.csv"},
		func(cmd *cobra.Command, args []string) error {
			f, err := filterOf(append(args, text)...)
			if err != nil {
				return err
			}
			if _, _, err := registry.ParseSort(sort); err != nil {
				return err
			}
			q := client.GetThingsQuery{Presence: given(presence), Q: given(search), Sort: given(sort), Filter: given(f.String())}
			if asCSV {
				if cli.JSON(cmd) {
					return cli.Usage("-csv and -o json exclude each other")
				}
				q.Format = new("csv")
				return a.robotsCSV(cmd, q)
			}
			q.Limit = new(int64(1000))
			all, err := pages(func(after *string) (reply[[]client.Thing], error) {
				q.After = after
				return a.api.GetThings(cmd.Context(), q)
			})
			everyone := len(f.Terms) == 0 && presence == "" && search == ""
			table := rows("THING|PRESENCE|SINCE|BATTERY|RELEASE|AGENT|LOOP P99|PROBLEMS", func(th client.Thing) cells {
				m := th.Status
				if m == nil {
					since := th.Since
					if th.Presence == string(registry.Calls) {
						since = th.LastSeen
					}
					return cells{th.Thing, presenceOf(th), since, "", "", "", "", registry.Words(problems(th))}
				}
				lateness := ""
				if m.Loop != nil {
					lateness = micros(m.Loop.LateP99US)
				}
				return cells{th.Thing, presenceOf(th), th.Since, battery(m.Body), m.OS, m.Agent, lateness, registry.Words(problems(th))}
			})
			return show(cmd, all, err, func(t *cli.Table, list []client.Thing) {
				if table(t, list); len(list) == 0 && everyone {
					t.Text("No robots yet. kennelctl doctor lists refused connections; kenneld originals check tests whether an original robot can connect.")
				}
			})
		})
	columns := make([]string, 0, 2*len(registry.Columns))
	for _, c := range registry.Columns {
		columns = append(columns, string(c), "-"+string(c))
	}
	cmd.Flags().StringVar(&presence, "presence", "", "only robots with this `PRESENCE`: online, offline, calls (an original robot) or never")
	cmd.Flags().StringVarP(&search, "query", "q", "", "only robots with `TEXT` in their id, name, tags, versions or model")
	cmd.Flags().StringVar(&text, "filter", "", "`FILTER` as a flag, for one that begins with -")
	cmd.Flags().StringVar(&sort, "sort", "", "sort by `COLUMN`, descending with a leading -: "+
		"id, presence, since, seen, created, version, agent, body, battery, loop, problems, cert")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print comma-separated values, with more columns")
	presences := cobra.FixedCompletions([]string{"online", "offline", "calls", "never"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("presence", presences) // the flag is there
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(columns, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("filter", completeFilter)
	return cmd
}

// robotsCSV prints a list as comma-separated values, as the cloud streams them.
func (a *app) robotsCSV(cmd *cobra.Command, q client.GetThingsQuery) error {
	c, err := a.connect(cmd.Context())
	if err != nil {
		return err
	}
	resp, err := c.send(cmd.Context(), http.MethodGet, "/v1/things?"+q.Encode(), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(cmd.OutOrStdout(), resp.Body); err != nil {
		return errs.New(errs.Unavailable, "the list broke off and is incomplete: %w", err)
	}
	return nil
}

func showThing(t *cli.Table, th client.Thing) {
	pairs(t, "thing", th.Thing, "presence", strings.TrimSpace(th.Presence+" "+since(th.Since)), "last seen", th.LastSeen, "registered", th.Created)
	m := th.Status
	if m == nil {
		text := "none yet; see kennelctl doctor " + th.Thing
		if th.Presence == string(registry.Calls) {
			text = "none: an original robot connects only for requests; see kennelctl doctor " + th.Thing
		}
		t.Row("status", text)
		return
	}
	pairs(t, "agent", m.Agent, "release", m.OS, "boot", m.BootID, "up for", age(m.UptimeMS),
		"clock", (time.Duration(th.ClockOffsetMS)*time.Millisecond).String()+" from the cloud's")
	if b := m.Body; b != nil {
		t.Section("Body")
		pairs(t, "model", b.Model, "firmware", b.Firmware, "battery", battery(b))
		if b.TemperatureC != 0 { // 0: not known
			t.Row("temperature", fmt.Sprintf("%.1f °C", b.TemperatureC))
		}
		t.Row("frames", fmt.Sprintf("%d good, %d bad", b.FramesGood, b.FramesBad))
		if b.Fault != 0 {
			t.Row("fault", b.Fault)
		}
	}
	if l := m.Loop; l != nil {
		t.Section("Loop")
		pairs(t, "steps", l.Steps, "missed periods", l.Missed,
			"lateness", fmt.Sprintf("p50 %s, p99 %s, p99.9 %s, worst %s", micros(l.LateP50US), micros(l.LateP99US), micros(l.LateP999US), micros(l.LateMaxUS)),
			"step time", fmt.Sprintf("p50 %s, p99 %s, worst %s", micros(l.StepP50US), micros(l.StepP99US), micros(l.StepMaxUS)),
			"late, long", fmt.Sprintf("%d started more than 10 ms late, %d took more than 5 ms", l.Late, l.Long),
			"scheduling", map[bool]string{true: "real-time (FIFO)", false: "ordinary"}[l.FIFO],
			"dropped", fmt.Sprintf("%d messages to slow processes", l.Dropped))
	}
	if len(m.Docs) > 0 {
		t.Section("Documents on the robot")
		for _, doc := range slices.Sorted(maps.Keys(m.Docs)) {
			state := ""
			if slices.Contains(m.Dirty, doc) {
				state = "changed on the robot, not yet in the cloud"
			}
			t.Row(doc, "version "+fmt.Sprint(m.Docs[doc]), state)
		}
	}
	if s := m.Spool; s != nil {
		t.Section("Events on the robot")
		pairs(t, "waiting", fmt.Sprintf("%d (%s)", s.Events, page.Bytes(s.Bytes)), "dropped", s.Dropped, "refused", s.Quarantined)
	}
	if len(th.Problems) > 0 {
		t.Section("Problems")
		for _, p := range problems(th) {
			t.Text(p.String())
		}
	}
}

func (a *app) robotsRegister() *cobra.Command {
	var file, out string
	cmd := a.runs(&cobra.Command{Use: "register [THING]", Short: "Register a robot and print its claim secret, or register all robots in a file",
		Long: "The secret is shown only once. The robot exchanges it for a certificate when it first connects; after that it is worthless.\n" +
			"A robot that has not used its secret can be registered again; the new secret replaces the old one.\n\n" +
			"A file has one robot per line, thing[,secret-hash][,...], or a first line that names the columns thing and secret_hash. " +
			"The hash is the\nSHA-256 of a secret that the robot already has. Either all robots are registered or none.",
		Example: "  kennelctl robots register vic:00e20100\n  kennelctl robots register vic:00e20100 -o json\n" +
			"  kennelctl robots register -csv delivery.csv -out secrets.csv"},
		func(cmd *cobra.Command, args []string) error {
			switch {
			case (file != "") == (len(args) == 1):
				return cli.Usage("want either THING or -csv FILE")
			case file != "":
				return a.registerCSV(cmd, file, out)
			case out != "":
				return cli.Usage("-out needs -csv")
			}
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			r, err := a.api.PostThings(cmd.Context(), client.NewThing{Thing: string(id)})
			return show(cmd, r, err, func(t *cli.Table, answer client.Registration) {
				showRegistration(t, answer)
				t.Text("This secret is shown only once. Earlier secrets of this robot no longer work.")
			})
		})
	cmd.Flags().StringVar(&file, "csv", "", "register the robots in `FILE`; -: standard input")
	cmd.Flags().StringVar(&out, "out", "", "write the secrets to a new `FILE`, mode 0600, instead of printing them")
	_ = cmd.MarkFlagFilename("csv", "csv")
	return cmd
}

// completeThing offers the thing ids that begin with what is typed.
func (a *app) completeThing(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offers(cmd, args, typed, func(ctx context.Context, typed []string) (reply[[]client.Thing], error) {
		return a.api.GetThings(ctx, client.GetThingsQuery{Q: &typed[0], Limit: new(int64(50))})
	}, func(th client.Thing) (string, string) { return th.Thing, th.Presence })
}

func battery(b *client.Body) string {
	if b == nil || b.BatteryVolts <= 0 { // a body that is not heard measured nothing
		return ""
	}
	s := fmt.Sprintf("%s %.2f V", cmp.Or(b.BatteryLevel, "unknown"), b.BatteryVolts)
	switch {
	case b.Charging:
		s += ", charging"
	case b.OnCharger:
		s += ", on charger"
	}
	return s
}

// problems returns the problems of a robot, which know how to print themselves.
func problems(th client.Thing) (out []status.Problem) {
	for _, p := range th.Problems {
		out = append(out, status.Problem{Kind: p.Kind, Code: p.Code, Text: p.Text})
	}
	return out
}

// micros prints microseconds; from ten milliseconds on, milliseconds.
func micros(us float64) string {
	if us >= 10_000 {
		return fmt.Sprintf("%.1f ms", us/1000)
	}
	return fmt.Sprintf("%.0f µs", us)
}

// clock prints a time in the user's zone; "" if it is none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// now is the clock that ago and since compare with; tests set it.
var now = time.Now

// presenceOf says whether a robot is here, and whether it may come.
func presenceOf(th client.Thing) string {
	word := th.Presence
	switch word {
	case string(registry.Present):
		word = "online"
	case string(registry.Absent):
		word = "offline"
	}
	if th.Revoked {
		word += ", revoked"
	}
	return word
}

// ago prints how far a time is from now, such as "3 min ago" or "in 2 h"; "" if it is none. JSON output has the exact time.
func ago(t time.Time) string {
	switch d := now().Sub(t); {
	case t.IsZero():
		return ""
	case d < 0:
		return "in " + registry.Ago(-d)
	default:
		return registry.Ago(d) + " ago"
	}
}

// since prints for how long something has lasted, such as "for 3 min"; "" if t is none.
func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "for " + registry.Ago(now().Sub(t))
}

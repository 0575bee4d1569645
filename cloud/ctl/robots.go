package ctl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/registry"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

func (a *app) robots() *cobra.Command {
	cmd := &cobra.Command{Use: "robots", Aliases: []string{"things"}, Short: "See robots and make them known",
		Example: "  kennelctl robots list\n  kennelctl robots show vic:00e20100"}
	cmd.AddCommand(a.robotsList(), a.robotsShow(), a.robotsRegister(), a.robotsWaiting(), a.robotsApprove(), a.robotsRefuse(), a.robotsRelease(), a.robotsRevoke(), a.robotsRevocations(),
		a.robotsCounts(), a.robotsTag(), a.robotsBulk())
	return cmd
}

func (a *app) robotsList() *cobra.Command {
	var presence, search, sort, text string
	var asCSV bool
	cmd := &cobra.Command{
		Use: "list [FILTER]", Short: "List robots with their presence", Long: filterHelp, ValidArgsFunction: completeFilter,
		Example: "  kennelctl robots list -presence absent\n  kennelctl robots list -q vic: -o json\n  kennelctl robots list \"version:<2.1 battery:low\" -sort -seen\n" +
			"  kennelctl robots list tag:lab -csv > lab.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := filterOf(append(args, text)...)
			if err != nil {
				return err
			}
			if _, _, err := registry.ParseSort(sort); err != nil {
				return err
			}
			if asCSV && cli.JSON(cmd) {
				return cli.Usage("want either -csv or -o json")
			}
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			query := url.Values{}
			for key, value := range map[string]string{"presence": presence, "q": search, "sort": sort, "filter": f.String()} {
				if value != "" {
					query.Set(key, value)
				}
			}
			if asCSV {
				query.Set("format", "csv")
				return c.download(cmd.Context(), "/v1/things?"+query.Encode(), cmd.OutOrStdout())
			}
			query.Set("limit", "1000")
			things, err := c.things(cmd.Context(), query)
			if err != nil {
				return err
			}
			return cli.Print(cmd, things, func(t *cli.Table) {
				t.Row("THING", "PRESENCE", "SINCE", "BATTERY", "RELEASE", "AGENT", "LOOP P99", "PROBLEMS")
				for _, th := range things {
					t.Row(th.ID, th.Presence, ago(th.Since), battery(th), field(th, func() string { return th.Status.OS }),
						field(th, func() string { return th.Status.Agent }), lateness(th), registry.Words(th.Problems))
				}
			})
		},
	}
	columns := make([]string, 0, 2*len(registry.Columns))
	for _, c := range registry.Columns {
		columns = append(columns, string(c), "-"+string(c))
	}
	cmd.Flags().StringVar(&presence, "presence", "", "only those that are `present or absent`")
	cmd.Flags().StringVarP(&search, "query", "q", "", "only those with `TEXT` in their id, name, tags, versions or model")
	cmd.Flags().StringVar(&text, "filter", "", "`FILTER` as a flag, for one that begins with a minus")
	cmd.Flags().StringVar(&sort, "sort", "", "by `COLUMN`, with a - before it the other way round: id, presence, since, seen, created, version, agent, body, battery, loop, problems, cert")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print comma-separated values, with more columns")
	_ = cmd.RegisterFlagCompletionFunc("presence", cobra.FixedCompletions([]string{"present", "absent", "never"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(columns, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("filter", completeFilter)
	return cmd
}

// things reads all pages of a list.
func (c *client) things(ctx context.Context, query url.Values) ([]registry.Thing, error) {
	all := []registry.Thing{}
	for {
		var page []registry.Thing
		head, err := c.do(ctx, http.MethodGet, "/v1/things?"+query.Encode(), nil, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		after := nextAfter(head.Get("Link"))
		if len(page) == 0 || after == "" {
			return all, nil
		}
		query.Set("after", after)
	}
}

func (a *app) robotsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show THING", Short: "Show what a robot last said of itself", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl robots show vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			var th registry.Thing
			if err := a.do(cmd, http.MethodGet, "/v1/things/"+string(id), nil, &th); err != nil {
				return err
			}
			return cli.Print(cmd, th, func(t *cli.Table) { showThing(t, th) })
		},
	}
}

func showThing(t *cli.Table, th registry.Thing) {
	t.Row("thing", th.ID)
	t.Row("presence", strings.TrimSpace(string(th.Presence)+" "+since(th.Since)))
	t.Row("last seen", ago(th.LastSeen))
	t.Row("registered", ago(th.Created))
	m := th.Status
	if m == nil {
		t.Row("status", "none yet; kennelctl doctor "+string(th.ID)+" says why")
		return
	}
	t.Row("agent", m.Agent)
	t.Row("release", m.OS)
	t.Row("boot", m.BootID)
	t.Row("up for", (time.Duration(m.UptimeMS) * time.Millisecond).Round(time.Second))
	t.Row("clock", (time.Duration(th.ClockMS)*time.Millisecond).String()+" from the cloud's")
	if b := m.Body; b != nil {
		t.Section("Body")
		t.Row("model", b.Model)
		t.Row("firmware", b.Firmware)
		t.Row("battery", battery(th))
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
		t.Row("steps", l.Steps)
		t.Row("missed periods", l.Missed)
		t.Row("lateness", fmt.Sprintf("p50 %s, p99 %s, p99.9 %s, worst %s", micros(l.LateP50), micros(l.LateP99), micros(l.LateP999), micros(l.LateMax)))
		t.Row("step time", fmt.Sprintf("p50 %s, p99 %s, worst %s", micros(l.StepP50), micros(l.StepP99), micros(l.StepMax)))
		t.Row("late, long", fmt.Sprintf("%d started more than 10 ms late, %d took more than 5 ms", l.Late, l.Long))
		t.Row("scheduling", map[bool]string{true: "real-time (FIFO)", false: "ordinary"}[l.FIFO])
		t.Row("dropped", fmt.Sprintf("%d messages to slow processes", l.Dropped))
	}
	if len(m.Docs) > 0 {
		t.Section("Documents on the robot")
		for _, doc := range slices.Sorted(maps.Keys(m.Docs)) {
			state := ""
			if slices.Contains(m.Dirty, doc) {
				state = "changed there, not yet taken by the cloud"
			}
			t.Row(doc, "version "+fmt.Sprint(m.Docs[doc]), state)
		}
	}
	if s := m.Spool; s != nil {
		t.Section("Events on the robot")
		t.Row("waiting", fmt.Sprintf("%d (%d kB)", s.Events, (s.Bytes+1023)/1024))
		t.Row("dropped", s.Dropped)
		t.Row("refused", s.Quarantined)
	}
	if len(th.Problems) > 0 {
		t.Section("Problems")
		for _, p := range th.Problems {
			t.Text(p.String())
		}
	}
}

func (a *app) robotsRegister() *cobra.Command {
	var file, out string
	cmd := &cobra.Command{
		Use: "register [THING]", Short: "Make a robot known and print its claim secret, or all robots of a file", Args: cobra.MaximumNArgs(1),
		Long: "The secret is shown only once. The robot exchanges it for a certificate when it first connects; after that the secret is worthless.\n" +
			"A robot that has not used its secret can be registered again: the new secret replaces the old one, which no longer works.\n\n" +
			"A file has a robot a line, thing[,secret-hash][,...], or a first line that names its columns thing and secret_hash; the hash is the SHA-256 of a\n" +
			"secret that the robot has already. All are registered, or none.",
		Example: "  kennelctl robots register vic:00e20100\n  kennelctl robots register vic:00e20100 -o json\n  kennelctl robots register -csv delivery.csv -out secrets.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (file != "") == (len(args) == 1) {
				return cli.Usage("want either one THING or -csv FILE")
			}
			if file != "" {
				return a.registerCSV(cmd, file, out)
			}
			if out != "" {
				return cli.Usage("-out is for -csv")
			}
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			var answer struct {
				Thing  thing.ID `json:"thing"`
				Secret string   `json:"secret"`
			}
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/things", map[string]string{"thing": string(id)}, &answer); err != nil {
				return err
			}
			return cli.Print(cmd, answer, func(t *cli.Table) {
				t.Row("thing", answer.Thing)
				t.Row("secret", answer.Secret)
				t.Text("This secret is shown only once. Earlier secrets of this robot no longer work.")
			})
		},
	}
	cmd.Flags().StringVar(&file, "csv", "", "register the robots in `FILE`; - is standard input")
	cmd.Flags().StringVar(&out, "out", "", "write the secrets to a new `FILE`, mode 0600, instead of printing them")
	_ = cmd.MarkFlagFilename("csv", "csv")
	return cmd
}

func parseThing(s string) (thing.ID, error) {
	id, err := thing.Parse(s)
	if err != nil {
		return "", errs.New(errs.Invalid, "%w", err)
	}
	return id, nil
}

// completeThing offers the thing ids that begin with what is typed.
func (a *app) completeThing(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	c, err := a.client(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var page []registry.Thing
	if _, err := c.do(ctx, http.MethodGet, "/v1/things?"+url.Values{"q": {typed}, "limit": {"50"}}.Encode(), nil, &page); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, th := range page {
		if strings.HasPrefix(string(th.ID), typed) {
			// A colon ends a word for bash; its completion scripts deal with that themselves.
			out = append(out, string(th.ID)+"\t"+string(th.Presence))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// field is a cell that only a robot that said something has.
func field(th registry.Thing, f func() string) string {
	if th.Status == nil {
		return ""
	}
	return f()
}

func battery(th registry.Thing) string {
	if th.Status == nil || th.Status.Body == nil || th.Status.Body.BatteryVolts <= 0 { // a body that is not heard measured nothing
		return ""
	}
	b := th.Status.Body
	s := fmt.Sprintf("%s %.2f V", cmp.Or(b.BatteryLevel, "unknown"), b.BatteryVolts)
	switch {
	case b.Charging:
		s += ", charging"
	case b.OnCharger:
		s += ", on charger"
	}
	return s
}

func lateness(th registry.Thing) string {
	if th.Status == nil || th.Status.Loop == nil {
		return ""
	}
	return micros(th.Status.Loop.LateP99)
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

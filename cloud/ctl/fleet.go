package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/bulk"
	"kennel/cloud/bulk/bulkapi"
	"kennel/cloud/cohort"
	"kennel/cloud/cohort/cohortapi"
	"kennel/cloud/registry"
	"kennel/cloud/registry/filter"
	"kennel/cloud/registry/registryapi"
	wire "kennel/infra/api/commands"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/jdocs"
)

// filterHelp explains the language of filters where it is used.
const filterHelp = "FILTER is one or more terms with spaces between them; a robot must match all of them. A term is a word (part of an id, name, tag,\n" +
	"version or model) or key:value. A - before a term excludes what it matches; values with commas between them are alternatives.\n" +
	"Keys: presence, species, id, version, agent, body, model, tag, cohort, battery (volts, or low, nominal, full), problem, cert, seen, since,\n" +
	"created, loop, name, owner.\n" +
	"Examples: presence:absent seen:>3d   version:<2.1 -tag:lab   battery:<3.6   cert:<7d   problem:any   cohort:beta\n" +
	"Quote a filter: the shell has its own use for < and >."

// filterOf reads the filter of a command line, so that a mistake in it is reported before the cloud is asked.
func filterOf(args ...string) (filter.Filter, error) {
	return filter.Parse(strings.Join(args, " "))
}

// completeFilter offers the keys, and the words that a key knows.
func completeFilter(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	head, last := "", typed
	if i := strings.LastIndexByte(typed, ' '); i >= 0 {
		head, last = typed[:i+1], typed[i+1:]
	}
	if bare, not := strings.CutPrefix(last, "-"); not {
		head, last = head+"-", bare
	}
	var out []string
	if key, _, ok := strings.Cut(last, ":"); ok {
		for _, v := range filter.Choices(filter.Key(key)) {
			if word := key + ":" + v; strings.HasPrefix(word, last) {
				out = append(out, head+word)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	for _, k := range filter.Keys {
		if strings.HasPrefix(string(k), last) {
			out = append(out, head+string(k)+":")
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// nextAfter returns the cursor of the page that a Link header leads to; "" if there is none.
func nextAfter(link string) string {
	target, rel, _ := strings.Cut(link, ">")
	if !strings.Contains(rel, `rel="next"`) {
		return ""
	}
	u, err := url.Parse(strings.TrimPrefix(target, "<"))
	if err != nil {
		return ""
	}
	return u.Query().Get("after")
}

// download copies a stream of the API to w.
func (c *client) download(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return errs.New(errs.Unavailable, "%s broke off; what came so far is not all: %w", path, err)
	}
	return nil
}

func (a *app) robotsCounts() *cobra.Command {
	return &cobra.Command{
		Use: "counts [FILTER]", Short: "Count robots by presence, version, species, problem and tag", Long: filterHelp,
		Example:           "  kennelctl robots counts\n  kennelctl robots counts \"presence:absent species:vic\"",
		ValidArgsFunction: completeFilter,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := filterOf(args...)
			if err != nil {
				return err
			}
			return mine(a, cmd, http.MethodGet, "/v1/fleet/counts?"+url.Values{"filter": {f.String()}}.Encode(), nil, func(t *cli.Table, n registry.Counts) {
				t.Row("robots", n.Total)
				for _, g := range []struct {
					name string
					list []registry.Bucket
				}{{"Presence", n.Presence}, {"Species", n.Species}, {"Release", n.Version}, {"Agent", n.Agent}, {"Firmware", n.Body}, {"Battery", n.Battery}, {"Loop", n.Loop},
					{"Problem", n.Problem}, {"Tag", n.Tag}} {
					if len(g.list) == 0 {
						continue
					}
					t.Section(g.name)
					for _, b := range g.list {
						t.Row(b.Value, b.Count)
					}
				}
			})
		},
	}
}

func (a *app) robotsTag() *cobra.Command {
	cmd := &cobra.Command{Use: "tag", Short: "Tag a robot; of many at once: robots bulk tag",
		Example: "  kennelctl robots tag add vic:00e20100 lab demo\n  kennelctl robots tag remove vic:00e20100 demo"}
	one := func(use, short, example string, body func([]string) registryapi.TagsRequest) *cobra.Command {
		return &cobra.Command{
			Use: use + " THING TAG...", Short: short, Args: cobra.MinimumNArgs(2), ValidArgsFunction: a.completeThing, Example: example,
			Long: "A tag is 1 to 32 lower-case letters, digits, and . _ - within. A robot has at most 32.",
			RunE: func(cmd *cobra.Command, args []string) error {
				id, err := parseThing(args[0])
				if err != nil {
					return err
				}
				return mine(a, cmd, http.MethodPatch, "/v1/things/"+string(id)+"/tags", body(args[1:]), func(t *cli.Table, tags registryapi.Tags) {
					t.Row(tags.Thing, strings.Join(tags.Tags, " "))
				})
			},
		}
	}
	cmd.AddCommand(
		one("add", "Add tags to a robot", "  kennelctl robots tag add vic:00e20100 lab demo", func(t []string) registryapi.TagsRequest { return registryapi.TagsRequest{Add: t} }),
		one("remove", "Remove tags from a robot", "  kennelctl robots tag remove vic:00e20100 demo", func(t []string) registryapi.TagsRequest { return registryapi.TagsRequest{Remove: t} }))
	return cmd
}

func (a *app) cohorts() *cobra.Command {
	cmd := &cobra.Command{Use: "cohorts", Short: "Filters with a name, for other filters and for rollouts",
		Example: "  kennelctl cohorts list\n  kennelctl cohorts create old-labs \"version:<2.1 tag:lab\"\n  kennelctl robots list cohort:old-labs"}
	cmd.AddCommand(a.cohortsList(), a.cohortsCreate(), a.cohortsChange(), a.cohortsShow(), a.cohortsDelete())
	return cmd
}

func showCohort(t *cli.Table, c cohort.Cohort) {
	t.Row("cohort", c.Name)
	t.Row("filter", c.Filter)
	t.Row("note", c.Note)
	t.Row("by", c.By)
	t.Row("changed", ago(c.Changed))
	t.Row("revision", c.Rev)
}

func (a *app) cohortsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List cohorts", Args: cobra.NoArgs, Example: "  kennelctl cohorts list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/cohorts", nil, func(t *cli.Table, list []cohort.Cohort) {
				t.Row("COHORT", "FILTER", "BY", "CHANGED", "NOTE")
				for _, c := range list {
					t.Row(c.Name, c.Filter, c.By, ago(c.Changed), c.Note)
				}
			})
		},
	}
}

func (a *app) cohortsCreate() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "create COHORT FILTER", Short: "Save a filter under a name", Args: cobra.MinimumNArgs(2), Long: filterHelp,
		Example: "  kennelctl cohorts create beta tag:beta -note \"owners who asked for it\"\n  kennelctl cohorts create old \"version:<2.1 species:vic\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := filterOf(args[1:]...)
			if err != nil {
				return err
			}
			return mine(a, cmd, http.MethodPost, "/v1/cohorts", cohortapi.Request{Name: args[0], Filter: f.String(), Note: note}, showCohort)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what it is for, in `WORDS`")
	return cmd
}

func (a *app) cohortsChange() *cobra.Command {
	var note string
	var rev int64
	cmd := &cobra.Command{
		Use: "change COHORT FILTER", Short: "Give a cohort another filter, or make it", Args: cobra.MinimumNArgs(2), Long: filterHelp, ValidArgsFunction: a.completeCohort,
		Example: "  kennelctl cohorts change beta \"tag:beta species:vic\"\n  kennelctl cohorts change beta tag:beta -rev 3",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := filterOf(args[1:]...)
			if err != nil {
				return err
			}
			return mine(a, cmd, http.MethodPut, "/v1/cohorts/"+url.PathEscape(args[0]), cohortapi.Request{Filter: f.String(), Note: note, Rev: rev}, showCohort)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what it is for, in `WORDS`")
	cmd.Flags().Int64Var(&rev, "rev", 0, "only if it still has revision `N`")
	return cmd
}

func (a *app) cohortsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show COHORT", Short: "Show a cohort and how many robots it has now", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeCohort,
		Example: "  kennelctl cohorts show beta",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/cohorts/"+url.PathEscape(args[0]), nil, func(t *cli.Table, c cohortapi.Counted) {
				showCohort(t, c.Cohort)
				t.Row("robots", c.Robots)
			})
		},
	}
}

func (a *app) cohortsDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete COHORT", Short: "Delete a cohort; its robots stay", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeCohort,
		Long:    "Delete a cohort, after asking. Its robots stay, with their tags. Filters that name the cohort become errors.",
		Example: "  kennelctl cohorts delete beta\n  kennelctl cohorts delete beta -yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				if err := confirm(cmd, "Delete cohort "+args[0]+"?"); err != nil {
					return err
				}
			}
			return a.order(cmd, http.MethodDelete, "/v1/cohorts/"+url.PathEscape(args[0]), nil, nil, func() string { return "cohort " + args[0] + " is deleted" })
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return cmd
}

// confirm asks a question on standard error. Its error is Invalid if the answer is not yes.
func confirm(cmd *cobra.Command, question string) error {
	if _, err := io.WriteString(cmd.ErrOrStderr(), cli.Clean(question+" [y/N] ")); err != nil {
		return err
	}
	var answer string
	if _, err := fmt.Fscanln(cmd.InOrStdin(), &answer); err != nil || !slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
		return errs.New(errs.Invalid, "not confirmed; nothing was done (-yes skips the question)")
	}
	return nil
}

func (a *app) completeCohort(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return completeFilter(cmd, args, typed)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	c, err := a.client(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []cohort.Cohort
	if _, err := c.do(ctx, http.MethodGet, "/v1/cohorts", nil, &all); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, c := range all {
		if strings.HasPrefix(c.Name, typed) {
			out = append(out, c.Name+"\t"+c.Filter.String())
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// bulkFlags are what all bulk commands have.
type bulkFlags struct {
	yes, dryRun, noWait bool
	key                 string
	things              []string
}

func (b *bulkFlags) add(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.BoolVar(&b.yes, "yes", false, "start without asking")
	f.BoolVar(&b.dryRun, "dry-run", false, "only say what would be done, and to how many")
	f.BoolVar(&b.noWait, "no-wait", false, "do not wait for the end")
	f.StringVar(&b.key, "key", "", "`WORD` of yours: the same key again is the same job, not a second one")
	f.StringSliceVar(&b.things, "thing", nil, "`THING` instead of a filter (then \"\"); may be repeated")
	return cmd
}

func (a *app) robotsBulk() *cobra.Command {
	cmd := &cobra.Command{Use: "bulk", Short: "Do one thing to many robots",
		Long: "Each of tag, send, set and cohort says first what it would do and to how many robots, asks, and then shows how far it is.\n" +
			"The robots are fixed when the job begins. Those that are offline get commands and settings when they are back.\n\n" + filterHelp,
		Example: "  kennelctl robots bulk tag \"version:<2.1\" -add old\n  kennelctl robots bulk set tag:lab master_volume=2 -dry-run\n  kennelctl robots bulk list"}
	cmd.AddCommand(a.bulkTag(), a.bulkSend(), a.bulkSet(), a.bulkCohort(), a.bulkList(), a.bulkShow(), a.bulkResults(), a.bulkCancel())
	return cmd
}

func (a *app) bulkTag() *cobra.Command {
	var b bulkFlags
	var add, remove []string
	cmd := &cobra.Command{
		Use: "tag FILTER", Short: "Add and remove tags", Args: cobra.ExactArgs(1), Long: filterHelp, ValidArgsFunction: completeFilter,
		Example: "  kennelctl robots bulk tag \"version:<2.1\" -add old,check\n  kennelctl robots bulk tag tag:old -remove old -yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(add)+len(remove) == 0 {
				return cli.Usage("want -add TAG or -remove TAG")
			}
			return a.bulk(cmd, &b, args[0], bulk.Action{Kind: bulk.Tag, Add: add, Remove: remove})
		},
	}
	cmd.Flags().StringSliceVar(&add, "add", nil, "`TAG` to add; may be repeated")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "`TAG` to remove; may be repeated")
	return b.add(cmd)
}

func (a *app) bulkSend() *cobra.Command {
	var b bulkFlags
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "send FILTER KIND [KEY=VALUE...]", Short: "Give each robot a command", Args: cobra.MinimumNArgs(2), Long: filterHelp,
		Example: "  kennelctl robots bulk send \"presence:present tag:lab\" ping\n  kennelctl robots bulk send problem:documents sync -ttl 24h",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return wire.Kinds(), cobra.ShellCompDirectiveNoFileComp
			}
			return completeFilter(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := parseSet(args[2:])
			if err != nil {
				return err
			}
			raw, err := json.Marshal(set)
			if err != nil {
				return err
			}
			return a.bulk(cmd, &b, args[0], bulk.Action{Kind: bulk.Command, Command: args[1], Args: raw, ExpiresInMS: ttl.Milliseconds()})
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long a robot may take to begin, such as 10m")
	return b.add(cmd)
}

func (a *app) bulkSet() *cobra.Command {
	var b bulkFlags
	var force bool
	cmd := &cobra.Command{
		Use: "set FILTER KEY=VALUE...", Short: "Set settings (vic.RobotSettings)", Args: cobra.MinimumNArgs(2), Long: filterHelp,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return completeField(jdocs.RobotSettings, typed)
			}
			return completeFilter(cmd, args, typed)
		},
		Example: "  kennelctl robots bulk set tag:lab master_volume=2\n  kennelctl robots bulk set \"species:vic presence:present\" time_zone=Europe/Berlin -yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := parseSet(args[1:])
			if err != nil {
				return err
			}
			return a.bulk(cmd, &b, args[0], bulk.Action{Kind: bulk.Set, Fields: set, Force: force})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "set fields that no known software reads")
	return b.add(cmd)
}

func (a *app) bulkCohort() *cobra.Command {
	var b bulkFlags
	cmd := &cobra.Command{
		Use: "cohort FILTER COHORT", Short: "Put robots into a cohort that is chosen by a tag", Args: cobra.ExactArgs(2), Long: filterHelp, ValidArgsFunction: completeFilter,
		Example: "  kennelctl robots bulk cohort \"id:vic:00e20100,vic:00e20101\" beta",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bulk(cmd, &b, args[0], bulk.Action{Kind: bulk.Cohort, Cohort: args[1]})
		},
	}
	return b.add(cmd)
}

// lookEvery is how often a job is asked how far it is.
const lookEvery = 500 * time.Millisecond

// bulk previews, asks, starts and follows a job.
func (a *app) bulk(cmd *cobra.Command, b *bulkFlags, text string, action bulk.Action) error {
	ctx := cmd.Context()
	req := bulkapi.Request{Action: action, Key: b.key}
	if len(b.things) > 0 {
		if text != "" {
			return cli.Usage("want either a filter or -thing; with -thing, the filter is \"\"")
		}
		for _, s := range b.things {
			id, err := parseThing(s)
			if err != nil {
				return err
			}
			req.Things = append(req.Things, id)
		}
	} else {
		f, err := filterOf(text)
		if err != nil {
			return err
		}
		s := f.String()
		req.Filter = &s
	}
	c, err := a.client(ctx)
	if err != nil {
		return err
	}
	var p bulk.Preview
	if _, err := c.do(ctx, http.MethodPost, "/v1/bulk/preview", req, &p); err != nil {
		return err
	}
	if b.dryRun || p.Count == 0 {
		return cli.Print(cmd, p, func(t *cli.Table) { showPreview(t, p) })
	}
	if !b.yes {
		names := make([]string, len(p.Sample))
		for i, id := range p.Sample {
			names[i] = string(id)
		}
		if p.Count > len(p.Sample) {
			names = append(names, "...")
		}
		if err := confirm(cmd, fmt.Sprintf("%s: %d robots (%s). Continue?", p.Text, p.Count, strings.Join(names, ", "))); err != nil {
			return err
		}
	}
	req.Expect = &p.Count
	var j bulk.Job
	if _, err := c.do(ctx, http.MethodPost, "/v1/bulk", req, &j); err != nil {
		return err
	}
	shown := ""
	for !b.noWait && j.State == bulk.Running {
		if line := fmt.Sprintf("%s: %d of %d, %d failed", j.ID, j.Total-j.Open, j.Total, j.Failed); line != shown && !cli.JSON(cmd) {
			shown = line
			if _, err := fmt.Fprintln(cmd.ErrOrStderr(), line); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
		if _, err := c.do(ctx, http.MethodGet, "/v1/bulk/"+j.ID, nil, &j); err != nil {
			return err
		}
	}
	if err := cli.Print(cmd, j, func(t *cli.Table) { showJob(t, j) }); err != nil {
		return err
	}
	if j.Failed > 0 {
		return errs.New(errs.Internal, "%d robots failed: kennelctl robots bulk results %s -state failed", j.Failed, j.ID)
	}
	return nil
}

func showPreview(t *cli.Table, p bulk.Preview) {
	t.Row("would", p.Text)
	t.Row("robots", p.Count)
	for _, id := range p.Sample {
		t.Row("", id)
	}
}

func showJob(t *cli.Table, j bulk.Job) {
	t.Row("job", j.ID)
	t.Row("does", j.Text)
	t.Row("to", j.Filter)
	state, done, then := string(j.State), "done", ""
	switch j.Action.Kind { // when the job ends, the robots have yet to act
	case bulk.Command:
		done, then = "stored", "; kennelctl commands list THING shows what each robot did"
	case bulk.Set:
		done, then = "stored", "; each robot takes the settings when it is connected"
	}
	if j.State == bulk.Done {
		state = done
	}
	t.Row("state", state+then)
	t.Row("begun", ago(j.Created)+" by "+j.By)
	if j.Closed != nil {
		t.Row("ended", ago(*j.Closed))
	}
	t.Row("robots", fmt.Sprintf("%d: %d %s, %d failed, %d open, %d dropped", j.Total, j.Done, done, j.Failed, j.Open, j.Dropped))
}

func (a *app) bulkList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List jobs, the newest first", Args: cobra.NoArgs, Example: "  kennelctl robots bulk list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/bulk", nil, func(t *cli.Table, list []bulk.Job) {
				t.Row("JOB", "DOES", "STATE", "ROBOTS", "FAILED", "BEGUN", "BY")
				for _, j := range list {
					t.Row(j.ID, j.Text, j.State, fmt.Sprintf("%d/%d", j.Total-j.Open, j.Total), j.Failed, ago(j.Created), j.By)
				}
			})
		},
	}
}

func (a *app) bulkShow() *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "Show a job and how far it is", Args: cobra.ExactArgs(1), Example: "  kennelctl robots bulk show 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine(a, cmd, http.MethodGet, "/v1/bulk/"+url.PathEscape(args[0]), nil, showJob)
		},
	}
}

func (a *app) bulkResults() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "results JOB", Short: "Show what became of each robot", Args: cobra.ExactArgs(1),
		Example: "  kennelctl robots bulk results 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11 -state failed",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			query := url.Values{"limit": {"1000"}}
			if state != "" {
				query.Set("state", state)
			}
			all := []bulk.Result{}
			for {
				var page []bulk.Result
				head, err := c.do(cmd.Context(), http.MethodGet, "/v1/bulk/"+url.PathEscape(args[0])+"/results?"+query.Encode(), nil, &page)
				if err != nil {
					return err
				}
				all = append(all, page...)
				after := nextAfter(head.Get("Link"))
				if len(page) == 0 || after == "" {
					break
				}
				query.Set("after", after)
			}
			return cli.Print(cmd, all, func(t *cli.Table) {
				t.Row("THING", "STATE", "AT", "RESULT")
				for _, r := range all {
					var when time.Time
					if r.At != nil {
						when = *r.At
					}
					t.Row(r.Thing, r.State, ago(when), r.Detail)
				}
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those that are `open, done, failed or dropped`")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"open", "done", "failed", "dropped"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) bulkCancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel JOB", Short: "End a job; what was not done yet is dropped", Args: cobra.ExactArgs(1), Example: "  kennelctl robots bulk cancel 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine(a, cmd, http.MethodPost, "/v1/bulk/"+url.PathEscape(args[0])+"/cancel", nil, showJob)
		},
	}
}

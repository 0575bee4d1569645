package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/api/commandwire"
	"kennel/infra/backoff"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/jdocs"
)

// lookEvery is the interval between two questions for the progress of a job.
const lookEvery = 500 * time.Millisecond

// anID is an id for examples.
const anID = "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11"

// bulkFlags are the flags of all bulk commands.
type bulkFlags struct {
	yes, dryRun, noWait bool
	key                 string
	things              []string
}

func (a *app) robotsBulk() *cobra.Command {
	return group(&cobra.Command{Use: "bulk", Short: "Change many robots at once",
		Long: "tag, send, set and cohort first show what they would do to how many robots, ask for confirmation, then show progress.\n" +
			"The robots are chosen when the job starts. Offline robots get commands and settings when they are back.\n\n" + filterHelp,
		Example: "  kennelctl robots bulk tag \"version:<2.1\" -add old\n  kennelctl robots bulk set tag:lab master_volume=2 -dry-run\n" +
			"  kennelctl robots bulk list"},
		a.bulkTag(), a.bulkSend(), a.bulkSet(),
		a.bulk(describe("cohort FILTER COHORT", "Put robots into a cohort whose filter is a tag",
			"robots bulk cohort \"id:vic:00e20100,vic:00e20101\" beta"),
			func(args []string) (client.Action, error) { return client.Action{Kind: "cohort", Cohort: args[1]}, nil }),
		shows(a, describe("list", "List jobs, the newest first", "robots bulk list"),
			func(ctx context.Context, _ []string) (reply[[]client.Job], error) {
				return a.api.GetBulk(ctx, client.GetBulkQuery{})
			},
			rows("JOB|ACTION|STATE|ROBOTS|FAILED|STARTED|BY", func(j client.Job) cells {
				return cells{j.Job, j.Text, doneIs(j, j.State), fmt.Sprintf("%d/%d", j.Total-j.Open, j.Total), j.Failed, j.Created, j.By}
			})),
		shows(a, describe("show JOB", "Show a job and its progress", "robots bulk show "+anID), first(a.api.GetBulkID), showJob),
		a.bulkResults(),
		shows(a, describe("cancel JOB", "Cancel a job; robots still open are skipped", "robots bulk cancel "+anID),
			first(a.api.PostBulkIDCancel), showJob))
}

func (a *app) bulkTag() *cobra.Command {
	var add, remove []string
	cmd := a.bulk(describe("tag FILTER", "Add and remove tags",
		"robots bulk tag \"version:<2.1\" -add old,check", "robots bulk tag tag:old -remove old -yes"),
		func([]string) (client.Action, error) {
			if len(add)+len(remove) == 0 {
				return client.Action{}, cli.Usage("missing -add TAG or -remove TAG")
			}
			return client.Action{Kind: "tag", Add: add, Remove: remove}, nil
		})
	cmd.Flags().StringSliceVar(&add, "add", nil, "`TAG` to add; may be repeated")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "`TAG` to remove; may be repeated")
	return cmd
}

func (a *app) bulkSend() *cobra.Command {
	var ttl time.Duration
	cmd := a.bulk(&cobra.Command{Use: "send FILTER KIND [KEY=VALUE...]", Short: "Send each robot a command",
		Example: "  kennelctl robots bulk send \"presence:online tag:lab\" ping\n  kennelctl robots bulk send problem:documents sync -ttl 24h",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return commandwire.Kinds(), cobra.ShellCompDirectiveNoFileComp
			}
			return completeFilter(cmd, args, typed)
		}},
		func(args []string) (client.Action, error) {
			set, err := parseSet(args[2:])
			if err != nil {
				return client.Action{}, err
			}
			raw, err := json.Marshal(set)
			return client.Action{Kind: "command", Command: args[1], Args: raw, ExpiresInMS: ttl.Milliseconds()}, err
		})
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long a robot may take to start, such as 10m")
	return cmd
}

func (a *app) bulkSet() *cobra.Command {
	var force bool
	cmd := a.bulk(&cobra.Command{Use: "set FILTER KEY=VALUE...", Short: "Change settings",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return completeField(typed, jdocs.Settings()...)
			}
			return completeFilter(cmd, args, typed)
		},
		Example: "  kennelctl robots bulk set tag:lab master_volume=2\n" +
			"  kennelctl robots bulk set \"species:vic presence:online\" time_zone=Europe/Berlin -yes"},
		func(args []string) (client.Action, error) {
			set, err := parseSet(args[1:])
			return client.Action{Kind: "set", Fields: set, Force: force}, err
		})
	cmd.Flags().BoolVar(&force, "force", false, "allow fields that no known software reads")
	return cmd
}

// bulk makes a command that previews an action on robots, asks, starts a job and follows it.
func (a *app) bulk(cmd *cobra.Command, action func(args []string) (client.Action, error)) *cobra.Command {
	var b bulkFlags
	cmd.Long = filterHelp
	a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		act, err := action(args)
		if err != nil {
			return err
		}
		req := client.BulkRequest{Action: act, Key: b.key, Things: b.things}
		if err := b.robots(&req, args[0]); err != nil {
			return err
		}
		return a.bulkRun(cmd, b, req)
	})
	f := cmd.Flags()
	f.BoolVar(&b.yes, "yes", false, "start without asking")
	f.BoolVar(&b.dryRun, "dry-run", false, "show what would be done to how many robots, and stop")
	f.BoolVar(&b.noWait, "no-wait", false, "do not wait until the job ends")
	f.StringVar(&b.key, "key", "", "a `WORD` of your choice: repeating it does not start a second job")
	f.StringSliceVar(&b.things, "thing", nil, "this `THING` instead of a filter (give \"\"); may be repeated")
	return cmd
}

// robots puts into req which robots are meant: those of the flags or those that the filter finds.
func (b bulkFlags) robots(req *client.BulkRequest, text string) error {
	if len(b.things) > 0 && text != "" {
		return cli.Usage("FILTER and -thing exclude each other: with -thing, give \"\" as FILTER")
	}
	for _, s := range b.things {
		if _, err := parseThing(s); err != nil {
			return err
		}
	}
	if len(b.things) > 0 {
		return nil
	}
	f, err := filterOf(text)
	req.Filter = new(f.String())
	return err
}

// bulkRun previews, asks, starts and follows a job.
func (a *app) bulkRun(cmd *cobra.Command, b bulkFlags, req client.BulkRequest) error {
	ctx := cmd.Context()
	preview, err := a.api.PostBulkPreview(ctx, req)
	p := preview.Value
	if err != nil || b.dryRun || p.Count == 0 {
		return show(cmd, preview, err, showPreview)
	}
	if !b.yes {
		names := strings.Join(p.Sample, ", ")
		if p.Count > int64(len(p.Sample)) {
			names += ", ..."
		}
		owned := ""
		if p.Owned > 0 {
			owned = fmt.Sprintf(" This replaces the choice of %s.", cli.Count(p.Owned, "owner"))
		}
		if err := confirm(cmd, fmt.Sprintf("%s: %s (%s).%s Continue?", p.Text, cli.Count(p.Count, "robot"), names, owned)); err != nil {
			return err
		}
	}
	req.Expect = &p.Count
	job, err := a.api.PostBulk(ctx, req)
	shown := ""
	for err == nil && !b.noWait && job.Value.State == "running" {
		j := job.Value
		if line := fmt.Sprintf("%s: %d of %d, %d failed", j.Job, j.Total-j.Open, j.Total, j.Failed); line != shown && !cli.JSON(cmd) {
			shown = line
			if _, err := fmt.Fprintln(cmd.ErrOrStderr(), line); err != nil {
				return err
			}
		}
		if err := backoff.Sleep(ctx, lookEvery); err != nil {
			return err
		}
		job, err = a.api.GetBulkID(ctx, j.Job)
	}
	if err := show(cmd, job, err, showJob); err != nil {
		return err
	}
	if job.Value.Failed > 0 {
		return errs.New(errs.Internal, "%s failed; see kennelctl robots bulk results %s -state failed", cli.Count(job.Value.Failed, "robot"), job.Value.Job)
	}
	return nil
}

func showPreview(t *cli.Table, p client.Preview) {
	pairs(t, "action", p.Text, "robots", p.Count)
	if p.Owned > 0 {
		t.Row("owned", fmt.Sprintf("%d (this replaces their owners' choices)", p.Owned))
	}
	for _, id := range p.Sample {
		t.Row("", id)
	}
}

// doneIs returns a state of a job or of a robot in it; for "done", what that means: the robots have yet to act on what is only stored.
func doneIs(j client.Job, state string) string {
	if state == "done" {
		return j.DoneIs
	}
	return state
}

func showJob(t *cli.Table, j client.Job) {
	then := map[string]string{"command": " (kennelctl commands list THING shows what a robot did)",
		"set": " (each robot takes the settings when it is online)"}[j.Action.Kind]
	pairs(t, "job", j.Job, "action", j.Text, "robots", j.Filter, "state", doneIs(j, j.State)+then, "started", ago(j.Created)+" by "+j.By)
	if !j.Closed.IsZero() {
		pairs(t, "ended", j.Closed)
	}
	t.Row("progress", fmt.Sprintf("%d: %d %s, %d failed, %d open, %d skipped", j.Total, j.Done, j.DoneIs, j.Failed, j.Open, j.Dropped))
}

func (a *app) bulkResults() *cobra.Command {
	var state string
	cmd := a.runs(describe("results JOB", "Show the result for each robot", "robots bulk results "+anID+" -state failed"),
		func(cmd *cobra.Command, args []string) error {
			job, err := a.api.GetBulkID(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			q := client.GetBulkIDResultsQuery{State: given(state), Limit: new(int64(1000))}
			all, err := pages(func(after *string) (reply[[]client.Result], error) {
				q.After = after
				return a.api.GetBulkIDResults(cmd.Context(), args[0], q)
			})
			return show(cmd, all, err, rows("THING|STATE|AT|RESULT", func(r client.Result) cells {
				return cells{r.Thing, doneIs(job.Value, r.State), r.At, r.Detail}
			}))
		})
	cmd.Flags().StringVar(&state, "state", "", "only robots in this `STATE`: open, done, failed or dropped")
	states := cobra.FixedCompletions([]string{"open", "done", "failed", "dropped"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("state", states) // the flag is there
	return cmd
}

package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) cohorts() *cobra.Command {
	return group(describe("cohorts", "Filters with a name, for other filters and for rollouts",
		"cohorts list", "cohorts create old-labs \"version:<2.1 tag:lab\"", "robots list cohort:old-labs"),
		shows(a, describe("list", "List cohorts", "cohorts list"), none(a.api.GetCohorts),
			rows("COHORT|FILTER|BY|CHANGED|NOTE", func(c client.Cohort) cells { return cells{c.Cohort, c.Filter, c.By, c.Changed, c.Note} })),
		a.cohortsCreate(), a.cohortsChange(),
		shows(a, describe("show COHORT", "Show a cohort and how many robots it has now", "cohorts show beta"),
			first(a.api.GetCohortsCohort), func(t *cli.Table, c client.Counted) {
				showCohort(t, client.Cohort{Cohort: c.Cohort, Filter: c.Filter, Note: c.Note, By: c.By, Changed: c.Changed, Rev: c.Rev})
				t.Row("robots", c.Robots)
			}),
		a.cohortsDelete())
}

func showCohort(t *cli.Table, c client.Cohort) {
	pairs(t, "cohort", c.Cohort, "filter", c.Filter, "note", c.Note, "by", c.By, "changed", c.Changed, "revision", c.Rev)
}

func (a *app) cohortsCreate() *cobra.Command {
	return a.cohortsSave(&cobra.Command{Use: "create COHORT FILTER", Short: "Save a filter under a name", ValidArgsFunction: cobra.NoFileCompletions,
		Example: "  kennelctl cohorts create beta tag:beta -note \"owners who asked for it\"\n" +
			"  kennelctl cohorts create old \"version:<2.1 species:vic\""},
		func(ctx context.Context, name string, in client.Request) (reply[client.Cohort], error) {
			in.Cohort = name
			return a.api.PostCohorts(ctx, in)
		})
}

func (a *app) cohortsChange() *cobra.Command {
	var rev int64
	cmd := a.cohortsSave(describe("change COHORT FILTER", "Give a cohort another filter, or make it", "cohorts change beta \"tag:beta species:vic\"",
		"cohorts change beta tag:beta -rev 3"),
		func(ctx context.Context, name string, in client.Request) (reply[client.Cohort], error) {
			in.Rev = rev
			return a.api.PutCohortsCohort(ctx, name, in)
		})
	cmd.Flags().Int64Var(&rev, "rev", 0, "only if it still has revision `N`")
	return cmd
}

// cohortsSave makes a command that saves a filter of any number of words, with a note.
func (a *app) cohortsSave(cmd *cobra.Command,
	save func(ctx context.Context, name string, in client.Request) (reply[client.Cohort], error)) *cobra.Command {
	cmd.Args, cmd.Long = cobra.MinimumNArgs(2), filterHelp
	note := cmd.Flags().String("note", "", "what it is for, in `WORDS`")
	return shows(a, cmd, func(ctx context.Context, args []string) (r reply[client.Cohort], err error) {
		f, err := filterOf(args[1:]...)
		if err != nil {
			return r, err
		}
		return save(ctx, args[0], client.Request{Filter: f.String(), Note: *note})
	}, showCohort)
}

func (a *app) cohortsDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{Use: "delete COHORT", Short: "Delete a cohort; its robots stay",
		Long:    "Delete a cohort, after asking. Its robots stay, with their tags. Filters that name the cohort become errors.",
		Example: "  kennelctl cohorts delete beta\n  kennelctl cohorts delete beta -yes"}
	does(a, cmd, func(ctx context.Context, args []string) (r reply[client.None], err error) {
		if !yes {
			if err := confirm(cmd, "Delete cohort "+args[0]+"?"); err != nil {
				return r, err
			}
		}
		return a.api.DeleteCohortsCohort(ctx, args[0])
	}, said[client.None]("cohort %s is deleted"))
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
	return offers(cmd, args, typed, none(a.api.GetCohorts), func(c client.Cohort) (string, string) { return c.Cohort, c.Filter })
}

// filterHelp explains the language of filters where it is used.
const filterHelp = "" +
	"FILTER is one or more terms with spaces between them; a robot must match all of them. A term is a word (part of an id, name, tag,\n" +
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

func (a *app) robotsCounts() *cobra.Command {
	return shows(a, &cobra.Command{Use: "counts [FILTER]", Short: "Count robots by presence, version, species, problem and tag",
		Long: filterHelp, Args: cobra.ArbitraryArgs,
		Example:           "  kennelctl robots counts\n  kennelctl robots counts \"presence:absent species:vic\"",
		ValidArgsFunction: completeFilter},
		func(ctx context.Context, args []string) (r reply[client.Counts], err error) {
			f, err := filterOf(args...)
			if err != nil {
				return r, err
			}
			return a.api.GetFleetCounts(ctx, client.GetFleetCountsQuery{Filter: new(f.String())})
		}, func(t *cli.Table, n client.Counts) {
			t.Row("robots", n.Total)
			for _, g := range []struct {
				name string
				list []client.Bucket
			}{{"Presence", n.Presence}, {"Species", n.Species}, {"Release", n.Version}, {"Agent", n.Agent}, {"Firmware", n.Body},
				{"Battery", n.Battery}, {"Loop", n.Loop}, {"Problem", n.Problem}, {"Tag", n.Tag}} {
				if len(g.list) > 0 {
					t.Section(g.name)
				}
				for _, b := range g.list {
					t.Row(b.Value, b.Count)
				}
			}
		})
}

func (a *app) robotsTag() *cobra.Command {
	one := func(word, short, example string, body func([]string) client.TagsRequest) *cobra.Command {
		return shows(a, &cobra.Command{Use: word + " THING TAG...", Short: short, Example: "  kennelctl robots tag " + word + " vic:00e20100 " + example,
			Long: "A tag is 1 to 32 lower-case letters, digits, and . _ - within. A robot has at most 32."},
			func(ctx context.Context, args []string) (reply[client.Tags], error) {
				return a.api.PatchThingsThingTags(ctx, args[0], body(args[1:]))
			},
			func(t *cli.Table, tags client.Tags) { t.Row(tags.Thing, strings.Join(tags.Tags, " ")) })
	}
	return group(describe("tag", "Tag a robot; of many at once: robots bulk tag",
		"robots tag add vic:00e20100 lab demo", "robots tag remove vic:00e20100 demo"),
		one("add", "Add tags to a robot", "lab demo", func(tags []string) client.TagsRequest { return client.TagsRequest{Add: tags} }),
		one("remove", "Remove tags from a robot", "demo", func(tags []string) client.TagsRequest { return client.TagsRequest{Remove: tags} }))
}

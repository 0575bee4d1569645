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
	return describe("cohorts", "Manage cohorts: saved filters for rollouts and other filters",
		"cohorts list", "cohorts create old-labs \"version:<2.1 tag:lab\"", "robots list cohort:old-labs")
}

// confirm asks a question on standard error. Its error is Invalid if the answer is not yes.
func confirm(cmd *cobra.Command, question string) error {
	if _, err := io.WriteString(cmd.ErrOrStderr(), cli.Clean(question+" [y/N] ")); err != nil {
		return err
	}
	var answer string
	if _, err := fmt.Fscanln(cmd.InOrStdin(), &answer); err != nil || !slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
		return errs.New(errs.Invalid, "not confirmed: nothing was done (-yes skips the question)")
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
	"FILTER is one or more terms separated by spaces; a robot must match them all. A term is a word (part of an id, name, tag, version or\n" +
	"model) or key:value. Commas separate alternative values. A leading - excludes what the term matches.\n" +
	"Keys: presence, species, id, version, agent, body, model, tag, cohort, battery (volts, or low, nominal, full), problem, cert, seen, since,\n" +
	"created, loop, name, owner.\n" +
	"Examples: presence:offline seen:>3d   version:<2.1 -tag:lab   battery:<3.6   cert:<7d   problem:any   cohort:beta\n" +
	"Quote a filter, because the shell interprets < and >."

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
		Example:           "  kennelctl robots counts\n  kennelctl robots counts \"presence:offline species:vic\"",
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
	return describe("tag", "Tag a robot (many at once: robots bulk tag)",
		"robots tag add vic:00e20100 lab demo", "robots tag remove vic:00e20100 demo")
}

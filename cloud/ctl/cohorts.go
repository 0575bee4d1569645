package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) cohorts() *cobra.Command {
	return group(&cobra.Command{Use: "cohorts", Short: "Filters with a name, for other filters and for rollouts",
		Example: "  kennelctl cohorts list\n  kennelctl cohorts create old-labs \"version:<2.1 tag:lab\"\n  kennelctl robots list cohort:old-labs"},
		shows(a, &cobra.Command{Use: "list", Short: "List cohorts", Example: "  kennelctl cohorts list"}, none(a.api.GetCohorts),
			rows("COHORT|FILTER|BY|CHANGED|NOTE", func(c client.Cohort) cells { return cells{c.Cohort, c.Filter, c.By, c.Changed, c.Note} })),
		a.cohortsCreate(), a.cohortsChange(),
		shows(a, &cobra.Command{Use: "show COHORT", Short: "Show a cohort and how many robots it has now", Example: "  kennelctl cohorts show beta"},
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
	var note string
	cmd := shows(a, &cobra.Command{Use: "create COHORT FILTER", Short: "Save a filter under a name", Args: cobra.MinimumNArgs(2), Long: filterHelp,
		ValidArgsFunction: cobra.NoFileCompletions,
		Example:           "  kennelctl cohorts create beta tag:beta -note \"owners who asked for it\"\n  kennelctl cohorts create old \"version:<2.1 species:vic\""},
		func(ctx context.Context, args []string) (r reply[client.Cohort], err error) {
			f, err := filterOf(args[1:]...)
			if err != nil {
				return r, err
			}
			return a.api.PostCohorts(ctx, client.Request{Cohort: args[0], Filter: f.String(), Note: note})
		}, showCohort)
	cmd.Flags().StringVar(&note, "note", "", "what it is for, in `WORDS`")
	return cmd
}

func (a *app) cohortsChange() *cobra.Command {
	var note string
	var rev int64
	cmd := shows(a, &cobra.Command{Use: "change COHORT FILTER", Short: "Give a cohort another filter, or make it", Args: cobra.MinimumNArgs(2), Long: filterHelp,
		Example: "  kennelctl cohorts change beta \"tag:beta species:vic\"\n  kennelctl cohorts change beta tag:beta -rev 3"},
		func(ctx context.Context, args []string) (r reply[client.Cohort], err error) {
			f, err := filterOf(args[1:]...)
			if err != nil {
				return r, err
			}
			return a.api.PutCohortsCohort(ctx, args[0], client.Request{Filter: f.String(), Note: note, Rev: rev})
		}, showCohort)
	cmd.Flags().StringVar(&note, "note", "", "what it is for, in `WORDS`")
	cmd.Flags().Int64Var(&rev, "rev", 0, "only if it still has revision `N`")
	return cmd
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

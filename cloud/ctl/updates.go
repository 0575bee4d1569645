package ctl

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/thing"
	"kennel/ota"
)

func (a *app) releases() *cobra.Command {
	cmd := &cobra.Command{Use: "releases", Short: "What robots may run, and what they should",
		Example: "  kennelctl releases list -species vic\n  kennelctl releases want vic 2.0.1.6076\n  kennelctl releases show vic:00e20100"}
	cmd.AddCommand(a.releasesList(), a.releasesAdd(), a.releasesWant(), a.releasesShow())
	return cmd
}

func completeSpecies(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{string(thing.Vector), string(thing.AmigoBot), string(thing.Pleo), string(thing.AIBO)}, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) releasesList() *cobra.Command {
	var species string
	cmd := &cobra.Command{
		Use: "list", Short: "List releases", Args: cobra.NoArgs, Example: "  kennelctl releases list\n  kennelctl releases list -species vic -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, "/v1/releases?"+url.Values{"species": {species}}.Encode(), func(t *cli.Table, rows []ota.Release) {
				t.Row("SPECIES", "VERSION", "SINCE", "NOTES")
				for _, r := range rows {
					t.Row(r.Species, r.Version, ago(r.Created), r.Notes)
				}
			})
		},
	}
	cmd.Flags().StringVar(&species, "species", "", "only those of a `SPECIES`: vic, amigo, pleo or aibo")
	_ = cmd.RegisterFlagCompletionFunc("species", completeSpecies)
	return cmd
}

func (a *app) releasesAdd() *cobra.Command {
	var notes string
	cmd := &cobra.Command{
		Use: "add SPECIES VERSION", Short: "Make a release known", Args: cobra.ExactArgs(2), ValidArgsFunction: completeSpecies,
		Example: "  kennelctl releases add vic 2.0.1.6076 -notes 'quieter motors'",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]string{"species": args[0], "version": args[1], "notes": notes}
			return mine(a, cmd, http.MethodPost, "/v1/releases", body, func(t *cli.Table, r ota.Release) {
				t.Row("species", r.Species)
				t.Row("version", r.Version)
				t.Row("notes", r.Notes)
			})
		},
	}
	cmd.Flags().StringVar(&notes, "notes", "", "`TEXT` for people")
	return cmd
}

func (a *app) releasesWant() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "want SPECIES|THING [VERSION]", Short: "Say which release a robot, or all of a species, should run", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			things, directive := a.completeThing(cmd, args, typed)
			if len(args) == 0 {
				species, _ := completeSpecies(cmd, args, typed)
				things = append(species, things...)
			}
			return things, directive
		},
		Long:    "What is said of a robot goes before what is said of its species. -none takes it back.",
		Example: "  kennelctl releases want vic 2.0.1.6076\n  kennelctl releases want vic:00e20100 2.0.1.6075\n  kennelctl releases want vic:00e20100 -none",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 2) == none {
				return cli.Usage("want a version or -none")
			}
			version := ""
			if len(args) == 2 {
				version = args[1]
			}
			path := "/v1/ota/desired/" + url.PathEscape(args[0])
			if id, err := thing.Parse(args[0]); err == nil {
				path = "/v1/things/" + string(id) + "/ota/desired"
			}
			return mine(a, cmd, http.MethodPut, path, map[string]string{"version": version}, func(t *cli.Table, d ota.Desired) {
				t.Row("desired", d.Release)
				t.Row("since", ago(d.Since))
			})
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "no release is wanted")
	return cmd
}

func (a *app) releasesShow() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "show THING", Short: "Show what a robot should run, and what became of its updates", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl releases show vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := fetch[ota.State](a, cmd, args[0], "/ota?limit="+strconv.Itoa(limit))
			if err != nil {
				return err
			}
			return got.print(cmd, func(t *cli.Table, s ota.State) {
				t.Row("thing", s.Thing)
				t.Row("desired", s.Desired.Release)
				t.Row("since", ago(s.Desired.Since))
				t.Text("")
				t.Row("RECEIVED", "PHASE", "RELEASE", "RUNNING", "CODE", "REASON")
				for _, r := range s.History {
					t.Row(ago(r.Received), r.Phase, r.Release, r.Running, r.Code, r.Reason)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most `N` reports")
	return cmd
}

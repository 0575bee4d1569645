package ctl

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/thing"
)

func (a *app) releases() *cobra.Command {
	cmd := describe("releases", "Manage releases and which one robots should run",
		"releases list -species vic", "releases want vic 2.0.1.6076", "releases upload vicos-2.0.1.6076.ota", "releases show vic:00e20100")
	cmd.Aliases = []string{"release"}
	return group(cmd, a.releasesList(), a.releasesUpload(), a.releasesWant(), a.releasesTrust())
}

func completeSpecies(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return strings.Split(thing.SpeciesWords(" "), " "), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) releasesList() *cobra.Command {
	var q client.GetReleasesQuery
	var archives []client.Artifact
	cmd := shows(a, describe("list", "List releases", "releases list", "releases list -species vic -o json"),
		func(ctx context.Context, _ []string) (reply[[]client.Release], error) {
			all, err := a.api.GetArchives(ctx, client.GetArchivesQuery{Species: q.Species})
			if err != nil {
				return reply[[]client.Release]{}, err
			}
			archives = all.Value
			return a.api.GetReleases(ctx, q)
		},
		rows("SPECIES|VERSION|SINCE|NEEDS|ARCHIVES|NOTES", func(r client.Release) cells {
			return cells{r.Species, r.Version, r.Created, r.Lowest, archivesOf(archives, r), r.Notes}
		}))
	q.Species = cmd.Flags().String("species", "", "only releases for `SPECIES`: "+thing.SpeciesWords(", "))
	_ = cmd.RegisterFlagCompletionFunc("species", completeSpecies)
	return cmd
}

func (a *app) releasesWant() *cobra.Command {
	var none bool
	cmd := shows(a, &cobra.Command{Use: "want SPECIES|THING [VERSION]", Short: "Set the target release of a robot or of a species",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			things, directive := a.completeThing(cmd, args, typed)
			if len(args) == 0 {
				species, _ := completeSpecies(cmd, args, typed)
				things = append(species, things...)
			}
			return things, directive
		},
		Long: "A robot's own target overrides its species' target.\n" +
			"A robot can install a release only if an archive fits it; kennelctl releases show has its answer.",
		Example: "  kennelctl releases want vic 2.0.1.6076\n  kennelctl releases want vic:00e20100 2.0.1.6075\n" +
			"  kennelctl releases want vic:00e20100 -none"},
		func(ctx context.Context, args []string) (r reply[client.Desired], err error) {
			if (len(args) == 2) == none {
				return r, cli.Usage("missing VERSION or -none")
			}
			wish := client.Wish{}
			if !none {
				wish.Version = args[1]
			}
			if _, err := thing.Parse(args[0]); err == nil {
				return a.api.PutThingsThingOtaDesired(ctx, args[0], wish)
			}
			return a.api.PutOtaDesiredSpecies(ctx, args[0], wish)
		}, func(t *cli.Table, d client.Desired) {
			pairs(t, "target", d.Release, "since", d.Since)
			if !none {
				t.Text("Target saved. See each robot's answer with: kennelctl releases show THING")
			}
		})
	cmd.Flags().BoolVar(&none, "none", false, "clear the target")
	return cmd
}

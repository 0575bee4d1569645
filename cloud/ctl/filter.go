package ctl

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/cloud/registry/filter"
	"kennel/infra/cli"
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

func (a *app) robotsCounts() *cobra.Command {
	return shows(a, &cobra.Command{Use: "counts [FILTER]", Short: "Count robots by presence, version, species, problem and tag", Long: filterHelp, Args: cobra.ArbitraryArgs,
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
	return group(&cobra.Command{Use: "tag", Short: "Tag a robot; of many at once: robots bulk tag",
		Example: "  kennelctl robots tag add vic:00e20100 lab demo\n  kennelctl robots tag remove vic:00e20100 demo"},
		one("add", "Add tags to a robot", "lab demo", func(tags []string) client.TagsRequest { return client.TagsRequest{Add: tags} }),
		one("remove", "Remove tags from a robot", "demo", func(tags []string) client.TagsRequest { return client.TagsRequest{Remove: tags} }))
}

package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/thing"
	"kennel/jdocs"
)

func (a *app) jdocs() *cobra.Command {
	return group(&cobra.Command{Use: "jdocs", Aliases: []string{"docs"}, Short: "Show and change a robot's documents, such as its settings",
		Example: "  kennelctl jdocs get vic:00e20100 vic.RobotSettings\n  kennelctl jdocs set vic:00e20100 vic.RobotSettings master_volume=3"},
		shows(a, &cobra.Command{Use: "get THING DOC", Short: "Show a document", ValidArgsFunction: a.completeDoc,
			Example: "  kennelctl jdocs get vic:00e20100 vic.RobotSettings"}, both(a.api.GetThingsThingJdocsDoc), showDocument),
		a.jdocsSet(), a.jdocsRestore(), a.jdocsFields())
}

// completeSet offers what completeDoc does, then fields of the document and their values.
func (a *app) completeSet(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) < 2 {
		return a.completeDoc(cmd, args, typed)
	}
	return completeField(typed, jdocs.Name(args[1]).Of(thing.ID(args[0])))
}

// completeField offers the fields of documents that begin with what is typed, or the values of the field that is typed.
func completeField(typed string, names ...jdocs.Name) (out []string, directive cobra.ShellCompDirective) {
	field, value, ok := strings.Cut(typed, "=")
	directive = cobra.ShellCompDirectiveNoFileComp
	if !ok {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	for _, name := range names {
		if !ok {
			for _, f := range jdocs.Fields(name) {
				if strings.HasPrefix(f, typed) {
					out = append(out, f+"=")
				}
			}
			continue
		}
		for _, c := range jdocs.Choices(name, field) {
			if strings.HasPrefix(c, strings.ToUpper(value)) || strings.HasPrefix(c, value) {
				out = append(out, field+"="+c)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), directive
}

// completeDoc offers thing ids, then names of documents.
func (a *app) completeDoc(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeThing(cmd, args, typed)
	case 1:
		own := []string{string(jdocs.RobotLifetimeStats)}
		if settings := jdocs.SettingsOf(thing.ID(args[0]).Species()); settings != "" {
			own = append(own, string(settings))
		}
		return own, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func showDocument(t *cli.Table, d client.Doc) {
	t.Text(fmt.Sprintf("%s, version %d, changed %s by %s", d.DocName, d.DocVersion, ago(d.At), d.By))
	var pretty bytes.Buffer
	_ = json.Indent(&pretty, d.Jdoc, "", "  ") // a part of an answer that parsed
	for line := range bytes.Lines(pretty.Bytes()) {
		t.Text(string(bytes.TrimRight(line, "\n")))
	}
}

func (a *app) jdocsSet() *cobra.Command {
	var force bool
	cmd := shows(a, &cobra.Command{Use: "set THING DOC KEY=VALUE...", Short: "Change fields of a document", ValidArgsFunction: a.completeSet,
		Long: "KEY is a name or a path such as custom_eye_color.hue. VALUE is JSON or plain text; null removes the field. Either all fields change or\n" +
			"none. An online robot takes them within a second. Unknown documents and fields are errors, unless -force is given.",
		Example: "  kennelctl jdocs set vic:00e20100 vic.RobotSettings master_volume=3\n" +
			"  kennelctl jdocs set vic:00e20100 vic.RobotSettings custom_eye_color.hue=0.4 time_zone=Europe/Berlin\n" +
			"  kennelctl jdocs set amigo:1 amigo.RobotSettings clock_24_hour=true"},
		func(ctx context.Context, args []string) (r reply[client.Doc], err error) {
			set, err := parseSet(args[2:])
			if err != nil {
				return r, err
			}
			return a.api.PatchThingsThingJdocsDoc(ctx, args[0], args[1], client.Settings{Set: set, Force: force})
		}, showDocument)
	cmd.Flags().BoolVar(&force, "force", false, "allow fields that no known software reads, and new documents")
	return cmd
}

func (a *app) jdocsRestore() *cobra.Command {
	return shows(a, &cobra.Command{Use: "restore THING DOC VERSION", Short: "Restore an earlier version of a document", ValidArgsFunction: a.completeDoc,
		Long:    "Saves the earlier content as a new version, which an online robot takes within a second. jdocs history lists versions.",
		Example: "  kennelctl jdocs restore vic:00e20100 vic.RobotSettings 3"},
		func(ctx context.Context, args []string) (r reply[client.Doc], err error) {
			version, err := strconv.ParseInt(args[2], 10, 64)
			if err != nil || version < 1 {
				return r, cli.Usage("version %q: want a number from kennelctl jdocs history", args[2])
			}
			return a.api.PostThingsThingJdocsDocRestore(ctx, args[0], args[1], client.Restore{Version: version})
		}, showDocument)
}

// field is a field of a document, as rows show it.
type field struct {
	doc string
	client.Field
}

func (a *app) jdocsFields() *cobra.Command {
	return shows(a, &cobra.Command{Use: "fields", Short: "List the documents that robots know, with their fields and values", Args: cobra.NoArgs,
		Example: "  kennelctl jdocs fields\n  kennelctl jdocs fields -o json"},
		func(ctx context.Context, _ []string) (reply[[]client.Schema], error) {
			return a.api.GetJdocsSchemas(ctx)
		},
		func(t *cli.Table, all []client.Schema) {
			var fields []field
			for _, s := range all {
				for _, f := range s.Fields {
					fields = append(fields, field{s.Name, f})
				}
			}
			rows("DOCUMENT|FIELD|TYPE|DEFAULT|VALUES", func(f field) cells {
				return cells{f.doc, f.Name, f.Type, string(f.Default), strings.Join(f.Values, " ")}
			})(t, fields)
		})
}

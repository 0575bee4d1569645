package ctl

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

type (
	reply[T any] = client.Reply[T]
	// question asks the cloud on behalf of a command with its arguments.
	question[T any] = func(ctx context.Context, args []string) (reply[T], error)
	// completion offers the words that an argument may be.
	completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)
	// cells are one line of a table.
	cells []any
)

// none, first and both make questions of the methods of the client that take no argument, one, or two.
func none[T any](f func(context.Context) (reply[T], error)) question[T] {
	return func(ctx context.Context, _ []string) (reply[T], error) { return f(ctx) }
}

func first[T any](f func(context.Context, string) (reply[T], error)) question[T] {
	return func(ctx context.Context, args []string) (reply[T], error) { return f(ctx, args[0]) }
}

func both[T any](f func(context.Context, string, string) (reply[T], error)) question[T] {
	return func(ctx context.Context, args []string) (reply[T], error) { return f(ctx, args[0], args[1]) }
}

// given returns nil for a flag that was left empty.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// describe returns a command with its usage line, its summary and examples without the program's name.
func describe(use, short string, examples ...string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Example: "  kennelctl " + strings.Join(examples, "\n  kennelctl ")}
}

// group returns cmd with its commands.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	return cmd
}

// shows makes a command that asks and prints the answer: as it came with -o json, else as table draws it.
func shows[T any](a *app, cmd *cobra.Command, ask question[T], table func(*cli.Table, T)) *cobra.Command {
	return a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		r, err := ask(cmd.Context(), args)
		return show(cmd, r, err, table)
	})
}

// show prints an answer. One that is not understood is still printed with -o json.
func show[T any](cmd *cobra.Command, r reply[T], err error, table func(*cli.Table, T)) error {
	switch {
	case r.Raw != nil && cli.JSON(cmd):
		return cli.Print(cmd, r.Raw, nil)
	case r.Raw != nil && err != nil:
		return errs.New(errs.Corrupt, "%w; this version of kennelctl does not understand it (-o json shows it)", err)
	case r.Raw == nil:
		return err
	}
	return cli.Print(cmd, r.Value, func(t *cli.Table) { table(t, r.Value) })
}

// does makes a command that changes something and says so in a line. With -o json it prints the answer, or {"done":true}.
func does[T any](a *app, cmd *cobra.Command, ask question[T], line func(args []string, v T) string) *cobra.Command {
	return a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		r, err := ask(cmd.Context(), args)
		if err != nil {
			return err
		}
		if r.Raw == nil {
			r.Raw = json.RawMessage(`{"done":true}`)
		}
		return cli.PrintLine(cmd, r.Raw, func() string { return line(args, r.Value) })
	})
}

// answerOf makes an answer of what a command found out itself.
func answerOf[T any](v T, err error) (r reply[T], _ error) {
	if err == nil {
		r.Value = v
		r.Raw, err = json.Marshal(v)
	}
	return r, err
}

// runs returns cmd with run, and with what its usage line says: how many arguments it takes, which of them are ids of things, and what
// completes the first. What cmd has already stays.
func (a *app) runs(cmd *cobra.Command, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	words := strings.Fields(cmd.Use)[1:]
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }); i >= 0 {
		words = words[:i]
	}
	if cmd.Args == nil {
		least, most := 0, len(words)
		for _, w := range words {
			if !strings.HasPrefix(w, "[") {
				least++
			}
		}
		cmd.Args = cobra.RangeArgs(least, most)
		if most > 0 && strings.Contains(words[most-1], "...") {
			cmd.Args = cobra.MinimumNArgs(least)
		}
	}
	if len(words) > 0 && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = map[string]completion{"THING": a.completeThing, "COHORT": a.completeCohort, "WEBHOOK": a.completeWebhook,
			"SPECIES": completeSpecies, "FILTER": completeFilter}[words[0]]
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for i, w := range words {
			if w == "THING" {
				if _, err := parseThing(args[i]); err != nil {
					return err
				}
			}
		}
		return run(cmd, args)
	}
	return cmd
}

func parseThing(s string) (thing.ID, error) {
	id, err := thing.Parse(s)
	if err != nil {
		return "", errs.New(errs.Invalid, "%w", err)
	}
	return id, nil
}

// offers completes a first argument from a list that the cloud gives.
func offers[T any](cmd *cobra.Command, args []string, typed string, ask question[[]T], word func(T) (name, about string)) (
	[]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	r, err := ask(ctx, []string{typed})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, v := range r.Value {
		if name, about := word(v); strings.HasPrefix(name, typed) {
			// A colon ends a word for bash; its completion scripts deal with that themselves.
			out = append(out, name+"\t"+about)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// rows draws a table with the columns of head, which | separates. Times print as how long ago they were.
func rows[T any](head string, line func(T) cells) func(*cli.Table, []T) {
	return func(t *cli.Table, list []T) {
		var columns cells
		for column := range strings.SplitSeq(head, "|") {
			columns = append(columns, column)
		}
		t.Row(columns...)
		for _, v := range list {
			t.Row(line(v).words()...)
		}
	}
}

// pairs draws a record: a name and a value a line.
func pairs(t *cli.Table, of ...any) {
	for pair := range slices.Chunk(cells(of).words(), 2) {
		t.Row(pair...)
	}
}

// words returns c with times as how long ago they were.
func (c cells) words() []any {
	for i, v := range c {
		if at, ok := v.(time.Time); ok {
			c[i] = ago(at)
		}
	}
	return c
}

// pages asks for all pages of a list.
func pages[T any](ask func(after *string) (reply[[]T], error)) (all reply[[]T], err error) {
	raw := []json.RawMessage{}
	for after := ""; ; {
		page, err := ask(given(after))
		if err != nil {
			return all, err
		}
		all.Value = append(all.Value, page.Value...)
		var items []json.RawMessage
		if err := json.Unmarshal(page.Raw, &items); err != nil {
			return all, err
		}
		raw = append(raw, items...)
		if after = page.After; len(items) == 0 || after == "" {
			all.Raw, err = json.Marshal(raw)
			return all, err
		}
	}
}

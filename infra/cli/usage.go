package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kennel/infra/suggest"
)

// exclusive finds the flags in cobra's complaint about a group of which only one may be set.
var exclusive = regexp.MustCompile(`\[([^\]]*)\] were all set$`)

// checked returns the check of a command's arguments and flags: rule decides, and the error says in plain words what is wrong.
func checked(rule cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case rule != nil:
			if err := rule(cmd, args); err != nil {
				return misplaced(cmd, args, err)
			}
		case !cmd.HasParent() && len(args) > 0:
			return unknownCommand(cmd, args[0])
		}
		var missing []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if slices.Equal(f.Annotations[cobra.BashCompOneRequiredFlag], []string{"true"}) && !f.Changed {
				missing = append(missing, withValue(f))
			}
		})
		if len(missing) > 0 {
			return fmt.Errorf("missing %s", strings.Join(missing, ", "))
		}
		if err := cmd.ValidateFlagGroups(); err != nil {
			if m := exclusive.FindStringSubmatch(err.Error()); m != nil {
				return fmt.Errorf("-%s exclude each other", strings.Join(strings.Fields(m[1]), " and -"))
			}
			return err
		}
		return nil
	}
}

// misplaced names the first argument that is missing or too many, by the usage line of cmd; err if the usage line does not tell.
func misplaced(cmd *cobra.Command, args []string, err error) error {
	words := strings.Fields(cmd.Use)[1:]
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(strings.TrimPrefix(w, "["), "-") }); i >= 0 {
		words = words[:i] // flags have their own check
	}
	want := strings.Join(append([]string{cmd.CommandPath()}, words...), " ")
	switch n := len(args); {
	case n < len(words) && !strings.HasPrefix(words[n], "["):
		return fmt.Errorf("missing %s; usage: %s", strings.Trim(words[n], "[]"), want)
	case n > len(words):
		return fmt.Errorf("unexpected argument %.40q; usage: %s", args[len(words)], want)
	}
	return err
}

// badFlag says in plain words why a flag cannot be read.
func badFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0:
		return unknownCommand(cmd, cmd.Flags().Args()[0]) // whose flag it may be
	case errors.As(err, &unknown):
		name, _, _ := strings.Cut(cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), "=")
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		near := suggest.Names(name, known)
		for i := range near {
			near[i] = "-" + near[i]
		}
		if len(near) == 0 {
			return fmt.Errorf("unknown flag -%.40s", name)
		}
		return fmt.Errorf("unknown flag -%.40s; did you mean %s?", name, suggest.Or(near))
	case errors.As(err, &missing):
		return fmt.Errorf("-%s needs a value: %s", missing.GetFlag().Name, withValue(missing.GetFlag()))
	case errors.As(err, &value):
		f := value.GetFlag()
		if want, ok := values[f.Value.Type()]; ok {
			return fmt.Errorf("-%s %.40q: want %s", f.Name, value.GetValue(), want)
		}
		return fmt.Errorf("-%s %.40q: %w", f.Name, value.GetValue(), errors.Unwrap(value))
	}
	return err
}

// values says what a flag of each type wants.
var values = map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of 0 or more",
	"float64": "a number", "bool": "true or false", "duration": "a duration such as 90s or 1h30m"}

// withValue returns a flag as a person types it, such as "-limit N".
func withValue(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	return strings.TrimSpace("-" + f.Name + " " + name)
}

// aWord matches names that commands may have.
var aWord = regexp.MustCompile(`^[a-z][a-z-]*$`)

// unknownCommand is the error about a word that is no command of cmd: it names those that it may mean, here or, spelled exactly so, elsewhere in the program.
func unknownCommand(cmd *cobra.Command, name string) error {
	if cmd.HasParent() && !aWord.MatchString(name) {
		return missingCommand(cmd)
	}
	if near := suggest.DidYouMean(name, names(cmd)); near != "" {
		return fmt.Errorf("unknown command %.40q%s", name, near)
	}
	var elsewhere, hints []string
	walk(cmd.Root(), func(c *cobra.Command) {
		if c.Name() == name && c.HasParent() && c.IsAvailableCommand() {
			elsewhere = append(elsewhere, strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "))
		}
	})
	if cmd.HasParent() {
		hints = append(hints, "want "+suggest.Or(names(cmd)))
	}
	if n := len(elsewhere); 0 < n && n <= 3 {
		hints = append(hints, "did you mean "+suggest.Or(elsewhere)+"?")
	}
	return errors.New(strings.Join(append([]string{fmt.Sprintf("unknown command %.40q", name)}, hints...), "; "))
}

// missingCommand is the error about a group without one of its commands.
func missingCommand(cmd *cobra.Command) error {
	return fmt.Errorf("missing subcommand: %s", suggest.Or(names(cmd)))
}

// help runs the help command: the help of the command that args name, and an error if there is none.
func help(cmd *cobra.Command, args []string) error {
	at := cmd.Root()
	for _, name := range args {
		next, _, err := at.Find([]string{name})
		if err != nil || next == at {
			return unknownCommand(at, name)
		}
		at = next
	}
	at.InitDefaultHelpFlag()
	at.InitDefaultVersionFlag()
	return at.Help()
}

var twoDashes = regexp.MustCompile(`(^|[\s"])--([a-z\[])`)

// oneDash writes the flags in what show prints with one dash, as the examples do.
func oneDash(show func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		var b bytes.Buffer
		out := cmd.OutOrStdout()
		cmd.SetOut(&b)
		show(cmd, args)
		cmd.SetOut(out)
		_, _ = io.WriteString(out, twoDashes.ReplaceAllString(b.String(), "$1-$2")) // as cobra prints: without an error to return
	}
}

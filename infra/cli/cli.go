package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kennel/infra/cli/version"
	"kennel/infra/errs"
)

// Exit codes of every program.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2 // the command line or a value in it can never work
	ExitNotFound    = 3
	ExitDenied      = 4 // not signed in, or not allowed
	ExitUnavailable = 5 // the other side cannot be reached or asks to come back later
)

// impatience is how long after the first signal another one ends the process at once.
const impatience = 3 * time.Second

// Main runs the program root with args (without the program's name) and returns its exit code. The first interrupt or termination
// signal ends the command's context; one that comes later than impatience after it ends the process at once.
func Main(root *cobra.Command, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Terminals, make and supervisors often send the signal twice at once; a person who waited and repeats it wants the quick way.
	context.AfterFunc(ctx, func() { time.AfterFunc(impatience, stop) })
	return Run(ctx, root, args, getenv, stdout, stderr)
}

// Run is Main without signals.
func Run(ctx context.Context, root *cobra.Command, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	started := false // errors from before a command's own code are usage errors
	prepare(root, &started)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(Normalize(root, args))
	cmd, err := root.ExecuteContextC(context.WithValue(ctx, envKey{}, getenv))
	if err == nil {
		return ExitOK
	}
	if !started {
		if cmd.Name() == "help" {
			cmd = root
		}
		err = errs.New(errs.Invalid, "%w (see %s -help)", err, cmd.CommandPath())
	}
	code := ExitCode(err)
	if wantsJSON(root, args) {
		_ = json.NewEncoder(stderr).Encode(failure{Error: err.Error(), Kind: errs.KindOf(err).String(), Code: errs.CodeOf(err), Exit: code})
	} else {
		fmt.Fprintf(stderr, "%s: %s\n", root.Name(), Clean(err.Error()))
	}
	return code
}

// failure is an error as -o json prints it.
type failure struct {
	Error string `json:"error"`
	Kind  string `json:"kind"`
	Code  string `json:"code,omitempty"`
	Exit  int    `json:"exit"`
}

// Status is an error with an exit code of its own, for a command whose codes are older than this package.
type Status struct {
	error
	Exit int
}

// WithStatus returns err with an exit code.
func WithStatus(exit int, err error) error { return Status{err, exit} }

// Unwrap returns the error itself.
func (s Status) Unwrap() error { return s.error }

// ExitCode maps an error's kind to the exit code.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if s, ok := errors.AsType[Status](err); ok {
		return s.Exit
	}
	switch errs.KindOf(err) {
	case errs.Invalid:
		return ExitUsage
	case errs.NotFound:
		return ExitNotFound
	case errs.Unauthenticated, errs.Denied:
		return ExitDenied
	case errs.Unavailable, errs.Exhausted:
		return ExitUnavailable
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ExitUnavailable
	}
	return ExitFailed
}

type envKey struct{}

// Getenv returns the environment that Main was given, so that a test decides it.
func Getenv(ctx context.Context) func(string) string {
	if f, ok := ctx.Value(envKey{}).(func(string) string); ok && f != nil {
		return f
	}
	return func(string) string { return "" }
}

// Normalize rewrites -word and -word=value to --word wherever word is a long flag of root or of one of its commands. Everything after
// a bare "--" stays as it is. A one-letter flag keeps its dash.
func Normalize(root *cobra.Command, args []string) []string {
	long := map[string]bool{"help": true, "version": true}
	walk(root, func(c *cobra.Command) {
		note := func(f *pflag.Flag) { long[f.Name] = true }
		c.Flags().VisitAll(note)
		c.PersistentFlags().VisitAll(note)
	})
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		if strings.HasPrefix(a, "-") && len(name) > 1 && long[name] {
			a = "-" + a
		}
		out = append(out, a)
	}
	return out
}

// prepare makes cobra's tree behave as this package promises.
func prepare(root *cobra.Command, started *bool) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true // ours says what to do with it
	if find(root, "completion") == nil {
		root.AddCommand(completionCommand(root))
	}
	if find(root, "version") == nil {
		root.AddCommand(versionCommand())
	}
	root.Version = version.String()
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpFunc(oneDash(root.HelpFunc()))
	root.InitDefaultHelpCmd()
	if h := find(root, "help"); h != nil {
		h.Run, h.RunE = nil, help
		h.Long = "Show what a command does, its arguments and its flags."
	}
	walk(root, func(c *cobra.Command) {
		switch {
		case c.Name() == "help": // its error is about the command line
		case c.RunE != nil:
			run := c.RunE
			c.RunE = func(cmd *cobra.Command, args []string) error { *started = true; return run(cmd, args) }
			c.Args = checked(c.Args)
		case c.Run == nil:
			// A group such as `robots`: cobra prints help and succeeds, whatever follows it.
			c.Args = cobra.ArbitraryArgs
			c.RunE = group
		}
	})
}

func group(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return unknownCommand(cmd, args[0])
	case !cmd.HasParent():
		return cmd.Help()
	}
	return missingCommand(cmd)
}

func names(cmd *cobra.Command) []string {
	var out []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			out = append(out, c.Name())
		}
	}
	return out
}

func find(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		walk(sub, f)
	}
}

// Lint returns one line for each command of root whose help is not good enough: no summary, or no example. Programs test it.
func Lint(root *cobra.Command) []string {
	var out []string
	walk(root, func(c *cobra.Command) {
		if c.Short == "" {
			out = append(out, c.CommandPath()+": no summary (Short)")
		}
		if c.Example == "" && c.Name() != "help" {
			out = append(out, c.CommandPath()+": no example (Example)")
		}
	})
	return out
}

package pawnkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/compiler"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// buildFlags are the flags of build as the user spells them.
type buildFlags struct {
	output, prefix, compact, semicolon string
	optimise, debug, overlay, stack    int
	verbosity, amx                     int
	include, limits                    []string
	noWarnings                         []int
	json                               bool
}

func buildCommand() *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use: "build FILE.p [NAME=VALUE]...", Short: "Compile a Pawn script to an AMX file",
		Long: `Compile a script in Pawn 3.3 to an AMX file of version 10, which Pleo's firmware 1.1 runs, or with -amx of one that 1.0 runs. NAME=VALUE defines a constant, as TARGET=100 does for Pleo.

Include files are looked for beside the script and in the folders of -i. A file default.inc there is read before the script.

Errors and warnings have the numbers of the language reference, 200 and above for warnings. They name file, line and column, what was found and expected, and
how to mend it where that is known. The exit code is 1 after an error; then no file is written.`,
		Example: `  robotkit pawn build dance.p
  robotkit pawn build dance.p -o dance.amx -O2 -C- -S128 -V8192 -i include TARGET=100
  robotkit pawn build dance.p --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return build(cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "AMX `file` to write (default FILE.amx)")
	fl.IntVarP(&f.optimise, "optimise", "O", 1, "`level`: 0 none, 1 without packed instructions, 2 everything")
	fl.StringVarP(&f.compact, "compact", "C", "-", "compact encoding: `+ or -`; Pleo refuses it")
	fl.IntVar(&f.amx, "amx", 10, "`version` of the file: 10, or 8 or 9 for Pleo's firmware 1.0, without overlays and packed instructions")
	fl.IntVarP(&f.overlay, "overlay", "V", 0, "cut the code into overlays of at most so many `bytes`; 0: do not")
	fl.IntVarP(&f.stack, "stack", "S", 4096, "stack and heap in `cells`")
	fl.IntVarP(&f.debug, "debug", "d", 1, "`level`: 0 no run-time checks, 1 bounds checks and assert, 2 also symbols, 3 as 2 without optimisation")
	fl.StringArrayVarP(&f.include, "include", "i", nil, "`folder` of include files")
	fl.StringVarP(&f.prefix, "prefix", "p", "default.inc", "include `file` that is read first, if there is one")
	fl.StringArrayVarP(&f.limits, "limit", "X", nil, "largest program in `bytes`, or D and the largest data with stack and heap")
	fl.StringVarP(&f.semicolon, "semicolon", ";", "-", "statements must end with a semicolon: `+ or -`")
	fl.IntSliceVarP(&f.noWarnings, "no-warning", "w", nil, "`number` of a warning that is not reported")
	fl.IntVarP(&f.verbosity, "verbosity", "v", 1, "`level`: 0 errors only, 1 also warnings, 2 also sizes")
	fl.BoolVar(&f.json, "json", false, "print messages and sizes as JSON")
	return cmd
}

// built is the output of build in JSON.
type built struct {
	File     string             `json:"file,omitempty"`
	Bytes    int                `json:"bytes"`
	Code     int                `json:"code_bytes"`
	Data     int                `json:"data_bytes"`
	Stack    int                `json:"stack_heap_bytes"`
	Lines    int                `json:"lines"`
	Messages []compiler.Message `json:"messages"`
}

// options turns flags and definitions into the compiler's options.
func (f *buildFlags) options(defines []string) (compiler.Options, error) {
	o := compiler.Options{Version: uint8(f.amx), Optimise: f.optimise, Debug: f.debug, Overlay: f.overlay, StackHeap: f.stack, Prefix: f.prefix,
		NoWarnings: f.noWarnings, Open: readSource}
	for _, dir := range f.include {
		o.Include = append(o.Include, filepath.ToSlash(dir))
	}
	const maxStack = 1 << 22
	switch {
	case f.optimise < 0 || f.optimise > 2:
		return o, cli.Usage("-O%d: want 0, 1 or 2", f.optimise)
	case f.amx < amx.MinVersion || f.amx > amx.MaxVersion:
		return o, cli.Usage("-amx %d: want %d to %d", f.amx, amx.MinVersion, amx.MaxVersion)
	case f.debug < 0 || f.debug > 3:
		return o, cli.Usage("-d%d: want 0 to 3", f.debug)
	case f.overlay < 0:
		return o, cli.Usage("-V%d: want a number of bytes", f.overlay)
	case f.stack < 1 || f.stack > maxStack:
		return o, cli.Usage("-S%d: want 1 to %d cells", f.stack, maxStack)
	}
	var err error
	if o.Compact, err = sign("-C", f.compact); err != nil {
		return o, err
	}
	if o.Semicolon, err = sign("-;", f.semicolon); err != nil {
		return o, err
	}
	for _, l := range f.limits {
		number, to := l, &o.Limit
		if rest, data := strings.CutPrefix(l, "D"); data {
			number, to = rest, &o.DataLimit
		}
		if *to, err = strconv.Atoi(number); err != nil || *to <= 0 {
			return o, cli.Usage("-X%.20s: want a number of bytes, or D and a number", l)
		}
	}
	for _, d := range defines {
		name, value, ok := strings.Cut(d, "=")
		v := int64(0)
		if value != "" {
			v, err = strconv.ParseInt(value, 0, 33)
		}
		if !ok || err != nil || name == "" {
			return o, cli.Usage("%.60q: want NAME=VALUE with a whole number", d)
		}
		o.Defines = append(o.Defines, compiler.Define{Name: name, Value: int32(v)})
	}
	return o, nil
}

// sign reads + or -.
func sign(flag, s string) (bool, error) {
	if s != "+" && s != "-" {
		return false, cli.Usage("%s%.20s: want %s+ or %s-", flag, s, flag, flag)
	}
	return s == "+", nil
}

// readSource reads a source file of at most maxFile bytes.
func readSource(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: want a file of at most %d bytes", name, maxFile)
	}
	return os.ReadFile(name)
}

func build(cmd *cobra.Command, args []string, f buildFlags) error {
	o, err := f.options(args[1:])
	if err != nil {
		return err
	}
	source := filepath.ToSlash(args[0])
	text, err := readSource(args[0])
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errs.New(errs.NotFound, "%w", err)
	case err != nil:
		return fmt.Errorf("read script: %w", err)
	}
	result := compiler.Compile(source, text, o)
	out := f.output
	if out == "" {
		out = strings.TrimSuffix(args[0], filepath.Ext(args[0])) + ".amx"
	}
	done := built{Lines: result.Lines, Messages: result.Messages}
	if done.Messages == nil {
		done.Messages = []compiler.Message{}
	}
	if p := result.Program; p != nil {
		file, err := p.Append(nil)
		if err != nil {
			return errs.New(errs.Invalid, "%s: %w", source, err)
		}
		if err := os.WriteFile(out, file, 0o666); err != nil {
			return fmt.Errorf("write %s: %w", out, err)
		}
		done.File, done.Bytes = out, len(file)
		done.Code, done.Data, done.Stack = len(p.Code), len(p.Data), amx.CellSize*int(p.StackHeapCells)
	}
	if err := f.print(cmd, done); err != nil {
		return err
	}
	if n := result.Errors(); n > 0 {
		return errs.New(errs.Invalid, "%s: %s", source, count(n, "error"))
	}
	return nil
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// print prints messages and, where the user asks for them, sizes.
func (f *buildFlags) print(cmd *cobra.Command, done built) error {
	if f.json {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(done)
	}
	var b strings.Builder
	for _, m := range done.Messages {
		if m.Severity != compiler.Warning || f.verbosity > 0 {
			fmt.Fprintln(&b, m)
		}
	}
	if _, err := io.WriteString(cmd.ErrOrStderr(), b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if f.verbosity < 2 || done.File == "" {
		return nil
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes, of these %d of code and %d of data; %d of stack and heap\n", done.File, done.Bytes, done.Code, done.Data, done.Stack)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

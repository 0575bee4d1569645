package pawnkit

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/host"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

const (
	maxSleeps = 6         // a call is resumed so often
	slice     = 1_000_000 // instructions between two looks at whether the user interrupts
)

func runCommand() *cobra.Command {
	var calls []string
	cmd := &cobra.Command{
		Use: "run FILE.amx [-call 'NAME(ARGS)']...", Short: "Run functions of a compiled script and print what it does",
		Long: `Run main, or the public functions given with -call in that order. Variables keep their values from call to call.

The script has the native functions printf (%d %x %s %c %%), numargs, getarg, setarg, heapspace and funcidx. Any other native function returns 0 and prints
"N name(args)". A sleep prints "S sleep pri=V" and is resumed, at most six times. Each call ends with a line "R name err=E ret=V sleeps=K", where E is the error
number of the machine: 0 none, 1 exit, 2 assert, 3 stack, 4 bounds, 5 memory access, 6 instruction, 7 stack underflow, 8 heap underflow, 10 native function,
11 division by zero, 12 still sleeping, 13 state, 19 no such function, 20 no main.

The exit code is 1 if a call ended with an error.`,
		Example: `  robotkit pawn run dance.amx
  robotkit pawn run sensors.amx -call init -call 'on_sensor(1000, 3, 1)'
  robotkit pawn run dance.amx -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, args[0], calls) },
	}
	cmd.Flags().StringArrayVar(&calls, "call", nil, "public `function` to call, with whole numbers as arguments (default main)")
	return cmd
}

// call is a call that the user asks for.
type call struct {
	name string
	args []int32
}

// parseCall reads "name", "name()" or "name(1, -2, 0x10)".
func parseCall(s string) (call, error) {
	name, rest, open := strings.Cut(strings.TrimSpace(s), "(")
	c := call{name: strings.TrimSpace(name)}
	if c.name == "" {
		return c, cli.Usage("-call %.60q: want a name, such as 'on_sensor(1, 2)'", s)
	}
	if !open {
		return c, nil
	}
	list, after, closed := strings.Cut(rest, ")")
	if !closed || strings.TrimSpace(after) != "" {
		return c, cli.Usage("-call %.60q: want one pair of brackets, and nothing after them", s)
	}
	if list = strings.TrimSpace(list); list == "" {
		return c, nil
	}
	for i, word := range strings.Split(list, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(word), 0, 64)
		if err != nil || v < math.MinInt32 || v > math.MaxUint32 {
			return c, cli.Usage("-call %.60q: argument %d is %.20q, want a whole number of 32 bits", s, i+1, strings.TrimSpace(word))
		}
		c.args = append(c.args, int32(v))
	}
	return c, nil
}

// ended is how a call ended.
type ended struct {
	Name   string `json:"name"`
	Err    int32  `json:"err"`
	Ret    int32  `json:"ret"`
	Sleeps int    `json:"sleeps"`
	Reason string `json:"reason,omitempty"`
	At     string `json:"at,omitempty"` // where it failed
}

// report is the output of run in JSON.
type report struct {
	Output string  `json:"output"` // of the script, with N and S lines
	Calls  []ended `json:"calls"`
}

// console is the output of a script. It remembers whether a line is open.
type console struct {
	*bufio.Writer
	open   bool
	source func(offset int32) string
}

// source returns a function that says where an instruction is: in the source if p has debug symbols, else in the code.
func source(p *amx.Program) func(int32) string {
	d, err := p.Symbols()
	return func(offset int32) string {
		place := fmt.Sprintf(" at code byte %d", offset)
		if err != nil {
			return place
		}
		file, line, function := d.Source(offset)
		if line > 0 {
			place = fmt.Sprintf(" at %s:%d", file, line)
		}
		if function != "" {
			place += " in " + function
		}
		return place
	}
}

func (c *console) print(text []byte) {
	if len(text) > 0 {
		_, _ = c.Write(text) // the error is in Flush
		c.open = text[len(text)-1] != '\n'
	}
}

// line prints a line of ours.
func (c *console) line(format string, args ...any) {
	if c.open {
		_, _ = c.WriteString("\n")
	}
	c.open = false
	fmt.Fprintf(c, format+"\n", args...)
}

func run(cmd *cobra.Command, name string, calls []string) error {
	list := []call{{name: "main"}}
	if len(calls) > 0 {
		list = nil
	}
	for _, s := range calls {
		c, err := parseCall(s)
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	p, err := open(name)
	if err != nil {
		return err
	}
	var text strings.Builder
	out := &console{Writer: bufio.NewWriter(cmd.OutOrStdout())}
	if cli.JSON(cmd) {
		out.Reset(&text)
	}
	out.source = source(p)
	m, err := pawn.New(p, pawn.Options{Natives: host.Natives(out.print, func(line string) { out.line("%s", line) })})
	if err != nil {
		return errs.New(errs.Invalid, "%s: %w", name, err)
	}
	done := report{}
	var failed *ended
	for _, c := range list {
		e, err := out.call(cmd, m, c)
		if err != nil {
			return err
		}
		done.Calls = append(done.Calls, e)
		if e.Err != 0 && failed == nil {
			failed = &e
		}
		if !cli.JSON(cmd) {
			out.line("R %s err=%d ret=%d sleeps=%d", e.Name, e.Err, e.Ret, e.Sleeps)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if cli.JSON(cmd) {
		done.Output = text.String()
		if err := cli.Print(cmd, done, func(*cli.Table) {}); err != nil {
			return err
		}
	}
	if failed != nil {
		return fmt.Errorf("%s: %s%s", failed.Name, failed.Reason, failed.At)
	}
	return nil
}

// call runs one call to its end.
func (c *console) call(cmd *cobra.Command, m *pawn.Machine, what call) (ended, error) {
	out := ended{Name: what.name}
	public := pawn.Main
	if i, ok := m.Public(what.name); ok {
		public = i
	} else if what.name != "main" {
		out.Err, out.Reason = int32(pawn.ErrNotFound), pawn.ErrNotFound.String()
		return out, nil
	}
	var r pawn.Running
	if code := m.Begin(&r, public, what.args...); code != pawn.OK {
		out.Err, out.Reason = int32(code), code.String()
		return out, nil
	}
	for {
		result := m.Run(&r, slice)
		out.Err, out.Ret = int32(result.Code), result.Value
		switch {
		case result.State == pawn.Preempted:
			if err := c.Flush(); err != nil {
				return out, fmt.Errorf("print: %w", err)
			}
			if err := cmd.Context().Err(); err != nil {
				return out, fmt.Errorf("%s: interrupted at code byte %d", what.name, result.Offset)
			}
		case result.State == pawn.Sleeping && out.Sleeps < maxSleeps:
			c.line("S sleep pri=%d", result.Pri)
			out.Sleeps++
		default:
			m.End(&r)
			if result.Code != pawn.OK {
				out.Reason, out.At = result.Code.String(), fmt.Sprintf(" (error %d)", out.Err)+c.source(result.Offset)
			}
			return out, nil
		}
	}
}

var _ io.Writer = (*console)(nil)

package pleorun

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleodebug"
	"kennel/infra/cli"
)

// defaultGo is how long a script runs without a stop.
const defaultGo = 10 * time.Second

// DebugCommand returns the command debug.
func DebugCommand() *cobra.Command {
	var seed uint64
	var profile string
	cmd := &cobra.Command{
		Use: "debug CARD|FILE", Short: "Step through the scripts of an application",
		Long: `Run an application on a simulated Pleo and pause its scripts. Commands are read from standard input, one a line; most have a letter for short:

  break [FILE:]LINE   b   pause before that line
  break FUNCTION          pause at the first statement of a function
  watch NAME          w   pause when a variable changes
  delete N            d   forget breakpoint or watch N
  info                i   list breakpoints and watches
  continue [TIME]     c   run, at most for 10 s or TIME
  step                s   run to the next statement of the script
  next                n   likewise, but over functions that it calls
  finish              f   run to the end of the function
  print [NAME]        p   print a variable, or all
  where                   print where the script is paused
  curves [NAME]           draw drives and properties, a point each 100 ms
  touch PAD [TIME]        touch a pad, for 300 ms or TIME
  set SENSOR VALUE        give a sensor a reading
  type LINE               enter a line on the monitor
  quit                q   end

While a script is paused no time passes for Pleo. The scripts need symbols: robotkit pleo build PROJECT -debug.`,
		Example: `  robotkit pleo build demo -debug && robotkit pleo debug demo/build
  printf 'break on_sensor\ntouch head\ncontinue\nprint\n' | robotkit pleo debug demo/build`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lifeos.ParseProfile(profile)
			if err != nil {
				return cli.Usage("-%w", err)
			}
			card, done, err := openCard(args[0])
			if err != nil {
				return err
			}
			defer done()
			d := &debugger{cmd: cmd}
			d.Session = pleodebug.New(pleodebug.Config{Profile: p, Card: card, Seed: seed, Log: d.log})
			return d.read(cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&profile, "profile", lifeos.Profile11.String(), "generation of the firmware, `1.1 or 1.0`")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that random choices depend on")
	return cmd
}

// debugger reads commands for a session.
type debugger struct {
	*pleodebug.Session
	cmd    *cobra.Command
	failed error // of printing
}

func (d *debugger) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(d.cmd.OutOrStdout(), format, args...); err != nil && d.failed == nil {
		d.failed = fmt.Errorf("print: %w", err)
	}
}

// log prints what scripts say, and what goes wrong.
func (d *debugger) log(m lifeos.Message) {
	if m.Level <= lifeos.Warning || m.Type == lifeos.LogScript || m.Type == lifeos.LogSound && m.Level <= lifeos.Info {
		d.printf("%9.3f s  %s\n", m.At.Seconds(), m)
	}
}

// errQuit ends the session.
var errQuit = errors.New("quit")

// read does the commands of a stream, to its end.
func (d *debugger) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for d.failed == nil && lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		err := d.do(words)
		if errors.Is(err, errQuit) {
			break
		}
		if d.cmd.Context().Err() != nil {
			return d.cmd.Context().Err()
		}
		if err != nil {
			d.printf("%v\n", err)
		}
	}
	return errors.Join(d.failed, lines.Err())
}

// shorts are the letters of commands.
var shorts = map[string]string{"b": "break", "w": "watch", "d": "delete", "i": "info", "c": "continue", "s": "step", "n": "next", "f": "finish", "p": "print", "q": "quit"}

// do does one command. Its errors are for the person who typed it.
func (d *debugger) do(words []string) error {
	name, arg := words[0], words[1:]
	if long, ok := shorts[name]; ok {
		name = long
	}
	here, stopped := d.OS.Stopped()
	switch name {
	case "break", "watch", "delete", "info":
		return d.mark(name, arg)
	case "continue":
		limit := defaultGo
		if len(arg) > 0 {
			t, err := time.ParseDuration(arg[0])
			if err != nil || t <= 0 || t > maxTime {
				return fmt.Errorf("continue %.20q: want a time up to %v", arg[0], maxTime)
			}
			limit = t
		}
		return d.run(pleodebug.Free, limit)
	case "step":
		return d.run(pleodebug.Step, defaultGo)
	case "next":
		return d.run(pleodebug.Next, defaultGo)
	case "finish":
		return d.run(pleodebug.Finish, defaultGo)
	case "print":
		return d.print(arg)
	case "curves":
		return d.draw(arg)
	case "where":
		if !stopped {
			d.printf("no script is paused; %.3f s since power-on\n", d.OS.Now().Seconds())
			return nil
		}
		d.printf("%v, %.3f s since power-on\n", here, d.OS.Now().Seconds())
		return nil
	case "touch", "set", "type":
		return d.hand(name, arg)
	case "quit":
		return errQuit
	}
	return fmt.Errorf("%.20q: want break, watch, delete, info, continue, step, next, finish, print, where, curves, touch, set, type or quit", words[0])
}

// mark changes and lists breakpoints.
func (d *debugger) mark(name string, arg []string) error {
	if name == "info" {
		for _, p := range d.Points() {
			d.printf("%d: %v\n", p.N, p)
		}
		return nil
	}
	if len(arg) != 1 {
		return fmt.Errorf("%s: want one word behind it", name)
	}
	if name == "delete" {
		n, err := strconv.Atoi(arg[0])
		if err != nil || !d.Forget(n) {
			return fmt.Errorf("delete %.20q: no such breakpoint", arg[0])
		}
		return nil
	}
	var p pleodebug.Point
	file, line, ok := strings.Cut(arg[0], ":")
	if !ok {
		file, line = "", arg[0]
	}
	n, err := strconv.Atoi(line)
	switch {
	case name == "watch":
		p.Watch = arg[0]
	case err == nil && n > 0:
		p.File, p.Line = file, n
	case ok:
		return fmt.Errorf("break %.40q: want FILE:LINE, LINE or FUNCTION", arg[0])
	default:
		p.Function = arg[0]
	}
	made := d.Mark(p)
	d.printf("%d: %v\n", made.N, made)
	return nil
}

// run lets time pass until a script pauses, at most for limit.
func (d *debugger) run(pace pleodebug.Pace, limit time.Duration) error {
	at, err := d.Go(d.cmd.Context(), pace, limit)
	switch {
	case err != nil:
		return err
	case at.Stopped:
		d.printf("%9.3f s  %s, at %v\n", d.OS.Now().Seconds(), at.Why, at.Stop)
	default:
		d.printf("%9.3f s  no stop in %v\n", d.OS.Now().Seconds(), limit)
	}
	return nil
}

// curveLetters is the width of a curve in a terminal.
const curveLetters = 48

// draw draws the curves of drives and properties, all or one.
func (d *debugger) draw(arg []string) error {
	found := false
	for _, c := range d.Curves() {
		if len(arg) > 0 && arg[0] != c.Name {
			continue
		}
		found = true
		what := "property"
		switch {
		case c.Active:
			what = "active drive"
		case c.Drive:
			what = "drive"
		}
		d.printf("%-18s %-12s %*s  %d, from %d to %d\n", c.Name, what, curveLetters, c.Text(curveLetters), c.Now(), slices.Min(c.Values), slices.Max(c.Values))
	}
	if !found {
		return errors.New("curves: no such drive, or property that was not 0, since power-on")
	}
	return nil
}

// print prints variables.
func (d *debugger) print(arg []string) error {
	if _, stopped := d.OS.Stopped(); !stopped {
		return pleodebug.ErrNotPaused
	}
	found := false
	for _, v := range d.OS.Variables() {
		if len(arg) > 0 && arg[0] != v.Name {
			continue
		}
		found = true
		text := ""
		if v.Text != "" {
			text = fmt.Sprintf(" %q", v.Text)
		}
		d.printf("%s = %s%s\n", v.Name, v.Value, text)
	}
	if !found && len(arg) > 0 {
		return fmt.Errorf("print %.40q: no such variable here", arg[0])
	}
	return nil
}

// hand does to the body what a person would.
func (d *debugger) hand(name string, arg []string) error {
	switch name {
	case "type":
		d.printf("%s", d.OS.Terminal(strings.Join(arg, " ")))
		return nil
	case "set":
		if len(arg) != 2 {
			return errors.New("set: want SENSOR VALUE, such as light 20")
		}
		v, err := strconv.ParseInt(arg[1], 10, 32)
		if err != nil {
			return fmt.Errorf("set: %.20q: want a whole number", arg[1])
		}
		return d.Set(arg[0], int32(v))
	}
	lasts := touchFor
	if len(arg) == 2 {
		t, err := time.ParseDuration(arg[1])
		if err != nil || t <= 0 {
			return fmt.Errorf("touch: %.20q: want a time", arg[1])
		}
		lasts = t
	}
	if len(arg) == 0 || len(arg) > 2 {
		return errors.New("touch: want PAD and perhaps a time")
	}
	return d.Touch(arg[0], lasts)
}

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
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/pawn"
)

// defaultGo is how long a script runs without a stop.
const defaultGo = 10 * time.Second

// DebugCommand returns the command debug.
func DebugCommand() *cobra.Command {
	var seed uint64
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
  touch PAD [TIME]        touch a pad, for 300 ms or TIME
  set SENSOR VALUE        give a sensor a reading
  type LINE               enter a line on the monitor
  quit                q   end

While a script is paused no time passes for Pleo. The scripts need symbols: robotkit pleo build PROJECT -debug.`,
		Example: `  robotkit pleo build demo -debug && robotkit pleo debug demo/build
  printf 'break on_sensor\ntouch head\ncontinue\nprint\n' | robotkit pleo debug demo/build`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			card, done, err := openCard(args[0])
			if err != nil {
				return err
			}
			defer done()
			d := &debugger{cmd: cmd, body: pleosim.New()}
			d.body.Set(lifeos.SensorCardDetect, 1)
			d.os = lifeos.New(lifeos.Config{Hardware: d.body, Card: card, Seed: seed, Statement: d.statement, Log: d.log})
			return d.read(cmd.InOrStdin())
		},
	}
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that random choices depend on")
	return cmd
}

// breakpoint is a place or a variable at which scripts pause.
type breakpoint struct {
	n        int
	file     string // "": any
	line     int    // 0: no line
	function string
	watch    string
	value    string // of the watched variable
	known    bool
}

func (b *breakpoint) String() string {
	switch {
	case b.watch != "":
		return "watch " + b.watch
	case b.function != "":
		return "break " + b.function
	case b.file != "":
		return fmt.Sprintf("break %s:%d", b.file, b.line)
	}
	return fmt.Sprintf("break %d", b.line)
}

// debugger is a Pleo whose scripts pause.
type debugger struct {
	cmd    *cobra.Command
	os     *lifeos.System
	body   *pleosim.Body
	points []*breakpoint
	last   int
	plans  []plan
	failed error // of printing

	pace  func(at lifeos.Stop) bool // pauses at a step; nil: none
	prior map[lifeos.VM]lifeos.Stop // the statement before, of each machine
	why   string
}

// plan is an act at a time.
type plan struct {
	at time.Duration
	do func()
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

// statement decides whether a script pauses before a statement.
func (d *debugger) statement(at lifeos.Stop) bool {
	if d.prior == nil {
		d.prior = map[lifeos.VM]lifeos.Stop{}
	}
	before := d.prior[at.VM]
	d.prior[at.VM] = at
	d.why = ""
	if d.pace != nil && d.pace(at) {
		d.why = "step"
	}
	for _, b := range d.points {
		switch {
		case b.watch != "":
			v, ok := d.variable(b.watch)
			if ok && b.known && v.Value != b.value {
				d.why = fmt.Sprintf("%d: %s changed from %s to %s", b.n, b.watch, b.value, v.Value)
			}
			if ok {
				b.value, b.known = v.Value, true
			}
		case b.function != "":
			if at.Function == b.function && at.Begins {
				d.why = fmt.Sprintf("%d: %v", b.n, b)
			}
		case at.Line == b.line && (b.file == "" || strings.EqualFold(b.file, at.File)) && !sameLine(before, at):
			d.why = fmt.Sprintf("%d: %v", b.n, b)
		}
	}
	return d.why != ""
}

// sameLine reports whether a statement follows another one on its line.
func sameLine(before, at lifeos.Stop) bool {
	return before.Script == at.Script && before.File == at.File && before.Line == at.Line && before.Depth == at.Depth && before.Offset < at.Offset
}

// variable returns a variable of the script whose statement is looked at.
func (d *debugger) variable(name string) (pawn.Variable, bool) {
	all := d.os.Variables()
	i := slices.IndexFunc(all, func(v pawn.Variable) bool { return v.Name == name })
	if i < 0 {
		return pawn.Variable{}, false
	}
	return all[i], true
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
	here, stopped := d.os.Stopped()
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
		return d.run(nil, limit)
	case "step":
		return d.run(func(at lifeos.Stop) bool { return !stopped || at.VM == here.VM }, defaultGo)
	case "next", "finish":
		if !stopped {
			return errors.New("no script is paused")
		}
		depth := here.Depth
		if name == "finish" {
			depth--
		}
		return d.run(func(at lifeos.Stop) bool { return at.VM == here.VM && at.Depth <= depth }, defaultGo)
	case "print":
		return d.print(arg)
	case "where":
		if !stopped {
			d.printf("no script is paused; %.3f s since power-on\n", d.os.Now().Seconds())
			return nil
		}
		d.printf("%v, %.3f s since power-on\n", here, d.os.Now().Seconds())
		return nil
	case "touch", "set", "type":
		return d.hand(name, arg)
	case "quit":
		return errQuit
	}
	return fmt.Errorf("%.20q: want break, watch, delete, info, continue, step, next, finish, print, where, touch, set, type or quit", words[0])
}

// mark changes and lists breakpoints.
func (d *debugger) mark(name string, arg []string) error {
	if name == "info" {
		for _, b := range d.points {
			d.printf("%d: %v\n", b.n, b)
		}
		return nil
	}
	if len(arg) != 1 {
		return fmt.Errorf("%s: want one word behind it", name)
	}
	if name == "delete" {
		n, err := strconv.Atoi(arg[0])
		i := slices.IndexFunc(d.points, func(b *breakpoint) bool { return b.n == n })
		if err != nil || i < 0 {
			return fmt.Errorf("delete %.20q: no such breakpoint", arg[0])
		}
		d.points = slices.Delete(d.points, i, i+1)
		return nil
	}
	b := &breakpoint{n: d.last + 1}
	file, line, ok := strings.Cut(arg[0], ":")
	if !ok {
		file, line = "", arg[0]
	}
	n, err := strconv.Atoi(line)
	switch {
	case name == "watch":
		b.watch = arg[0]
		if v, ok := d.variable(b.watch); ok {
			b.value, b.known = v.Value, true
		}
	case err == nil && n > 0:
		b.file, b.line = file, n
	case ok:
		return fmt.Errorf("break %.40q: want FILE:LINE, LINE or FUNCTION", arg[0])
	default:
		b.function = arg[0]
	}
	d.last++
	d.points = append(d.points, b)
	d.printf("%d: %v\n", b.n, b)
	return nil
}

// run lets time pass until a script pauses, at most for limit.
func (d *debugger) run(pace func(lifeos.Stop) bool, limit time.Duration) error {
	d.pace = pace
	d.os.Continue()
	for end := d.os.Now() + limit; d.os.Now() < end; {
		if err := d.cmd.Context().Err(); err != nil {
			return err
		}
		next := min(d.os.Now()+100*time.Millisecond, end)
		for i := 0; i < len(d.plans); i++ {
			if p := d.plans[i]; p.at <= d.os.Now() {
				d.plans = slices.Delete(d.plans, i, i+1)
				i--
				p.do()
				continue
			}
			next = min(next, d.plans[i].at)
		}
		d.body.Run(d.os, max(next, d.os.Now()+lifeos.Tick))
		if at, stopped := d.os.Stopped(); stopped {
			d.printf("%9.3f s  %s, at %v\n", d.os.Now().Seconds(), d.why, at)
			return nil
		}
		if d.os.Power() != lifeos.On {
			return errors.New("the power is off")
		}
	}
	d.printf("%9.3f s  no stop in %v\n", d.os.Now().Seconds(), limit)
	return nil
}

// print prints variables.
func (d *debugger) print(arg []string) error {
	if _, stopped := d.os.Stopped(); !stopped {
		return errors.New("no script is paused")
	}
	found := false
	for _, v := range d.os.Variables() {
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
		d.printf("%s", d.os.Terminal(strings.Join(arg, " ")))
		return nil
	case "set":
		if len(arg) == 2 {
			id, ok := sensorNamed(arg[0])
			v, err := strconv.ParseInt(arg[1], 10, 32)
			if ok && err == nil {
				d.body.Set(id, int32(v))
				return nil
			}
		}
		return errors.New("set: want SENSOR VALUE, such as light 20")
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
	id, ok := sensorNamed(arg[0])
	if !ok || id < lifeos.SensorHead || id > lifeos.SensorTail {
		return fmt.Errorf("touch: no pad %.20q", arg[0])
	}
	if d.os.Now() == 0 {
		d.body.Run(d.os, realTick) // the first readings: what changes later is a trigger
	}
	d.body.Set(id, 1)
	d.plans = append(d.plans, plan{d.os.Now() + lasts, func() { d.body.Set(id, 0) }})
	return nil
}

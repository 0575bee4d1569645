package kitapp

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

const paramsHelp = `  KEYWORD              show a parameter
  KEYWORD VALUE        edit a variable: a number, hexadecimal as 0xfa0, or a text without quotes
  list                 show all parameters; constants (c) or variables (v): only these
  restore              reload the variables from the robot, or from the file of -n
  restore FILE         load them from a file
  save                 write them to the robot, or to the file of -n
  save FILE            write them to a file
  help                 show this; also ?
  quit                 end; also q`

func amigoParamsCommand() *cobra.Command {
	var address, file string
	var reset, yes bool
	cmd := &cobra.Command{
		Use:   "params [-port ADDRESS | -n FILE] [COMMAND...]",
		Short: "Show and edit the parameters in an AmigoBot's FLASH",
		Long: `Show and edit the parameters in the FLASH of an AmigoBot in System mode, or with -n in a file such as ` + flash.FileName + `.

Without a command it reads commands from the terminal:

` + paramsHelp + `

Edits reach the robot when saved, and take effect after its next reset. A command given on the command line runs alone, and its edits
are saved at once; get and set may precede the keyword.`,
		Example: `  robotkit amigo params -port tcp:localhost:8102
  robotkit amigo params -port tcp:localhost:8102 list -o json
  robotkit amigo params -port tcp:localhost:8102 -reset set watchdog 4000
  robotkit amigo params -port tcp:localhost:8102 save myrobot.cf
  robotkit amigo params -n myrobot.cf set name Rover`,
		Args: cobra.MaximumNArgs(3),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var words []string
			for k := range flash.Count {
				words = append(words, k.String())
			}
			switch {
			case len(args) == 0:
				return append([]string{"list", "constants", "variables", "get", "set", "restore", "save"}, words...), cobra.ShellCompDirectiveNoFileComp
			case len(args) == 1 && (args[0] == "get" || args[0] == "set"):
				return words, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e := editor{cmd: cmd, in: typed(cmd.InOrStdin()), yes: yes}
			if file != "" {
				if cmd.Flags().Changed("port") || reset {
					return cli.Usage("-n excludes -port and -reset")
				}
				e.name = file
				e.load = func() (flash.Values, error) { return paramsFile(file) }
				e.store = func(v *flash.Values) error { return writeFile(file, []byte(v.Format())) }
				return e.run(args)
			}
			return withSystem(cmd, address, reset, func(c *sysmode.Client, version string) error {
				e.name = "FLASH of the robot with AmigOS " + version
				e.load = func() (flash.Values, error) { return c.Params(cmd.Context()) }
				e.store = func(v *flash.Values) error { return c.Save(cmd.Context(), v) }
				return e.run(args)
			})
		},
	}
	systemFlag(cmd, &address, &reset)
	f := cmd.Flags()
	f.StringVarP(&file, "offline", "n", "", "edit the parameter `file` without a robot")
	f.BoolVar(&yes, "yes", false, "save critical parameters without asking")
	return cmd
}

// paramsFile returns the defaults with a file's changes; a missing file changes nothing.
func paramsFile(name string) (flash.Values, error) {
	v := flash.Defaults()
	err := parseParams(name, &v)
	if errs.KindOf(err) == errs.NotFound {
		err = nil
	}
	return v, err
}

func parseParams(name string, v *flash.Values) error {
	text, err := readFile(name)
	if err != nil {
		return err
	}
	if err := v.Parse(string(text)); err != nil {
		return cli.Usage("%s: %w", name, err)
	}
	return nil
}

// editor edits a working copy of parameters (AMIGO-CF-02 to 12).
type editor struct {
	cmd    *cobra.Command
	in     <-chan string
	yes    bool
	name   string // of the place that load and store reach
	load   func() (flash.Values, error)
	store  func(*flash.Values) error
	stored flash.Values
	work   flash.Values
}

// run carries out one command and saves its edits, or reads commands until quit.
func (e *editor) run(args []string) error {
	if err := e.restore(""); err != nil {
		return err
	}
	if len(args) > 0 {
		if err := e.do(args); err != nil {
			return err
		}
		if e.work == e.stored {
			return nil
		}
		return e.save("")
	}
	e.say("Parameters in the %s. Commands: KEYWORD [VALUE], list, constants, variables, restore [FILE], save [FILE], help, quit.", e.name)
	for {
		words, err := prompt(e.cmd, e.in, "> ") // AMIGO-CF-12
		if err == io.EOF || err == nil && len(words) > 0 && (words[0] == "q" || words[0] == "quit") {
			if e.work != e.stored {
				e.say("Unsaved edits discarded.")
			}
			return nil
		} else if err != nil {
			return err
		}
		if len(words) == 0 {
			continue
		}
		if err := e.do(words); err != nil {
			if errors.Is(err, e.cmd.Context().Err()) {
				return err
			}
			e.say("%s", cli.Clean(err.Error()))
		}
	}
}

// say writes a line to the person who edits.
func (e *editor) say(format string, args ...any) {
	fmt.Fprintf(e.cmd.ErrOrStderr(), format+"\n", args...)
}

func (e *editor) do(words []string) error {
	first, rest := strings.ToLower(words[0]), words[1:]
	argument := strings.Join(rest, " ")
	switch first {
	case "c", "constants":
		return e.show(func(p flash.Param) bool { return p.Constant })
	case "v", "variables":
		return e.show(func(p flash.Param) bool { return !p.Constant })
	case "list":
		return e.show(func(flash.Param) bool { return true })
	case "r", "restore":
		return e.restore(argument)
	case "save":
		return e.save(argument)
	case "?", "help":
		e.say(paramsHelp)
		return nil
	case "get", "set":
		if len(rest) != map[string]int{"get": 1, "set": 2}[first] {
			return cli.Usage("%s: want a keyword, and with set a new value", first)
		}
		words = rest
	}
	k, err := flash.Lookup(words[0])
	if err != nil {
		return errs.New(errs.NotFound, "%w", err)
	}
	if len(words) > 1 {
		if err := e.work.Set(words[0], strings.Join(words[1:], " ")); err != nil {
			return cli.Usage("%w", err)
		}
	}
	return cli.PrintLine(e.cmd, e.param(k), func() string { return fmt.Sprintf("%s %s", k, e.work.Value(k)) })
}

// param is one parameter as list prints it.
type param struct {
	Keyword  string `json:"keyword"`
	Value    string `json:"value"`
	Stored   string `json:"stored"` // differs from value in edits that are not saved
	Type     string `json:"type"`
	Takes    string `json:"takes,omitempty"`
	Constant bool   `json:"constant"`
	Critical bool   `json:"critical"`
	Doc      string `json:"doc"`
}

func (e *editor) param(k flash.Key) param {
	p := k.Param()
	out := param{p.Keyword, e.work.Value(k), e.stored.Value(k), p.Kind.String(), "", p.Constant, p.Critical, p.Doc}
	if !p.Constant {
		out.Takes = p.Range()
	}
	return out
}

func (e *editor) show(which func(flash.Param) bool) error {
	var out []param
	for k := range flash.Count {
		if which(k.Param()) {
			out = append(out, e.param(k))
		}
	}
	return cli.Print(e.cmd, out, func(t *cli.Table) {
		t.Row("KEYWORD", "VALUE", "TYPE", "TAKES", "WHAT IT IS")
		for _, p := range out {
			value := p.Value
			if p.Value != p.Stored {
				value += " (not saved)"
			}
			t.Row(p.Keyword, value, p.Type, p.Takes, p.Doc)
		}
	})
}

// restore drops the edits (AMIGO-CF-07); from a file it takes the variables that the file names.
func (e *editor) restore(file string) error {
	if file != "" {
		return parseParams(file, &e.work)
	}
	v, err := e.load()
	if err == nil {
		e.stored, e.work = v, v
	}
	return err
}

// save stores the working copy (AMIGO-CF-08). It asks before it stores critical parameters that changed (AMIGO-FLASH-39).
func (e *editor) save(file string) error {
	if file != "" {
		return writeFile(file, []byte(e.work.Format()))
	}
	var critical []string
	for k := range flash.Count {
		if k.Param().Critical && e.work.Value(k) != e.stored.Value(k) {
			critical = append(critical, k.String())
		}
	}
	if len(critical) > 0 && !e.yes {
		answer, err := prompt(e.cmd, e.in, fmt.Sprintf("With a wrong %s the robot drives badly. Save? [y/N] ", strings.Join(critical, ", ")))
		if err != nil && err != io.EOF {
			return err
		}
		if !agreed(answer) {
			return cli.Usage("not saved; -yes saves critical parameters without asking")
		}
	}
	if err := e.store(&e.work); err != nil {
		return fmt.Errorf("save to the %s: %w", e.name, err)
	}
	e.stored = e.work
	e.say("Saved to the %s. Takes effect after the robot's next reset.", e.name)
	return nil
}

// saveParam stores one variable of a robot in System mode.
func saveParam(cmd *cobra.Command, address, keyword, value string) error {
	return withSystem(cmd, address, false, func(c *sysmode.Client, _ string) error {
		v, err := c.Params(cmd.Context())
		if err == nil {
			err = v.Set(keyword, value)
		}
		if err == nil {
			err = c.Save(cmd.Context(), &v)
		}
		return err
	})
}

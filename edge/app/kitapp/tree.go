package kitapp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/bodies"
	"kennel/edge/body/species"
	"kennel/edge/robot"
	"kennel/edge/robot/treefile"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// trees are the bodies that tree prints, by name, with their models: species in the order in which help lists them, then the models of all.
func trees() (all []species.Model) {
	for _, s := range bodies.All() {
		all = append(all, species.Model{Name: s.Word(), Tree: s.Tree})
	}
	for _, s := range bodies.All() {
		all = append(all, s.Models...)
	}
	return all
}

func names() (out []string) {
	for _, m := range trees() {
		out = append(out, m.Name)
	}
	return out
}

// bodyTree returns the tree of a body: "vector" or "vic", "ers-7" or "ers7".
func bodyTree(name string) (*robot.Tree, error) {
	name = strings.ToLower(name)
	if s, ok := bodies.Of(thing.Species(name)); ok {
		return s.Tree()
	}
	for _, m := range trees() {
		if name == m.Name || name == strings.ReplaceAll(m.Name, "-", "") {
			return m.Tree()
		}
	}
	return nil, cli.Usage("body %.40q: want one of %s, or -f FILE", name, strings.Join(names(), ", "))
}

// line is one node as tree prints it.
type line struct {
	Full      string   `json:"full"`
	Compact   string   `json:"compact"`
	Kind      string   `json:"kind"`
	Interface string   `json:"interface"`         // several with a comma and a space between
	Aliases   []string `json:"aliases,omitempty"` // further short names; with the slots
	Slots     []slot   `json:"slots,omitempty"`
}

// slot is one slot of a device.
type slot struct {
	Name     string    `json:"name"`
	Access   string    `json:"access"`
	Type     string    `json:"type"`
	Unit     string    `json:"unit,omitempty"`
	Min      *float64  `json:"min,omitempty"`
	Max      *float64  `json:"max,omitempty"`
	Words    []string  `json:"words,omitempty"`
	Args     []slotArg `json:"args,omitempty"`
	Optional bool      `json:"optional,omitempty"`
	Beside   bool      `json:"beside_the_standard,omitempty"`
	Points   string    `json:"points_to,omitempty"`
	Alias    string    `json:"alias,omitempty"`
	Doc      string    `json:"doc"`
}

type slotArg struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Unit string `json:"unit,omitempty"`
}

func slotLine(s *robot.Slot, r robot.Range) slot {
	out := slot{Name: s.Name, Access: s.Access.String(), Unit: string(s.Unit), Words: s.Words, Optional: s.Optional, Beside: s.Extra,
		Points: s.Points, Alias: s.Alias, Doc: s.Doc,
		Type: s.Type.String()}
	if !math.IsInf(r.Min, 0) {
		out.Min = &r.Min
	}
	if !math.IsInf(r.Max, 0) {
		out.Max = &r.Max
	}
	for _, a := range s.Args {
		out.Args = append(out.Args, slotArg{a.Name, a.Type.String(), string(a.Unit)})
	}
	return out
}

// span prints a range for people: "-0.785 to 0.384".
func (s slot) span() string {
	num := func(v *float64, open string) string {
		if v == nil {
			return open
		}
		return strconv.FormatFloat(*v, 'g', 4, 64)
	}
	switch {
	case s.Min == nil && s.Max == nil && s.Words == nil:
		return ""
	case s.Words != nil:
		return strings.Join(s.Words, ", ")
	case s.Max == nil && *s.Min == math.SmallestNonzeroFloat64:
		return "above 0"
	case s.Max == nil:
		return "from " + num(s.Min, "")
	}
	return num(s.Min, "-inf") + " to " + num(s.Max, "inf")
}

// signature is a method's or event's name with its arguments, any other slot's name; optional ones end in ?, as in the standard.
func (s slot) signature() string {
	name := s.Name
	if s.Optional {
		name += "?"
	}
	if s.Args == nil && s.Access != robot.Method.String() && s.Access != robot.Event.String() {
		return name
	}
	args := make([]string, len(s.Args))
	for i, a := range s.Args {
		args[i] = strings.TrimSpace(a.Name + " " + a.Unit)
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

func treeCommand() *cobra.Command {
	var file string
	var all, slots, dump, flat bool
	cmd := &cobra.Command{
		Use:   "tree [BODY] [-f FILE]",
		Short: "List the parts of a body with their names and interfaces",
		Long: `List the parts of a body as named by the Gostai Standard Robotics API 2.3: full name, compact name, kind and interfaces of every
device. BODY is ` + strings.Join(names(), ", ") + ` (aibo: the parts of all its models).

With -f the tree is read from a JSON file, or from standard input for "-":

  {"robot": {"body": {
      "wheel[]": {"left": "RotationalMotor", "right": "RotationalMotor"},
      "leg[]":   {"front[]": {"left": {"knee": {"pitch": "RotationalMotor"}}}},
      "battery": {".": "Battery", "temperature": "TemperatureSensor"}
  }}}

An object is a component, a key that ends in [] a localizer with places inside (up, front, left, x, 0, ...), a string a device with that
interface, or several separated by commas. "." is the component itself. Devices that would share a compact name get none; they keep their
full names, and a warning is printed.`,
		Example: `  robotkit tree vector
  robotkit tree ers-7 -o json
  robotkit tree -f body.json -o json
  robotkit tree vector -slots
  robotkit tree pleo -flat`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := chosen(cmd, file, args)
			if err != nil {
				return err
			}
			switch {
			case dump && flat, (dump || flat) && (all || slots || cli.JSON(cmd)):
				return cli.Usage("want at most one of -dump and -flat, without -all, -slots and -o json")
			case dump:
				return tree.Dump(cmd.OutOrStdout())
			case flat:
				return tree.FlatDump(cmd.OutOrStdout())
			}
			return printTree(cmd, tree, all, slots)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "file", "f", "", "JSON `file` that describes the tree; - for standard input")
	f.BoolVar(&all, "all", false, "include components and localizers, not only devices")
	f.BoolVar(&slots, "slots", false, "include slots with type, unit and range; in JSON also aliases")
	f.BoolVar(&dump, "dump", false, "print an indented tree")
	f.BoolVar(&flat, "flat", false, "print compact names by interface, like the standard's flatDump")
	return cmd
}

// maxFile is how much of a file is read; the parser takes less.
const maxFile = 16 << 20

func chosen(cmd *cobra.Command, file string, args []string) (*robot.Tree, error) {
	switch {
	case file == "" && len(args) == 0:
		return nil, cli.Usage("missing BODY: want one of %s, or -f FILE", strings.Join(names(), ", "))
	case file == "":
		return bodyTree(args[0])
	case len(args) > 0:
		return nil, cli.Usage("%q and -f %s exclude each other", args[0], file)
	}
	in := cmd.InOrStdin()
	name := "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			return nil, errs.New(errs.NotFound, "-f: %w", err)
		} else if err != nil {
			return nil, fmt.Errorf("-f: %w", err)
		}
		defer f.Close()
		in, name = f, file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	tree, warnings, err := treefile.Parse(strings.TrimSuffix(filepath.Base(name), ".json"), text)
	if err != nil {
		return nil, cli.Usage("%s: %w", name, err)
	}
	for _, w := range warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "robotkit: %s: warning: %s\n", name, cli.Clean(w.Error()))
	}
	return tree, nil
}

func printTree(cmd *cobra.Command, tree *robot.Tree, all, withSlots bool) error {
	lines := []line{} // an empty tree is an empty array
	aliases := map[*robot.Node][]string{}
	if withSlots {
		for name, d := range tree.Aliases() {
			aliases[d] = append(aliases[d], name)
			slices.Sort(aliases[d])
		}
	}
	for _, n := range tree.Nodes() {
		if n.Kind() != robot.Device && !all {
			continue
		}
		l := line{Full: n.Full(), Compact: n.Compact(), Kind: n.Kind().String(), Interface: robot.JoinInterfaces(n.Interfaces()), Aliases: aliases[n]}
		for _, r := range n.Slots() {
			if withSlots && r.Present {
				s := slotLine(r.Slot, r.Range)
				s.Unit = string(r.Unit())
				if r.Property {
					s.Name = "val->" + s.Name
				}
				l.Slots = append(l.Slots, s)
			}
		}
		lines = append(lines, l)
	}
	return cli.Print(cmd, lines, func(t *cli.Table) {
		if !withSlots {
			t.Row("FULL NAME", "COMPACT", "KIND", "INTERFACE")
			for _, l := range lines {
				t.Row(l.Full, l.Compact, l.Kind, l.Interface)
			}
			return
		}
		t.Row("SLOT", "ACCESS", "TYPE", "UNIT", "RANGE", "WHAT IT IS")
		for _, l := range lines {
			for _, s := range l.Slots {
				t.Row(l.Compact+"."+s.signature(), s.Access, s.Type, s.Unit, s.span(), s.Doc)
			}
		}
	})
}

// iface is one interface as interfaces prints it.
type iface struct {
	Name   string `json:"name"`
	Base   string `json:"base,omitempty"`
	Beside bool   `json:"beside_the_standard,omitempty"`
	Doc    string `json:"doc"`
	Slots  []slot `json:"slots"`
}

func interfacesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "interfaces [NAME]",
		Short: "List interfaces of devices, or the slots of one",
		Example: `  robotkit interfaces
  robotkit interfaces RotationalMotor
  robotkit interfaces -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := robot.Interfaces()
			if len(args) == 1 {
				one, err := robot.InterfaceNamed(args[0])
				if err != nil {
					return errs.New(errs.NotFound, "%w", err)
				}
				chosen = []*robot.Interface{one}
			}
			var out []iface
			for _, i := range chosen {
				f := iface{Name: i.Name, Beside: i.Extra, Doc: i.Doc}
				if i.Base != nil {
					f.Base = i.Base.Name
				}
				for k := range i.Slots {
					s := &i.Slots[k]
					f.Slots = append(f.Slots, slotLine(s, robot.Range{Min: s.Min, Max: s.Max}))
				}
				out = append(out, f)
			}
			return cli.Print(cmd, out, func(t *cli.Table) {
				if len(args) == 0 {
					t.Row("INTERFACE", "KIND OF", "SLOTS", "WHAT IT IS")
					for _, f := range out {
						names := make([]string, len(f.Slots))
						for i, s := range f.Slots {
							names[i] = s.signature()
						}
						t.Row(f.Name, f.Base, strings.Join(slices.Compact(names), " "), f.Doc)
					}
					return
				}
				t.Text(out[0].Name + ": " + out[0].Doc)
				t.Row("SLOT", "ACCESS", "TYPE", "UNIT", "RANGE", "WHAT IT IS")
				for _, s := range out[0].Slots {
					t.Row(s.signature(), s.Access, s.Type, s.Unit, s.span(), s.Doc)
				}
			})
		},
	}
}

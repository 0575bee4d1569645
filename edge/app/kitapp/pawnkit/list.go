package pawnkit

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/pawn/amx"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list FILE.amx", Short: "List the tables and instructions of a compiled script",
		Long: `List header, tables and instructions. Offsets are bytes in the code. Jumps show the offset they lead to, data addresses begin with "data", addresses in the
frame of a function with "frame" (arguments are above, locals below 0).`,
		Example: "  robotkit pawn list dance.amx\n  robotkit pawn list dance.amx -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := open(args[0])
			if err != nil {
				return err
			}
			l, err := newListing(p)
			if err != nil {
				return errs.New(errs.Invalid, "%s: %w", args[0], err)
			}
			return cli.Print(cmd, l, l.table)
		},
	}
}

// listing is the output of list.
type listing struct {
	Version   uint8             `json:"version"`
	Machine   uint8             `json:"machine"` // lowest version that can run it
	Flags     []string          `json:"flags"`
	Code      int               `json:"code_bytes"`
	Data      int               `json:"data_bytes"`
	StackHeap int32             `json:"stack_heap_cells"`
	Main      *int32            `json:"main,omitempty"`
	Publics   []entry           `json:"publics,omitempty"`
	Natives   []string          `json:"natives,omitempty"`
	Libraries []string          `json:"libraries,omitempty"`
	Pubvars   []entry           `json:"public_variables,omitempty"`
	Tags      []entry           `json:"tags,omitempty"`
	Overlays  []listedOverlay   `json:"overlays,omitempty"`
	Lines     []listInstruction `json:"instructions"`
}

type entry struct {
	Name  string `json:"name"`
	Value uint32 `json:"value"`
}

type listedOverlay struct {
	Offset int32 `json:"offset"`
	Size   int32 `json:"size"`
}

type listInstruction struct {
	Offset   int          `json:"offset"`
	Label    string       `json:"label,omitempty"` // the function or overlay that begins there
	Name     string       `json:"name"`
	Operands []int32      `json:"operands,omitempty"`
	Text     string       `json:"text,omitempty"` // of the operands
	Default  *int32       `json:"default,omitempty"`
	Cases    []listedCase `json:"cases,omitempty"`
}

type listedCase struct {
	Value  int32 `json:"value"`
	Target int32 `json:"target"` // byte in the code, or overlay
}

var flagNames = []struct {
	flag amx.Flags
	name string
}{{amx.FlagOverlay, "overlays"}, {amx.FlagDebug, "debug"}, {amx.FlagCompact, "compact"}, {amx.FlagSleep, "sleep"}, {amx.FlagNoChecks, "nochecks"}, {amx.FlagDataInit, "datainit"}}

func newListing(p *amx.Program) (*listing, error) {
	l := &listing{Version: p.Version, Machine: p.Machine, Flags: []string{}, Code: len(p.Code), Data: len(p.Data), StackHeap: p.StackHeapCells, Lines: []listInstruction{}}
	for _, f := range flagNames {
		if p.Flags&f.flag != 0 {
			l.Flags = append(l.Flags, f.name)
		}
	}
	labels := map[int]string{}
	name := func(value int32, what string) {
		at := int(value)
		if len(p.Overlays) > 0 {
			at = int(p.Overlays[value].Offset)
		}
		labels[at] = strings.TrimSpace(labels[at] + " " + what)
	}
	for i, o := range p.Overlays {
		l.Overlays = append(l.Overlays, listedOverlay{o.Offset, o.Size})
		name(int32(i), fmt.Sprintf("overlay %d", i))
	}
	if p.Main != amx.NoMain {
		l.Main = &p.Main
		name(p.Main, "main")
	}
	for _, e := range p.Publics {
		l.Publics = append(l.Publics, entry{e.Name, e.Value})
		name(int32(e.Value), e.Name)
	}
	for _, e := range p.Natives {
		l.Natives = append(l.Natives, e.Name)
	}
	for _, e := range p.Libraries {
		l.Libraries = append(l.Libraries, e.Name)
	}
	for _, e := range p.Pubvars {
		l.Pubvars = append(l.Pubvars, entry{e.Name, e.Value})
	}
	for _, e := range p.Tags {
		l.Tags = append(l.Tags, entry{e.Name, e.Value})
	}
	for in, err := range p.Instructions(0, len(p.Code)) {
		if err != nil {
			return nil, err
		}
		l.Lines = append(l.Lines, listed(p, in, labels[in.Offset]))
	}
	return l, nil
}

func listed(p *amx.Program, in amx.Instr, label string) listInstruction {
	out := listInstruction{Offset: in.Offset, Label: label, Name: in.Op.Name, Operands: in.Operands[:len(in.Op.Operands)]}
	var text []string
	for i, k := range in.Op.Operands {
		v := in.Operands[i]
		switch k {
		case amx.Global:
			text = append(text, fmt.Sprintf("data %d", v))
		case amx.Frame:
			text = append(text, fmt.Sprintf("frame %+d", v))
		case amx.Native:
			if v >= 0 && int(v) < len(p.Natives) {
				text = append(text, p.Natives[v].Name)
				continue
			}
			text = append(text, fmt.Sprintf("native %d", v))
		case amx.InOverlay:
			text = append(text, fmt.Sprintf("overlay %d", v))
		case amx.Cases, amx.OverlayCases:
			for _, c := range in.Cases {
				out.Cases = append(out.Cases, listedCase{c.Value, c.Target})
				text = append(text, fmt.Sprintf("%d: %d", c.Value, c.Target))
			}
			out.Operands, out.Default = nil, &in.Default
			text = append(text, fmt.Sprintf("default: %d", in.Default))
		default:
			text = append(text, fmt.Sprint(v))
		}
	}
	out.Text = strings.Join(text, ", ")
	return out
}

func (l *listing) table(t *cli.Table) {
	t.Text(fmt.Sprintf("version %d, runs on machines from %d, %s; %d bytes of code, %d of data, %d cells of stack and heap",
		l.Version, l.Machine, strings.Join(append([]string{}, l.Flags...), " "), l.Code, l.Data, l.StackHeap))
	t.Row("KIND", "NAME", "VALUE")
	if l.Main != nil {
		t.Row("main", "main", fmt.Sprint(*l.Main))
	}
	for _, e := range l.Publics {
		t.Row("public", e.Name, fmt.Sprint(e.Value))
	}
	for i, n := range l.Natives {
		t.Row("native", n, fmt.Sprint(i))
	}
	for _, n := range l.Libraries {
		t.Row("library", n, "")
	}
	for _, e := range l.Pubvars {
		t.Row("variable", e.Name, fmt.Sprintf("data %d", e.Value))
	}
	for _, e := range l.Tags {
		t.Row("tag", e.Name, fmt.Sprintf("%#x", e.Value))
	}
	for i, o := range l.Overlays {
		t.Row("overlay", fmt.Sprint(i), fmt.Sprintf("%d bytes at %d", o.Size, o.Offset))
	}
	t.Text("")
	t.Row("OFFSET", "INSTRUCTION", "OPERANDS", "BEGIN OF")
	for _, in := range l.Lines {
		t.Row(fmt.Sprint(in.Offset), in.Name, in.Text, in.Label)
	}
}

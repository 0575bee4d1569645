package lifeos

import (
	"fmt"
	"slices"
	"strings"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
)

// Limits of a look at a script.
const (
	maxFrames = 100
	maxCells  = 64 // of an array
)

// Stop is a place before a statement of a script.
type Stop struct {
	VM       VM
	Script   string
	File     string
	Line     int // from 1
	Function string
	Depth    int   // functions that have begun and not ended
	Offset   int32 // byte of the script's code
	Begins   bool  // it is the first statement of its function
}

// String returns "main.p:12 in nod (main)".
func (p Stop) String() string {
	return fmt.Sprintf("%s:%d in %s (%s)", p.File, p.Line, p.Function, p.Script)
}

// debugger watches the statements of scripts that have symbols.
type debugger struct {
	symbols map[*pawn.Machine]*amx.Debug
	stopped bool     // no time passes
	seen    *machine // whose statement was seen last
	at      Stop
	offset  int32
}

// watchStatements returns the function that a script's machine calls before each statement; nil if no debugger watches, or it has no symbols.
func (s *System) watchStatements(m *machine, out *script) func(int32) bool {
	if s.cfg.Statement == nil || out.program.Flags&amx.FlagDebug == 0 {
		return nil
	}
	d, err := out.program.Symbols()
	if err != nil {
		s.log(Warning, LogVM, "%s: symbols: %v", out.path(), err)
		return nil
	}
	first := map[string]int32{} // a function begins with the statement that was seen first
	return func(offset int32) bool {
		at := Stop{Offset: offset, VM: m.vm, Script: out.name, Depth: len(out.amx.Frame(maxFrames))}
		at.File, at.Line, at.Function = d.Source(offset)
		if _, known := first[at.Function]; !known {
			first[at.Function] = offset
		}
		at.Begins = first[at.Function] == offset
		if s.debug.symbols == nil {
			s.debug.symbols = map[*pawn.Machine]*amx.Debug{}
		}
		s.debug.symbols[out.amx] = d
		s.debug.seen, s.debug.at, s.debug.offset = m, at, offset // so that Variables works in Statement
		s.debug.stopped = s.cfg.Statement(at)
		return s.debug.stopped
	}
}

// Stopped returns where a script is paused, and whether one is: no time passes until Continue.
func (s *System) Stopped() (Stop, bool) { return s.debug.at, s.debug.stopped }

// Continue lets time pass again.
func (s *System) Continue() { s.debug.stopped = false }

// Variable is a variable of the function that is paused, or of its script.
type Variable struct {
	Name  string
	Local bool
	Value string // a number, or the numbers of an array, of which the first 64
	Text  string // the array as a string, if it is one that can be printed
}

// Variables returns the variables that exist where a script is paused, the local ones first; of two with a name the inner one. It also works in Config.Statement.
func (s *System) Variables() (out []Variable) {
	m := s.debug.seen
	if m == nil || s.debug.symbols[m.amx] == nil {
		return nil
	}
	frames := m.amx.Frame(1)
	all := s.debug.symbols[m.amx].Variables
	for i := range all { // the file has inner scopes after outer ones
		v := &all[len(all)-1-i]
		if at := uint32(s.debug.offset); at < v.From || at >= v.To || v.Local && len(frames) == 0 {
			continue
		}
		if slices.ContainsFunc(out, func(o Variable) bool { return o.Name == v.Name }) {
			continue
		}
		address := v.Address
		if v.Local {
			address += frames[0]
		}
		if v.Kind == amx.KindReference || v.Kind == amx.KindArrayReference {
			address, _ = m.amx.Cell(address) // 0 is a place as well
		}
		out = append(out, show(m.amx, v, address))
	}
	slices.SortStableFunc(out, func(a, b Variable) int {
		if a.Local != b.Local {
			return map[bool]int{true: -1, false: 1}[a.Local]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// show reads a variable.
func show(m *pawn.Machine, v *amx.DebugVariable, address int32) Variable {
	out := Variable{Name: v.Name, Local: v.Local}
	if v.Kind == amx.KindValue || v.Kind == amx.KindReference {
		n, _ := m.Cell(address)
		out.Value = fmt.Sprint(n)
		return out
	}
	if len(v.Sizes) > 1 {
		out.Value = fmt.Sprintf("an array of %d dimensions", len(v.Sizes))
		return out
	}
	cells := uint32(maxCells)
	if text, ok := m.Text(address, maxCells); ok && len(text) > 0 && !slices.ContainsFunc(text, func(c byte) bool { return c < ' ' || c > '~' }) {
		out.Text = string(text)
		cells = uint32(len(text)) + 1 // unless its size is known
	}
	if len(v.Sizes) == 1 && v.Sizes[0] > 0 {
		cells = min(maxCells, v.Sizes[0])
	}
	var numbers []string
	for i := range cells {
		n, ok := m.Cell(address + 4*int32(i))
		if !ok {
			break
		}
		numbers = append(numbers, fmt.Sprint(n))
	}
	out.Value = "{" + strings.Join(numbers, ", ") + "}"
	return out
}

package lifeos

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
)

// maxFrames bounds a look at the calls of a script.
const maxFrames = 100

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

// Variables returns the variables that exist where a script is paused. It also works in Config.Statement.
func (s *System) Variables() []pawn.Variable {
	m := s.debug.seen
	if m == nil || s.debug.symbols[m.amx] == nil {
		return nil
	}
	return m.amx.Variables(s.debug.symbols[m.amx], s.debug.offset)
}

// DriveState is a drive as a debugger shows it.
type DriveState struct {
	Name             string
	Value, Low, High int32
	Active           bool
}

// Drives returns the drives of the application in the order in which it added them.
func (s *System) Drives() []DriveState {
	var out []DriveState
	for _, m := range s.drivers.list {
		out = append(out, DriveState{m.name, m.value, m.low, m.high, m == s.drivers.active})
	}
	return out
}

// Properties returns all properties with their names, sorted by id. One that the application does not declare has no name.
func (s *System) Properties() []SavedProperty {
	var list []SavedProperty
	for _, id := range slices.Sorted(maps.Keys(s.properties.values)) {
		list = append(list, SavedProperty{id, s.propertyName(id), s.properties.values[id]})
	}
	return list
}

// SensorNamed returns a sensor by its name in small or capital letters, such as light, or by its id.
func SensorNamed(name string) (Sensor, bool) {
	for _, k := range sensorKinds {
		if strings.EqualFold(k.Name, name) || name == strconv.Itoa(int(k.ID)) {
			return k.ID, true
		}
	}
	return 0, false
}

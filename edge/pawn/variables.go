package pawn

import (
	"fmt"
	"slices"
	"strings"

	"kennel/edge/pawn/amx"
)

// maxCells bounds the elements of an array that are shown.
const maxCells = 64

// Variable is a variable of the function that is paused, or of its script.
type Variable struct {
	Name  string `json:"name"`
	Local bool   `json:"local"`
	Value string `json:"value"`          // a number, or the numbers of an array, of which the first 64
	Text  string `json:"text,omitempty"` // the array as a string, if it is one that can be printed
}

// Variables returns the variables that exist where a call is paused, with their values: the local ones first; of two with a name the inner one. d are the symbols
// of the program, and offset is the byte of its code.
func (m *Machine) Variables(d *amx.Debug, offset int32) (out []Variable) {
	frames := m.Frame(1)
	for i := range d.Variables { // the file has inner scopes after outer ones
		v := &d.Variables[len(d.Variables)-1-i]
		if at := uint32(offset); at < v.From || at >= v.To || v.Local && len(frames) == 0 {
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
			address, _ = m.Cell(address) // 0 is a place as well
		}
		out = append(out, m.show(v, address))
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
func (m *Machine) show(v *amx.DebugVariable, address int32) Variable {
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

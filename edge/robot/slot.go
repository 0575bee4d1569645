package robot

import (
	"fmt"
	"math"
	"slices"
)

// Access says what can be done with a slot.
type Access uint8

// The kinds of slots (GOSTAI-IF-00d).
const (
	ReadWrite Access = iota // attribute
	ReadOnly                // attribute
	Method
	Event
)

// String returns "attribute", "read-only attribute", "method" or "event".
func (a Access) String() string {
	return [...]string{"attribute", "read-only attribute", "method", "event"}[min(a, Event)]
}

// Holds reports whether a slot of this kind has a value.
func (a Access) Holds() bool { return a == ReadWrite || a == ReadOnly }

// Unit is a slot's unit as people write it: "rad", "m/s". One without a unit has "".
type Unit string

// Argument is one argument of a method or an event.
type Argument struct {
	Name string
	Type Type
	Unit Unit
}

// Slot is one attribute, method or event of an interface.
type Slot struct {
	Name   string
	Access Access
	Type   Type // of the value; of a method: what it returns, None for nothing
	Unit   Unit
	// Min and Max are the range the standard gives; infinite where it gives none.
	Min, Max float64
	Words    []string   // the only values of a string slot, if there are such
	Args     []Argument // of a method or event
	Optional bool       // a device may lack it
	Extra    bool       // ours, beside the standard's; optional too
	Alias    string     // a second name
	Default  Value      // its value until it is measured or set; of type None: an error instead
	Points   string     // the slot that this one is another name of: val of a RotationalMotor is its angle (GOSTAI-IF-00c)
	Doc      string
}

// Allows says why v cannot be a value of s, if it cannot. It knows nothing of a device's own limits.
func (s *Slot) Allows(v Value) error {
	if !v.Type.fits(s.Type) {
		return fmt.Errorf("%w: %s is %s, got %s", ErrType, s.Name, s.Type, v.Type)
	}
	if s.Type == String && s.Words != nil && !slices.Contains(s.Words, v.Text) {
		return fmt.Errorf("%w: %s is %q, want one of %q", ErrRange, s.Name, v.Text, s.Words)
	}
	if s.Type.scalar() {
		if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
			return fmt.Errorf("%w: %s takes finite numbers, got %v", ErrRange, s.Name, v.Number)
		}
		if s.Type == Int && v.Number != math.Trunc(v.Number) {
			return fmt.Errorf("%w: %s takes whole numbers, got %v", ErrType, s.Name, v.Number)
		}
	}
	return nil
}

// Interface is a set of slots that devices of one kind share.
type Interface struct {
	Name  string
	Base  *Interface // what it is a kind of, or nil
	Val   string     // the slot of its own that the inherited val points to, or ""
	Own   []Slot     // declared by this interface
	Slots []Slot     // all of them, the inherited ones first
	Extra bool       // ours, beside the standard's (part of GOSTAI-EXT-06 to 11)
	// Acts: using the slots moves, lights or sounds something, so that it has one owner at a time (package claim).
	Acts bool
	Doc  string
}

// Slot returns the slot of that name or alias, or nil.
func (i *Interface) Slot(name string) *Slot {
	for k := range i.Slots {
		if s := &i.Slots[k]; s.Name == name || s.Alias == name && name != "" {
			return s
		}
	}
	return nil
}

// Is reports whether i is base or a kind of it.
func (i *Interface) Is(base *Interface) bool {
	for ; i != nil; i = i.Base {
		if i == base {
			return true
		}
	}
	return false
}

// String returns the name.
func (i *Interface) String() string { return i.Name }

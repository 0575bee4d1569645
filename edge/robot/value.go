package robot

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors that callers tell apart. Each comes wrapped in what was asked for and what there is.
var (
	ErrNotFound   = errors.New("no such part")
	ErrNotPresent = errors.New("slot not present") // an optional slot that this device lacks (GOSTAI-IF-00d)
	ErrAmbiguous  = errors.New("name fits several devices")
	ErrDuplicate  = errors.New("name is taken") // also: a component is never replaced (GOSTAI-SUP-03)
	ErrReadOnly   = errors.New("slot cannot be written")
	ErrType       = errors.New("wrong type")
	ErrRange      = errors.New("out of range")
	ErrName       = errors.New("bad name")
)

// Type is the type of a value.
type Type uint8

// The types of values.
const (
	None Type = iota
	Float
	Int
	Bool
	String
	Bytes // sound, images, packets; what they are is said in Value.Format
	List  // the values of a group, or a scan
)

// String returns the type's name.
func (t Type) String() string {
	return [...]string{"nothing", "float", "int", "bool", "string", "binary", "list"}[min(t, List)]
}

func (t Type) scalar() bool { return t == Float || t == Int || t == Bool }

// fits reports whether a value of type t can be given to a slot of type want: numbers and booleans go for each other.
func (t Type) fits(want Type) bool { return t == want || t.scalar() && want.scalar() }

// Format describes the bytes of a Bytes value (GOSTAI-IF-18.1).
type Format struct {
	Name           string // "jpeg", "wav", "rgb", ...
	Width, Height  int    // of an image, pixels
	Rate, Channels int    // of a sound, samples a second
	Bits           int    // a sample
}

// Value is the value of a slot. The zero value is nothing.
type Value struct {
	Type   Type    `json:"type"`
	Number float64 `json:"number"` // of Float, Int and Bool (0 or 1)
	Text   string  `json:"text,omitempty"`
	Data   []byte  `json:"-"`                // shared and immutable
	Format Format  `json:"-"`                // of Data
	Handle string  `json:"handle,omitempty"` // of Bytes that another program has: a sound or an image, by its name there
	Items  []Value `json:"items,omitempty"`
}

// F returns a float.
func F(v float64) Value { return Value{Type: Float, Number: v} }

// I returns an int.
func I(v int) Value { return Value{Type: Int, Number: float64(v)} }

// B returns a bool.
func B(v bool) Value {
	if v {
		return Value{Type: Bool, Number: 1}
	}
	return Value{Type: Bool}
}

// S returns a string.
func S(v string) Value { return Value{Type: String, Text: v} }

// L returns a list.
func L(v ...Value) Value { return Value{Type: List, Items: v} }

// String prints v for people.
func (v Value) String() string {
	switch v.Type {
	case Float, Int:
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	case Bool:
		return strconv.FormatBool(v.Number != 0)
	case String:
		return strconv.Quote(v.Text)
	case Bytes:
		if v.Handle != "" {
			return "handle " + strconv.Quote(v.Handle)
		}
		return fmt.Sprintf("%d bytes of %s", len(v.Data), v.Format.Name)
	case List:
		items := make([]string, len(v.Items))
		for i, x := range v.Items {
			items[i] = x.String()
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return "nothing"
}

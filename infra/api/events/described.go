package events

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Described is one value that events of a name have.
type Described struct {
	Field string `json:"field"`          // s1 to s4, i1 to i4
	Name  string `json:"name"`           // for people, such as "battery"
	Unit  string `json:"unit,omitempty"` // such as mV
	Flag  bool   `json:"flag,omitempty"` // it is 0 or 1
}

// Known returns the names of the events whose layout is known, sorted.
func Known() []string { return slices.Sorted(maps.Keys(layouts)) }

// Describe returns the values that events of a name have; known is false if their layout is not known.
func Describe(name string) (values []Described, known bool) {
	l, known := layouts[name]
	for _, of := range []struct {
		kind   byte
		fields fields
	}{{'s', l.s}, {'i', l.i}} {
		for i, f := range of.fields {
			if f == "" {
				continue
			}
			d := Described{Field: fmt.Sprintf("%c%d", of.kind, i+1)}
			d.Name, d.Unit = of.fields.at(i, of.kind)
			if d.Unit == yesNo {
				d.Unit, d.Flag = "", true
			}
			values = append(values, d)
		}
	}
	return values, known
}

// Fields are the fields of an event's values, in their order.
var Fields = []string{"s1", "s2", "s3", "s4", "i1", "i2", "i3", "i4"}

// FieldOf returns the field of a value that is called by its name in events of that name, or by its field.
func FieldOf(event, value string) (field string, ok bool) {
	if slices.Contains(Fields, value) {
		return value, true
	}
	values, _ := Describe(event)
	i := slices.IndexFunc(values, func(d Described) bool { return strings.EqualFold(d.Name, value) })
	if i < 0 {
		return "", false
	}
	return values[i].Field, true
}

// Misfit says in what e differs from the layout of its name; "": it fits, or the layout is not known.
func (e *Event) Misfit() string {
	values, known := Describe(e.Name)
	if !known {
		return ""
	}
	is := map[string]Described{}
	for _, d := range values {
		is[d.Field] = d
	}
	texts, numbers := [...]string{e.S1, e.S2, e.S3, e.S4}, [...]Int{e.I1, e.I2, e.I3, e.I4}
	for i, field := range Fields {
		d, described := is[field]
		switch {
		case i < 4 && texts[i] == "", i >= 4 && !numbers[i-4].Set:
		case !described:
			return fmt.Sprintf("it has %s, which its description has not", field)
		case d.Flag && numbers[i-4].N != 0 && numbers[i-4].N != 1:
			return fmt.Sprintf("%s is %d; its description wants 0 or 1", d.Name, numbers[i-4].N)
		}
	}
	return ""
}

package format

import (
	"fmt"
	"math"
)

const ucf kind = "ucf"

const (
	ucfSignature = "UGCF"
	ucfVersion   = 4
	ucfHeader    = 42
	ucfTag       = 6
)

// The properties that say what a command plays (PLEO-UCF-07).
const (
	PropertyMotion = 13
	PropertySound  = 29
)

// TagType says how a property is compared with the value (PLEO-UCF-06).
type TagType uint16

// The types.
const (
	TagNone  TagType = iota // no constraint
	TagValue                // the property is the value
	TagMin                  // it is above
	TagMax                  // it is below
)

// Tag is a cell of a command's table (PLEO-UCF-05).
type Tag struct {
	ID    uint16 // of the property
	Type  TagType
	Value uint16
}

// Command is a UCF file: a table of sounds or motions with the conditions under which each can play.
type Command struct {
	Name       string
	Properties int     // columns (PLEO-UCF-03)
	Entries    [][]Tag // rows, with a tag for each column (PLEO-UCF-04)
}

// ReadCommand returns the command in file.
func ReadCommand(file []byte) (*Command, error) {
	if err := ucf.begin(file, ucfSignature, ucfHeader); err != nil {
		return nil, err
	}
	if v := int16(order.Uint16(file[4:])); v != ucfVersion {
		return nil, ucf.refuse(4, "version", v, "%d", ucfVersion)
	}
	columns, rows := int(int16(order.Uint16(file[38:]))), int(int16(order.Uint16(file[40:])))
	if columns < 1 || rows < 0 || ucfHeader+ucfTag*columns*rows != len(file) {
		return nil, ucf.refuse(38, "table", fmt.Sprintf("%d by %d", columns, rows), "at least one property, and as many tags as %d bytes hold", len(file))
	}
	c := &Command{Name: name(file[6:]), Properties: columns, Entries: make([][]Tag, rows)}
	tags := make([]Tag, columns*rows)
	for i := range tags {
		b := file[ucfHeader+ucfTag*i:]
		tags[i] = Tag{order.Uint16(b), TagType(order.Uint16(b[2:])), order.Uint16(b[4:])}
	}
	for i := range c.Entries {
		c.Entries[i] = tags[i*columns : (i+1)*columns : (i+1)*columns]
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Command) check() error {
	if c.Properties < 1 || c.Properties > math.MaxInt16 || len(c.Entries) > math.MaxInt16 {
		return ucf.refuse(38, "table", fmt.Sprintf("%d by %d", c.Properties, len(c.Entries)), "1 to %d properties and at most %d entries", math.MaxInt16, math.MaxInt16)
	}
	for i, e := range c.Entries {
		at := ucfHeader + ucfTag*c.Properties*i
		if len(e) != c.Properties {
			return ucf.refuse(at, fmt.Sprintf("entries[%d]", i), fmt.Sprintf("%d tags", len(e)), "%d", c.Properties)
		}
		for k, t := range e {
			if t.Type > TagMax {
				return ucf.refuse(at+ucfTag*k+2, fmt.Sprintf("entries[%d][%d].type", i, k), t.Type, "0 to %d", TagMax)
			}
		}
	}
	return nil
}

// Append appends the file of c to dst.
func (c *Command) Append(dst []byte) ([]byte, error) {
	if err := ucf.checkName(6, "name", c.Name); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	dst = append(dst, ucfSignature...)
	dst = order.AppendUint16(dst, ucfVersion)
	dst = appendName(dst, c.Name)
	dst = order.AppendUint16(dst, uint16(c.Properties))
	dst = order.AppendUint16(dst, uint16(len(c.Entries)))
	for _, e := range c.Entries {
		for _, t := range e {
			dst = order.AppendUint16(dst, t.ID)
			dst = order.AppendUint16(dst, uint16(t.Type))
			dst = order.AppendUint16(dst, t.Value)
		}
	}
	return dst, nil
}

// Plays returns the property of what the command plays, PropertyMotion or PropertySound. It is an error if the entries have both, or one has neither.
func (c *Command) Plays() (property uint16, err error) {
	for i, e := range c.Entries {
		found := uint16(0)
		for k, t := range e {
			if t.Type != TagValue || t.ID != PropertyMotion && t.ID != PropertySound {
				continue
			}
			if found != 0 || property != 0 && t.ID != property {
				return 0, ucf.refuse(ucfHeader+ucfTag*(c.Properties*i+k), fmt.Sprintf("entries[%d][%d]", i, k), t.ID, "a motion or a sound, the same in all entries")
			}
			found = t.ID
		}
		if found == 0 {
			return 0, ucf.refuse(ucfHeader+ucfTag*c.Properties*i, fmt.Sprintf("entries[%d]", i), "without resource", "a tag of property %d or %d", PropertyMotion, PropertySound)
		}
		property = found
	}
	if property == 0 {
		return 0, ucf.refuse(40, "entries", 0, "at least 1")
	}
	return property, nil
}

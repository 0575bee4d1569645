// Package flatbuf reads and writes FlatBuffers, the binary form of animation files, as Go structs.
//
//	0: offset of the root table                       a table: offset back to its vtable, then its fields
//	vtable: its size, the table's size, then for      a vector: count, elements; strings end with a 0 byte
//	each field where it is in the table, 0: absent    offsets count forward from where they are written
//
// A struct is a table: the tag `fb:"3"` gives a field its place in the schema, `fb:"3,default=1"` its default and `fb:"3,required"` says that a table without it
// is refused. Fields are bool, sized integers up to 32 bits, float32, string, a struct, or slices of those but bool. Fields that a file has beyond those of the
// struct are ignored, and missing ones have their default.
//
// The library of the format's makers comes with generated code that trusts its input; files come from anywhere, so that here every offset and count is
// checked, and what a file can make of its bytes is bounded.
//
// All functions are safe for concurrent use.
package flatbuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// MaxSize is the most bytes that Unmarshal reads.
const MaxSize = 4 << 20

// ErrFormat: bytes are not a FlatBuffer of the struct; the error says where, what was expected and what was found.
var ErrFormat = errors.New("not a FlatBuffer of this kind")

// field is one field of a table.
type field struct {
	slot     int // in the schema
	index    int // in the struct
	name     string
	required bool
	value    reflect.Value // the default; the zero Value if it is zero
}

// schemas keeps the fields of each struct that was seen: reflect.Type to []field.
var schemas sync.Map

// fieldsOf returns the fields of a struct. It panics for a tag that it cannot read: a mistake of the struct's author.
func fieldsOf(t reflect.Type) []field {
	if known, ok := schemas.Load(t); ok {
		return known.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("fb")
		if !ok {
			continue
		}
		slot, rest, _ := strings.Cut(tag, ",")
		n, err := strconv.Atoi(slot)
		f := field{slot: n, index: i, name: t.Field(i).Name, required: rest == "required"}
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			f.name = name
		}
		if number, ok := strings.CutPrefix(rest, "default="); ok && err == nil {
			var v float64
			v, err = strconv.ParseFloat(number, 64)
			f.value = reflect.ValueOf(v).Convert(t.Field(i).Type)
		}
		if err != nil {
			panic(fmt.Sprintf("flatbuf: %v.%s: tag %q: %v", t, t.Field(i).Name, tag, err))
		}
		fields = append(fields, f)
	}
	schemas.Store(t, fields)
	return fields
}

// Defaults sets the fields of a struct to the defaults of its tags.
func Defaults(v any) {
	s := reflect.ValueOf(v).Elem()
	for _, f := range fieldsOf(s.Type()) {
		if f.value.IsValid() {
			s.Field(f.index).Set(f.value)
		}
	}
}

// size returns how many bytes a value takes in its table or vector.
func size(k reflect.Kind) int {
	switch k {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return 1
	case reflect.Int16, reflect.Uint16:
		return 2
	}
	return 4 // numbers, and offsets of all the rest
}

// inline reports whether a value is written in its place, not behind an offset.
func inline(k reflect.Kind) bool {
	return k != reflect.String && k != reflect.Slice && k != reflect.Struct
}

// Unmarshal reads a FlatBuffer into a struct, which it overwrites. ErrFormat for bytes that are not one, that are longer than MaxSize, or that use their parts
// so often that they would grow.
func Unmarshal(b []byte, v any) error {
	if len(b) > MaxSize {
		return fmt.Errorf("%w: expected at most %d bytes, found %d", ErrFormat, MaxSize, len(b))
	}
	d := decoder{b: b, left: len(b)}
	at, err := d.follow(0)
	if err == nil {
		err = d.table(at, reflect.ValueOf(v).Elem())
	}
	if err == nil {
		return nil
	}
	path := strings.TrimPrefix(d.path, ".")
	if path != "" {
		path += ": "
	}
	return fmt.Errorf("%w: %s%w", ErrFormat, path, err)
}

// decoder reads one buffer.
type decoder struct {
	b    []byte
	left int    // of the elements that it may still make: one a byte
	path string // where an error was, built on the way out
}

// need returns an error unless n bytes are at a place.
func (d *decoder) need(at, n int, what string) error {
	if at >= 0 && n >= 0 && at <= len(d.b)-n {
		return nil
	}
	return fmt.Errorf("byte %d: expected %d bytes of %s, found the end at %d", at, n, what, len(d.b))
}

// follow returns where the offset at a place leads.
func (d *decoder) follow(at int) (int, error) {
	if err := d.need(at, 4, "an offset"); err != nil {
		return 0, err
	}
	o := binary.LittleEndian.Uint32(d.b[at:])
	if o == 0 || int64(o) > int64(len(d.b)-at) {
		return 0, fmt.Errorf("byte %d: expected an offset of 1 to %d, found %d", at, len(d.b)-at, o)
	}
	return at + int(o), nil
}

// spend counts elements that are made.
func (d *decoder) spend(at, n int) error {
	if d.left -= n; d.left < 0 {
		return fmt.Errorf("byte %d: expected at most one element for each of %d bytes, found more: parts are used several times", at, len(d.b))
	}
	return nil
}

// table reads the table at a place.
func (d *decoder) table(at int, v reflect.Value) error {
	if err := errors.Join(d.need(at, 4, "a table"), d.spend(at, 1)); err != nil {
		return err
	}
	vt := at - int(int32(binary.LittleEndian.Uint32(d.b[at:])))
	if err := d.need(vt, 4, "a vtable"); err != nil {
		return err
	}
	n, extent := int(binary.LittleEndian.Uint16(d.b[vt:])), int(binary.LittleEndian.Uint16(d.b[vt+2:]))
	if err := errors.Join(d.need(vt, max(n, 4), "a vtable"), d.need(at, extent, "a table")); err != nil {
		return err
	}
	for _, f := range fieldsOf(v.Type()) {
		to, place := v.Field(f.index), 0
		if p := 4 + 2*f.slot; p+2 <= n {
			place = int(binary.LittleEndian.Uint16(d.b[vt+p:]))
		}
		if place == 0 {
			if f.required {
				d.path = "." + f.name
				return fmt.Errorf("byte %d: expected a value, found none", at)
			}
			to.SetZero()
			if f.value.IsValid() {
				to.Set(f.value)
			}
			continue
		}
		err := error(nil)
		if place < 4 || place+size(to.Kind()) > extent {
			err = fmt.Errorf("byte %d: expected a place of 4 to %d in the table, found %d", vt+4+2*f.slot, extent-size(to.Kind()), place)
		} else {
			err = d.value(at+place, to)
		}
		if err != nil {
			d.path = "." + f.name + d.path
			return err
		}
	}
	return nil
}

// value reads the value at a place: in it, or where its offset leads.
func (d *decoder) value(at int, to reflect.Value) error {
	if inline(to.Kind()) {
		return d.number(at, to)
	}
	at, err := d.follow(at)
	if err != nil {
		return err
	}
	switch to.Kind() {
	case reflect.Struct:
		return d.table(at, to)
	case reflect.String:
		n, err := d.count(at, 1)
		if err == nil {
			to.SetString(string(d.b[at+4 : at+4+n]))
		}
		return err
	}
	each := size(to.Type().Elem().Kind())
	n, err := d.count(at, each)
	if err != nil {
		return err
	}
	if to.SetZero(); n == 0 {
		return nil
	}
	to.Set(reflect.MakeSlice(to.Type(), n, n))
	for i := range n {
		if err := d.value(at+4+each*i, to.Index(i)); err != nil {
			d.path = "[" + strconv.Itoa(i) + "]" + d.path
			return err
		}
	}
	return nil
}

// count reads the count of a vector or string, and checks that its elements are there.
func (d *decoder) count(at, each int) (int, error) {
	if err := d.need(at, 4, "a count"); err != nil {
		return 0, err
	}
	n := int64(binary.LittleEndian.Uint32(d.b[at:]))
	if most := int64(len(d.b)-at-4) / int64(each); n > most {
		return 0, fmt.Errorf("byte %d: expected a count of at most %d, found %d", at, most, n)
	}
	return int(n), d.spend(at, int(n))
}

// number reads a number.
func (d *decoder) number(at int, to reflect.Value) error {
	var u uint32
	switch b := d.b[at:]; size(to.Kind()) {
	case 1:
		u = uint32(b[0])
	case 2:
		u = uint32(binary.LittleEndian.Uint16(b))
	default:
		u = binary.LittleEndian.Uint32(b)
	}
	switch to.Kind() {
	case reflect.Bool:
		if u > 1 {
			return fmt.Errorf("byte %d: expected 0 or 1, found %d", at, u)
		}
		to.SetBool(u == 1)
	case reflect.Float32:
		to.SetFloat(float64(math.Float32frombits(u)))
	case reflect.Int8:
		to.SetInt(int64(int8(u)))
	case reflect.Int16:
		to.SetInt(int64(int16(u)))
	case reflect.Int32:
		to.SetInt(int64(int32(u)))
	default:
		to.SetUint(uint64(u))
	}
	return nil
}

package flatbuf

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Append appends a struct as a FlatBuffer. Fields that have their default, empty strings that are not required and empty slices are left out. ErrFormat if the
// buffer would be longer than MaxSize; dst is then unchanged.
func Append(dst []byte, v any) ([]byte, error) {
	e := encoder{b: make([]byte, 4, 1024), vtables: map[string]int{}}
	e.point(0, e.table(reflect.ValueOf(v).Elem()))
	if len(e.b) > MaxSize {
		return dst, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrFormat, MaxSize, len(e.b))
	}
	return append(dst, e.b...), nil
}

// encoder writes one buffer from front to back, so that every offset counts forward.
type encoder struct {
	b       []byte
	vtables map[string]int // where each one is
}

// align pads to a multiple of n bytes.
func (e *encoder) align(n int) {
	for len(e.b)%n != 0 {
		e.b = append(e.b, 0)
	}
}

// point writes the offset at a place that leads to another.
func (e *encoder) point(at, to int) { binary.LittleEndian.PutUint32(e.b[at:], uint32(to-at)) }

// table writes a table and returns where.
func (e *encoder) table(v reflect.Value) int {
	type held struct {
		field
		at int
	}
	var fields []held
	slots := 0
	for _, f := range fieldsOf(v.Type()) {
		if f.required || !f.isDefault(v.Field(f.index)) {
			fields = append(fields, held{field: f})
			slots = max(slots, f.slot+1)
		}
	}
	slices.SortStableFunc(fields, func(a, b held) int { return size(v.Field(b.index).Kind()) - size(v.Field(a.index).Kind()) })
	extent := 4
	vtable := make([]byte, 4+2*slots)
	for i := range fields {
		f := &fields[i]
		f.at = extent // the larger fields come first, so that each is aligned
		binary.LittleEndian.PutUint16(vtable[4+2*f.slot:], uint16(extent))
		extent += size(v.Field(f.index).Kind())
	}
	binary.LittleEndian.PutUint16(vtable, uint16(len(vtable)))
	binary.LittleEndian.PutUint16(vtable[2:], uint16(extent))
	vt, known := e.vtables[string(vtable)]
	if !known {
		e.align(2)
		vt = len(e.b)
		e.vtables[string(vtable)] = vt
		e.b = append(e.b, vtable...)
	}
	e.align(4)
	at := len(e.b)
	e.b = append(e.b, make([]byte, extent)...)
	binary.LittleEndian.PutUint32(e.b[at:], uint32(int32(at-vt)))
	for _, f := range fields {
		e.value(at+f.at, v.Field(f.index))
	}
	return at
}

// isDefault reports whether a field need not be written.
func (f *field) isDefault(v reflect.Value) bool {
	switch {
	case v.Kind() == reflect.Slice:
		return v.Len() == 0
	case v.Kind() == reflect.Float32:
		d := float32(0)
		if f.value.IsValid() {
			d = float32(f.value.Float())
		}
		return math.Float32bits(float32(v.Float())) == math.Float32bits(d) // -0 is not 0
	case f.value.IsValid():
		return v.Equal(f.value)
	case v.Kind() == reflect.Struct:
		return false
	}
	return v.IsZero()
}

// value writes a value into the place that is kept for it: itself, or the offset of what is appended.
func (e *encoder) value(at int, v reflect.Value) {
	switch {
	case inline(v.Kind()):
		e.number(e.b[at:], v)
		return
	case v.Kind() == reflect.Struct:
		e.point(at, e.table(v))
		return
	}
	e.align(4)
	e.point(at, len(e.b))
	e.b = binary.LittleEndian.AppendUint32(e.b, uint32(v.Len()))
	if v.Kind() == reflect.String {
		e.b = append(append(e.b, v.String()...), 0)
		return
	}
	first, each := len(e.b), size(v.Type().Elem().Kind())
	e.b = append(e.b, make([]byte, each*v.Len())...)
	for i := range v.Len() {
		e.value(first+each*i, v.Index(i))
	}
}

// number writes a number.
func (e *encoder) number(b []byte, v reflect.Value) {
	var u uint32
	switch {
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			u = 1
		}
	case v.Kind() == reflect.Float32:
		u = math.Float32bits(float32(v.Float()))
	case v.CanInt():
		u = uint32(int32(v.Int()))
	default:
		u = uint32(v.Uint())
	}
	switch size(v.Kind()) {
	case 1:
		b[0] = byte(u)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(u))
	default:
		binary.LittleEndian.PutUint32(b, u)
	}
}

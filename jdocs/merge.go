package jdocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Merge joins two copies that were changed independently (VEC-JDS-08): per field, objects recursively, arrays as one value. A field changed
// on one side takes that side's value, also when the change is a removal. If both sides changed it the local value wins, because the writer
// who merges writes later; the other value stays in the history. conflicts names such fields, dotted. Unknown fields merge like any other.
//
// base is the last copy both sides had, empty if there was none. Merge(base, x, base) is x and Merge(base, base, y) is y, byte for byte.
func Merge(base, local, remote []byte) (merged []byte, conflicts []string, err error) {
	if err := checkCopies(base, local, remote); err != nil {
		return nil, nil, err
	}
	return mergeValue(present(base), local, remote, "", &conflicts), conflicts, nil
}

// present turns "no copy" into the nil that mergeValue takes for absent.
func present(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}

func checkCopies(base, local, remote []byte) error {
	for _, c := range []struct {
		name string
		b    []byte
	}{{"base", base}, {"local", local}, {"remote", remote}} {
		if c.name == "base" && len(c.b) == 0 {
			continue
		}
		if err := CheckJSON(c.b); err != nil {
			return fmt.Errorf("merge: %s copy: %w", c.name, err)
		}
	}
	return nil
}

// mergeValue merges one value; nil means absent on any side.
func mergeValue(base, local, remote json.RawMessage, path string, conflicts *[]string) json.RawMessage {
	switch {
	case same(local, remote), same(base, remote):
		return local
	case same(base, local):
		return remote
	}
	l, lok := object(local)
	r, rok := object(remote)
	if !lok || !rok {
		*conflicts = append(*conflicts, path)
		return local
	}
	b, _ := object(base) // not an object: every field is new on both sides
	out := map[string]json.RawMessage{}
	for _, k := range slices.Sorted(maps.Keys(union(l, r))) {
		if v := mergeValue(b[k], l[k], r[k], join(path, k), conflicts); v != nil {
			out[k] = v
		}
	}
	return encode(out)
}

// same reports whether both are absent, or both are there with the same meaning.
func same(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || Equal(a, b)
}

// Equal reports whether two JSON texts mean the same value: order and spacing of objects aside, 1 and 1.0 are equal.
func Equal(a, b []byte) bool {
	var x, y any
	return decode(a, &x) == nil && decode(b, &y) == nil && equal(x, y)
}

func equal(x, y any) bool {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, ok := y[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	case json.Number:
		y, ok := y.(json.Number)
		return ok && (x == y || exact(x) && exact(y) && float(x) == float(y))
	}
	return x == y
}

// exact: few enough digits that a float64 holds them all, so that equal floats mean equal numbers.
func exact(n json.Number) bool { return len(n) <= 15 }

func float(n json.Number) float64 {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return math.NaN() // equal to nothing
	}
	return f
}

// decode reads one value and keeps numbers as they are written.
func decode(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(v)
}

// object returns the fields of a JSON object; ok is false for anything else.
func object(b json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil || m == nil {
		return nil, false
	}
	return m, true
}

// encode writes fields in order of their names and leaves their text as it is.
func encode(m map[string]json.RawMessage) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		panic("jdocs: encode checked fields: " + err.Error()) // every value was parsed before
	}
	return bytes.TrimSpace(buf.Bytes())
}

func union[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

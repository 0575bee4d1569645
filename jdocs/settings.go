package jdocs

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/suggest"
)

var (
	localePattern = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`)
	zonePattern   = regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`)
)

// SetFields returns doc with fields changed and everything else unchanged. A name may be dotted to reach into an object
// ("custom_eye_color.hue"); where a field of that very name exists, or in the lifetime statistics, the dots belong to the name. Known
// fields are checked (CheckField); null removes an unknown one. Errors are Invalid and say what is allowed.
func SetFields(name Name, doc string, fields map[string]json.RawMessage) (string, error) {
	top, ok := object(json.RawMessage(doc))
	if !ok {
		return "", errs.New(errs.Invalid, "document %s is not an object and has no fields to set", name)
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		v, err := CheckField(name, f, fields[f])
		if err != nil {
			return "", err
		}
		path := []string{f}
		if _, flat := top[f]; !flat && name != RobotLifetimeStats {
			path = strings.Split(f, ".")
		}
		if err := put(top, path, v); err != nil {
			return "", errs.New(errs.Invalid, "field %s: %v", f, err)
		}
	}
	return string(encode(top)), nil
}

// put sets the value at path, making objects on the way; a nil value removes it.
func put(m map[string]json.RawMessage, path []string, v json.RawMessage) error {
	key := path[0]
	if key == "" {
		return fmt.Errorf("empty name: want letters, or names joined by single dots")
	}
	switch {
	case len(path) > MaxDepth:
		return fmt.Errorf("%d levels: want at most %d", len(path), MaxDepth)
	case len(path) > 1:
		sub := map[string]json.RawMessage{}
		if old := m[key]; old != nil {
			var ok bool
			if sub, ok = object(old); !ok {
				return fmt.Errorf("%s is not an object", key)
			}
		}
		if err := put(sub, path[1:], v); err != nil {
			return err
		}
		m[key] = encode(sub)
	case v == nil:
		delete(m, key)
	default:
		m[key] = v
	}
	return nil
}

// CheckNames refuses names that no robot would read: a document that none of ours has and this robot has not written (written reports
// whether it has), and a field that neither the rules nor the document know. null, which removes a field, is accepted for any name. The
// error is Invalid and suggests names. It is for people, who mistype; a robot's own software may know more than we do.
func CheckNames(name Name, doc string, written bool, fields map[string]json.RawMessage) error {
	if _, ours := SchemaOf(name); !written && !ours {
		return errs.New(errs.Invalid, "no document %.80q: no robot reads it, and this one has not written it%s", name, suggest.DidYouMean(string(name), names()))
	}
	known := map[string]bool{}
	for _, f := range Fields(name) {
		known[f] = true
	}
	top, _ := object(json.RawMessage(doc))
	for f := range top {
		known[f] = true
	}
	if len(known) == 0 {
		return nil // its fields are not known
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		parent, _, below := strings.Cut(f, ".")
		_, ruled := schemaOf(name).Find(parent)
		if known[f] || string(fields[f]) == "null" || below && known[parent] && !ruled {
			continue
		}
		return errs.New(errs.Invalid, "%s has no field %.80q%s", name, f, suggest.DidYouMean(f, slices.Sorted(maps.Keys(known))))
	}
	return nil
}

// CheckSettings refuses settings that robots of this species do not have; kind Invalid.
func CheckSettings(key Key) error {
	kind := key.Thing.Species()
	switch own := SettingsOf(kind); {
	case !key.Name.IsSettings() || key.Name == own:
		return nil
	case own == "":
		return errs.New(errs.Invalid, "%s has no settings: the species %s has none in Kennel", key.Thing, kind.Name())
	default:
		return errs.New(errs.Invalid, "%s has no document %s: its settings are %s", key.Thing, key.Name, own)
	}
}

func names() (out []string) {
	for _, s := range Schemas {
		out = append(out, string(s.Name))
	}
	return out
}

// CheckField returns a value as the document holds it (an enum as its number), or an error of kind Invalid that lists what is allowed.
// A nil result means: remove the field.
func CheckField(name Name, field string, v json.RawMessage) (json.RawMessage, error) {
	if err := CheckJSON(v); err != nil {
		return nil, fmt.Errorf("field %.80q: %w", field, err)
	}
	f, known := schemaOf(name).Find(field)
	if !known {
		if string(v) == "null" {
			return nil, nil
		}
		return v, nil
	}
	out, err := f.check(v)
	if err != nil {
		return nil, errs.New(errs.Invalid, "field %.80q: %.80s: %v", field, v, err)
	}
	return out, nil
}

// unquoted returns the content of a JSON string, or the value's own text. Command lines quote more than they mean.
func unquoted(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && string(v) != "null" {
		return s
	}
	return string(v)
}

func boolean(v json.RawMessage) (json.RawMessage, error) {
	switch s := unquoted(v); s {
	case "true", "false":
		return json.RawMessage(s), nil
	}
	return nil, fmt.Errorf("want true or false")
}

// enum accepts a number of the list or a name in any case, with or without the prefix.
func (f Field) enum(v json.RawMessage) (json.RawMessage, error) {
	s := unquoted(v)
	allowed := make([]string, len(f.Values))
	for i, n := range f.Values {
		if s == strconv.Itoa(i) || strings.EqualFold(s, n) || strings.EqualFold(s, strings.TrimPrefix(n, f.Prefix)) {
			return json.RawMessage(strconv.Itoa(i)), nil
		}
		allowed[i] = fmt.Sprintf("%d %s", i, n)
	}
	return nil, fmt.Errorf("want one of %s", strings.Join(allowed, ", "))
}

func words(limit int, pattern *regexp.Regexp, want string) func(json.RawMessage) (json.RawMessage, error) {
	return func(v json.RawMessage) (json.RawMessage, error) {
		var s *string
		if json.Unmarshal(v, &s) != nil || s == nil || len(*s) > limit || pattern != nil && !pattern.MatchString(*s) {
			return nil, fmt.Errorf("want %s, at most %d bytes", want, limit)
		}
		return v, nil
	}
}

// timeZone checks the name in the system's time zone database, if there is one; a robot may have none.
func timeZone(v json.RawMessage) (json.RawMessage, error) {
	const want = "a tz database name such as America/Los_Angeles"
	v, err := words(64, zonePattern, want)(v)
	if err != nil {
		return nil, err
	}
	if _, err := TimeZone(unquoted(v)); err == nil {
		return v, nil
	}
	if _, err := TimeZone("America/Los_Angeles"); err == nil {
		return nil, fmt.Errorf("no such time zone: want %s", want)
	}
	return v, nil
}

// TimeZone returns the zone that the field time_zone names, with its changes of the clock.
func TimeZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" { // which time.LoadLocation takes for zones of its own
		return nil, fmt.Errorf("no time zone %q", name)
	}
	return time.LoadLocation(name)
}

func share(v json.RawMessage) (json.RawMessage, error) {
	f, err := strconv.ParseFloat(unquoted(v), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		return nil, fmt.Errorf("want a number from 0 to 1")
	}
	return json.Marshal(f)
}

func count(v json.RawMessage) (json.RawMessage, error) {
	f, err := strconv.ParseFloat(unquoted(v), 64)
	if n, ok := formatNumber(f); err == nil && ok {
		return n, nil
	}
	return nil, fmt.Errorf("want a number")
}

// object checks those members of an object that it knows; others stay.
func (f Field) object(v json.RawMessage) (json.RawMessage, error) {
	m, ok := object(v)
	if !ok {
		return nil, fmt.Errorf("want an object {%s}", strings.Join(fieldNames(f.Fields), ", "))
	}
	for _, sub := range f.Fields {
		val, given := m[sub.Name]
		if !given {
			continue
		}
		out, err := sub.check(val)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sub.Name, err)
		}
		m[sub.Name] = out
	}
	return encode(m), nil
}

package jdocs

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"kennel/infra/thing"
)

// schemas describes the documents that robots know: whose they are, their formats and their fields. account.json has those of people, <species>.json
// those of a species.
//
//go:embed schemas/*.json
var schemas embed.FS

// Schema describes a document. Robots and later versions may keep more in it; what is not described is kept and passes unchecked.
type Schema struct {
	Name     Name          `json:"name"`
	About    string        `json:"about"`
	Species  thing.Species `json:"settings_of,omitempty"` // it is the settings of robots of this species
	Account  bool          `json:"account"`               // it belongs to a person, not to a robot
	Personal bool          `json:"personal"`              // it says something about a person, such as where they live
	Begins   bool          `json:"begins_with_defaults"`
	Formats  []Format      `json:"formats"`          // oldest first
	Groups   []Group       `json:"groups,omitempty"` // in the order of the owner's page
	Fields   []Field       `json:"fields"`
}

// Format is a structure of a document.
type Format struct {
	Version uint64   `json:"version"`
	Since   string   `json:"since,omitempty"` // software of original robots that has it, such as "1.8"; "": all
	Adds    []string `json:"adds,omitempty"`  // fields that the format before lacks
}

// Group is a card of the owner's page with the fields of that group.
type Group struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Saves string `json:"saves"` // what its button saves, such as "its voice"
}

// Field is a field of a document. Type is one of bool, enum (a number; Values are its names), text (at most Max bytes), locale, time_zone,
// share (a number from 0 to 1), count (a number), object (of Fields), list.
type Field struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`
	About   string          `json:"about,omitempty"`
	Unit    string          `json:"unit,omitempty"`
	Default json.RawMessage `json:"default,omitempty"`
	Values  []string        `json:"values,omitempty"`
	Prefix  string          `json:"prefix,omitempty"` // of the names in Values; people may leave it out
	Max     int             `json:"max,omitempty"`
	Also    string          `json:"also,omitempty"` // another spelling seen in the field
	Fields  []Field         `json:"fields,omitempty"`

	// For people.
	Label   string   `json:"label,omitempty"`
	Help    string   `json:"help,omitempty"`
	Group   string   `json:"group,omitempty"`   // of Schema.Groups
	Control string   `json:"control,omitempty"` // how the owner's page asks for it, one of the controls below; "": it does not
	Custom  string   `json:"custom,omitempty"`  // of a colour: the object {enabled, hue, saturation} with a colour that is none of Choices
	Form    Form     `json:"form,omitzero"`
	Rare    bool     `json:"rare,omitempty"`    // people are offered its default alone, and the owner's page asks only while it has another value
	Choices []Choice `json:"choices,omitempty"` // in the order of the owner's page; a bool or enum takes no other value
}

// The controls of the owner's page.
const (
	ControlColour = "colour" // one of Choices, each with hue and saturation, or a custom one
	ControlLevel  = "level"  // one of Choices, from none to most
	ControlChoice = "choice" // one of Choices
	ControlZone   = "zone"   // a time zone
	ControlSwitch = "switch" // a bool, on or off
	ControlText   = "text"   // a line of text
)

// Form holds the words of a field's control that differ from the field's own.
type Form struct {
	ID      string `json:"id,omitempty"`      // of the control; "": the field's name
	Label   string `json:"label,omitempty"`   // "": the field's label
	Note    string `json:"note,omitempty"`    // a line below it
	Ask     string `json:"ask,omitempty"`     // what the owner is told to do if the form has no good value
	Suggest string `json:"suggest,omitempty"` // places: names of places to choose from
}

// Choice is a value of a field as the owner's page offers it.
type Choice struct {
	Value      json.RawMessage `json:"value"`
	Word       string          `json:"word,omitempty"` // in the form; "": the value's text
	Label      string          `json:"label"`
	Hue        float64         `json:"hue,omitempty"` // of a colour, 0 to 1
	Saturation float64         `json:"saturation,omitempty"`
}

// Text is the choice in a form.
func (c Choice) Text() string { return cmp.Or(c.Word, unquoted(c.Value)) }

// Schemas are the descriptions of the documents that robots know, Vector's first.
var Schemas = func() (all []Schema) {
	files, err := fs.Glob(schemas, "schemas/*.json")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	slices.Reverse(files)
	for _, file := range files {
		var some []Schema
		b, err := schemas.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &some)
		}
		if err != nil {
			panic("jdocs: " + file + ": " + err.Error())
		}
		all = append(all, some...)
	}
	return all
}()

// SettingsOf returns the name of the document with the settings of robots of a species; "" if Kennel knows no settings of it.
func SettingsOf(s thing.Species) Name {
	for _, x := range Schemas {
		if x.Species == s && s != "" {
			return x.Name
		}
	}
	return ""
}

// Settings returns the names of the documents with settings, one for each species that has some.
func Settings() (names []Name) {
	for _, x := range Schemas {
		if x.Species != "" {
			names = append(names, x.Name)
		}
	}
	return names
}

// IsSettings reports whether the document holds the settings of robots of a species.
func (n Name) IsSettings() bool { return schemaOf(n).Species != "" }

// Of returns the name of the document that a robot keeps under n. vic.RobotSettings was the name of every robot's settings: robots with earlier
// software and programs of people still say it (infra/adr/0039).
func (n Name) Of(id thing.ID) Name {
	if n == RobotSettings {
		return cmp.Or(SettingsOf(id.Species()), n)
	}
	return n
}

// SchemaOf returns the description of a document; ok is false for one that no robot is known to have.
func SchemaOf(name Name) (s Schema, ok bool) {
	s = schemaOf(name)
	return s, s.Fields != nil
}

func schemaOf(name Name) Schema {
	for _, s := range Schemas {
		if s.Name == name {
			return s
		}
	}
	return Schema{Name: name, Formats: []Format{{Version: 1}}}
}

// Find returns a field; one of an object by both names, joined by a dot.
func (s Schema) Find(field string) (Field, bool) {
	for _, f := range s.Fields {
		if f.Name == field {
			return f, true
		}
		for _, sub := range f.Fields {
			if f.Name+"."+sub.Name == field {
				return sub, true
			}
		}
	}
	return Field{}, false
}

func fieldNames(fields []Field) (out []string) {
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

// FmtVersion is the format that this release writes.
func (n Name) FmtVersion() uint64 { s := schemaOf(n); return s.Formats[len(s.Formats)-1].Version }

// Personal reports whether the document says something about a person.
func (n Name) Personal() bool { return schemaOf(n).Personal }

// Format returns the newest format that a robot with that software reads (VEC-JDS-01); for software that is not known, the newest there is.
func (n Name) Format(os string) uint64 {
	known := uint64(math.MaxUint64) // formats after ours are not ours to judge
	formats := schemaOf(n).Formats
	for i := len(formats) - 1; i > 0 && older(os, formats[i].Since); i-- {
		known = formats[i-1].Version
	}
	return known
}

// older reports whether version a, such as "1.6.0.3331", is before b, such as "1.8".
func older(a, b string) bool {
	as := strings.FieldsFunc(a, func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	for i, want := range strings.Split(b, ".") {
		if i >= len(as) {
			return false
		}
		x, err := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(want)
		if err != nil || x != y {
			return err == nil && x < y
		}
	}
	return false
}

// added returns the fields that formats after this one brought.
func (s Schema) added(after uint64) (out []string) {
	for _, f := range s.Formats {
		if f.Version > after {
			out = append(out, f.Adds...)
		}
	}
	return out
}

// Default is the document that a name begins with; an empty object for those that begin with nothing. Version is 0.
func Default(name Name) Doc {
	fields := map[string]json.RawMessage{}
	if s := schemaOf(name); s.Begins {
		for _, f := range s.Fields {
			fields[f.Name] = f.Default
		}
	}
	return Doc{FmtVersion: name.FmtVersion(), JSON: string(encode(fields))}
}

// StatKeys are the 41 keys of vic.RobotLifetimeStats (part of VEC-DOC-07, annex A).
var StatKeys = fieldNames(schemaOf(RobotLifetimeStats).Fields)

// statAliases are spellings seen in the field for keys of the list.
var statAliases = func() map[string]string {
	out := map[string]string{}
	for _, f := range schemaOf(RobotLifetimeStats).Fields {
		if f.Also != "" {
			out[f.Also] = f.Name
		}
	}
	return out
}()

// Fields returns the names of the fields that a robot's document may have, in order; nil for a document whose fields are not known.
func Fields(name Name) (out []string) {
	s := schemaOf(name)
	if !s.Begins {
		return nil
	}
	for _, f := range s.Fields {
		out = append(out, f.Name)
		for _, sub := range f.Fields {
			out = append(out, f.Name+"."+sub.Name)
		}
	}
	if s.Species != "" {
		slices.Sort(out)
	}
	return out
}

// Choices returns the words that a field of a document takes, an enumeration's by number; nil for a field that takes numbers or text, or is
// not known.
func Choices(name Name, field string) []string {
	switch f, _ := schemaOf(name).Find(field); f.Type {
	case "enum":
		return f.Offered()
	case "bool":
		return []string{"true", "false"}
	}
	return nil
}

// Offered returns the values of an enumeration that people are offered.
func (f Field) Offered() []string {
	if i, err := strconv.Atoi(string(f.Default)); f.Rare && err == nil && i < len(f.Values) {
		return f.Values[i : i+1]
	}
	return f.Values
}

// check returns a value as the document holds it.
func (f Field) check(v json.RawMessage) (json.RawMessage, error) {
	switch f.Type {
	case "bool":
		return boolean(v)
	case "enum":
		return f.enum(v)
	case "text":
		return words(f.Max, nil, "text")(v)
	case "locale":
		return words(35, localePattern, "an IETF language tag such as en-US")(v)
	case "time_zone":
		return timeZone(v)
	case "share":
		return share(v)
	case "count":
		return count(v)
	case "object":
		return f.object(v)
	case "list":
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil || list == nil {
			return nil, fmt.Errorf("want a list")
		}
		return v, nil
	}
	return v, nil
}

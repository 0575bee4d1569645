package kit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"kennel/edge/body/pleo/format"
)

// enumerations are the files that give resources their ids and scripts their names, by kind (PLEO-BLD-03, PLEO-BLD-06, PLEO-BLD-07).
var enumerations = [...]struct{ name, enum, prefix string }{
	format.Sounds:     {"sounds", "sound_name", "snd_"},
	format.Motions:    {"motions", "motion_name", "mot_"},
	format.Commands:   {"commands", "command_name", "cmd_"},
	format.Scripts:    {"scripts", "script_name", "scr_"},
	format.Properties: {"user_properties", "user_property_name", "property_"},
}

// enumeration is the XML file that keeps ids between builds (PLEO-BLD-04).
type enumeration struct {
	XMLName  xml.Name `xml:"enum"`
	Name     string   `xml:"name,attr"`
	Short    string   `xml:"short,attr"`
	Min      int      `xml:"min,attr"`
	Max      int      `xml:"max,attr"`
	NamesOff bool     `xml:"namesoff,attr"`
	Entries  []entry  `xml:"e"`
}

type entry struct {
	ID   int    `xml:"id,attr"`
	Name string `xml:"name,attr"`
}

// enumerate gives each resource its id and writes the include files.
func (b *builder) enumerate() error {
	b.logf("*** Prepocessing ***") // spelled as in the original
	for kind := range b.parts {
		if err := b.enumerateKind(format.ResourceKind(kind)); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) enumerateKind(kind format.ResourceKind) error {
	e := enumerations[kind]
	file := b.made + "/" + e.name
	old, err := b.readEnumeration(file+".xml", kind)
	if err != nil {
		return err
	}
	b.logf("  Updating enumeration XML '%s.xml'", e.name)
	parts := b.parts[kind]
	next := int(kind.FirstID())
	for _, o := range old.Entries {
		next = max(next, o.ID+1)
	}
	for i := range parts {
		p := &parts[i]
		k := slices.IndexFunc(old.Entries, func(o entry) bool { return o.Name == p.base })
		if k < 0 {
			k = len(old.Entries)
			old.Entries = append(old.Entries, entry{next, p.base})
			next++
		}
		if old.Entries[k].ID >= int(kind.FirstID())+maxOfKind {
			return &Error{[]string{fmt.Sprintf("%s.xml: no id is left for %s; clean the project", file, p.base)}}
		}
		p.id = uint16(old.Entries[k].ID)
		b.result.IDs[p.word] = p.id
	}
	if len(parts) == 0 {
		b.logf("  no data for %s", e.name)
		return nil
	}
	text, err := xml.MarshalIndent(old, "", "  ")
	if err != nil {
		return err
	}
	if err := b.save(file+".xml", append(text, '\n')); err != nil {
		return err
	}
	b.logf("  Creating enumeration '%s.inc'", file)
	return b.save(file+".inc", include(kind, parts))
}

// readEnumeration reads the ids of an earlier build. There are none after a clean.
func (b *builder) readEnumeration(file string, kind format.ResourceKind) (*enumeration, error) {
	first := int(kind.FirstID())
	fresh := &enumeration{Name: enumerations[kind].enum, Short: strings.TrimSuffix(enumerations[kind].prefix, "_"), Min: first, Max: 32767, NamesOff: true}
	text, err := b.root.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	} else if err != nil {
		return nil, err
	}
	var old enumeration
	if err := xml.Unmarshal(text, &old); err != nil {
		return nil, &Error{[]string{fmt.Sprintf("%s: %v; clean the project", file, err)}}
	}
	used := map[int]bool{}
	for _, e := range old.Entries {
		if e.ID < first || e.ID >= first+maxOfKind || used[e.ID] {
			return nil, &Error{[]string{fmt.Sprintf("%s: id %d of %.40q, want each of %d to %d once; clean the project", file, e.ID, e.Name, first, first+maxOfKind-1)}}
		}
		used[e.ID] = true
	}
	fresh.Entries = old.Entries
	return fresh, nil
}

// Names are the names that a project's tables use, with the ids that a build gave them.
type Names struct {
	format.Names
	Cue func(name string) (uint16, bool) // id of a sound or command that a motion starts
}

// ReadNames returns the names of the project whose include files are in a folder, for tables that are converted one by one (PLEO-BLD-16).
func ReadNames(dir string) (*Names, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() // read only
	b := &builder{root: root, parts: make([][]part, len(enumerations))}
	for kind, e := range enumerations {
		ids, err := b.readEnumeration(e.name+".xml", format.ResourceKind(kind))
		if err != nil {
			return nil, err
		}
		for _, x := range ids.Entries {
			b.parts[kind] = append(b.parts[kind], part{base: x.Name, id: uint16(x.ID)})
		}
	}
	return &Names{format.Names{Property: b.property, Resource: b.resource}, b.cue}, nil
}

// include returns the include file of a kind.
func include(kind format.ResourceKind, parts []part) []byte {
	e := enumerations[kind]
	var out bytes.Buffer
	guard := "_pleo_made_" + e.name
	fmt.Fprintf(&out, "// Made by the build from the project file. Changes here are lost.\n#if defined %s\n\t#endinput\n#endif\n#define %s\n\nenum %s\n{\n", guard, guard, e.enum)
	if kind != format.Properties {
		fmt.Fprintf(&out, "\t%snone = 0,\n", e.prefix)
	}
	fmt.Fprintf(&out, "\t%smin = %d,\n", e.prefix, kind.FirstID())
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, func(a, b part) int { return int(a.id) - int(b.id) })
	for _, p := range sorted {
		fmt.Fprintf(&out, "\t%s = %d,\n", p.word, p.id)
	}
	fmt.Fprintf(&out, "\t%smax\n};\n", e.prefix)
	return out.Bytes()
}

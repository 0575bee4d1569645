package format

import (
	"fmt"
	"strings"
)

// SystemProperties are the names of the properties that every Pleo has, without "property_", by their ids from 1 (PLEO-CBT-04).
var SystemProperties = []string{
	"arousal", "valence", "stance", "age", "damage", "energy", "health", "mood", "command", "command_status", "layer", "probability", "motion",
	"command_pending", "behavior_status", "fatigue", "direction", "pose", "sequence", "platform", "behavior", "speed", "neutral", "pickedup", "stand", "liedown",
	"trick_step", "trick_id", "sound", "drive", "motion_time", "attn_track_weight", "attn_hold_flags", "cam_img_progress", "attn_track_mindist",
	"attn_track_move", "attn_p2p_timeout",
}

// propertyAliases are second names.
var propertyAliases = map[string]uint16{"script_status": 15, "script": 21}

// SystemProperty returns the id of a system property by its name with or without "property_", 0 for none.
func SystemProperty(name string) uint16 {
	name = strings.TrimPrefix(name, "property_")
	for i, n := range SystemProperties {
		if n == name {
			return uint16(i + 1)
		}
	}
	return propertyAliases[name]
}

// propertyWords are the values of properties that have names.
var propertyWords = map[string][]string{
	"age":  {"", "birthing", "hatchling", "baby", "juvenile", "adult"},
	"mood": {"", "neutral", "happy", "sad", "aggressive", "scared", "affectionate", "angry", "surprised", "jaded", "curious", "bored", "pain"},
	"pose": {"", "stand", "sit", "liedown", "", "kneel", "pickedup"},
}

// PropertyWord returns the value that a word such as mood_happy has.
func PropertyWord(word string) (int16, bool) {
	kind, value, _ := strings.Cut(word, "_")
	for i, w := range propertyWords[kind] {
		if w != "" && w == value {
			return int16(i), true
		}
	}
	return 0, false
}

// Names resolves the names in the table of a command.
type Names struct {
	Property func(name string) uint16                    // without prefix; 0: there is none. Nil: the system's properties
	Resource func(kind ResourceKind, name string) uint16 // id of a sound or motion by its name; 0: there is none
}

// ReadCommandCSV returns the command in a table: a row of property names, the last of them sound or motion, and a row for each entry. A field is a value, a word such as
// mood_happy, ">5" or "<5" for more or less than a value, or "none". The last field of an entry is the name of its resource (PLEO-CBT-03).
func ReadCommandCSV(name string, text []byte, names Names) (*Command, error) {
	list, err := rows(text)
	if err != nil {
		return nil, err
	}
	if len(list) < 2 {
		return nil, &TextError{"csv", max(len(list), 1), 1, "no entries", "", "a line of property names and a line for each entry"}
	}
	if names.Property == nil {
		names.Property = SystemProperty
	}
	heads, body := list[0], list[1:]
	c := &Command{Name: name, Properties: len(heads)}
	ids := make([]uint16, len(heads))
	var kind ResourceKind
	for i, h := range heads {
		last := i == len(heads)-1
		if ids[i] = names.Property(h.text); ids[i] == 0 {
			return nil, h.refuse("property", "the name of a property of the system or the project")
		}
		if plays := ids[i] == PropertySound || ids[i] == PropertyMotion; plays != last {
			return nil, h.refuse("column", "sound or motion in the last column, and only there")
		}
		if ids[i] == PropertyMotion {
			kind = Motions
		}
	}
	for _, r := range body {
		if len(r) != len(heads) {
			return nil, r[len(r)-1].refuse(fmt.Sprintf("row with %d fields", len(r)), "%d, as the names of the properties", len(heads))
		}
		entry := make([]Tag, len(r))
		for i, f := range r[:len(r)-1] {
			if entry[i], err = f.tag(ids[i]); err != nil {
				return nil, err
			}
		}
		f := r[len(r)-1]
		id := names.Resource(kind, f.text)
		if id == 0 {
			return nil, f.refuse(heads[len(heads)-1].text, "the name of one of the project's %s", kind)
		}
		entry[len(r)-1] = Tag{ids[len(r)-1], TagValue, id}
		c.Entries = append(c.Entries, entry)
	}
	return c, c.check()
}

// tag reads the condition of a property.
func (c cell) tag(id uint16) (Tag, error) {
	if c.text == "" || strings.EqualFold(c.text, "none") {
		return Tag{ID: id}, nil
	}
	t := Tag{ID: id, Type: TagValue}
	word := c.text
	switch word[0] {
	case '>':
		t.Type, word = TagMin, strings.TrimSpace(word[1:])
	case '<':
		t.Type, word = TagMax, strings.TrimSpace(word[1:])
	}
	v, ok := PropertyWord(word)
	if !ok {
		if n, err := fmt.Sscanf(word, "%d", &v); n != 1 || err != nil || fmt.Sprint(v) != word {
			return t, c.refuse("value", "a whole number between -32768 and 32767, a word such as mood_happy, or none")
		}
	}
	t.Value = uint16(v)
	return t, nil
}

// AppendCSV appends the table of c to dst. property and resource give the names of ids.
func (c *Command) AppendCSV(dst []byte, property, resource func(uint16) string) []byte {
	if len(c.Entries) == 0 {
		return dst
	}
	for i, t := range c.Entries[0] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, property(t.ID)...)
	}
	for _, e := range c.Entries {
		dst = append(dst, '\n')
		for i, t := range e {
			if i > 0 {
				dst = append(dst, ',')
			}
			switch {
			case t.Type == TagNone:
				dst = append(dst, "none"...)
			case t.ID == PropertySound || t.ID == PropertyMotion:
				dst = append(dst, resource(t.Value)...)
			default:
				dst = fmt.Appendf(dst, "%s%d", [...]string{"", "", ">", "<"}[t.Type], int16(t.Value))
			}
		}
	}
	return append(dst, '\n')
}

// Package thing holds the identity of a robot: its thing id, `species:serial` (VEC-TOK-01).
package thing

import (
	"fmt"
	"regexp"
	"strings"
)

// ID is a thing id such as "vic:00e20100". The zero value is no thing. A value made by Parse is always well formed;
// it is safe as a topic level, a file name (see Slug) and a certificate's common name.
type ID string

// Species is the part of a thing id that says what kind of body it names.
type Species string

// The species Kennel knows (design: one agent, four bodies).
const (
	Vector   Species = "vic"
	AmigoBot Species = "amigo"
	Pleo     Species = "pleo"
	AIBO     Species = "aibo"
)

// kinds is the only list of species, with what people call them; a new one is one row here, its constant above and its own folder.
var kinds = []struct {
	Species
	name string
}{{Vector, "Vector"}, {AmigoBot, "AmigoBot"}, {Pleo, "Pleo"}, {AIBO, "AIBO"}}

// AllSpecies returns the species that Kennel knows, in the order in which lists have them. The slice is the caller's.
func AllSpecies() []Species {
	out := make([]Species, len(kinds))
	for i, k := range kinds {
		out[i] = k.Species
	}
	return out
}

// SpeciesWords returns their words, such as "vic", with sep between them.
func SpeciesWords(sep string) string {
	var b strings.Builder
	for i, k := range kinds {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(string(k.Species))
	}
	return b.String()
}

// Name returns what people call the species; of an unknown one its own word.
func (s Species) Name() string {
	for _, k := range kinds {
		if k.Species == s {
			return k.name
		}
	}
	return string(s)
}

// Check returns an error, which says what is expected, if Kennel does not know the species.
func (s Species) Check() error {
	for _, k := range kinds {
		if k.Species == s {
			return nil
		}
	}
	return fmt.Errorf("species %.20q: want one of %s", string(s), SpeciesWords(", "))
}

// Named returns the species of that name, in any case.
func Named(name string) (Species, error) {
	var known []string
	for _, k := range kinds {
		if strings.EqualFold(k.name, name) {
			return k.Species, nil
		}
		known = append(known, strings.ToLower(k.name))
	}
	return "", fmt.Errorf("species %.40q: want one of %s", name, strings.Join(known, ", "))
}

// Pattern is the form of a thing id, as a regular expression.
var Pattern = `^(` + SpeciesWords("|") + `):[0-9a-z-]{1,40}$`

var pattern = regexp.MustCompile(Pattern)

// Parse checks s and returns it as a thing id. The error names what was found and what was expected.
func Parse(s string) (ID, error) {
	if !pattern.MatchString(s) {
		if len(s) > 64 {
			s = s[:64] + "…"
		}
		return "", fmt.Errorf("thing id %q: want species:serial, species one of %s and a serial of 1 to 40 characters 0-9 a-z -", s, SpeciesWords(", "))
	}
	return ID(s), nil
}

// MustParse is Parse for constants; it panics on a malformed id.
func MustParse(s string) ID {
	id, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return id
}

// New joins a species and a serial (for Vector the ESN: 8 lower-case hex digits, VEC-STOR-03).
func New(species Species, serial string) (ID, error) {
	return Parse(string(species) + ":" + serial)
}

// Species returns the part before the colon.
func (id ID) Species() Species { s, _, _ := strings.Cut(string(id), ":"); return Species(s) }

// Serial returns the part after the colon.
func (id ID) Serial() string { _, s, _ := strings.Cut(string(id), ":"); return s }

// Slug returns the id as a file name without a colon, such as "vic-00e20100".
func (id ID) Slug() string { return strings.Replace(string(id), ":", "-", 1) }

func (id ID) String() string { return string(id) }

// Package thing holds the identity of a robot: its thing id, `species:serial` (VEC-TOK-01).
package thing

import (
	"cmp"
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

// names are what people call the species.
var names = map[Species]string{Vector: "Vector", AmigoBot: "AmigoBot", Pleo: "Pleo", AIBO: "AIBO"}

// Name returns what people call the species; of an unknown one its own word.
func (s Species) Name() string { return cmp.Or(names[s], string(s)) }

// Named returns the species of that name, in any case.
func Named(name string) (Species, error) {
	for s, n := range names {
		if strings.EqualFold(n, name) {
			return s, nil
		}
	}
	return "", fmt.Errorf("species %.40q: want one of vector, amigobot, pleo, aibo", name)
}

var pattern = regexp.MustCompile(`^(vic|amigo|pleo|aibo):[0-9a-z-]{1,40}$`)

// Parse checks s and returns it as a thing id. The error names what was found and what was expected.
func Parse(s string) (ID, error) {
	if !pattern.MatchString(s) {
		if len(s) > 64 {
			s = s[:64] + "…"
		}
		return "", fmt.Errorf("thing id %q: want species:serial, species one of vic, amigo, pleo, aibo and a serial of 1 to 40 characters 0-9 a-z -", s)
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

// Package zones calls time zones by the places where people live: "Berlin, Germany" for Europe/Berlin. zones.txt says where the list comes from.
package zones

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"kennel/infra/errs"
)

//go:embed zones.txt
var file string

// Zone is a time zone of the tz database.
type Zone struct {
	ID      string // Europe/Berlin
	City    string // Berlin
	Country string // Germany

	id, city, country string // as Find compares them
}

// Label is the zone's name for people.
func (z Zone) Label() string { return z.City + ", " + z.Country }

var all = func() []Zone {
	list, err := parse(file)
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return list
}()

// All returns the zones by label.
func All() []Zone { return slices.Clone(all) }

// parse reads lines of "Country = Area/City, Area/City"; # begins a comment.
func parse(text string) ([]Zone, error) {
	var out []Zone
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		country, ids, ok := strings.Cut(line, " = ")
		if !ok || country == "" {
			return nil, fmt.Errorf("zones: line %.40q: want Country = Area/City and more", line)
		}
		for id := range strings.SplitSeq(ids, ", ") {
			at := strings.LastIndexByte(id, '/')
			if at < 1 || at == len(id)-1 || strings.ContainsAny(id, " ,=") {
				return nil, fmt.Errorf("zones: %s: %.40q: want Area/City", country, id)
			}
			city := strings.ReplaceAll(id[at+1:], "_", " ")
			out = append(out, Zone{id, city, country, plain(id), plain(city), plain(country)})
		}
	}
	slices.SortFunc(out, func(a, b Zone) int { return strings.Compare(a.Label(), b.Label()) })
	return out, nil
}

// Label returns what people call a zone; one that is not in the list is called by its id.
func Label(id string) string {
	for _, z := range all {
		if z.ID == id {
			return z.Label()
		}
	}
	return id
}

// shown is how many zones an error names.
const shown = 4

// Find returns the id of the zone that a person means: by its label, city, id, or a country that has one time. Upper and lower case, dots and
// underscores do not matter. A well-formed id that is not in the list is returned as it is. Errors are Invalid and name what is close.
func Find(typed string) (string, error) {
	want := plain(typed)
	if want == "" {
		return "", errs.New(errs.Invalid, "want a city near you, such as Berlin or New York")
	}
	var cities, countries, close []Zone
	for _, z := range all {
		switch {
		case want == z.id, want == z.city+" "+z.country:
			return z.ID, nil
		case want == z.city:
			cities = append(cities, z)
		case want == z.country:
			countries = append(countries, z)
		case strings.HasPrefix(z.city, want), strings.HasPrefix(z.country, want):
			close = append(close, z)
		}
	}
	for _, list := range [][]Zone{cities, countries} {
		switch {
		case len(list) == 1:
			return list[0].ID, nil
		case len(list) > 1:
			return "", errs.New(errs.Invalid, "%s has several time zones: choose %s", strings.TrimSpace(typed), names(list))
		}
	}
	if len(close) > 0 {
		return "", errs.New(errs.Invalid, "did you mean %s", names(close)+"?")
	}
	if id := strings.TrimSpace(typed); strings.Contains(id, "/") || id == "UTC" {
		return id, nil // the document's own rules know every zone there is
	}
	return "", errs.New(errs.Invalid, "%.40q is not in the list: choose a larger city in the same time zone", strings.TrimSpace(typed))
}

func names(list []Zone) string {
	var out []string
	for _, z := range list[:min(len(list), shown)] {
		out = append(out, z.Label())
	}
	if len(list) > shown {
		return strings.Join(out, "; ") + " or another one"
	}
	return strings.Join(out, "; ")
}

// plain is a name without what people write differently.
func plain(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		} else if b.Len() > 0 {
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

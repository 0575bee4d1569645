// Package places is the list of place names that the original app offers for a robot's default_location (VEC-END-02): a few hundred cities as
// "City, Region, Country". places.txt says where it comes from.
package places

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed places.txt
var file string

var names = func() []string {
	list, err := parse(file)
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return list
}()

// Names returns the names in alphabetical order.
func Names() []string { return slices.Clone(names) }

// parse reads lines of "Country = City/Region, City/Region"; # begins a comment.
func parse(text string) ([]string, error) {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		country, cities, ok := strings.Cut(line, " = ")
		if !ok {
			return nil, fmt.Errorf("places: line %.40q: want Country = City/Region and more", line)
		}
		for c := range strings.SplitSeq(cities, ", ") {
			city, region, ok := strings.Cut(c, "/")
			if !ok || city == "" || region == "" || strings.ContainsAny(city+region+country, ",/=") {
				return nil, fmt.Errorf("places: %s: %.40q: want City/Region", country, c)
			}
			out = append(out, city+", "+region+", "+country)
		}
	}
	slices.Sort(out)
	return out, nil
}

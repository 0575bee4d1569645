package sim

import (
	"fmt"
	"slices"
	"strings"

	"kennel/edge/body/bodysim"
	"kennel/infra/thing"
)

// Species returns the words of the species that can be simulated, such as "amigobot".
func Species() (words []string) {
	for _, s := range all {
		words = append(words, s.Word())
	}
	return words
}

// speciesOf returns the species of a thing.
func speciesOf(id thing.ID) (bodysim.Species, error) {
	i := slices.IndexFunc(all, func(s bodysim.Species) bool { return s.Species == id.Species() })
	if i < 0 {
		return bodysim.Species{}, fmt.Errorf("no simulated body for %s: want one of %s", id, strings.Join(Species(), ", "))
	}
	return all[i], nil
}

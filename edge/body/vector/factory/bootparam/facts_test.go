package bootparam

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"unbrick (VEC-BOOT-08)":           {Unbrick, "anki.unbrick"},
		"development robot (VEC-BOOT-08)": {dev, "anki.dev"},
		"slot (VEC-BOOT-08)":              {slot, "androidboot.slot_suffix="},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

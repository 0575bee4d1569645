package crash

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"name of a complete record ends (VEC-CRS-03)":    {Done, ".dmp"},
		"name of an unfinished record ends (VEC-CRS-03)": {Running, ".dmp-"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

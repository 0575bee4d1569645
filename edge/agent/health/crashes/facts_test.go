package crashes

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"FIFO of the paths of dumps (VEC-CRS-01)": {FIFO, "run/anki-crash-log"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

package robot

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"words of a place (GOSTAI-LOC-05)": {maxWords, 4},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

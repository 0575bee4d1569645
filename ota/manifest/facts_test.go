package manifest

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"kinds (VEC-OTA-02)": {[3]Kind{Production, Factory, Delta}, [3]Kind{"production", "factory", "delta"}},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

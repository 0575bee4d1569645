package local

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"subjects (VEC-NLP-06)": {[8]string{Equation, Units, Timezone, Places, General, People, Nutrition, Definition}, [8]string{"equation", "unit conversion", "time zone", "places", "general knowledge", "people", "nutrition", "word definition"}},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

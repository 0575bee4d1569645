package das

import (
	"testing"
)

// TestFacts: the classes of events; they are stored.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"class of crashes (VEC-CRS-06)":  {Crash, Class("crash")},
		"classes of faults (VEC-DAS-11)": {FaultClass, Class("fault/")},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

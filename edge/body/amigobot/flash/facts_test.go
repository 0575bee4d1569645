package flash

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"parameter file (AMIGO-CF-11)":          {FileName, "AmigoBot.cf"},
		"characters of a text (AMIGO-FLASH-09)": {MaxText, 20},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

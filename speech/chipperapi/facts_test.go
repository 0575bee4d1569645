package chipperapi_test

import (
	"testing"

	"kennel/speech/chipperapi"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"no answer (VEC-NLP-04)": {chipperapi.NoResult, "NoResultCommand"},
		"an answer (VEC-NLP-04)": {chipperapi.Information, "InformationCommand"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

package mic

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"rate (VEC-MIC-02)":               {Rate, 16000},
		"samples of a chunk (VEC-MIC-02)": {ChunkSamples, 160},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

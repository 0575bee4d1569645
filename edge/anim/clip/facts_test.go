package clip

import (
	"testing"
	"time"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"between two steps (VEC-AFF-22)":   {Step, 30 * time.Millisecond},
		"the event of a beat (VEC-AFF-16)": {Beat, "DANCE_BEAT_SYNC"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

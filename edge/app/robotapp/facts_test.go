package robotapp

import (
	"testing"
	"time"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"period of the watchdog (VEC-WDOG-02)": {kickEvery, 250 * time.Millisecond},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

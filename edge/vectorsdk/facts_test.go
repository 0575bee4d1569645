package vectorsdk

import (
	"testing"
	"time"
)

// TestFacts: the numbers of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"the tag that no client can name (VEC-CTL-20)": {behaviorTag, 0},
		"robot_state in a second (VEC-EVT-06)":         {stateHz, 30},
		"between keep-alives (VEC-CTL-04, VEC-EVT-04)": {beat, time.Second},
		"characters of a client's name (VEC-AUTH-10)":  {maxName, 64},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

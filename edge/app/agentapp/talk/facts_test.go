package talk

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"map of the intents (VEC-INT-01)": {intentMap, "anki/data/assets/cozmo_resources/config/engine/behaviorComponent/user_intent_map.json"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

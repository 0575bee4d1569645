package intents

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"pitch of a nod upwards (GOSTAI-FRAME-05)":                   {up, -1},
		"pitch of a nod downwards (GOSTAI-FRAME-05)":                 {down, 1},
		"outcome of an intent that is not known or off (VEC-INT-11)": {Unmatched, Reason("unmatched")},
		"map of the intents (VEC-INT-01)":                            {mapFile, "anki/data/assets/cozmo_resources/config/engine/behaviorComponent/user_intent_map.json"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

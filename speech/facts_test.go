package speech_test

import (
	"testing"

	"kennel/speech"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"no intent (VEC-INT-04)":         {speech.Unmatched, "intent_system_unmatched"},
		"silence (VEC-INT-04)":           {speech.Silence, "intent_system_noaudio"},
		"kind of an answer (VEC-NLP-06)": {speech.Knowledge, speech.Kind("knowledge")},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

package onebox

import (
	"fmt"
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"begin of an engineering unit's serial number (VEC-STOR-03)": {fmt.Sprintf("%08x", firstSerial)[:3], "00e"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

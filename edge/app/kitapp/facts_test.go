package kitapp

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"speed of a serial port (AMIGO-LINK-01)":       {amigoBaud, 9600},
		"where the guard begins, in m (AMIGO-OPEN-12)": {guardFar, 0.6},
		"where the guard stops, in m (AMIGO-OPEN-12)":  {guardNear, 0.2},
		"wander, in m/s (AMIGO-OPEN-11)":               {wanderSpeed, 0.2},
		"wander turns away, in m (AMIGO-OPEN-11)":      {wanderNear, 0.4},
		"RevCount (AMIGO-FLASH-22)":                    {usualRevCount, 23310},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

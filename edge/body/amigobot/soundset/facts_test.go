package soundset

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"sounds of the system (AMIGO-SND-03)":     {[10]int{Reset, Connect, Disconnect, Stall, LowBattery, Version, TestWarning, MotorsOn, MotorsOff, SystemMode}, [10]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"first sound of the owner (AMIGO-SND-02)": {FirstUser, 50},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

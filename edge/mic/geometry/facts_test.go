package geometry

import (
	"math"
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"microphones, samples of each, rate, idle level (VEC-MIC-01)": {[4]int{Mics, Samples, Rate, Idle}, [4]int{4, 80, 15625, 1024}},
		"directions (VEC-MIC-03)":                                     {Bins, 12},
		"degrees of a direction (VEC-MIC-03)":                         {math.Round(binStep * 180 / math.Pi), 30.0},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

package motion

import (
	"math"
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"stop off, as a share of the travel (VEC-MCT-11)": {offShare, 0.05},
		"cliff sensors (VEC-BODY-20)":                     {[4]Cliffs{FrontLeft, FrontRight, BackLeft, BackRight}, [4]Cliffs{1, 2, 4, 8}},
		"tolerance of a turn, in degrees (VEC-MOT-03)":    {math.Round(minTolerance * 180 / math.Pi), 2.0},
		"continuity, in m (VEC-MCT-02)":                   {jointMetres, 0.001},
		"continuity, in degrees (VEC-MCT-02)":             {math.Round(jointRadians * 180 / math.Pi), 1.0},
		"segments of a path (VEC-MOT-09)":                 {MaxSegments, 128},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

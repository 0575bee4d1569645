package sense

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"gravity, in m/s2 (VEC-IMU-03)":         {Gravity, 9.81},
		"picked up (VEC-IMU-08)":                {statusPickedUp, 0x8},
		"falling (VEC-IMU-07)":                  {statusFalling, 0x20},
		"held (VEC-IMU-09)":                     {statusHeld, 0x10000},
		"in motion (VEC-IMU-14)":                {statusInMotion, 0x20000},
		"cliff (VEC-IO-20)":                     {statusCliff, 0x4000},
		"events of touch, in order (VEC-IO-13)": {[4]TouchEvents{TouchBegan, TouchEnded, Petted, ChargerModeCheck}, [4]TouchEvents{1, 2, 4, 8}},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

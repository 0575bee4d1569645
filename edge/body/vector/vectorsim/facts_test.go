package vectorsim

import (
	"testing"
	"time"

	"kennel/edge/body/vector/spine"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	moved := world{idle: idleAfter}
	moved.obey(&spine.HeadData{Motors: [4]int16{spine.Lift: 1}})
	for fact, tc := range map[string][2]any{
		"a held button latches the power (VEC-BOOT-02)": {latchAfter, 5 * time.Second},
		"a held button boots recovery (VEC-BOOT-02)":    {recoveryAfter, 15 * time.Second},
		"until encoders go off (VEC-PWR-21)":            {idleAfter, 2 * time.Second},
		"low, in V (VEC-PWR-02)":                        {lowVolts, 3.6},
		"charger, in V (VEC-HW-04)":                     {padVolts, 5.0},
		"hot, in degrees (VEC-PWR-10)":                  {hotDegrees, 50.0},
		"program memory, in bytes (VEC-DFU-03)":         {flashSize, 65536},
		"block, in bytes (VEC-DFU-03)":                  {flashPage, 1024},
		"word, in bytes (VEC-DFU-03)":                   {blockWordSize, 4},
		"banner (VEC-CLI-02)":                           {padBanner, "\xff\x92\x1f\xcf\xff\xff\xff\xff\nbooted\n"},
		"time since a motor was commanded (VEC-PWR-22)": {moved.idle, time.Duration(0)},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

package power

import (
	"testing"
	"time"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"full, in V (VEC-PWR-02)":               {FullVolts, 4.1},
		"low, in V (VEC-PWR-02)":                {LowVolts, 3.6},
		"low on the charger, in V (VEC-PWR-02)": {LowOnChargerVolts, 4.0},
		"hysteresis, in V (VEC-PWR-03)":         {HysteresisVolts, 0.02},
		"filter (VEC-PWR-01)":                   {TimeConstant, 5 * time.Second},
		"calm power mode (VEC-PWR-20)":          {StatusCalm, uint32(0x400)},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

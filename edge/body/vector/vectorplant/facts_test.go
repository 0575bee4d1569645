package vectorplant

import (
	"math"
	"testing"

	"kennel/edge/motion"
)

// TestFacts: the joints of the source, with the counts of the driver's default calibration.
func TestFacts(t *testing.T) {
	c := motionConfig()
	lift, head := c.Joints[jointLift], c.Joints[jointHead]
	for fact, tc := range map[string][2]any{
		"lift, speed and acceleration (VEC-MOT-02)": {lift.Most, motion.Ramp{Speed: 10, Accel: 10, Decel: 10}},
		"head, speed and acceleration (VEC-MOT-01)": {head.Most, motion.Ramp{Speed: 10, Accel: 10, Decel: 10}},
		"lift, in mm (VEC-MOT-02)":                  {[2]float64{millimetres(lift.Stops[0]), millimetres(lift.Stops[1])}, [2]float64{32, 92}},
		"head, in degrees (VEC-MOT-01)":             {[2]float64{degrees(head.Stops[0]), degrees(head.Stops[1])}, [2]float64{-22, 45}},
		"motors of lift and head (VEC-BODY-20)":     {[2]int{lift.Motor.Index, head.Motor.Index}, [2]int{2, 3}},
		"counts of a radian":                        {[2]float64{1 / lift.Motor.Count, 1 / head.Motor.Count}, [2]float64{400, 500}},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

func degrees(angle float64) float64     { return math.Round(angle * 180 / math.Pi) }
func millimetres(angle float64) float64 { return math.Round(liftHeightOf(angle) * 1000) }

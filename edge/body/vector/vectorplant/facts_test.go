package vectorplant

import (
	"math"
	"testing"

	"kennel/edge/body/vector/spine"
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

// TestHeadInTurns: in the tree a raised head is negative, in turns and in turns a second (GOSTAI-FRAME-05).
func TestHeadInTurns(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "headPitch")
	r := d.ask(quick(set(alice, map[string]float64{"headPitch.turn": -0.05}), 99))
	if want := 10 * 0.78 / (2 * math.Pi); math.Abs(r.Speed-want) > 5e-3 {
		t.Errorf("%.3f turns a second at most; want %.3f", r.Speed, want)
	}
	d.ended(alice)
	if up := degrees(d.angle[spine.Head]); up != 18 {
		t.Errorf("raised by %v degrees; want 18", up)
	}
}

package vectordriver

import (
	"math"
	"testing"
	"time"
)

// TestFacts: the numbers of the source that the driver and the tree are built on.
func TestFacts(t *testing.T) {
	for name, tc := range map[string]struct{ got, want float64 }{
		"head, highest, in degrees (VEC-MOT-01)":                     {headUp * 180 / math.Pi, 45},
		"head, lowest, in degrees (VEC-MOT-01)":                      {headDown * 180 / math.Pi, 22},
		"lift, lowest, in mm (VEC-MOT-02)":                           {armLow * 1000, 32},
		"lift, highest, in mm (VEC-MOT-02)":                          {armHigh * 1000, 92},
		"range finder, nearest, in mm (VEC-BODY-26)":                 {laserMin * 1000, 30},
		"range finder, farthest, in mm (VEC-BODY-26)":                {laserMax * 1000, 1200},
		"bits a second (VEC-BODY-01)":                                {DefaultBaud, 3_000_000},
		"frames before the body cuts power (VEC-BODY-11)":            {WatchdogFrames, 200},
		"period, in microseconds: 80 at 15,625 Hz (VEC-BODY-10)":     {float64(Period / time.Microsecond), 80e6 / 15625},
		"age at which motors lose their power, in ms (VEC-BODY-33)":  {float64(Stale / time.Millisecond), 50},
		"largest program, in bytes (VEC-DFU-03)":                     {maxProgram, 65536},
		"tries of a frame (VEC-DFU-02)":                              {askTries, 3},
		"refusals of the version until it is believed (VEC-BODY-08)": {refusalsOfAsk, 3},
		"battery, empty, in V (GOSTAI-MAP-V-32)":                     {batteryEmpty, 3.6},
		"battery, full, in V (GOSTAI-MAP-V-32)":                      {batteryFull, 4.1},
		"bit that turns the charger off (VEC-BODY-32)":               {float64(SimChargerOff), 1},
		"bit that turns the sensors off (VEC-BODY-32)":               {float64(SimSensorsOff), 2},
	} {
		if math.Abs(tc.got-tc.want) > 1e-9*tc.want {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}

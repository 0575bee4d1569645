package motion

import (
	"math"
	"time"
)

// testConfig returns the settings of a body with two treads, a lift and a head, sized like a Vector.
func testConfig() Config {
	const (
		radius, track = 0.0145, 0.048 // m (VEC-MOT-10)
	)
	guard := func(speed, duty float64) GuardConfig {
		return GuardConfig{Speed: speed, Duty: duty, After: 1 /* VEC-MCT-07 */, Fade: 0.5, Recover: 0.1, Safe: 0.2, HeatMost: 4, Cool: 60}
	}
	joint := func(index int, counts float64, stops [2]float64) JointConfig {
		return JointConfig{
			Motor: MotorConfig{
				Index: index, Count: 1 / counts, FullRate: 12, Lag: 0.025, Friction: 0.02, MaxDuty: 1, P: 10, D: 0.6, I: 2.5, MaxI: 0.3,
				Guard: guard(0.1, 0.08),
			},
			Stops: stops, Margin: 0.03,
			Most:      Ramp{Speed: 10, Accel: 10, Decel: 10}, // VEC-MOT-01, VEC-MOT-02
			Tolerance: 0.01, HandAngle: 0.15, LagAngle: 0.1, BlockedTime: 3,
			HomeDuty: 0.25, HomeSpeed: 1, Contact: 0.15, Tries: 3,
		}
	}
	tread := func(index int) MotorConfig {
		return MotorConfig{
			Index: index, Count: 1. / 150, FullRate: 0.3, Lag: 0.025, Friction: 0.02, MaxDuty: 1, P: 1.5, I: 6, MaxI: 0.35,
			Guard: guard(0.003, 0.08),
		}
	}
	return Config{
		Drive: Drive{Radius: radius, Track: track},
		Tread: Ramp{Speed: 0.22, Accel: 1, Decel: 1}, // VEC-MOT-04; accelerations own default
		Left:  tread(0),
		Right: tread(1),
		Joints: []JointConfig{
			testLift: joint(2, 400, [2]float64{math.Asin((0.032 - 0.045) / 0.066), math.Asin((0.092 - 0.045) / 0.066)}), // VEC-MOT-02
			testHead: joint(3, 500, [2]float64{-22 * degree, 45 * degree}),                                              // VEC-MOT-01
		},
		Headroom: Headroom{Speed: 0.78, Accel: 0.42},
		Segments: MaxSegments,
		Stale:    50 * time.Millisecond, // VEC-BODY-33, as edge/core/rt's
		Follow: FollowConfig{Along: 4, Across: 400, Heading: 30, Turn: 6, Blend: 0.05, Astray: 0.05, AstrayAngle: 30 * degree, Settle: 1,
			Close: 0.001, CloseAngle: 0.5 * degree, Tolerance: 0.01, TurnTolerance: 2 * degree},
		Odometry: OdometryConfig{GyroShare: 0.98, PushSlip: 0.1, SlipRate: 1, RestRate: 0.1,
			GyroStale: 50 * time.Millisecond, GyroSpan: 20 * time.Millisecond, Coast: 500 * time.Millisecond, CoastMetres: 0.002},
	}
}

// Joints of testConfig.
const (
	testLift = 0
	testHead = 1
)

package vectorplant

import (
	"math"
	"time"

	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/motion"
)

// motionConfig returns the settings of an unmeasured Vector's motors. Geometry, counts and motor indices are those of the driver's default
// calibration. Everything without a row is an own default.
func motionConfig() motion.Config {
	const (
		radius, track = 0.0145, 0.048 // m; own defaults for VEC-MOT-10
		degree        = math.Pi / 180
	)
	guard := func(speed, duty float64) motion.GuardConfig {
		return motion.GuardConfig{Speed: speed, Duty: duty, After: 1 /* VEC-MCT-07 */, Fade: 0.5, Recover: 0.1, Safe: 0.2, HeatMost: 4, Cool: 60}
	}
	joint := func(index int, counts float64, stops [2]float64) motion.JointConfig {
		return motion.JointConfig{
			Motor: motion.MotorConfig{Index: index, Count: 1 / counts, FullRate: 12, Lag: 0.025, Friction: 0.02, MaxDuty: 1, P: 10, D: 0.6, I: 2.5,
				MaxI: 0.3, Guard: guard(0.1, 0.08)},
			Stops: stops, Margin: 0.03,
			Most:      motion.Ramp{Speed: 10, Accel: 10, Decel: 10}, // VEC-MOT-01, VEC-MOT-02
			Tolerance: 0.01, HandAngle: 0.15, LagAngle: 0.1, BlockedTime: 3,
			HomeDuty: 0.25, HomeSpeed: 1, Contact: 0.15, Tries: 3,
		}
	}
	tread := func(index int) motion.MotorConfig {
		return motion.MotorConfig{Index: index, Count: 1. / 150, FullRate: 0.3, Lag: 0.025, Friction: 0.02, MaxDuty: 1, P: 1.5, I: 6, MaxI: 0.35,
			Guard: guard(0.003, 0.08)}
	}
	return motion.Config{
		Drive: motion.Drive{Radius: radius, Track: track},
		Tread: motion.Ramp{Speed: 0.22, Accel: 1, Decel: 1}, // VEC-MOT-04; accelerations own default
		Left:  tread(0),
		Right: tread(1),
		Joints: []motion.JointConfig{
			jointLift: joint(2, 400, [2]float64{liftAngle(liftLow), liftAngle(liftHigh)}), // VEC-MOT-02
			jointHead: joint(3, 500, [2]float64{-22 * degree, 45 * degree}),               // VEC-MOT-01
		},
		Headroom: motion.Headroom{Speed: 0.78, Accel: 0.42},
		Segments: motion.MaxSegments,
		Stale:    vectordriver.Stale,
		Follow: motion.FollowConfig{Along: 4, Across: 400, Heading: 30, Turn: 6, Blend: 0.05, Astray: 0.05, AstrayAngle: 30 * degree, Settle: 1,
			Close: 0.001, CloseAngle: 0.5 * degree, Tolerance: 0.01, TurnTolerance: 2 * degree},
		Odometry: motion.OdometryConfig{GyroShare: 0.98, PushSlip: 0.1, SlipRate: 1, RestRate: 0.1,
			GyroStale: 50 * time.Millisecond, GyroSpan: 20 * time.Millisecond, Coast: 500 * time.Millisecond, CoastMetres: 0.002},
	}
}

// The joints in motion.Config.Joints.
const (
	jointLift = 0
	jointHead = 1
)

// The arm that raises the fork: height of its joint and its length in metres, as in edge/body/vector's tree.
const (
	armJoint, armLength = 0.045, 0.066
	liftLow, liftHigh   = 0.032, 0.092 // VEC-MOT-02
)

// liftAngle returns the lift's angle for a height above the ground in metres, clamped to 32 to 92 mm (VEC-MOT-02).
func liftAngle(height float64) float64 {
	return math.Asin((min(max(height, liftLow), liftHigh) - armJoint) / armLength)
}

// liftHeightOf is the way back.
func liftHeightOf(angle float64) float64 {
	return armJoint + armLength*math.Sin(angle)
}

package vectorplant

import (
	"math/bits"

	"kennel/edge/control"
	"kennel/edge/motion"
	"kennel/edge/sense"
)

// happening is an event of the senses or the joints under the name that the original gives it.
type happening[E any] struct {
	bit     E
	name    string
	warning bool
}

var (
	ofMotion = []happening[sense.MotionEvents]{
		{sense.FallBegan, "imu_filter.falling_event", true}, {sense.FallImpact, "imu_filter.fall_impact_event", true},
		{sense.GyroReady, "imu_filter.gyro_calibrated", false}, {sense.Delocalized, "robot.delocalized", false},
		{sense.TooLongInAir, "robot.too_long_in_air", false},
	}
	ofTouch = []happening[sense.TouchEvents]{ // VEC-IO-13
		{sense.ChargerModeCheck, "touch_sensor.activate_charger_mode_check", false},
		{sense.BaselineLearnt, "touch_sensor.baseline_fast_calibration_finished", false},
		{sense.BaselineChanged, "touch_sensor.charger_mode_check.baseline_changed", false},
		{sense.BaselineUnchanged, "touch_sensor.charger_mode_check.no_baseline_change", false},
		{sense.BaselineTooHigh, "touch_sensor.baseline_reading_difference_monitor_too_low", false},
	}
	ofProx = []happening[sense.ProxEvents]{ // VEC-BODY-26
		{sense.ProxInvalid, "hal.invalid_prox_reading_report", false}, {sense.ProxSevere, "hal.severe_invalid_prox_reading_report", true},
	}
	ofJoint = [...][]happening[motion.Event]{ // VEC-MOT-07, VEC-MCT-10
		jointHead: {{motion.Calibrated, "head_motor_calibrated", false}, {motion.Uncalibrated, "head_motor_uncalibrated", false}},
		jointLift: {{motion.Calibrated, "lift_motor_calibrated", false}, {motion.Uncalibrated, "lift_motor_uncalibrated", false}},
	}
)

// tell emits an event for each bit of happened.
func tell[E ~uint8 | ~uint16 | ~uint32](p *Plant, m *control.Moment, happened E, all []happening[E]) {
	for _, h := range all {
		if happened&h.bit != 0 {
			p.emit(control.Event{At: m.Now, Name: h.name, Warning: h.warning, N: 1, Numbers: [4]int64{1}})
		}
	}
}

// notice reports what the senses noticed in this step, and what the joints found or lost in the step before (VEC-IMU-06, 07, 16, 18).
func (p *Plant) notice(m *control.Moment, before sense.OffTreads) {
	ev := &p.events
	tell(p, m, ev.Motion, ofMotion)
	tell(p, m, ev.Touch, ofTouch)
	tell(p, m, ev.Prox, ofProx)
	if now := p.known.Motion.OffTreads; now != before {
		e := control.Event{At: m.Now, Name: "robot.offtreadsstatechanged"}
		e.Texts[0], e.Texts[1] = now.String(), before.String()
		p.emit(e)
	}
	if n := bits.OnesCount8(uint8(ev.Cliff.Lost)); n > 0 { // VEC-IO-20
		p.emit(control.Event{At: m.Now, Name: "robot.cliff_detected", N: 1, Numbers: [4]int64{int64(n)}})
	}
	homing := false
	for i := range ofJoint {
		tell(p, m, p.now.Joints[i].Events, ofJoint[i])
		homing = homing || p.now.Joints[i].State == motion.Homing
	}
	if homing && !p.homing {
		p.emit(control.Event{At: m.Now, Name: "calibrate_motors"})
	}
	p.homing = homing
	if p.known.Petting {
		p.petted += m.DT
	}
}

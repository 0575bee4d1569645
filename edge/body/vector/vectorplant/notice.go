package vectorplant

import (
	"math/bits"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/sense"
)

// happening is an event of the senses or the joints under the name that the original gives it.
type happening[E any] struct {
	bit     E
	name    string
	warning bool
	quiet   bool
}

var (
	ofMotion = []happening[sense.MotionEvents]{
		{sense.FallBegan, "imu_filter.falling_event", true, false}, {sense.FallImpact, "imu_filter.fall_impact_event", true, false},
		{sense.GyroReady, "imu_filter.gyro_calibrated", false, false}, {sense.Delocalized, "robot.delocalized", false, false},
		{sense.TooLongInAir, "robot.too_long_in_air", false, false},
		{sense.ShakeBegan, "robot.shaken", false, true}, {sense.Poked, "robot.poked", false, true}, {sense.FistBump, "robot.fist_bump", false, true},
	}
	ofTouch = []happening[sense.TouchEvents]{ // VEC-IO-13
		{sense.ChargerModeCheck, "touch_sensor.activate_charger_mode_check", false, false},
		{sense.BaselineLearnt, "touch_sensor.baseline_fast_calibration_finished", false, false},
		{sense.BaselineChanged, "touch_sensor.charger_mode_check.baseline_changed", false, false},
		{sense.BaselineUnchanged, "touch_sensor.charger_mode_check.no_baseline_change", false, false},
		{sense.BaselineTooHigh, "touch_sensor.baseline_reading_difference_monitor_too_low", false, false},
		{sense.TouchBegan, "robot.touched", false, true}, {sense.Petted, "robot.petted", false, true},
	}
	ofProx = []happening[sense.ProxEvents]{ // VEC-BODY-26
		{sense.ProxInvalid, "hal.invalid_prox_reading_report", false, false}, {sense.ProxSevere, "hal.severe_invalid_prox_reading_report", true, false},
	}
	ofJoint = [...][]happening[motion.Event]{ // VEC-MOT-07, VEC-MCT-10
		jointHead: {{motion.Calibrated, "head_motor_calibrated", false, false}, {motion.Uncalibrated, "head_motor_uncalibrated", false, false}},
		jointLift: {{motion.Calibrated, "lift_motor_calibrated", false, false}, {motion.Uncalibrated, "lift_motor_uncalibrated", false, false}},
	}
)

// tell emits an event for each bit of happened.
func tell[E ~uint8 | ~uint16 | ~uint32](p *Plant, m *control.Moment, happened E, all []happening[E]) {
	for _, h := range all {
		if happened&h.bit != 0 {
			p.emit(control.Event{At: m.Now, Name: h.name, Warning: h.warning, Quiet: h.quiet, N: 1, Numbers: [4]int64{1}})
		}
	}
}

// unsettledFor is how long the state is unknown before that is told (own default): samples that are late for a moment say nothing about the robot.
const unsettledFor = time.Second

// tellTreads reports a change of the off-treads state (VEC-IMU-06).
func (p *Plant) tellTreads(m *control.Moment) {
	now := p.known.Motion.OffTreads
	if now != sense.Unsettled {
		p.settled = m.Now
	} else if m.Now-p.settled < unsettledFor {
		return
	}
	if now != p.toldTreads {
		e := control.Event{At: m.Now, Name: "robot.offtreadsstatechanged"}
		e.Texts[0], e.Texts[1] = now.String(), p.toldTreads.String()
		p.emit(e)
		p.toldTreads = now
	}
}

// notice reports the senses' findings of this step, and the zeros that joints found or lost in the step before (VEC-IMU-06, 07, 16, 18).
func (p *Plant) notice(m *control.Moment) {
	ev := &p.events
	tell(p, m, ev.Motion, ofMotion)
	tell(p, m, ev.Touch, ofTouch)
	tell(p, m, ev.Prox, ofProx)
	p.tellTreads(m)
	if n := bits.OnesCount8(uint8(ev.Cliff.Lost)); n > 0 { // VEC-IO-20
		p.emit(control.Event{At: m.Now, Name: "robot.cliff_detected", N: 1, Numbers: [4]int64{int64(n)}})
	}
	if n := bits.OnesCount8(uint8(ev.Cliff.Dark | ev.Cliff.Bright)); n > 0 { // VEC-IO-23
		p.emit(control.Event{At: m.Now, Name: "robot.line_seen", Quiet: true, N: 1, Numbers: [4]int64{int64(n)}})
	}
	if g := ev.Gesture; g != sense.NoGesture { // part of VEC-IO-02
		e := control.Event{At: m.Now, Name: "robot.button", Quiet: true}
		e.Texts[0] = g.String()
		p.emit(e)
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

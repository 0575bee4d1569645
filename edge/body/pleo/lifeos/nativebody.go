package lifeos

import (
	"strings"

	"kennel/edge/body/pleo/format"
)

// The configurations of a sensor (PLEO-SEN-G07).
const (
	configValue = 1 + iota
	configRaw
	configEnabled
	configTrigger
	configAuxTrigger
	configLast
	configTime
	configCount
	configBeaconID
	configTimer
	configFilter
)

// withSensor makes a native of a function of the sensor that its first argument names; without one it returns 0.
func withSensor(f func(e *env, st *sensorState) int32) func(*env) int32 {
	return func(e *env) int32 {
		st := e.s.sensor(Sensor(e.Arg(0)))
		if st == nil {
			e.s.log(Warning, LogSensor, "sensor %d: not known", e.Arg(0))
			return 0
		}
		return f(e, st)
	}
}

// sensorConfig returns a configuration of a sensor.
func (s *System) sensorConfig(st *sensorState, what int32) int32 {
	switch what {
	case configValue, configRaw:
		return st.value
	case configEnabled:
		return truth(st.enabled)
	case configTrigger:
		return st.levels[0]
	case configAuxTrigger:
		return st.levels[1]
	case configLast:
		return int32(st.last.Milliseconds())
	case configTime:
		return int32(st.at.Milliseconds())
	case configCount:
		return st.count
	case configBeaconID:
		return int32(byte(s.cfg.Serial))
	case configTimer:
		return int32(s.sensors.timer.Milliseconds())
	case configFilter:
		return st.filter
	}
	return 0
}

// setSensorConfig changes a configuration of a sensor and returns the former one.
func (s *System) setSensorConfig(st *sensorState, what, v int32) int32 {
	old := s.sensorConfig(st, what)
	switch what {
	case configValue:
		st.value = v
	case configEnabled:
		s.enable(st, v != 0)
	case configTrigger:
		st.levels[0] = v
	case configAuxTrigger:
		st.levels[1] = v
	case configTimer:
		s.setTimer(v)
	case configFilter:
		st.filter = v
	}
	return old
}

// sensorNatives are those of sensors (PLEO-XAPI-03).
func sensorNatives() []Native {
	read := withSensor(func(_ *env, st *sensorState) int32 { return st.value })
	data := withSensor(func(e *env, st *sensorState) int32 { return e.s.sensorData(e, st, e.Arg(1), e.Arg(2)) })
	level := withSensor(func(e *env, st *sensorState) int32 { return e.s.setSensorConfig(st, configTrigger, e.Arg(1)) })
	const id = "(sensor_name: sensor"
	return []Native{
		{"Sensor", "sensor_read" + id + ")", read}, // PLEO-SEN-G04
		{"Sensor", "sensor_get_value" + id + ")", read},
		{"Sensor", "sensor_read_raw" + id + ")", read},
		{"Sensor", "sensor_write" + id + ", value)", withSensor(func(e *env, st *sensorState) int32 { return e.s.setSensorConfig(st, configValue, e.Arg(1)) })},
		{"Sensor", "bool: sensor_is_triggered" + id + ")", withSensor(func(_ *env, st *sensorState) int32 { return truth(st.pending) })},
		{"Sensor", "sensor_reset" + id + ")", withSensor(func(e *env, st *sensorState) int32 { e.s.resetTrigger(st); return 0 })},
		{"Sensor", "sensor_read_data" + id + ", data[], length = sizeof data)", data},
		{"Sensor", "sensor_get_data" + id + ", data[], length = sizeof data)", data}, // PLEO-SEN-G10
		{"Sensor", "sensor_data_size" + id + ")", withSensor(func(_ *env, st *sensorState) int32 { return int32(len(st.data)) })},
		{"Sensor", "sensor_write_data" + id + ", const data[], length = sizeof data)", withSensor(writeData)}, // PLEO-SEN-G06
		{"Sensor", "sensor_get_name" + id + ", name[], length = sizeof name)", withSensor(func(e *env, st *sensorState) int32 {
			return e.give(1, strings.ToLower(st.Name), false, e.Arg(2))
		})},
		{"Sensor", "sensor_get_config" + id + ", sensor_config: config)", withSensor(func(e *env, st *sensorState) int32 { return e.s.sensorConfig(st, e.Arg(1)) })},
		{"Sensor", "sensor_set_config" + id + ", sensor_config: config, value)", withSensor(func(e *env, st *sensorState) int32 {
			return e.s.setSensorConfig(st, e.Arg(1), e.Arg(2))
		})},
		{"Sensor", "sensor_enable" + id + ")", withSensor(func(e *env, st *sensorState) int32 { e.s.enable(st, true); return 0 })},
		{"Sensor", "sensor_disable" + id + ")", withSensor(func(e *env, st *sensorState) int32 { e.s.enable(st, false); return 0 })},
		{"Sensor", "sensor_set_trigger_level" + id + ", level)", level},
		{"Sensor", "sensor_set_level" + id + ", level)", level},
		{"Sensor", "sensor_time_since_last" + id + ")", withSensor(func(_ *env, st *sensorState) int32 { return int32((st.at - st.last).Milliseconds()) })}, // PLEO-SEN-G12
		{"Sensor", "sensor_get_trigger_time" + id + ")", withSensor(func(_ *env, st *sensorState) int32 { return int32(st.at.Milliseconds()) })},
		{"Sensor", "sensor_get_trigger_count" + id + ")", withSensor(func(_ *env, st *sensorState) int32 { return st.count })},
		{"Sensor", "sensor_call_script" + id + ", bool: enable)", withSensor(func(e *env, st *sensorState) int32 { st.muted = !e.flag(1); return 0 })},
		{"Sensor", "set_timer_interval(ms)", func(e *env) int32 { return e.s.setTimer(e.Arg(0)) }},
	}
}

// writeData sends what a script writes to a sensor: a packet to the head (PLEO-PKT-09), infra-red data, or what goes with the beacon (PLEO-SEN-38).
func writeData(e *env, st *sensorState) int32 {
	b := e.bytes(1, e.Arg(2))
	switch st.ID {
	case SensorBeacon:
		return e.s.setBeacon(b[:min(len(b), max(int(e.Arg(2)), 0))])
	case SensorIR:
		return e.s.irData(b)
	case SensorPacket:
		if e.s.cfg.Profile == Profile10 { // PLEO-PKT-05: only by the monitor
			return 0
		}
	default:
		e.s.log(Warning, LogSensor, "%s: takes no data", st.Name)
		return 0
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	e.s.sendPacket(b)
	return int32(len(b))
}

// withJoint makes a native of a function of the joint that its first argument names; without one it returns 0 (PLEO-JNT-15).
func withJoint(f func(e *env, j *jointState, joint Joint) int32) func(*env) int32 {
	return func(e *env) int32 {
		j, joint, ok := e.s.joint(e.Arg(0))
		if !ok {
			return 0
		}
		return f(e, j, joint)
	}
}

func jointNatives() []Native {
	const id = "(joint_name: joint"
	const unit = ", angle_type: type = angle_degrees)"
	limit := func(set func(j *jointState, deg float64)) func(*env) int32 {
		return withJoint(func(e *env, j *jointState, _ Joint) int32 { set(j, j.degrees(e.Arg(1), e.Arg(2))); return 1 })
	}
	return []Native{
		{"Joint", "joint_get_min" + id + unit, withJoint(func(e *env, j *jointState, _ Joint) int32 { return j.toUnit(j.min, e.Arg(1)) })},         // PLEO-JNT-03
		{"Joint", "joint_get_neutral" + id + unit, withJoint(func(e *env, j *jointState, _ Joint) int32 { return j.toUnit(j.neutral, e.Arg(1)) })}, // PLEO-JNT-04
		{"Joint", "joint_get_max" + id + unit, withJoint(func(e *env, j *jointState, _ Joint) int32 { return j.toUnit(j.max, e.Arg(1)) })},         // PLEO-JNT-05
		{"Joint", "joint_move_to" + id + ", value, speed = 128, angle_type: type = angle_degrees)", func(e *env) int32 {
			return truth(e.s.moveJoint(e.Arg(0), e.Arg(1), e.Arg(2), e.Arg(3)))
		}},
		{"Joint", "joint_get_attribute" + id + ", joint_attribute: attribute)", func(e *env) int32 { return e.s.jointAttribute(e.Arg(0), e.Arg(1)) }},
		{"Joint", "joint_set_attribute" + id + ", joint_attribute: attribute, value)", withJoint(func(e *env, j *jointState, _ Joint) int32 {
			old := e.s.jointAttribute(e.Arg(0), e.Arg(1))
			switch e.Arg(1) {
			case jointDeadband:
				j.deadband = max(e.Arg(2), 0)
			case jointThreshold:
				j.threshold = e.Arg(2)
			}
			return old
		})},
		{"Joint", "joint_get_status" + id + ")", func(e *env) int32 { return e.s.jointAttribute(e.Arg(0), jointStatus) }},
		{"Joint", "joint_get_position" + id + unit, withJoint(func(e *env, j *jointState, joint Joint) int32 { // PLEO-JNT-08
			return j.toUnit(e.s.hw.Joint(joint).Position, e.Arg(1))
		})},
		{"Joint", "bool: joint_is_moving" + id + ")", func(e *env) int32 { return truth(e.s.moving(e.Arg(0))) }},
		{"Joint", "joint_control" + id + ", who)", withJoint(func(e *env, j *jointState, _ Joint) int32 {
			old := j.scripted
			j.scripted = e.Arg(1) != 0
			return truth(old)
		})},
		{"Joint", "joint_set_min" + id + ", angle, angle_type: type = angle_degrees)", limit(func(j *jointState, d float64) { j.min = min(d, j.max) })},
		{"Joint", "joint_set_max" + id + ", angle, angle_type: type = angle_degrees)", limit(func(j *jointState, d float64) { j.max = max(d, j.min) })},
		{"Joint", "joint_set_neutral" + id + ", angle, angle_type: type = angle_degrees)", limit(func(j *jointState, d float64) { j.neutral = d })},
		{"Joint", "joint_set_offset" + id + ", angle)", withJoint(func(e *env, j *jointState, _ Joint) int32 { old := j.offset; j.offset = e.Arg(1); return old })},
		{"Joint", "joint_get_offset" + id + ")", withJoint(func(_ *env, j *jointState, _ Joint) int32 { return j.offset })},
		{"Joint", "joint_get_name" + id + ", name[], length = sizeof name)", withJoint(func(e *env, _ *jointState, joint Joint) int32 {
			return e.give(1, strings.ToLower(joint.String()), false, e.Arg(2))
		})},
		{"Joint", "bool: joint_set_angle_limits" + id + ", min_angle, neutral, max_angle)", withJoint(func(e *env, j *jointState, _ Joint) int32 {
			if e.Arg(1) > e.Arg(2) || e.Arg(2) > e.Arg(3) {
				return 0
			}
			j.min, j.neutral, j.max = float64(e.Arg(1)), float64(e.Arg(2)), float64(e.Arg(3))
			return 1
		})},
	}
}

// motionNatives are those of motions; those of sounds follow (PLEO-XAPI-06).
func motionNatives() []Native {
	const which = "({Motion, motion_name}: motion"
	return []Native{
		{"Motion", "Motion: motion_play(motion_name: name)", func(e *env) int32 { // PLEO-MOT-02
			r, err := e.s.numbered(format.Motions, e.Arg(0), e.m.from)
			return e.playMotion(r, err)
		}},
		{"Motion", "Motion: motion_play_file(const file_name[])", func(e *env) int32 { // PLEO-MOT-03
			r, err := e.s.find(format.Motions, e.text(0))
			return e.playMotion(r, err)
		}},
		{"Motion", "bool: motion_pause" + which + ", bool: pause)", func(e *env) int32 { return truth(e.s.pauseMotions(e.Arg(0), e.flag(1))) }},
		{"Motion", "bool: motion_stop" + which + " = Motion_Any)", func(e *env) int32 { return truth(e.s.stopMotions(e.Arg(0))) }},
		{"Motion", "motion_set_playback_speed(percent_of_normal)", func(e *env) int32 { return e.s.setMotionSpeed(e.Arg(0)) }},
		{"Motion", "motion_get_playback_speed()", func(e *env) int32 { return e.s.motions.speed }}, // PLEO-MOT-09
		{"Motion", "bool: motion_is_playing" + which + " = Motion_Any)", func(e *env) int32 { return truth(e.s.motionPlaying(e.Arg(0))) }},
	}
}

func (e *env) playMotion(r resource, err error) int32 {
	if err != nil {
		e.s.log(Warning, LogMotion, "play motion: %v", err)
		return motionInvalid
	}
	return e.s.playMotion(r)
}

func soundNatives() []Native {
	const which = "({Sound, sound_name}: sound = Sound_Any)"
	return []Native{
		{"Sound", "Sound: sound_play(sound_name: sound, bool: interrupt = false)", func(e *env) int32 {
			r, err := e.s.numbered(format.Sounds, e.Arg(0), e.m.from)
			return e.playSound(r, err)
		}},
		{"Sound", "Sound: sound_play_file(const string[], bool: interrupt = false)", func(e *env) int32 { // PLEO-SND-05
			r, err := e.s.find(format.Sounds, e.text(0))
			return e.playSound(r, err)
		}},
		{"Sound", "Sound: sound_command(command_name: name, bool: interrupt = false)", func(e *env) int32 { // PLEO-SND-06
			return e.s.soundCommand(e.Arg(0), e.flag(1), e.m.from)
		}},
		{"Sound", "bool: sound_stop" + which, func(e *env) int32 { return truth(e.s.stopSound(e.Arg(0))) }},
		{"Sound", "bool: sound_is_playing" + which, func(e *env) int32 { return truth(e.s.soundPlaying(e.Arg(0))) }}, // PLEO-SND-09
		{"Sound", "sound_get_volume()", func(e *env) int32 { return e.s.sound.volume }},
		{"Sound", "sound_set_volume(volume)", func(e *env) int32 {
			e.s.sound.volume = min(max(e.Arg(0), minVolume), maxVolume)
			return e.s.sound.volume
		}},
		{"Sound", "sound_get_speed()", func(e *env) int32 { return e.s.sound.speed }},
		{"Sound", "sound_set_speed(speed)", func(e *env) int32 {
			e.s.sound.speed = min(max(e.Arg(0), minSoundSpeed), maxSoundSpeed)
			return e.s.sound.speed
		}},
	}
}

func (e *env) playSound(r resource, err error) int32 {
	if err != nil {
		e.s.log(Warning, LogSound, "play sound: %v", err)
		return soundInvalid
	}
	return e.s.playSound(r, e.flag(1))
}

func animationNatives() []Native {
	add := func(now bool) func(*env) int32 {
		return func(e *env) int32 { return e.s.addCommand(e.Arg(0), e.Arg(1), now, e.m.from) }
	}
	return []Native{
		{"Animation", "Command: command_exec(command_name: command, loops = 0)", add(true)}, // PLEO-XAPI-07
		{"Animation", "Command: command_play(command_name: command, loops = 0)", add(true)},
		{"Animation", "bool: command_is_playing({Command, command_name}: command)", func(e *env) int32 { return truth(e.s.commandPlaying(e.Arg(0))) }},
		{"Animation", "Command: command_add(command_name: command, loops = 0)", add(false)},
		{"Animation", "bool: command_remove({Command, command_name}: command)", func(e *env) int32 { return truth(e.s.removeCommand(e.Arg(0))) }},
	}
}

func attentionNatives() []Native {
	edges := func(e *env) int32 { // PLEO-SEN-G09
		e.s.sensors.derived.limits = edgeLimits{e.Arg(0), e.Arg(1), e.Arg(2), e.Arg(3), e.Arg(4), e.Arg(5), e.Arg(6), e.Arg(7)}
		return 0
	}
	const args = "(object_nv_lo_limit = 0, edge_nv_hi_limit = -40, object_ir_lo_limit = 20, object_ir_hi_limit = 40, edge_ir_lo_limit = 20, edge_ir_hi_limit = 40, object_linger = 500, edge_linger = 500)"
	return []Native{
		{"Attention", "set_object_edge_parms" + args, edges},
		{"Attention", "set_object_edge_params" + args, edges},
		{"Attention", "p2p_get_id()", func(e *env) int32 { return int32(byte(e.s.cfg.Serial)) }},
	}
}

func cameraNatives() []Native {
	return []Native{
		{"Camera", "camera_enable(bool: enable)", func(e *env) int32 { e.s.tracker.camera = e.flag(0); return 0 }},
		{"Camera", "camera_track_enable(bool: enable)", func(e *env) int32 { e.s.tracker.on = e.flag(0); return 0 }},
		{"Camera", "camera_set_color_preset(preset)", func(e *env) int32 { e.s.tracker.colour = e.Arg(0); return 0 }},
	}
}

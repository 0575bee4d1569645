package lifeos

import (
	"fmt"
	"strings"
)

// constants are lines of an include file in front of its natives.
var constants = map[string]string{
	"Script": `enum vm_name { vm_none, vm_sensor, vm_main, vm_aux, vm_user }
enum compare_name { compare_none, compare_equal, compare_not_equal, compare_less_than, compare_greater_than }
enum command_status { status_none = -1, status_min = 0, status_playing = 0, status_looping, status_done, status_pending, status_searching, status_max }
forward init();
forward close();
`,
	"Sensor": `enum sensor_config { sensor_config_none, sensor_config_value, sensor_config_raw_value, sensor_config_enabled, sensor_config_trigger, sensor_config_aux_trigger,
    sensor_config_trigger_last, sensor_config_trigger_time, sensor_config_trigger_count, sensor_config_beacon_id, sensor_config_timer_interval, sensor_config_packet_filter }
enum packet_type { PACKET_NONE = 0, PACKET_AUDIO = 1, PACKET_CAMERA = 4, PACKET_ECHO = 16, PACKET_IR = 256, PACKET_LOG = 2048, PACKET_MOUTH = 4096, PACKET_STAT = 32768,
    PACKET_SRAM = 262144, PACKET_TOUCH = 524288, PACKET_VERSION = 2097152, PACKET_ERROR = 8388608, PACKET_EXT = 33554432, PACKET_ALL = 0x7FFFFFFF }
forward on_sensor(time, sensor_name: sensor, value);
`,
	"Property": "const prop_error = 0xFFFFFFFF\nforward on_property(time, property_name: property, value);\n",
	"Joint": `enum angle_type { angle_degrees, angle_vr, angle_mu }
enum joint_attribute { ja_none, ja_status, ja_position, ja_pwm, ja_load, ja_speed, ja_time, ja_setpoint, ja_deadband, ja_threshold }
`,
	"Util": `enum version_name { version_none, version_serial, version_arm0, version_arm1, version_motor0, version_motor1, version_motor2, version_motor3, version_hardware, version_board_id,
    version_app_df, version_app, version_boot }
enum config_name { config_access = -1, config_serial_is_usb = 1, config_monitor_echo, config_log_color, config_df_free }
`,
	"Motion":      "const Motion: Motion_Any = Motion: 0xAA\nconst Motion: Motion_Invalid = Motion: 0xFF\n",
	"Sound":       "const Sound: Sound_Any = Sound: 0\nconst Sound: Sound_Invalid = Sound: 0\n",
	"File":        "enum { io_read = 0, io_write = 1, io_append = 3 }\nenum { seek_set, seek_cur, seek_end }\nenum { device_sd, device_df }\n",
	"Application": "enum app_config { app_wait_for_init = 1, app_auto_load, app_run_init }\n",
}

// needs are the files that an include file includes (part of PLEO-API-04).
var needs = map[string][]string{
	"Sensor":   {"Log", "pleo/sensors"},
	"Property": {"pleo/properties"},
	"Script":   {"pleo/properties"},
	"Joint":    {"pleo/joints"},
	"Sequence": {"pleo/sensors"},
	"Util":     {"pleo/properties"},
}

// Includes returns the include files for scripts, by their path without ".inc": the natives of each, and the names of sensors, joints and properties. Each may be
// included more than once (PLEO-API-07). Their names have capitals where samples write them so, as in Sensor (PLEO-API-03).
func Includes() map[string]string {
	files := map[string]*strings.Builder{}
	begin := func(name string) *strings.Builder {
		if b := files[name]; b != nil {
			return b
		}
		b := &strings.Builder{}
		files[name] = b
		guard := "_inc_" + strings.ReplaceAll(name, "/", "_")
		fmt.Fprintf(b, "#if defined %s\n    #endinput\n#endif\n#define %s\n\n", guard, guard)
		for _, n := range needs[name] {
			fmt.Fprintf(b, "#include <%s.inc>\n", n)
		}
		b.WriteString(constants[name])
		return b
	}
	for _, n := range Natives() {
		fmt.Fprintf(begin(n.Include), "native %s;\n", n.Declaration)
	}
	b := begin("pleo/sensors")
	fmt.Fprint(b, "enum sensor_name\n{\n    SENSOR_NONE = -1,\n    SENSOR_MIN = 0,\n")
	for _, k := range sensorKinds {
		fmt.Fprintf(b, "    SENSOR_%s = %d,\n", k.Name, k.ID)
	}
	fmt.Fprintf(b, "    SENSOR_ARSE = %d,\n    SENSOR_TOUCH_FIRST = %d,\n    SENSOR_TOUCH_LAST = %d,\n    SENSOR_FOOT_FIRST = %d,\n    SENSOR_FOOT_LAST = %d,\n",
		SensorTail, touchFirst, touchLast, SensorFrontLeft, SensorBackRight)
	fmt.Fprint(b, "    SENSOR_MAX = 41,\n    SENSOR_DERIVED_MIN = 100,\n    SENSOR_DERIVED_MAX = 129\n}\n")
	fmt.Fprint(b, "enum tilt_name { TILT_NONE, TILT_MIN = 1, TILT_ON_FEET = 1, TILT_LEFT_SIDE, TILT_RIGHT_SIDE, TILT_ON_NOSE, TILT_ON_TAIL, TILT_ON_BACK, TILT_MAX }\n")
	fmt.Fprint(b, "enum petted_name { PETTED_NONE, PETTED_MIN = 1, PETTED_STOPPED = 1, PETTED_BACKARSE, PETTED_ARSEBACK, PETTED_HEADBACK, PETTED_BACKHEAD, PETTED_HEADBACKARSE, PETTED_ARSEBACKHEAD, PETTED_MAX }\n")

	b = begin("pleo/joints")
	fmt.Fprint(b, "enum joint_name\n{\n    JOINT_NONE = -1,\n    JOINT_MIN = 0,\n")
	for j, k := range jointKinds {
		fmt.Fprintf(b, "    JOINT_%s = %d,\n", k.Name, j)
	}
	fmt.Fprint(b, "    JOINT_MAX_PHYSICAL = 13,\n    JOINT_TRANSITION = 14,\n    JOINT_SOUND = 15,\n    JOINT_MAX\n}\n")

	b = begin("pleo/properties")
	fmt.Fprint(b, "enum property_name\n{\n")
	for id, name := range propertyNames {
		fmt.Fprintf(b, "    property_%s = %d,\n", name, id)
	}
	fmt.Fprintf(b, "    property_script_status = %d,\n    property_script = %d,\n", PropScriptStatus, PropScript)
	fmt.Fprintf(b, "    property_min = 1,\n    property_max = %d,\n    property_limit = 65535\n}\n", propSystemMax) // PLEO-PRP-08, PLEO-PRP-09

	begin("default").WriteString("const TARGET_PLEO = 100\nconst TARGET_NEXT = 200\nconst PLEO_1_0 = 100\nconst PLEO_1_1 = 110\nconst PLEO_API = PLEO_1_1\n")
	out := map[string]string{}
	for name, b := range files {
		out[name] = b.String()
	}
	return out
}

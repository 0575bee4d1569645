package events

import (
	"fmt"
	"strconv"
	"strings"
)

// Value is one of an event's s1 to s4 and i1 to i4, as people read it.
type Value struct {
	Name string // what it is, such as "battery"; the field, such as "i1", where the layout of the event is not known
	Text string // with its unit
}

func (v Value) String() string { return v.Name + " " + v.Text }

// Values returns the values that e carries: its texts, then its numbers.
func (e *Event) Values() []Value {
	known, out := layouts[e.Name], []Value(nil)
	for i, s := range [...]string{e.S1, e.S2, e.S3, e.S4} {
		if s != "" {
			name, _ := known.s.at(i, 's')
			out = append(out, Value{name, s})
		}
	}
	for i, n := range [...]Int{e.I1, e.I2, e.I3, e.I4} {
		if n.IsZero() {
			continue
		}
		name, unit := known.i.at(i, 'i')
		text := strconv.FormatInt(n.N, 10)
		switch {
		case unit == yesNo && n.N == 0:
			text = "no"
		case unit == yesNo && n.N == 1:
			text = "yes"
		case unit == way && e.S1 == "turn":
			text += " mrad"
		case unit == way:
			text += " mm"
		case unit != "" && unit != yesNo:
			text += " " + unit
		}
		out = append(out, Value{name, text})
	}
	return out
}

// Words returns the values of e in one line: "level low, battery 3512 mV".
func (e *Event) Words() string {
	var out []string
	for _, v := range e.Values() {
		out = append(out, v.String())
	}
	return strings.Join(out, ", ")
}

// layout names the values of an event in the order of their fields.
type layout struct{ s, i fields }

// fields are names, each with a unit after a slash where the value has one.
type fields []string

// yesNo is the unit of 0 and 1; way is the unit of a motion: mrad of a turn, mm of any other.
const (
	yesNo = "?"
	way   = "mm or mrad"
)

func (f fields) at(i int, kind byte) (name, unit string) {
	if i >= len(f) || f[i] == "" {
		return fmt.Sprintf("%c%d", kind, i+1), ""
	}
	name, unit, _ = strings.Cut(f[i], "/")
	return name, unit
}

var (
	experiment = layout{fields{"experiment", "variation", "file", "why"}, fields{"version"}}
	session    = layout{s: fields{"id"}} // VEC-DAS-18
	happened   = layout{i: fields{"times"}}
	firmware   = fields{"status", "attempts", "took/ms"}
	degrees    = fields{"least/m°C", "most/m°C", "mean/m°C", "samples"}
	loop       = fields{"cycles", "worst/us"}
	uploads    = fields{"batches stored", "batches failed", "events dropped"}
	movement   = layout{fields{"order", "outcome", "reasons"}, fields{"moved/" + way, "of/" + way}}
)

// layouts names the values of the events whose layout is known: those that our robots send, and those that the source documents (VEC-DAS-11).
var layouts = map[string]layout{
	"robot.boot_info":             {fields{"release", "system", "boot"}, fields{"recovery/" + yesNo}},
	"robot.init.time_spent_ms":    {fields{"step", "program", "problem"}, fields{"took/ms", "began after/ms"}},
	"robot.memory_info":           {i: fields{"memory/KiB", "available/KiB", "agent/KiB", "uptime/ms"}},
	"robot.cpu_info":              {fields{"governor", "set speed", "throttled"}, fields{"load/thousandths", "clock/kHz", "limit/kHz", "temperature/m°C"}}, // VEC-DAS-14
	"robot.disk_info":             {fields{"problem"}, fields{"disk/MiB", "free/MiB", "flash/MiB", "medical record valid/" + yesNo}},
	"robot.service_info":          {fields{"service"}, fields{"processor/thousandths", "memory/KiB", "threads"}},
	"cloud.latency":               {fields{"endpoint", "host", "problem"}, fields{"connection/ms", "name servers/ms"}},                                    // VEC-CLD-08
	"robot.wifi_info":             {fields{"address", "network", "IP", "valid"}, fields{"received/bytes", "sent/bytes", "receive errors", "send errors"}}, // VEC-DAS-13
	"wifi.initial_state":          {fields{"network"}, fields{"connected/" + yesNo}},
	"wifi.connection":             {s: fields{"network", "address"}},
	"wifi.disconnection":          {s: fields{"network"}},
	"ntp.timesync":                {i: fields{"uptime/ms"}},
	"cpu.temperature_stats":       {i: degrees},
	"battery.temperature_stats":   {i: degrees},
	"robot.ota_download_start":    {s: fields{"from", "version"}}, // VEC-DAS-11, as the two below
	"robot.ota_download_stalled":  {i: fields{"received/bytes"}},
	"robot.ota_download_end":      {fields{"outcome", "version", "problem"}, fields{"code", "received/bytes"}},
	"robot.kernel_panic":          {s: fields{"file", "reason"}}, // VEC-DGN-13
	"robot.crash":                 {fields{"program", "reason", "version", "record"}, fields{"at/unix ms"}},
	"log.error":                   {s: fields{"message", "error"}},              // VEC-DAS-07
	"robot.fault_code":            {fields{"fault", "service"}, fields{"code"}}, // VEC-DAS-11
	"robot.shutdown_reason":       {s: fields{"reason"}},
	"robot.maintenance_reboot":    {fields{"outcome", "reason", "at"}, fields{"uptime/s"}}, // VEC-DAS-11
	"robot.cloud_intent":          {s: fields{"intent"}},
	"robot.intent":                {s: fields{"intent", "outcome", "from"}},
	"robot.timer":                 {fields{"what"}, fields{"length/s", "late/s"}},
	"robot.parameters.stored":     {fields{"parameters"}, fields{"changed"}},
	"robot.parameters.refused":    {s: fields{"parameter", "given", "error"}},
	"vic.cloud.hello.world":       {s: fields{"boot"}},
	"robotsim.event":              {s: fields{"number"}},
	"profile_id.start":            session,
	"profile_id.stop":             session,
	"ble_conn_id.start":           session,
	"ble_conn_id.stop":            session,
	"wifi_conn_id.start":          session,
	"wifi_conn_id.stop":           session,
	"das.allow_upload":            {i: fields{"allowed/" + yesNo}},
	"das.dropped":                 {fields{"reason"}, fields{"events", "since boot"}},
	"robot.upload_dropped":        {fields{"file", "reason", "kind", "answer"}, fields{"files", "bytes", "since start"}}, // VEC-LOG-03, VEC-LOG-08
	"dasmgr.upload.failed":        {fields{"error"}, uploads},
	"dasmgr.upload.stats":         {i: uploads},
	"behavior.feature.end":        {s: fields{"behaviour"}}, // VEC-DAS-11
	"behavior.hlai.change":        {s: fields{"state"}},     // VEC-DAS-11
	"robot.finished":              movement,
	"robot.aborted":               movement,
	"robot.stalled":               {i: fields{"left/" + yesNo, "right/" + yesNo}},
	"robot.delocalized":           happened,
	"robot.too_long_in_air":       happened,
	"robot.cliff_detected":        {i: fields{"sensors"}},
	"robot.unexpected_movement":   {fields{"movement", "side"}, fields{"times"}},
	"robot.offtreadsstatechanged": {s: fields{"now", "before"}},

	"robot.cloud_response_failed":            {s: fields{"problem", "detail"}},
	"robot.settings.updated":                 {s: fields{"setting", "value", "source"}},
	"robot.settings.volume":                  {i: fields{"volume"}},
	"robot.settings.passed_to_cloud_jdoc":    {fields{"document"}, fields{"version"}},
	"robot.locale":                           {s: fields{"locale"}},
	"robot.timezone":                         {s: fields{"time zone"}},
	"battery.battery_level_changed":          {fields{"now", "before"}, fields{"battery/mV", "on charger/" + yesNo}},
	"battery.on_charger_changed":             {i: fields{"on charger/" + yesNo, "battery/mV"}},
	"battery.periodic_log":                   {fields{"level"}, fields{"battery/mV"}},
	"battery.voltage_stats":                  {i: fields{"least/mV", "most/mV", "mean/mV", "samples"}},
	"battery.low":                            {i: fields{"battery/mV"}},
	"battery.cooldown":                       {s: fields{"heat"}},
	"battery.is_charging_changed":            {i: fields{"charging/" + yesNo, "battery/mV"}},
	"battery.temp_crossed_threshold":         {fields{"now", "before"}, fields{"temperature/m°C"}},
	"battery.fully_charged_voltage":          {i: fields{"battery/mV"}},
	"robot.on_charger":                       {i: fields{"battery/mV"}},
	"robot.off_charger":                      {i: fields{"battery/mV"}},
	"rampost.battery_level":                  {fields{"level"}, fields{"battery/mV"}},
	"rampost.battery_flags":                  {i: fields{"bits"}},
	"rampost.battery_temperature":            {i: fields{"temperature/m°C"}},
	"behavior.sleeping.falling_asleep":       {s: fields{"state", "reason"}},
	"behavior.sleeping.wake_up":              {s: fields{"state", "reason"}},
	"engine.power_save.start":                {s: fields{"state"}},
	"engine.power_save.end":                  {s: fields{"state"}},
	"engine.language_locale":                 {s: fields{"locale"}},
	"hal.active_power_mode":                  {i: fields{"active/" + yesNo}},
	"hal.body_version":                       {s: fields{"body", "firmware"}},
	"vectorbot.prep_for_shutdown":            {s: fields{"way", "reason"}},
	"robot.power_on":                         {i: fields{"uptime/ms"}},
	"robot.power_off":                        {s: fields{"reason"}},
	"robot.engine_ready":                     {i: fields{"took/ms"}},
	"robot.imu_failure":                      {s: fields{"problem"}},
	"experiment.assigned":                    experiment, // VEC-DAS-16
	"experiment.ended":                       experiment,
	"robotd.loop_stats":                      {i: fields{"cycles", "missed", "late p99/us", "cycle p99/us"}},
	"vectorbot.main_cycle_too_late":          {i: loop},
	"vectorbot.main_cycle_too_long":          {i: loop},
	"rampost.dfu.open_file":                  {fields{"file", "error"}, firmware},
	"rampost.dfu.desired_version":            {fields{"version"}, firmware},
	"rampost.dfu.request_version":            {i: firmware},
	"rampost.dfu.installed_version":          {fields{"version", "left because"}, firmware},
	"rampost.rampost.exit":                   {fields{"error"}, firmware},
	"imu_filter.falling_event":               happened,
	"imu_filter.fall_impact_event":           happened,
	"imu_filter.gyro_calibrated":             happened,
	"hal.invalid_prox_reading_report":        happened,
	"hal.severe_invalid_prox_reading_report": happened,
	"head_motor_calibrated":                  happened,
	"head_motor_uncalibrated":                happened,
	"lift_motor_calibrated":                  happened,
	"lift_motor_uncalibrated":                happened,

	"touch_sensor.activate_charger_mode_check":                 happened,
	"touch_sensor.baseline_fast_calibration_finished":          happened,
	"touch_sensor.charger_mode_check.baseline_changed":         happened,
	"touch_sensor.charger_mode_check.no_baseline_change":       happened,
	"touch_sensor.baseline_reading_difference_monitor_too_low": happened,
}

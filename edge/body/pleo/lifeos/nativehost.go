package lifeos

import (
	"strconv"
	"strings"
)

// host has the settings of the robot that scripts read and change.
type host struct {
	config   map[int32]int32  // by config_name
	app      map[int32]int32  // by app_config
	versions map[int32]string // by version_name, where a script has set one
	noStall  bool             // stuck joints are not told
	logFile  string
	logText  []byte
}

// The limits of host.
const (
	maxSettings = 32
	maxLogText  = 64 << 10 // bytes until log_flush; later lines are dropped
	versionName = 1        // the serial number
)

// setting makes a native that writes a value into a map, of few keys, and returns the former one.
func setting(of func(*host) *map[int32]int32) func(*env) int32 {
	return func(e *env) int32 {
		m := of(&e.s.host)
		if *m == nil {
			*m = map[int32]int32{}
		}
		old, known := (*m)[e.Arg(0)]
		if known || len(*m) < maxSettings {
			(*m)[e.Arg(0)] = e.Arg(1)
		}
		return old
	}
}

// flushLog writes the log of log_set_file.
func (s *System) flushLog() {
	if h := &s.host; h.logFile != "" && len(h.logText) > 0 {
		_ = s.writeFile(h.logFile, h.logText) // writeFile logs the error
	}
}

// keepLog adds a message to the log of log_set_file.
func (s *System) keepLog(m Message) {
	if h := &s.host; h.logFile != "" && m.Shown && len(h.logText) < maxLogText {
		h.logText = append(append(h.logText, m.String()...), '\n')
	}
}

// tokenize splits a string at any of the delimiters, gives the pieces to the arrays behind, and returns how many there are.
func tokenize(e *env) int32 {
	pieces := strings.FieldsFunc(e.text(0), func(c rune) bool { return strings.ContainsRune(e.text(1), c) })
	for i, p := range pieces {
		if i+2 < e.Args() {
			e.give(i+2, p, false, int32(len(p))+1)
		}
	}
	return int32(len(pieces))
}

func hostNatives() []Native {
	store := setting(func(h *host) *map[int32]int32 { return &h.config })
	set := setting(func(h *host) *map[int32]int32 { return &h.app })
	no := func(*env) int32 { return 0 }
	terminal := func(e *env) *sensorState { return e.s.sensors.all[SensorTerminal] }
	return []Native{
		{"Log", "getchar()", func(e *env) int32 { // -1: there is none
			st := terminal(e)
			if len(st.data) == 0 {
				return -1
			}
			c := st.data[0]
			st.data = st.data[1:]
			return int32(c)
		}},
		{"Log", "bool: haschar()", func(e *env) int32 { return truth(len(terminal(e).data) > 0) }},
		{"Log", "bool: log_set_file(const name[])", func(e *env) int32 {
			e.s.flushLog()
			e.s.host.logFile, e.s.host.logText = e.text(0), nil
			return 1
		}},
		{"Log", "log_flush()", func(e *env) int32 { e.s.flushLog(); return 0 }},
		{"Joint", "bool: joint_calibrate(joint_name: joint, bool: reverse_order = false, pwm_min_vr = 0, pwm_max_vr = 0, bool: user_adjust = true)",
			withJoint(func(*env, *jointState, Joint) int32 { return 1 })},
		{"Joint", "joint_calibrate_reset(joint_name: joint)", withJoint(func(_ *env, j *jointState, _ Joint) int32 { j.limited, j.neutral = false, 0; return 0 })},
		{"Joint", "joint_set_stall_detect_enable(bool: enable)", func(e *env) int32 { e.s.host.noStall = !e.flag(0); return 0 }},
		{"Joint", "bool: joint_get_stall_detect_enable()", func(e *env) int32 { return truth(!e.s.host.noStall) }},
		{"Application", "app_get_config(app_config: type)", func(e *env) int32 { return e.s.appConfig(e.Arg(0)) }},
		{"Application", "app_set_config(app_config: type, value)", func(e *env) int32 {
			old := e.s.appConfig(e.Arg(0))
			set(e)
			return old
		}},
		{"Resource", "resource_file_get_version(const name[], override = 0)", func(e *env) int32 {
			for _, b := range e.s.active(e.m.from) {
				return int32(b.Revision)
			}
			return 0
		}},
		{"String", "string_tokenize(const string[], const delimiters[], ...)", tokenize},
		{"Util", "version_get(version_name: version, buffer[], bool: packed = true, size = sizeof buffer)", func(e *env) int32 {
			text, known := e.s.host.versions[e.Arg(0)]
			if !known {
				if text = e.s.cfg.Profile.String(); e.Arg(0) == versionName {
					text = strconv.FormatUint(uint64(e.s.cfg.Serial), 10)
				}
			}
			return e.give(1, text, e.flag(2), e.Arg(3))
		}},
		{"Util", "version_set(version_name: version, const buffer[])", func(e *env) int32 {
			h := &e.s.host
			if h.versions == nil {
				h.versions = map[int32]string{}
			}
			if len(h.versions) >= maxSettings {
				return 0
			}
			h.versions[e.Arg(0)] = e.text(1)
			return 1
		}},
		{"Util", "config_get(config_name: config)", func(e *env) int32 {
			if e.Arg(0) == configAccess {
				return int32(e.s.access)
			}
			return e.s.host.config[e.Arg(0)]
		}},
		{"Util", "config_set(config_name: config, value)", func(e *env) int32 {
			if e.Arg(0) == configAccess { // only the monitor's command raises it
				return int32(e.s.access)
			}
			return store(e)
		}},
		// There is no camera: these say so by false.
		{"Camera", "camera_set_colormap(entry, rhi, rlo, ghi, glo, bhi, blo)", no},
		{"Camera", "camera_request_average(x1, y1, x2, y2)", no},
		{"Camera", "bool: camera_get_average(&y_g, &u_b, &v_r)", no},
	}
}

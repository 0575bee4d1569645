package events

import (
	"math"
	"strings"
)

// parsePlain reads the form that AppendLine writes for nearly every event: known keys, strings of printable ASCII without escapes, whole
// numbers, no blanks. For anything else it gives up with false and leaves the line to parseAny: it must never accept what parseAny
// refuses nor read it differently (FuzzParseLine). It is some twenty times as fast, which is what lets one process keep up with COPY.
func parsePlain(s string, e *Event) bool {
	if len(s) < 2 || s[0] != '{' {
		return false
	}
	s = s[1:]
	seen := false
	for {
		key, rest, ok := plainString(s)
		if !ok || rest == "" || rest[0] != ':' {
			return false
		}
		s = rest[1:]
		var text *string
		switch key {
		case "source":
			text = &e.Source
		case "level":
			text = (*string)(&e.Level)
		case "robot_id":
			text = &e.RobotID
		case "robot_version":
			text = &e.RobotVersion
		case "boot_id":
			text = &e.BootID
		case "profile_id":
			text = &e.ProfileID
		case "feature_type":
			text = &e.FeatureType
		case "feature_run_id":
			text = &e.FeatureRunID
		case "ble_conn_id":
			text = &e.BLEConnID
		case "wifi_conn_id":
			text = &e.WifiConnID
		case "event":
			text = &e.Name
		case "s1":
			text = &e.S1
		case "s2":
			text = &e.S2
		case "s3":
			text = &e.S3
		case "s4":
			text = &e.S4
		case "unsynced":
			if s, ok = strings.CutPrefix(s, "true"); !ok {
				return false
			}
			e.Unsynced = true
		default:
			n, rest, ok := plainInt(s)
			if !ok {
				return false
			}
			s = rest
			switch key {
			case "ts":
				e.TS = n
			case "uptime_ms":
				e.UptimeMS = n
			case "seq":
				if n < 0 {
					return false
				}
				e.Seq, seen = uint64(n), true
			case "i1":
				e.I1 = Num(n)
			case "i2":
				e.I2 = Num(n)
			case "i3":
				e.I3 = Num(n)
			case "i4":
				e.I4 = Num(n)
			default:
				return false
			}
		}
		if text != nil {
			if *text, s, ok = plainString(s); !ok {
				return false
			}
		}
		switch {
		case s == "}":
			return seen
		case s == "" || s[0] != ',':
			return false
		}
		s = s[1:]
	}
}

// plainString takes a quoted string of printable ASCII without escapes off the start of s.
func plainString(s string) (val, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	s = s[1:]
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			return s[:i], s[i+1:], true
		case c < 0x20 || c >= 0x7f || c == '\\':
			return "", "", false
		}
	}
	return "", "", false
}

// plainInt takes a JSON integer within 64 bits off the start of s.
func plainInt(s string) (n int64, rest string, ok bool) {
	i, neg := 0, false
	if s != "" && s[0] == '-' {
		i, neg = 1, true
	}
	start := i
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		d := int64(s[i] - '0')
		if n > (math.MaxInt64-d)/10 {
			return 0, "", false // parseAny knows the exact limits
		}
		n = n*10 + d
	}
	if i == start || (s[start] == '0' && i > start+1) {
		return 0, "", false
	}
	if neg {
		n = -n
	}
	return n, s[i:], true
}

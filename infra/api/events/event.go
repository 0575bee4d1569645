package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Level is how serious an event is: debug, info, event, warning or error in the original; another lower-case word is kept.
type Level string

// The levels of the original.
const (
	Debug   Level = "debug"
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// Int is an integer that may be absent: 0 and "not said" differ on the wire.
type Int struct {
	N   int64
	Set bool
}

// Num returns the Int that says n.
func Num(n int64) Int { return Int{n, true} }

// Flag returns the Int that says 1 for yes and 0 for no.
func Flag(yes bool) Int {
	if yes {
		return Num(1)
	}
	return Num(0)
}

// IsZero reports whether the number is absent.
func (i Int) IsZero() bool { return !i.Set }

// MarshalJSON writes the number, or null when absent.
func (i Int) MarshalJSON() ([]byte, error) {
	if !i.Set {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, i.N, 10), nil
}

// UnmarshalJSON reads a 64-bit integer; null is absent.
func (i *Int) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*i = Int{}
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("%.30s is not a 64-bit integer", b)
	}
	*i = Num(n)
	return nil
}

// Event is one DAS event (VEC-DAS-01). Times are in milliseconds: TS since 1970 by the robot's clock, UptimeMS since boot.
type Event struct {
	Source       string `json:"source"`
	TS           int64  `json:"ts"`
	Seq          uint64 `json:"seq"`
	Level        Level  `json:"level"`
	RobotID      string `json:"robot_id"` // the serial (ESN), without the species
	RobotVersion string `json:"robot_version"`
	BootID       string `json:"boot_id"`
	ProfileID    string `json:"profile_id"`
	FeatureType  string `json:"feature_type"`
	FeatureRunID string `json:"feature_run_id"`
	BLEConnID    string `json:"ble_conn_id,omitempty"`
	WifiConnID   string `json:"wifi_conn_id,omitempty"`
	Name         string `json:"event"` // module.name
	S1           string `json:"s1,omitempty"`
	S2           string `json:"s2,omitempty"`
	S3           string `json:"s3,omitempty"`
	S4           string `json:"s4,omitempty"`
	I1           Int    `json:"i1,omitzero"`
	I2           Int    `json:"i2,omitzero"`
	I3           Int    `json:"i3,omitzero"`
	I4           Int    `json:"i4,omitzero"`
	UptimeMS     int64  `json:"uptime_ms"`
	Unsynced     bool   `json:"unsynced,omitempty"` // VEC-BOOT-14
}

// Limits of one event, in bytes; ours, the source gives none. Together they keep any event below MaxLine.
const (
	MaxName = 128                 // event
	MaxText = 4096                // s1 to s4
	MaxWord = 64                  // source, robot_id, robot_version, boot_id, profile_id, feature_type, feature_run_id, *_conn_id
	MaxLine = 4*6*MaxText + 8<<10 // escapes take up to six bytes for one

	// MaxSeq is the largest sequence number: ranges of them are kept as half-open 64-bit ranges.
	MaxSeq = math.MaxInt64 - 1
)

// Validate reports the first thing that makes e unfit for the wire: what was found and what was expected.
func (e *Event) Validate() error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	switch {
	case e.Seq > MaxSeq:
		return fmt.Errorf("seq %d: want at most %d", e.Seq, int64(MaxSeq))
	case e.TS < 0 || e.UptimeMS < 0:
		return fmt.Errorf("ts %d, uptime_ms %d: want milliseconds of 0 or more", e.TS, e.UptimeMS)
	case !isWord(string(e.Level), 16, lower):
		return fmt.Errorf("level %.40q: want a lower-case word such as info, warning, error", e.Level)
	case !isWord(e.RobotID, MaxWord, lower|digit|dash):
		return fmt.Errorf("robot_id %.80q: want a serial of 0-9 a-z -", e.RobotID)
	}
	if err := CheckBootID(e.BootID); err != nil {
		return err
	}
	for _, f := range [...]struct {
		key, val string
		max      int
	}{
		{"source", e.Source, MaxWord}, {"robot_version", e.RobotVersion, MaxWord}, {"profile_id", e.ProfileID, MaxWord},
		{"feature_type", e.FeatureType, MaxWord}, {"feature_run_id", e.FeatureRunID, MaxWord},
		{"ble_conn_id", e.BLEConnID, MaxWord}, {"wifi_conn_id", e.WifiConnID, MaxWord},
		{"s1", e.S1, MaxText}, {"s2", e.S2, MaxText}, {"s3", e.S3, MaxText}, {"s4", e.S4, MaxText},
	} {
		if f.val == "" {
			continue
		}
		if len(f.val) > f.max {
			return fmt.Errorf("%s of %d bytes: want at most %d", f.key, len(f.val), f.max)
		}
		if strings.IndexByte(f.val, 0) >= 0 || !utf8.ValidString(f.val) {
			return fmt.Errorf("%s %.40q: want UTF-8 without NUL", f.key, f.val)
		}
	}
	return nil
}

// Fit makes e valid where that needs no guess: names are trimmed (VEC-DAS-02), too long texts cut at a character, broken UTF-8 and NUL
// replaced by U+FFFD, negative times raised to 0, a missing level becomes info. What is still wrong then, Validate tells.
func (e *Event) Fit() {
	e.Name = strings.TrimSpace(e.Name)
	if e.Level == "" {
		e.Level = Info
	}
	e.TS, e.UptimeMS = max(e.TS, 0), max(e.UptimeMS, 0)
	for _, s := range []*string{&e.S1, &e.S2, &e.S3, &e.S4} {
		*s = fit(*s, MaxText)
	}
	for _, s := range []*string{&e.Source, &e.RobotVersion, &e.ProfileID, &e.FeatureType, &e.FeatureRunID, &e.BLEConnID, &e.WifiConnID} {
		*s = fit(*s, MaxWord)
	}
}

func fit(s string, max int) string {
	const mark = "\uFFFD"
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", mark)
	}
	s = strings.ToValidUTF8(s, mark)
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// bareNames are names of the original's catalogue that have no module (spec, annex E).
var bareNames = map[string]bool{
	"AkAlsaSink": true, "calibrate_motors": true, "head_motor_calibrated": true, "head_motor_uncalibrated": true, "lift_motor_calibrated": true,
	"lift_motor_uncalibrated": true,
}

// CheckName checks an event name: module.name, two or more non-empty parts of letters, digits, - and _, no blanks around (VEC-DAS-02,
// VEC-DAS-04).
func CheckName(s string) error {
	ok := len(s) <= MaxName
	parts, start := 0, 0
	for i := 0; ok && i <= len(s); i++ {
		if i == len(s) || s[i] == '.' {
			ok = i > start
			parts, start = parts+1, i+1
		} else {
			ok = classOf(s[i])&(lower|upper|digit|dash) != 0
		}
	}
	if !ok || (parts < 2 && !bareNames[s]) {
		return fmt.Errorf("event %.140q: want module.name of letters, digits, - and _, at most %d bytes", s, MaxName)
	}
	return nil
}

// CrashBoot begins the boot id of the event of a crash, which is followed by what the crash is known by: such an event comes after its boot is over, and
// once, however often it is sent.
const CrashBoot = "crash-"

// CheckBootID checks a boot id: 1 to 64 of letters, digits and - (VEC-DAS-03: the kernel's random boot id is a UUID). It is safe in a
// file name.
func CheckBootID(s string) error {
	if !isWord(s, MaxWord, lower|upper|digit|dash) {
		return fmt.Errorf("boot_id %.80q: want 1 to %d letters, digits and -", s, MaxWord)
	}
	return nil
}

const (
	lower = 1 << iota
	upper
	digit
	dash // - and _
)

func classOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z':
		return lower
	case 'A' <= c && c <= 'Z':
		return upper
	case '0' <= c && c <= '9':
		return digit
	case c == '-' || c == '_':
		return dash
	}
	return 0
}

func isWord(s string, max, classes int) bool {
	if s == "" || len(s) > max {
		return false
	}
	for i := range len(s) {
		if classOf(s[i])&classes == 0 {
			return false
		}
	}
	return true
}

// AppendLine appends e as one JSON object, without a newline.
func AppendLine(dst []byte, e *Event) []byte {
	dst = appendString(append(dst, `{"source":`...), e.Source)
	dst = strconv.AppendInt(append(dst, `,"ts":`...), e.TS, 10)
	dst = strconv.AppendUint(append(dst, `,"seq":`...), e.Seq, 10)
	dst = appendString(append(dst, `,"level":`...), string(e.Level))
	dst = appendString(append(dst, `,"robot_id":`...), e.RobotID)
	dst = appendString(append(dst, `,"robot_version":`...), e.RobotVersion)
	dst = appendString(append(dst, `,"boot_id":`...), e.BootID)
	dst = appendString(append(dst, `,"profile_id":`...), e.ProfileID)
	dst = appendString(append(dst, `,"feature_type":`...), e.FeatureType)
	dst = appendString(append(dst, `,"feature_run_id":`...), e.FeatureRunID)
	dst = appendText(dst, `,"ble_conn_id":`, e.BLEConnID)
	dst = appendText(dst, `,"wifi_conn_id":`, e.WifiConnID)
	dst = appendString(append(dst, `,"event":`...), e.Name)
	dst = appendText(dst, `,"s1":`, e.S1)
	dst = appendText(dst, `,"s2":`, e.S2)
	dst = appendText(dst, `,"s3":`, e.S3)
	dst = appendText(dst, `,"s4":`, e.S4)
	dst = appendInt(dst, `,"i1":`, e.I1)
	dst = appendInt(dst, `,"i2":`, e.I2)
	dst = appendInt(dst, `,"i3":`, e.I3)
	dst = appendInt(dst, `,"i4":`, e.I4)
	dst = strconv.AppendInt(append(dst, `,"uptime_ms":`...), e.UptimeMS, 10)
	if e.Unsynced {
		dst = append(dst, `,"unsynced":true`...)
	}
	return append(dst, '}')
}

func appendText(dst []byte, key, val string) []byte {
	if val == "" {
		return dst
	}
	return appendString(append(dst, key...), val)
}

func appendInt(dst []byte, key string, val Int) []byte {
	if !val.Set {
		return dst
	}
	return strconv.AppendInt(append(dst, key...), val.N, 10)
}

func appendString(dst []byte, s string) []byte {
	if plain(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return append(dst, b...)
}

// plain reports whether s needs no escapes in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

var errNoSeq = errors.New("no seq: want an integer of 0 or more")

// ParseLine reads one event; its strings keep line alive. A longer line than MaxLine is an error. It does not Validate.
func ParseLine(line string) (Event, error) {
	if len(line) > MaxLine {
		return Event{}, fmt.Errorf("%d bytes: want at most %d", len(line), MaxLine)
	}
	var e Event
	if parsePlain(line, &e) {
		return e, nil
	}
	return parseAny(line)
}

// parseAny reads any JSON object. It is the meaning of ParseLine; parsePlain only is faster.
func parseAny(line string) (Event, error) {
	var v struct {
		Event
		Seq *uint64 `json:"seq"`
	}
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		return Event{}, err
	}
	if v.Seq == nil {
		return Event{}, errNoSeq
	}
	v.Event.Seq = *v.Seq
	return v.Event, nil
}

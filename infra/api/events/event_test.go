package events

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func sample() Event {
	return Event{
		Source: "vic-engine", TS: 1760000000123, Seq: 17, Level: Info, RobotID: "00e20100", RobotVersion: "2.0.1.6091",
		BootID: "0f9a1c1e-2b0c-4a6e-8a55-0f2f8c6d1b7a", ProfileID: "p1", FeatureType: "onboarding", FeatureRunID: "r1",
		BLEConnID: "b1", WifiConnID: "w1", Name: "behavior.feature.end", S1: "a", S2: "b", S3: "c", S4: "d",
		I1: Num(0), I2: Num(-9223372036854775808), I3: Num(9223372036854775807), I4: Num(4), UptimeMS: 81234, Unsynced: true,
	}
}

// usual looks like most events.
func usual() Event {
	e := sample()
	e.BLEConnID, e.S3, e.S4, e.I2, e.I3, e.I4, e.Unsynced = "", "", "", Num(-31), Int{}, Int{}, false
	return e
}

// The golden lines are VEC-DAS-01 in the key order of peer-facts section 5.
func TestAppendLine(t *testing.T) {
	short := Event{Source: "vic-dasmgr", TS: 1, Seq: 0, Level: Info, RobotID: "00e20100", BootID: "b", Name: "das.allow_upload", I1: Num(0)}
	for _, tc := range []struct {
		name string
		e    Event
		want string
	}{
		{"all fields", sample(), `{"source":"vic-engine","ts":1760000000123,"seq":17,"level":"info","robot_id":"00e20100","robot_version":"2.0.1.6091",` +
			`"boot_id":"0f9a1c1e-2b0c-4a6e-8a55-0f2f8c6d1b7a","profile_id":"p1","feature_type":"onboarding","feature_run_id":"r1","ble_conn_id":"b1","wifi_conn_id":"w1",` +
			`"event":"behavior.feature.end","s1":"a","s2":"b","s3":"c","s4":"d","i1":0,"i2":-9223372036854775808,"i3":9223372036854775807,"i4":4,"uptime_ms":81234,"unsynced":true}`},
		{"unused fields are left out", short, `{"source":"vic-dasmgr","ts":1,"seq":0,"level":"info","robot_id":"00e20100","robot_version":"",` +
			`"boot_id":"b","profile_id":"","feature_type":"","feature_run_id":"","event":"das.allow_upload","i1":0,"uptime_ms":0}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			line := string(AppendLine(nil, &tc.e))
			if line != tc.want {
				t.Errorf("got  %s\nwant %s", line, tc.want)
			}
			std, err := json.Marshal(&tc.e)
			if err != nil || string(std) != line {
				t.Errorf("encoding/json writes %s, %v; AppendLine %s", std, err, line)
			}
			if back, err := ParseLine(line); err != nil || back != tc.e {
				t.Errorf("ParseLine = %+v, %v; want %+v", back, err, tc.e)
			}
			if err := tc.e.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]bool{
		"robot.crash": true, "AkAlsaSink": true, "calibrate_motors": true, "lift_motor_uncalibrated": true, "lift_motor_calibrate": false, "Behavior.PutDownReaction": true, "robot.vision.profiler.total": true, "hal.body_version": true,
		"mood.simple-mood": true, "": false, "robot": false, "robot.": false, ".crash": false, "robot..crash": false, " robot.crash": false,
		"rampost.dfu.desired_version ": false, "robot.cr ash": false, "robot.\x00": false, "r.é": false, "a." + strings.Repeat("b", MaxName): false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("CheckName(%q) = %v; want ok %v", name, err, want)
		}
	}
}

func TestFit(t *testing.T) {
	e := sample()
	e.Name, e.Level = " rampost.dfu.desired_version ", "" // VEC-DAS-02: some names were logged with a trailing blank
	e.S1 = strings.Repeat("é", MaxText)
	e.S2 = "a\x00b\xff"
	e.TS = -1
	e.Source = strings.Repeat("x", 2*MaxWord)
	e.Fit()
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	if e.Name != "rampost.dfu.desired_version" || e.Level != Info || len(e.S1) != MaxText || !utf8.ValidString(e.S1) || e.S2 != "a\uFFFDb\uFFFD" || e.TS != 0 {
		t.Errorf("Fit gives %+v", e)
	}
}

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Event){
		"name":       func(e *Event) { e.Name = "crash" },
		"seq":        func(e *Event) { e.Seq = MaxSeq + 1 },
		"ts":         func(e *Event) { e.TS = -1 },
		"level":      func(e *Event) { e.Level = "INFO" },
		"robot id":   func(e *Event) { e.RobotID = "" },
		"boot id":    func(e *Event) { e.BootID = "../x" },
		"long text":  func(e *Event) { e.S4 = strings.Repeat("x", MaxText+1) },
		"NUL":        func(e *Event) { e.S1 = "\x00" },
		"bad UTF-8":  func(e *Event) { e.ProfileID = "\xff" },
		"long word":  func(e *Event) { e.Source = strings.Repeat("x", MaxWord+1) },
		"feature id": func(e *Event) { e.FeatureRunID = strings.Repeat("x", MaxWord+1) },
	} {
		e := sample()
		spoil(&e)
		if err := e.Validate(); err == nil {
			t.Errorf("%s: passed", name)
		}
	}
}

func TestParseLineRefuses(t *testing.T) {
	for _, line := range []string{"", "{", "{}", "[]", "null", `{"seq":-1}`, `{"seq":1.5}`, `{"seq":01}`, `{"seq":1}x`, `{"seq":1,}`, `{"seq":1,"i1":9223372036854775808}`,
		`{"event":"a.b"}`, `{"seq":1,"event":5}`, `{"seq":1 "ts":2}`, `{"seq":"1"}`} {
		if e, err := ParseLine(line); err == nil {
			t.Errorf("ParseLine(%q) = %+v", line, e)
		}
	}
	e, err := ParseLine(`{ "seq": 3, "later_field": {"a":[1]}, "s1": "\u00e9\n", "i1": null }`)
	if err != nil || e.Seq != 3 || e.S1 != "é\n" || e.I1.Set {
		t.Errorf("a newer robot's line: %+v, %v", e, err)
	}
}

func FuzzParseLine(f *testing.F) {
	e := sample()
	f.Add(string(AppendLine(nil, &e)))
	f.Add(`{"seq":0,"unsynced":true,"i1":-0,"s1":"a","s1":"b"}`)
	f.Add(`{"seq":1,"seq":-9223372036854775808}`)
	f.Add(`{"SEQ":1,"s1":"<\u0000>"}`)
	f.Fuzz(func(t *testing.T, line string) {
		var fast Event
		if parsePlain(line, &fast) {
			slow, err := parseAny(line)
			if err != nil || slow != fast {
				t.Fatalf("parsePlain %+v\nparseAny %+v, %v", fast, slow, err)
			}
		}
		e, err := ParseLine(line)
		if err != nil {
			return
		}
		again, err := ParseLine(string(AppendLine(nil, &e)))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v\nread again %+v, %v", e, again, err)
		}
		e.RobotID, e.BootID, e.Name, e.Level, e.Seq = "r", "b", "a.b", "", min(e.Seq, MaxSeq)
		e.Fit()
		if err := e.Validate(); err != nil {
			t.Fatalf("after Fit: %v", err)
		}
		if n := len(AppendLine(nil, &e)); n > MaxLine {
			t.Fatalf("a valid event takes %d bytes; MaxLine is %d", n, MaxLine)
		}
	})
}

func BenchmarkParseLine(b *testing.B) {
	e := usual()
	line := string(AppendLine(nil, &e))
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseLine(line); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parseAny(line); err != nil {
				b.Fatal(err)
			}
		}
	})
}

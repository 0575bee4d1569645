package events

import (
	"strings"
	"testing"
)

// TestLogLine is VEC-LOG-09: the form of peer-facts section 5.
func TestLogLine(t *testing.T) {
	e := Event{Name: "robot.wifi_info", S1: "one", S3: "three\nlines\x1fof", I1: Num(0), I4: Num(-7), UptimeMS: 5120}
	const want = "@robot.wifi_info\x1fone\x1f\x1fthree lines of\x1f\x1f0\x1f\x1f\x1f-7\x1f5120"
	line := string(AppendLog(nil, &e))
	if line != want {
		t.Errorf("%q, want %q", line, want)
	}
	e.S3 = "three lines of"
	for name, tc := range map[string]struct {
		line string
		want Event
	}{
		"whole":        {want + "\n", e},
		"name alone":   {"@head_motor_calibrated", Event{Name: "head_motor_calibrated"}},
		"blank behind": {"@rampost.dfu.desired_version \x1f1.8", Event{Name: "rampost.dfu.desired_version", S1: "1.8"}}, // VEC-DAS-02
		"syslog": {"Nov 23 07:30:29 Vector-A1B2 warn vic-engine[812]: @robot.delocalized\x1f\x1f\x1f\x1f\x1f1",
			Event{Name: "robot.delocalized", I1: Num(1), Source: "vic-engine", Level: Warning}},
		"no program": {"[  12.5] @robot.delocalized", Event{Name: "robot.delocalized"}},
	} {
		if got, err := ParseLog(tc.line); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, tc.want)
		}
	}
	for line, want := range map[string]string{
		"07:30 mail to ann@example.com": "want @, an event's name",
		"plain":                         "want @, an event's name",
		"@\x1f":                         "want module.name",
		"@one\x1f":                      "want module.name",
		"@a.b\x1f\x1f\x1f\x1f\x1fx":     "i1 is \"x\": want a 64-bit integer",
		"@a.b\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f-1": "uptime is \"-1\": want milliseconds",
		"@a.b" + strings.Repeat("\x1f", 10):          "with 10 values",
		"@a.b\x1f" + strings.Repeat("x", MaxLine):    "want at most",
	} {
		if _, err := ParseLog(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", line, err, want)
		}
	}
}

// FuzzParseLog: an event that was read is written and read again as the same.
func FuzzParseLog(f *testing.F) {
	f.Add("Nov 23 07:30:29 v warn vic-engine[812]: @robot.delocalized\x1fa\x1f\x1f\x1f\x1f1\x1f\x1f\x1f\x1f5120")
	f.Add("@head_motor_calibrated")
	f.Add("@a.b\x1f\xff\x1f\r\x1f@c.d\x1f")
	f.Fuzz(func(t *testing.T, line string) {
		e, err := ParseLog(line)
		if err != nil {
			return
		}
		if !IsLog(line) {
			t.Errorf("%q is an event and not taken for one", line)
		}
		again, err := ParseLog(string(AppendLog(nil, &e)))
		for _, s := range []*string{&e.S1, &e.S2, &e.S3, &e.S4} {
			*s = oneField.Replace(*s)
		}
		e.Source, e.Level = "", ""
		if err != nil || again != e {
			t.Errorf("%q: %+v, read again %+v, %v", line, e, again, err)
		}
	})
}
